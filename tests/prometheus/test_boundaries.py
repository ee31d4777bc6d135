"""[start, end) on servers with closed ranges (2.x) and left-open ones (3.x), whole and in parts; odd values bit for bit."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from gpureport.collect.sources.prometheus import Labelled, Matcher, list_series, one_of, probe, read, samples_per_hour
from gpureport.values.series import METRIC_LABEL
from gpureport.values.window import Window, from_ms

from . import edges
from .samples import bits, connect, rows_of, value_of

RECORDED_AT = from_ms(1_795_218_700_575)
"""The recording's first sample; the others of a signal follow each second."""
GPU = Matcher(METRIC_LABEL, "=~", "DCGM_.+")
EDGES = Matcher(METRIC_LABEL, "=~", "edge_.+")


def read_edges(path_and_url: tuple[str, str], window: Window, expected_samples: int = 0, **settings: object) -> dict:
    path, url = path_and_url
    connection = connect(url, read_path=path, **settings)
    return rows_of(read(connection, probe(connection), [EDGES], window, expected_samples).batch)


def test_a_sample_at_the_start_is_in_and_one_at_the_end_is_out(path_and_url: tuple[str, str]) -> None:
    rows = read_edges(path_and_url, edges.WINDOW)
    times = [time for time, _ in rows[frozenset(edges.REGULAR.items())]]
    assert times == list(range(edges.START_MS, edges.END_MS, edges.STEP_MS))
    assert frozenset(edges.JUST_OUTSIDE.items()) not in rows


def test_a_window_of_one_millisecond_holds_the_sample_at_its_start(path_and_url: tuple[str, str]) -> None:
    instant = Window(edges.WINDOW.start_at, edges.WINDOW.start_at + timedelta(milliseconds=1))
    rows = read_edges(path_and_url, instant)
    assert rows[frozenset(edges.REGULAR.items())] == [(edges.START_MS, bits(0.5))]


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_parts_of_a_window_lose_and_double_nothing(path_and_url: tuple[str, str], parts: int) -> None:
    cut = read_edges(path_and_url, edges.WINDOW, expected_samples=parts * 1_000_000)
    assert cut == read_edges(path_and_url, edges.WINDOW)


@pytest.mark.parametrize("path", ["remote-read", "matrix"])
def test_infinities_nan_and_extreme_values_come_through(any_prometheus: str, path: str) -> None:
    found = read_edges((path, any_prometheus), edges.WINDOW)[frozenset(edges.ODD.items())]
    assert [time for time, _ in found] == [time for time, _ in edges.ODD_SAMPLES]
    for (_, got), (_, text) in zip(found, edges.ODD_SAMPLES, strict=True):
        assert math.isnan(value_of(got)) if text == "NaN" else got == bits(float(text))


@pytest.mark.parametrize(("server", "before"), [("prometheus2", {"edge_outside": 1}), ("prometheus3", {"edge_outside": 0})])
def test_a_servers_own_count_is_that_of_its_samples_or_more(
    request: pytest.FixtureRequest, server: str, before: dict[str, int]
) -> None:
    """2.x counts the sample just before the start too: such a day is fetched for nothing, never left out."""
    labelled = Labelled(connect(request.getfixturevalue(server)), edges.WINDOW)
    counts = labelled.sample_counts(["edge_regular", "edge_odd", "edge_outside", "edge_none"], [])
    assert counts == {"edge_regular": 40, "edge_odd": 7, **before}
    assert labelled.sample_counts(["edge_odd"], [Matcher("host", "=", "b")]) == {"edge_odd": 0}


@pytest.mark.parametrize("path", ["victoria-metrics", "matrix"])
def test_victoria_metrics_keeps_infinities(victoria: str, path: str) -> None:
    found = read_edges((path, victoria), edges.WINDOW)[frozenset(edges.ODD.items())]
    assert [value_of(got) for _, got in found][:2] == [math.inf, -math.inf]


@pytest.mark.parametrize("bounds", [(0, 1), (17, 18), (0, 23), (23, 24)])
@pytest.mark.parametrize("path", ["remote-read", "matrix"])
def test_cuts_on_the_instant_of_a_sample_lose_and_double_nothing(any_prometheus: str, path: str, bounds: tuple[int, int]) -> None:
    """Cut where the recording has samples on both sides and in between, whole milliseconds apart."""
    connection = connect(any_prometheus, read_path=path)
    server = probe(connection)
    whole = Window(RECORDED_AT, RECORDED_AT + timedelta(seconds=24))
    parts = [
        Window(RECORDED_AT + timedelta(seconds=left), RECORDED_AT + timedelta(seconds=right))
        for left, right in sorted({(0, bounds[0]), bounds, (bounds[1], 24)})
        if right > left
    ]
    together: dict = {}
    for part in parts:
        for series, samples in rows_of(read(connection, server, [GPU], part).batch).items():
            together.setdefault(series, []).extend(samples)
    assert together == rows_of(read(connection, server, [GPU], whole).batch)


PICKED = [slice(0, 1), slice(4, 5), slice(12, 13), slice(13, 14), slice(14, 15), slice(0, 15, 2), slice(1, 15, 2)]


@pytest.mark.parametrize("picked", PICKED, ids=str)
def test_label_values_are_taken_literally(path_and_url: tuple[str, str], picked: slice) -> None:
    path, url = path_and_url
    connection = connect(url, read_path=path)
    wanted = edges.HOSTS[picked]
    conditions = [Matcher(METRIC_LABEL, "=", "named"), one_of("host", wanted)]
    batch = read(connection, probe(connection), conditions, edges.WINDOW).batch
    assert sorted(labels["host"] for labels in batch.labels) == sorted(wanted)
    series, _ = list_series(connection, conditions, edges.WINDOW)
    assert sorted(labels["host"] for labels in series) == sorted(wanted)
    assert [samples_per_hour(connection, labels, edges.WINDOW) for labels in series] == [1] * len(wanted)
