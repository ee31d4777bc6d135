"""Whatever came, and however: the intervals that ``shape`` makes add up to what the oracle integrates.

The oracle keeps every signal by itself and never cuts at an hour; ``shape`` puts signals side by side and does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.spans import gap_growth, linked_growth, overlap_seconds

from gpureport.collect.shape import shape
from gpureport.values.catalog import load_catalog
from gpureport.values.series import STALE_BITS, SeriesBatch
from gpureport.values.window import HOUR_MS, Window, from_ms

CATALOG = load_catalog()
NOON_MS = 1_795_176_000_000
STALE = float(np.array([STALE_BITS], np.uint64).view(np.float64)[0])
STEPS_MS = (1_000, 15_000, 30_000, 60_000)
Spans = list[oracle.Span]


class Drawn(NamedTuple):
    """One device signal: its values and markers by instant, and how they are handed over."""

    metric: str
    values: dict[int, float]
    stale_ms: list[int]
    nan_ms: list[int]
    seed: int


@st.composite
def instants(draw: st.DrawFn) -> list[int]:
    """Instants of a scrape: steady, jittered, with scrapes left out and with gaps of up to two hours."""
    step = draw(st.sampled_from(STEPS_MS))
    gap = st.one_of(
        st.just(step),
        st.integers(-step // 10, step // 10).map(lambda jitter: step + jitter),
        st.integers(2, 5).map(lambda missed: step * missed),
        st.integers(1, 2 * HOUR_MS),
    )
    first = NOON_MS + draw(st.integers(-HOUR_MS, 2 * HOUR_MS))
    deltas = draw(st.lists(st.one_of(st.just(step), gap), max_size=40))
    return [first, *np.cumsum([first, *deltas])[1:].tolist()] if deltas else [first]


@st.composite
def signals(draw: st.DrawFn, metric: str, values_of: Callable[[st.DrawFn, list[int]], list[float]]) -> Drawn:
    times = draw(instants())
    values = dict(zip(times, values_of(draw, times), strict=True))
    free = st.integers(times[0], times[-1] + 120_000).filter(lambda instant: instant not in values)
    odd = draw(st.lists(free, max_size=3, unique=True))
    cut = draw(st.integers(0, len(odd)))
    return Drawn(metric, values, sorted(odd[:cut]), sorted(odd[cut:]), draw(st.integers(0, 2**16)))


def gauge(draw: st.DrawFn, times: list[int]) -> list[float]:
    return draw(st.lists(st.integers(1, 700).map(float), min_size=len(times), max_size=len(times)))


def counter(draw: st.DrawFn, times: list[int]) -> list[float]:
    """Nanoseconds that grow by at most the time that passed, and start anew now and then.

    Not where the next sample would be back above: that may as well be one stray sample, which the tests of the physics gate have.
    """
    shares = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, None]), min_size=len(times), max_size=len(times)))
    grown = [(share or 0.0) * (now - before) * 1e6 for before, now, share in zip([times[0], *times], times, shares, strict=False)]
    value, found = 0.0, []
    for share, growth, following in zip(shares, grown, [*grown[1:], 0.0], strict=True):
        value = 0.0 if share is None and following < value else value + growth
        found.append(value)
    return found


windows = st.tuples(st.integers(-HOUR_MS, HOUR_MS), st.integers(60_000, 4 * HOUR_MS)).map(
    lambda drawn: Window(from_ms(NOON_MS + drawn[0]), from_ms(NOON_MS + drawn[0]) + timedelta(milliseconds=drawn[1]))
)


def batch(*drawn: Drawn) -> SeriesBatch:
    """The signals as a source may hand them over: each split over copies and pieces, shuffled, some samples twice."""
    pieces: list[tuple[dict[str, str], list[tuple[int, float]]]] = []
    for signal in drawn:
        pieces += _pieces(signal)
    lengths = [len(samples) for _, samples in pieces]
    return SeriesBatch(
        labels=[labels for labels, _ in pieces],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        times_ms=np.array([time for _, samples in pieces for time, _ in samples], np.int64),
        values=np.array([value for _, samples in pieces for _, value in samples], np.float64),
    )


def _pieces(signal: Drawn) -> list[tuple[dict[str, str], list[tuple[int, float]]]]:
    mixed = random.Random(signal.seed)
    held: dict[str, list[tuple[int, float]]] = {"p1": [], "p2": []}
    for time, value in [*signal.values.items(), *((time, math.nan) for time in signal.nan_ms)]:
        for pod in mixed.choice([["p1"], ["p2"], ["p1", "p2"]]):
            held[pod] += [(time, value)] * mixed.choice([1, 1, 1, 2])
    found = []
    for pod, each in held.items():
        each += [(time, STALE) for time in signal.stale_ms]  # a failed scrape ends all series of its target
        mixed.shuffle(each)
        cut = mixed.randint(0, len(each))
        labels = {"__name__": signal.metric, "UUID": "GPU-a", "Hostname": "n1", "job": "dcgm", "pod": pod, "namespace": "ns"}
        found += [(labels, part) for part in (each[:cut], each[cut:]) if part]
    return found


def spans_of(signal: Drawn, factor: float) -> Spans:
    steps = _copy_steps(signal)
    fallback = math.floor(median(steps)) if len(steps) >= 3 else None
    return oracle.spans({time: value * factor for time, value in signal.values.items()}, signal.stale_ms, fallback)


def _copy_steps(signal: Drawn) -> list[int]:
    """The steps of every copy of the metric: what serves hours that have too few of their own."""
    by_pod: dict[str, set[int]] = {}
    for labels, samples in _pieces(signal):
        by_pod.setdefault(labels["pod"], set()).update(time for time, _ in samples if time in signal.values)
    found = []
    for times in map(sorted, by_pod.values()):
        found += [after - before for before, after in pairwise(times)]
    return found


def rows_of(window: Window, *drawn: Drawn) -> list[dict[str, Any]]:
    return list(shape(batch(*drawn), CATALOG, window).device_sample.to_pylist())


def total(rows: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float | None]) -> float:
    return math.fsum(value for row in rows if (value := of(row)) is not None)


def held(rows: Sequence[dict[str, Any]], *columns: str) -> float:
    """Seconds in which all these columns are known."""
    return total(rows, lambda row: row["held_seconds"] if all(row[name] is not None for name in columns) else None)


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def pairs(one: st.SearchStrategy[Drawn], other: st.SearchStrategy[Drawn]) -> st.SearchStrategy[tuple[Drawn, Drawn]]:
    """Two signals of one device, split over copies alike, as the metrics of one exporter are."""
    return st.tuples(one, other).map(lambda drawn: (drawn[0], drawn[1]._replace(seed=drawn[0].seed)))


POWER = signals("DCGM_FI_DEV_POWER_USAGE", gauge)
VIOLATION = signals("DCGM_FI_DEV_POWER_VIOLATION", counter)
USED = signals("DCGM_FI_DEV_FB_USED", gauge)
FREE = signals("DCGM_FI_DEV_FB_FREE", gauge)


@settings(max_examples=100)
@given(POWER, windows)
def test_a_gauge_has_the_oracles_seconds_and_integral(power: Drawn, window: Window) -> None:
    rows = rows_of(window, power)
    expected = spans_of(power, 1)
    assert held(rows, "power_watts") == close(oracle.seconds(expected, window.start_ms, window.end_ms))
    joules = total(rows, lambda row: row["power_watts"] * row["held_seconds"])
    assert joules == close(oracle.integral(expected, window.start_ms, window.end_ms))


@settings(max_examples=100)
@given(VIOLATION, windows)
def test_a_counter_has_the_oracles_growth_and_a_ratio_that_can_be(violation: Drawn, window: Window) -> None:
    rows = rows_of(window, violation)
    expected = spans_of(violation, 1e-9)
    grown, over = linked_growth(expected, window.start_ms, window.end_ms)
    found = total(rows, lambda row: row["power_violation_seconds_increase"])
    assert found == close(grown)
    assert held(rows, "power_violation_seconds_increase") == close(over)
    in_gaps = total(rows, lambda row: row["power_violation_seconds_gap_increase"])
    assert in_gaps == close(gap_growth(expected, window.start_ms, window.end_ms))
    assert 0 <= found <= over * (1 + 1e-9)


@settings(max_examples=120)
@given(pairs(POWER, VIOLATION), windows)
def test_seen_and_unseen_time_fill_the_window_and_rows_follow_one_another_within_an_hour(
    both: tuple[Drawn, Drawn], window: Window
) -> None:
    power, violation = both
    rows = rows_of(window, power, violation)
    every = sorted([*spans_of(power, 1), *spans_of(violation, 1e-9)], key=lambda span: span.start_ms)
    reached, unseen_ms = window.start_ms, 0
    for span in every:
        unseen_ms += max(0, min(span.start_ms, window.end_ms) - reached)
        reached = max(reached, min(span.end_ms, window.end_ms))
    unseen_ms += window.end_ms - reached
    assert held(rows) + unseen_ms / 1000 == close(window.seconds)
    reached = window.start_ms
    for start, length in ((oracle_ms(row["seen_at"]), round(row["held_seconds"] * 1000)) for row in rows):
        assert start >= reached and length > 0
        reached = start + length
        assert start // HOUR_MS == (reached - 1) // HOUR_MS
    assert reached <= window.end_ms


def oracle_ms(instant: Any) -> int:
    return int(np.datetime64(instant, "ms").astype(np.int64))


@settings(max_examples=100)
@given(pairs(USED, FREE), windows)
def test_a_ratio_of_two_signals_takes_what_is_in_force_of_both(pair: tuple[Drawn, Drawn], window: Window) -> None:
    used, free = pair
    rows = rows_of(window, used, free)
    seconds, weighted = [], []
    for one in spans_of(used, 1):
        for other in spans_of(free, 1):
            both = oracle.Span(max(one.start_ms, other.start_ms), min(one.end_ms, other.end_ms), 0, None, None)
            part = overlap_seconds(both, window.start_ms, window.end_ms)
            if one.value + other.value > 0 and part > 0:
                seconds.append(part)
                weighted.append(part * one.value / (one.value + other.value))
    known = [row for row in rows if row["fb_used_bytes"] is not None and row["fb_free_bytes"] is not None]
    known = [row for row in known if row["fb_used_bytes"] + row["fb_free_bytes"] > 0]
    assert held(known) == close(math.fsum(seconds))
    ratio_seconds = total(
        known, lambda row: row["held_seconds"] * row["fb_used_bytes"] / (row["fb_used_bytes"] + row["fb_free_bytes"])
    )
    assert ratio_seconds == close(math.fsum(weighted))
    assert 0 <= ratio_seconds <= held(known) * (1 + 1e-9)


@settings(max_examples=60)
@given(pairs(VIOLATION, POWER), windows, st.lists(st.integers(1, 4 * HOUR_MS - 1), max_size=3))
def test_parts_of_a_window_add_up_to_it(both: tuple[Drawn, Drawn], window: Window, cuts: list[int]) -> None:
    violation, power = both
    inner = sorted({window.start_ms + cut for cut in cuts if window.start_ms + cut < window.end_ms})
    bounds = [window.start_ms, *inner, window.end_ms]
    parts = [Window(from_ms(start), from_ms(end)) for start, end in pairwise(bounds)]
    whole = rows_of(window, violation, power)
    pieces = [row for part in parts for row in rows_of(part, violation, power)]
    for of in (
        lambda row: row["held_seconds"],
        lambda row: None if row["power_watts"] is None else row["power_watts"] * row["held_seconds"],
        lambda row: row["power_violation_seconds_increase"],
        lambda row: row["power_violation_seconds_gap_increase"],
    ):
        assert total(pieces, of) == close(total(whole, of))
