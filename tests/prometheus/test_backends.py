"""Servers that lack remote read, warn, limit or are busy."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pytest

from gpureport.collect.export import ExportSettings, export_day
from gpureport.collect.sources import exchange
from gpureport.collect.sources.prometheus import Matcher, Server, list_series, probe, read
from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.catalog import load_catalog
from gpureport.values.errors import AuthError, SourceError
from gpureport.values.series import METRIC_LABEL

from . import backends
from .backends import DEVICE, SAMPLES, WINDOW
from .replay import BUILD_INFO, Reply, Routes, as_json, failure, one_after_the_other, replaying, success
from .samples import connect, rows_of

GPU = Matcher(METRIC_LABEL, "=", "DCGM_FI_DEV_GPU_UTIL")
BY_MATRIX = Server("Prometheus", "", "matrix")
DAY = date(2026, 11, 20)
STORE_DOWN = "No StoreAPIs matched for this query"

UNSUPPORTED = Reply(400, b'unsupported path requested: "/api/v1/read"', "text/plain")
AMP_NOT_FOUND = as_json({"message": None}, 404)
WITHOUT_REMOTE_READ: dict[str, Routes] = {
    "Thanos": backends.thanos(),
    "an old VictoriaMetrics behind a proxy": {**backends.thanos(), "/api/v1/read": UNSUPPORTED},
    "Amazon's managed service": {**backends.thanos(), BUILD_INFO: AMP_NOT_FOUND, "/api/v1/read": AMP_NOT_FOUND},
    "a server that samples instead of streaming": backends.prometheus(Reply(body=b"", content_type="application/x-protobuf")),
}


@pytest.mark.parametrize("routes", WITHOUT_REMOTE_READ.values(), ids=WITHOUT_REMOTE_READ)
def test_without_streamed_remote_read_the_matrix_is_read(routes: Routes) -> None:
    with replaying(routes) as server:
        connection = connect(server.url)
        found = probe(connection)
        reading = read(connection, found, [GPU], WINDOW)
    assert found.read_path == reading.read_path == "matrix"
    assert rows_of(reading.batch) == {frozenset(DEVICE.items()): SAMPLES}


@pytest.mark.parametrize("end", ["", "/"])
def test_an_api_below_a_prefix_is_read(end: str) -> None:
    routes = {f"/select/0/prometheus{path}": answer for path, answer in backends.prometheus().items()}
    with replaying(routes) as server:
        connection = connect(f"{server.url}/select/0/prometheus{end}")
        reading = read(connection, probe(connection), [GPU], WINDOW)
    assert reading.read_path == "remote-read"
    assert rows_of(reading.batch) == {frozenset(DEVICE.items()): SAMPLES}


def test_warnings_of_a_successful_answer_are_kept_once() -> None:
    with replaying(backends.thanos(STORE_DOWN)) as server:
        connection = connect(server.url)
        reading = read(connection, probe(connection), [GPU], WINDOW, expected_samples=2_400_000)
        _, warnings = list_series(connection, [GPU], WINDOW)
    assert reading.request_count > 1
    assert reading.warnings == warnings == [STORE_DOWN]


def test_a_partial_answer_of_a_victoria_metrics_cluster_is_a_warning() -> None:
    with replaying({**backends.thanos(), "/api/v1/query": backends.query(isPartial=True)}) as server:
        reading = read(connect(server.url), BY_MATRIX, [GPU], WINDOW)
    assert reading.warnings == ["the answer is partial"]


def test_an_export_with_warnings_says_so_in_the_lake(tmp_path: Path) -> None:
    with replaying(backends.thanos(STORE_DOWN)) as server:
        prometheus = PrometheusSettings(url=server.url)
        settings = ExportSettings(prometheus, {}, load_catalog(), "lab", samples_per_group=1_000_000, keep_raw=False)
        exported = export_day(settings, tmp_path, DAY, lambda done, total: None)
    assert exported.warnings == (STORE_DOWN,)
    (warnings,) = duckdb.connect().sql(f"select distinct warnings from '{tmp_path}/source/**/*.parquet'").fetchall()
    assert warnings == ([STORE_DOWN],)


def test_mimir_without_a_tenant_is_told_which_header_to_set() -> None:
    routes = {path: Reply(401, b"no org id\n", "text/plain") for path in (BUILD_INFO, "/api/v1/series", "/api/v1/query")}
    with replaying(routes) as server, pytest.raises(AuthError, match="X-Scope-OrgID"):
        probe(connect(server.url))


LIMITS = {
    "Prometheus": (422, "execution", "query processing would load too many samples into memory in query execution"),
    "Prometheus' clock": (503, "timeout", "query timed out in expression evaluation"),
    "Mimir": (
        422,
        "execution",
        "the query exceeded the maximum number of chunks (limit: 2000000) (err-mimir-max-chunks-per-query)",
    ),
    "Amazon": (400, "bad_data", "Timestamps must be valid and time range cannot exceed 32 days"),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_question_that_is_too_large_is_halved_until_it_is_answered(limit: tuple[int, str, str]) -> None:
    quarter_ms = (WINDOW.end_ms - WINDOW.start_ms) // 4
    with replaying({"/api/v1/query": backends.refusing_above(quarter_ms, *limit)}) as server:
        reading = read(connect(server.url, retries=3), BY_MATRIX, [GPU], WINDOW)
    assert rows_of(reading.batch) == {frozenset(DEVICE.items()): SAMPLES}
    assert reading.request_count == len(server.requests) == 7  # the whole, two halves, four quarters


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_server_that_will_not_even_give_a_minute_is_an_error(limit: tuple[int, str, str]) -> None:
    with replaying({"/api/v1/query": failure(*limit)}) as server, pytest.raises(SourceError, match="even a minute is too much"):
        read(connect(server.url), BY_MATRIX, [GPU], WINDOW)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_that_is_busy_for_a_moment_is_asked_again(status: int) -> None:
    busy = Reply(status, b"busy", "text/plain")
    with replaying({"/api/v1/series": one_after_the_other(busy, success([DEVICE]))}) as server:
        series, _ = list_series(connect(server.url, retries=1), [GPU], WINDOW)
    assert series == [DEVICE]
    assert server.count("/api/v1/series") == 2


@pytest.mark.parametrize(("said", "least", "most"), [("7", 7, 7), ("\u00b2", 0.2, 0.25)], ids=["seconds", "no number"])
def test_a_server_that_says_how_long_to_wait_is_given_that_long(
    said: str, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(exchange.time, "sleep", waits.append)
    busy = Reply(429, b"slow down", "text/plain", {"Retry-After": said})
    with replaying({"/api/v1/series": one_after_the_other(busy, success([DEVICE]))}) as server:
        list_series(connect(server.url, retries=1), [GPU], WINDOW)
    [waited] = waits
    assert least <= waited <= most


def test_the_attempts_of_a_question_outlast_a_restart_and_a_reader_is_told_that_they_go_on(
    retries: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(exchange.time, "sleep", waits.append)
    with replaying({"/api/v1/series": Reply(503, b"starting", "text/plain")}) as server, pytest.raises(SourceError):
        list_series(connect(server.url, retries=retries), [GPU], WINDOW)
    assert 60 <= sum(waits) <= 150
    [message] = caplog.messages
    assert message.startswith("trying again, for up to two minutes: ") and "answered 503: starting" in message


def test_a_server_that_stays_busy_is_an_error_in_its_own_words() -> None:
    with replaying({"/api/v1/series": failure(503, "unavailable", "Service Unavailable: WAL replay")}) as server:
        with pytest.raises(SourceError, match=r"answered 503: Service Unavailable: WAL replay; retry later"):
            list_series(connect(server.url, retries=1), [GPU], WINDOW)
        assert server.count("/api/v1/series") == 2


def test_a_refusal_is_not_repeated() -> None:
    with replaying({"/api/v1/series": failure(400, "bad_data", "parse error")}) as server:
        with pytest.raises(SourceError, match="parse error"):
            list_series(connect(server.url, retries=3), [GPU], WINDOW)
        assert server.count("/api/v1/series") == 1
