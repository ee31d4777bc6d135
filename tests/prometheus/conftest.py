"""Servers that hold the recording of an H200 and a few hand-made series at the edges; one of each for all workers."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import requests
from built_once import built_once, started_once

from . import churn, edges, fleet, moved
from .programs import fill_blocks, filled_with, program, prometheus, victoria_metrics

RECORDING = Path(__file__).parents[2] / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"
CONFIG = "global:\n  external_labels:\n    replica: r0\n    region: north\n"

PATHS = [
    ("prometheus2", "remote-read"),
    ("prometheus2", "matrix"),
    ("prometheus3", "remote-read"),
    ("prometheus3", "matrix"),
    ("victoria", "victoria-metrics"),
    ("victoria", "matrix"),
]


@pytest.fixture(params=PATHS, ids=" by ".join)
def path_and_url(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Every server by every path that it has."""
    fixture, path = request.param
    return path, request.getfixturevalue(fixture)


@pytest.fixture(scope="session")
def recording_text() -> str:
    return gzip.decompress(RECORDING.read_bytes()).decode()


@pytest.fixture(scope="session")
def blocks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, recording_text: str) -> Path:
    def fill(folder: Path) -> None:
        fill_blocks(folder / "data", recording_text, edges.TEXT)

    return built_once("blocks", fill, request, tmp_path_factory) / "data"


@pytest.fixture(scope="session")
def prometheus2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    start = partial(prometheus, program("PROMETHEUS_BIN"), blocks, config=CONFIG)
    with started_once("prometheus2", start, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def prometheus3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    start = partial(prometheus, program("PROMETHEUS3_BIN"), blocks, config=CONFIG)
    with started_once("prometheus3", start, request, tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def victoria(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, recording_text: str) -> Iterator[str]:
    with started_once("victoria", partial(_victoria_of, recording_text), request, tmp_path_factory) as url:
        yield url


@contextmanager
def _victoria_of(recording_text: str, folder: Path) -> Iterator[str]:
    """Its text format has times in milliseconds where OpenMetrics has seconds."""
    with victoria_metrics(folder) as url:
        for text in (recording_text, edges.TEXT):
            in_ms = re.sub(r"(?m) (\d+\.\d+)$", lambda found: f" {round(float(found[1]) * 1000)}", text)
            requests.post(f"{url}/api/v1/import/prometheus", in_ms.encode(), timeout=60).raise_for_status()
        requests.get(f"{url}/internal/force_flush", timeout=60).raise_for_status()
        yield url


@pytest.fixture(params=["prometheus2", "prometheus3"])
def any_prometheus(request: pytest.FixtureRequest) -> str:
    """Both generations: 2.x has closed ranges, 3.x left-open ones."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(scope="session")
def fleet_prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that holds a day of several nodes, one on which a card moved, and one on which pods followed each other."""
    with started_once("fleet", filled_with(fleet.TEXT, moved.TEXT, churn.TEXT), request, tmp_path_factory) as url:
        yield url
