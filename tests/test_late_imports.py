"""What is imported late is named twice, for types and for when it is asked for: both say the same, and all of it is there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click

from gpureport import cli, commands, pipeline


def test_a_function_of_the_pipeline_is_asked_for_where_its_type_is_read() -> None:
    tree = ast.parse(Path(pipeline.__file__).read_text())
    imports = [
        each for branch in tree.body if isinstance(branch, ast.If) for each in branch.body if isinstance(each, ast.ImportFrom)
    ]
    typed = {alias.name: each.module for each in imports for alias in each.names}
    assert sorted(typed) == pipeline.__all__
    assert {name: f"gpureport.pipeline.{home}" for name, home in pipeline._HOME_OF.items()} == typed
    for name, module in typed.items():
        assert getattr(pipeline, name) is vars(import_module(str(module)))[name]
        assert getattr(pipeline, name).__module__ == module


def test_every_command_is_in_the_help_and_in_the_module_that_the_help_looks_in() -> None:
    modules = {each.name: import_module(f"gpureport.commands.{each.name}") for each in iter_modules(commands.__path__)}
    written = {
        each.name: name for name, module in modules.items() for each in vars(module).values() if isinstance(each, click.Command)
    }
    assert written == cli._HOME_OF
    assert cli.cli.list_commands(click.Context(cli.cli)) == list(cli._HOME_OF)
