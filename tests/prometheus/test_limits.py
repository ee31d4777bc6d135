"""Real servers with low limits: the window is halved until each part is answered, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from gpureport.collect.sources.prometheus import Matcher, Server, read
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL

from . import edges
from .programs import program, prometheus, victoria_metrics
from .samples import bits, connect, rows_of

REGULAR = Matcher(METRIC_LABEL, "=", "edge_regular")
INSIDE = [(time_ms, bits(float(text))) for time_ms, text in edges.REGULAR_SAMPLES if edges.START_MS <= time_ms < edges.END_MS]
BY_MATRIX = Server("", "", "matrix")


@pytest.fixture(scope="module", params=["PROMETHEUS_BIN", "PROMETHEUS3_BIN"])
def narrow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    """A Prometheus that loads no more than 15 samples for a query; the window has 40."""
    with prometheus(program(request.param), blocks, tmp_path_factory.mktemp("narrow"), "--query.max-samples=15") as url:
        yield url


@pytest.fixture(scope="module")
def narrow_victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    lines = [f'edge_regular{{host="a"}} {text} {time_ms}' for time_ms, text in edges.REGULAR_SAMPLES]
    with victoria_metrics(tmp_path_factory.mktemp("narrow-victoria"), "-search.maxSamplesPerQuery=15") as url:
        requests.post(f"{url}/api/v1/import/prometheus", "\n".join(lines).encode(), timeout=60).raise_for_status()
        requests.get(f"{url}/internal/force_flush", timeout=60).raise_for_status()
        yield url


def test_a_window_that_is_too_much_is_halved(narrow: str) -> None:
    reading = read(connect(narrow), BY_MATRIX, [REGULAR], edges.WINDOW)
    assert rows_of(reading.batch) == {frozenset(edges.REGULAR.items()): INSIDE}
    assert reading.request_count > 1


def test_remote_read_streams_whatever_the_limit_of_a_query(narrow: str) -> None:
    reading = read(connect(narrow), Server("", "", "remote-read"), [REGULAR], edges.WINDOW)
    assert rows_of(reading.batch) == {frozenset(edges.REGULAR.items()): INSIDE}
    assert reading.request_count == 1


def test_victoria_metrics_counts_whole_blocks_so_that_its_limit_is_quoted(narrow_victoria: str) -> None:
    with pytest.raises(SourceError, match=r"-search\.maxSamplesPerQuery.*even a minute is too much"):
        read(connect(narrow_victoria), BY_MATRIX, [REGULAR], edges.WINDOW)


def test_where_even_a_minute_is_too_much_the_server_is_quoted(tmp_path: Path, blocks: Path) -> None:
    words = r"too many samples.*even a minute is too much"
    running = prometheus(program("PROMETHEUS_BIN"), blocks, tmp_path, "--query.max-samples=1")
    with running as url, pytest.raises(SourceError, match=words) as caught:
        read(connect(url), BY_MATRIX, [REGULAR], edges.WINDOW)
    assert caught.value.exit_code == 5
