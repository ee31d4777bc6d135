"""Copies merged by an order that was worked out for other values are what they are when merged by themselves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.shape.copies import CopyMerger, Points, merge_copies, merge_targets
from gpureport.collect.shape.identity import Provenance

TARGETS = [Provenance("dcgm", instance, "") for instance in ("a", "b")]
INSTANTS = st.lists(st.integers(0, 60), min_size=1, max_size=12, unique=True).map(lambda found: np.array(sorted(found), np.int64))
COPIES = st.lists(st.tuples(st.sampled_from(TARGETS), INSTANTS, st.booleans()), min_size=1, max_size=4)


@settings(max_examples=200)
@given(COPIES, st.lists(st.integers(0, 1000), min_size=2, max_size=3))
def test_signals_that_share_instants_are_merged_as_each_alone(
    drawn: list[tuple[Provenance, np.ndarray, bool]], seeds: list[int]
) -> None:
    merger, shared = CopyMerger(), []
    stale = [times[-1:] + 1 if is_marked else times[:0] for _, times, is_marked in drawn]
    for seed in seeds:
        values = np.random.default_rng(seed)
        copies = [
            (target, Points(times, values.integers(0, 9, times.size).astype(float), marked))
            for (target, times, _), marked in zip(drawn, stale, strict=True)
        ]
        found, expected = merger.merge(copies), merge_copies(copies)
        for name in ("times_ms", "values", "stale_ms"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        shared.append(found.times_ms)
    ranges = sorted((target, times[0], times[-1]) for target, times, _ in drawn)
    is_apart = all(one[0] != two[0] or one[2] < two[1] for one, two in pairwise(ranges))
    assert not is_apart or all(times is shared[0] for times in shared)


@pytest.mark.parametrize("steps", [(120, 15), (15, 120)])
def test_a_pause_is_measured_by_the_scrape_interval_of_its_hour(steps: tuple[int, int]) -> None:
    """Five hours with one interval, five with another. A pause of 5 minutes in each is a gap at 15 s, and none at 120 s."""
    times = np.concatenate([np.arange(0, 18_000, steps[0]), np.arange(18_000, 36_000, steps[1])])
    pauses = {steps[0]: (7200, 7500), steps[1]: (28_800, 29_100)}
    is_paused = np.logical_or.reduce([(times > start) & (times < end) for start, end in pauses.values()])
    serving, other = (Points(each * 1000, each / 1.0, times[:0]) for each in (times[~is_paused], times[1:-60] + 7))
    found = merge_targets([serving, other])
    filled = found.times_ms[~np.isin(found.times_ms, serving.times_ms)] // 1000
    start, end = pauses[15]
    assert filled.tolist() == [*range(start + 7, end, 15)]
