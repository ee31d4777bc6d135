"""The command line: the group of commands, and errors as one sentence with an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import click

from gpureport import __version__
from gpureport.commands.options import Invocation
from gpureport.values.errors import GpureportError, UsageError
from gpureport.values.runtime.garbage import imported
from gpureport.values.runtime.stopping import EXIT_CODE, INTERRUPTED, TERMINATED, discard_output, is_terminated
from gpureport.values.text.log import start_log

_LOG = logging.getLogger(__name__)
_QUERY_INTERRUPTED = "Query interrupted"
"""Message of DuckDB's Python client for Ctrl-C during a statement."""
_MODULE_BY_COMMAND = {
    "demo": "reporting",
    "doctor": "doctor",
    "export": "collecting",
    "snapshot": "collecting",
    "import": "collecting",
    "compute": "reporting",
    "report": "reporting",
    "run": "nightly",
    "top": "querying",
    "diff": "querying",
    "whatif": "whatif",
    "sql": "querying",
    "schema": "querying",
    "prune": "nightly",
    "migrate": "nightly",
    "simulate": "collecting",
    "completion": "helping",
    "help": "helping",
}
"""The module of each command, in the order in which a new user needs them."""


class _Commands(click.Group):
    """Group that imports a command's module only when it is used: other imports were half of an export's start time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help."""
        return list(_MODULE_BY_COMMAND)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; None where there is none."""
        if cmd_name not in _MODULE_BY_COMMAND:
            return None
        module = imported(f"gpureport.commands.{_MODULE_BY_COMMAND[cmd_name]}")
        return next(each for each in vars(module).values() if isinstance(each, click.Command) and each.name == cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move ``--config`` before the command, so that it is also accepted after it."""
        for number, word in enumerate(args):
            if word == "--config" or word.startswith("--config="):
                end = number + (1 if "=" in word else 2)
                args = [*args[number:end], *args[:number], *args[end:]]
                break
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments. The UsageError for an unknown command suggests similar names."""
        if args and args[0] not in _MODULE_BY_COMMAND and not args[0].startswith("-"):
            close = get_close_matches(args[0], _MODULE_BY_COMMAND, n=2)
            hint = f"Did you mean {' or '.join(close)}?" if close else "Run gpureport --help for the list."
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpureport")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Configuration file (default: gpureport.toml in the working folder).",
)
@click.pass_context
def cli(context: click.Context, config_path: Path | None) -> None:
    """GPU usage reports from Prometheus and Kubernetes.

    export (or import) fills a lake of Parquet files, compute turns a day of it into hourly facts, report writes HTML, CSV, JSON
    and a DuckDB file. Each stage can be run again alone. 'run' does all three, every night.

    Settings come from gpureport.toml, then from the environment (GPUREPORT_SECTION__KEY), then from flags, which win. Data goes
    to standard output, the log to standard error.

    Exit codes: 0 done, 1 failure, 2 wrong usage or configuration, 3 --fail-on matched, 4 data coverage below --min-coverage, 5 a
    source could not be read.

    Example: gpureport demo
    """
    environ, now, lines = context.obj or (os.environ, datetime.now(UTC), start_log(os.environ))
    lines.command = context.invoked_subcommand or ""
    context.obj = Invocation(config_path, environ, now, lines)


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None, now: datetime | None = None) -> int:
    """Run a command and return its exit code (0 done, 1 failure, 2 usage, 3 findings, 4 coverage, 5 source)."""
    environ = os.environ if environ is None else environ
    lines = start_log(environ)
    shared = (environ, now or datetime.now(UTC), lines)
    try:
        cli.main(args=None if arguments is None else list(arguments), obj=shared, standalone_mode=False)
        sys.stdout.flush()
    except GpureportError as error:
        return _failed(str(error), error.exit_code)
    except click.ClickException as error:
        if lines.form == "json":
            _failed(error.format_message(), UsageError.exit_code)
        else:
            error.show()
        return UsageError.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _stopped()
    except RuntimeError as error:
        if str(error) != _QUERY_INTERRUPTED:
            raise
        return _stopped()
    except (BrokenPipeError, SystemExit):  # the reader of the output closed it, like `| head`; click and rich then exit
        discard_output()
    except OSError as error:
        discard_output()
        where, why = error.filename or "standard output", error.strerror or error
        return _failed(f"the system refused {where} ({why}); free space or give access, and run again", GpureportError.exit_code)
    return 0


def _stopped() -> int:
    return _failed(TERMINATED, EXIT_CODE) if is_terminated() else _failed(INTERRUPTED, GpureportError.exit_code)


def _failed(sentence: str, exit_code: int) -> int:
    """Log the reason; return the exit code."""
    _LOG.error(sentence, extra={"exit_code": exit_code})
    return exit_code
