"""One lake and one report for all tests of this folder that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from built_once import built_once
from golden_case import gpureport
from report_tables import keep_tables

from traps.notation import openmetrics, series_lines
from traps.results import Results

SHARED = "shared"
READ = (
    *("report.container_saturation", "report.container", "report.container_power", "report.device", "report.device_allocation"),
    *("report.energy", "report.energy_balance", "report.finding", "report.gpu_hour_ledger", "report.kepler_pod"),
    "facts.ownership",
)
"""The tables that tests read."""
Trap = Callable[..., None]


@pytest.fixture(scope="session")
def traps(request: pytest.FixtureRequest) -> list[Trap]:
    """The tests of this run that have samples."""
    found = {item.nodeid: item.function for item in request.session.items if isinstance(item, pytest.Function)}
    return [test for test in dict.fromkeys(found.values()) if hasattr(test, "samples")]


@pytest.fixture(scope="session")
def built(traps: list[Trap], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with their lake, and tables of its report."""
    return built_once("traps", lambda folder: build(traps, folder), request, tmp_path_factory)


def build(traps: Sequence[Trap], folder: Path) -> None:
    lake = folder / "lake"
    for cluster, text in clusters(traps).items():
        file = folder / f"{cluster}.txt"
        file.write_text(text)
        gpureport("import", file, "--cluster", cluster, "--lake", lake)
    gpureport("compute", "--date", "2026-11-20", "--lake", lake)
    keep_tables(lake, "2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z", READ, folder / "tables.duckdb")


def clusters(traps: Sequence[Trap]) -> dict[str, str]:
    """Cluster → OpenMetrics text of the tests that are in it."""
    lines: dict[str, list[str]] = {}
    for test, (cluster, mark) in zip(traps, places(traps), strict=True):
        samples = test.samples  # type: ignore[attr-defined]
        lines.setdefault(cluster, []).extend(series_lines(samples.text, samples.step_seconds, mark))
    return {cluster: openmetrics(found) for cluster, found in lines.items()}


def places(traps: Sequence[Trap]) -> list[tuple[str, str]]:
    """Each test's cluster, and the mark behind its names there."""
    return [
        (f"{test.__module__}.{test.__name__}", "") if test.samples.is_alone else (SHARED, f"~{number}")  # type: ignore[attr-defined]
        for number, test in enumerate(traps)
    ]


@pytest.fixture
def results(request: pytest.FixtureRequest, traps: list[Trap], built: Path) -> Results:
    """What the report shows of the test's own samples."""
    place = places(traps)[traps.index(request.function)]
    return Results(built / "lake", built / "tables.duckdb", *place)
