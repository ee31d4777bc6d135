"""A series that its exporter no longer shows: remote read tells when it ended, the matrix only that no more came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gpureport.collect.sources.prometheus import Matcher, Server, list_series, read, samples_per_hour
from gpureport.collect.sources.prometheus.probe import ReadPath
from gpureport.values.series import METRIC_LABEL, SeriesBatch, is_stale
from gpureport.values.window import Window

from .programs import program, prometheus, victoria_metrics
from .replay import Replay, Reply, replaying
from .samples import connect

TEXT = "text/plain; version=0.0.4"
BOTH = Reply(body=b"stays 1\nends 2\n", content_type=TEXT)
ONE = Reply(body=b"stays 1\n", content_type=TEXT)
PATIENCE_SECONDS = 300.0


@pytest.fixture
def shown() -> list[Reply]:
    """What the exporter shows: its last element."""
    return [BOTH]


@pytest.fixture
def exporter(shown: list[Reply]) -> Iterator[Replay]:
    with replaying({"/metrics": lambda _: shown[-1]}) as server:
        yield server


def config_of(exporter: Replay) -> str:
    return (
        "global: {scrape_interval: 100ms, scrape_timeout: 100ms, external_labels: {replica: r0}}\n"
        f"scrape_configs: [{{job_name: test, static_configs: [{{targets: ['{exporter.url.removeprefix('http://')}']}}]}}]\n"
    )


@pytest.fixture(params=["PROMETHEUS_BIN", "PROMETHEUS3_BIN"])
def scraping(request: pytest.FixtureRequest, exporter: Replay, tmp_path: Path) -> Iterator[str]:
    with prometheus(program(request.param), None, tmp_path, config=config_of(exporter)) as url:
        yield url


def read_now(url: str, path: ReadPath, metric: str) -> SeriesBatch:
    now = datetime.now(UTC)
    window = Window(now - timedelta(minutes=30), now + timedelta(minutes=30))
    return read(connect(url), Server("", "", path), [Matcher(METRIC_LABEL, "=", metric)], window).batch


def wait_until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < give_up_at, "the server has not come so far"
        time.sleep(0.05)


def test_remote_read_shows_the_end_of_a_series_and_the_matrix_does_not(scraping: str, shown: list[Reply]) -> None:
    wait_until(lambda: read_now(scraping, "remote-read", "ends").sample_count >= 3)
    shown.append(ONE)
    wait_until(lambda: bool(is_stale(read_now(scraping, "remote-read", "ends").values).any()))
    by_read, by_matrix = read_now(scraping, "remote-read", "ends"), read_now(scraping, "matrix", "ends")
    assert is_stale(by_read.values).tolist() == [False] * (by_read.sample_count - 1) + [True]
    assert by_matrix.values.tolist() == [2.0] * (by_read.sample_count - 1)
    assert np.array_equal(by_matrix.times_ms, by_read.times_ms[:-1])
    assert not is_stale(read_now(scraping, "remote-read", "stays").values).any()


def test_victoria_metrics_keeps_the_marker_and_gives_it_as_null(exporter: Replay, shown: list[Reply], tmp_path: Path) -> None:
    """Or each outage of an exporter would count as held time, and a read by another path would have other intervals."""
    (tmp_path / "scrape.yml").write_text(config_of(exporter))
    with victoria_metrics(tmp_path / "vm", f"-promscrape.config={tmp_path / 'scrape.yml'}") as url:
        wait_until(lambda: read_now(url, "victoria-metrics", "ends").sample_count >= 3)
        shown.append(ONE)
        wait_until(lambda: bool(is_stale(read_now(url, "victoria-metrics", "ends").values)[-1]))
        ends, stays = read_now(url, "victoria-metrics", "ends"), read_now(url, "victoria-metrics", "stays")
    is_end, is_failure = is_stale(ends.values), is_stale(stays.values)
    assert is_end[-1]
    assert {*ends.values[~is_end].tolist()} == {2.0}
    # A scrape that takes longer than its interval, on a busy machine, marks both.
    assert {*ends.times_ms[is_end][:-1].tolist()} <= {*stays.times_ms[is_failure].tolist()}
    assert not is_failure.all()


UTF8 = Reply(body=b'gpu{"k8s.node.name"="a",zone="b"} 1\n', content_type="text/plain; version=1.0.0; escaping=allow-utf-8")


@pytest.mark.parametrize("scraping", ["PROMETHEUS3_BIN"], indirect=True)
def test_label_names_beyond_the_classic_ones_can_be_asked_for(scraping: str, shown: list[Reply]) -> None:
    shown.append(UTF8)
    for path in ("remote-read", "matrix"):
        wait_until(lambda path=path: read_now(scraping, path, "gpu").sample_count >= 3)  # type: ignore[misc]
    now = datetime.now(UTC)
    window = Window(now - timedelta(minutes=30), now + timedelta(minutes=30))
    ((labels,), _) = list_series(connect(scraping), [Matcher("k8s.node.name", "=", "a")], window)
    assert labels["zone"] == "b"
    assert (samples_per_hour(connect(scraping), labels, window) or 0) >= 3
