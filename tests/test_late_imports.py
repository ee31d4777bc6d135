"""Commands are imported late, by a list of their modules: all of them are in it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import click

from gpureport import cli, commands


def test_every_command_is_in_the_help_and_in_the_module_that_the_help_looks_in() -> None:
    modules = {each.name: import_module(f"gpureport.commands.{each.name}") for each in iter_modules(commands.__path__)}
    written = {
        each.name: name for name, module in modules.items() for each in vars(module).values() if isinstance(each, click.Command)
    }
    assert written == cli._MODULE_BY_COMMAND
    assert cli.cli.list_commands(click.Context(cli.cli)) == list(cli._MODULE_BY_COMMAND)


def test_help_waits_neither_for_the_configuration_nor_for_a_database() -> None:
    program = "import sys; from gpureport.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr.split()
    assert "gpureport.cli" in imported
    assert not {"duckdb", "numpy", "pyarrow", "pydantic", "rich"}.intersection(imported)
