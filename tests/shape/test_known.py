"""Labels read once for many metrics say what each series' labels say when read alone."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.shape.identity import KnownLabels, identify
from gpureport.collect.shape.loops import equal_to, extents
from gpureport.collect.shape.reading import Reading
from gpureport.values.catalog import load_catalog
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch

CATALOG = load_catalog()
READING = Reading(frozenset({"relabelled"}))
METRICS = st.sampled_from(
    ["", "unknown", *sorted(metric for metric in CATALOG.requested if "DCGM" in metric or "amd" in metric or "nvidia" in metric)]
)
NAMES = st.sampled_from(["UUID", "uuid", "GPU_I_ID", "pod", "exported_pod", "namespace", "job", "serial_number", "Hostname", "Z"])
LABELS = st.dictionaries(NAMES, st.sampled_from(["", "a", "GPU-1", "relabelled", "é"]), max_size=7)


def named(metric: str, rest: Labels) -> Labels:
    return {METRIC_LABEL: metric, **rest}


def hash_of(labels: Labels) -> int:
    pairs = sorted((name, value) for name, value in labels.items() if value)
    text = "\0".join(f"{name}\1{value}" for name, value in pairs)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


@settings(max_examples=200)
@given(st.lists(METRICS, min_size=1, max_size=12), st.lists(LABELS, min_size=1, max_size=3))
def test_identity_and_hash_are_those_of_each_series_alone(metrics: list[str], others: list[Labels]) -> None:
    known = KnownLabels(CATALOG, READING)
    for rest in others:
        for labels in [rest, *(named(metric, rest) for metric in metrics)]:
            alone = identify(labels, CATALOG, READING)
            assert known.read(labels) == (None if alone is None else (alone, hash_of(labels)))


SERIES = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, -1.5, 3.0, float("inf"), float("nan")])), max_size=6)


@settings(max_examples=200)
@given(st.lists(SERIES, max_size=5))
def test_extents_are_those_of_each_series_alone(series: list[list[tuple[int, float]]]) -> None:
    offsets = np.cumsum([0, *(len(each) for each in series)])
    samples = [pair for each in series for pair in each]
    times, values = np.array([time for time, _ in samples], np.int64), np.array([value for _, value in samples], np.float64)
    found = extents(SeriesBatch([{}] * len(series), offsets, times, values))
    for number, each in enumerate(series):
        own = np.array([value for _, value in each])
        expected = (own.min(), own.max()) if each else (np.nan, np.nan)
        np.testing.assert_array_equal((found.lowest[number], found.highest[number]), expected)
        instants = [time for time, _ in each]
        assert found.is_rising[number] == all(one < two for one, two in pairwise(instants))
        assert not each or found.is_whole[number] == all(value == np.floor(value) for _, value in each)


@settings(max_examples=200)
@given(st.lists(SERIES, min_size=1, max_size=5))
def test_series_with_the_same_instants_are_found(series: list[list[tuple[int, float]]]) -> None:
    offsets = np.cumsum([0, *(len(each) for each in series)])
    samples = [pair for each in series for pair in each]
    times, values = np.array([time for time, _ in samples], np.int64), np.array([value for _, value in samples], np.float64)
    first = [next(number for number, other in enumerate(series) if len(other) == len(each)) for each in series]
    expected = [
        [time for time, _ in series[other]] == [time for time, _ in each] for other, each in zip(first, series, strict=True)
    ]
    found = equal_to(SeriesBatch([{}] * len(series), offsets, times, values), np.array(first))
    assert found.tolist() == expected
