"""Commands about commands: shell completion and help."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gpureport.values.errors import UsageError

_SHELLS = click.Choice(["bash", "zsh", "fish"])


@click.command()
@click.argument("shell", type=_SHELLS)
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    Example: gpureport completion bash > ~/.local/share/bash-completion/completions/gpureport
    """
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"There is no completion for {shell}.")
    click.echo(found(context.find_root().command, {}, "gpureport", "_GPUREPORT_COMPLETE").source())


@click.command("help")
@click.argument("command", required=False)
@click.pass_context
def help_(context: click.Context, command: str | None) -> None:
    """Show the help of a command.

    Example: gpureport help report
    """
    root = context.find_root()
    if command is None:
        click.echo(root.get_help())
        return
    assert isinstance(root.command, click.Group)
    _, found, _ = root.command.resolve_command(root, [command])
    if found is not None:
        click.echo(found.get_help(click.Context(found, info_name=command, parent=root)))
