"""One lake and one report for all tests of a module."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest
from built_once import built_once
from golden_case import NOW

from gpureport.cli import main
from traps.notation import openmetrics, series_lines
from traps.telling import Said

SHARED = "shared"


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the module's lake and report."""
    module = request.module
    return built_once(module.__name__, lambda folder: tell(module, folder), request, tmp_path_factory)


def tell(module: ModuleType, folder: Path) -> None:
    lake = folder / "lake"
    for cluster, text in clusters(module).items():
        file = folder / f"{cluster}.txt"
        file.write_text(text)
        gpureport("import", file, "--cluster", cluster, "--lake", lake)
    gpureport("compute", "--date", "2026-11-20", "--lake", lake)
    window = ("--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T14:00:00Z")
    gpureport("report", *window, "--lake", lake, "--out", folder / "out")


def clusters(module: ModuleType) -> dict[str, str]:
    """Cluster → OpenMetrics text of the tests that are in it."""
    lines: dict[str, list[str]] = {}
    for name, (cluster, mark) in places(module).items():
        samples = getattr(module, name).samples
        lines.setdefault(cluster, []).extend(series_lines(samples.text, samples.step_seconds, mark))
    return {cluster: openmetrics(found) for cluster, found in lines.items()}


def places(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Test → its cluster, and the mark behind its names there."""
    tests = {name: test for name, test in inspect.getmembers(module, inspect.isfunction) if hasattr(test, "samples")}
    return {
        name: (name, "") if test.samples.is_alone else (SHARED, f"~{number}") for number, (name, test) in enumerate(tests.items())
    }


def gpureport(*arguments: str | Path) -> None:
    assert main(list(map(str, arguments)), environ={}, now=NOW) == 0


@pytest.fixture
def said(request: pytest.FixtureRequest, told: Path) -> Said:
    """What the report says of the test's own samples."""
    return Said(told / "lake", told / "out" / "gpureport.duckdb", *places(request.module)[request.function.__name__])
