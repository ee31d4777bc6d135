"""Servers that hold the recording of an H200 and a few hand-made series at the edges; one of each per test process."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from . import churn, edges, fleet, moved
from .programs import fill_blocks, program, prometheus, victoria_metrics

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
def blocks(tmp_path_factory: pytest.TempPathFactory, recording_text: str) -> Path:
    folder = tmp_path_factory.mktemp("blocks") / "data"
    fill_blocks(folder, recording_text, edges.TEXT)
    return folder


@pytest.fixture(scope="session")
def prometheus2(tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    with prometheus(program("PROMETHEUS_BIN"), blocks, tmp_path_factory.mktemp("prometheus2"), config=CONFIG) as url:
        yield url


@pytest.fixture(scope="session")
def prometheus3(tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    with prometheus(program("PROMETHEUS3_BIN"), blocks, tmp_path_factory.mktemp("prometheus3"), config=CONFIG) as url:
        yield url


@pytest.fixture(scope="session")
def victoria(tmp_path_factory: pytest.TempPathFactory, recording_text: str) -> Iterator[str]:
    """Its text format has times in milliseconds where OpenMetrics has seconds."""
    with victoria_metrics(tmp_path_factory.mktemp("victoria")) as url:
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
def fleet_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that holds a day of several nodes, one on which a card moved, and one on which pods followed each other."""
    folder = tmp_path_factory.mktemp("fleet")
    fill_blocks(folder / "blocks", fleet.TEXT, moved.TEXT, churn.TEXT)
    with prometheus(program("PROMETHEUS_BIN"), folder / "blocks", folder / "server") as url:
        yield url
