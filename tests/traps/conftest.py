"""One lake and one report for all tests of a module."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from golden_case import NOW

from gpureport.cli import main
from traps.notation import openmetrics
from traps.telling import Said


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The module's lake, and the report's DuckDB file."""
    folder = tmp_path_factory.mktemp("traps")
    lake, out = folder / "lake", folder / "out"
    for name, text in samples_of(request.module):
        file = folder / f"{name}.txt"
        file.write_text(text)
        gpureport("import", file, "--cluster", name, "--lake", lake)
    gpureport("compute", "--date", "2026-11-20", "--lake", lake)
    window = ("--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T14:00:00Z")
    gpureport("report", *window, "--lake", lake, "--out", out)
    return lake, out / "gpureport.duckdb"


def samples_of(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Cluster and OpenMetrics text of each test that has samples."""
    for name, test in inspect.getmembers(module, inspect.isfunction):
        if hasattr(test, "samples"):
            yield name, openmetrics(*test.samples)


def gpureport(*arguments: str | Path) -> None:
    assert main(list(map(str, arguments)), environ={}, now=NOW) == 0


@pytest.fixture
def said(request: pytest.FixtureRequest, told: tuple[Path, Path]) -> Said:
    """What the report says of the test's own samples."""
    return Said(*told, request.function.__name__)
