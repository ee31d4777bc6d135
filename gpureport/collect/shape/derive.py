"""Gauges out of counters and flags: growth per second, growth over another counter's growth, a mask of single bits.

A value stands at the instant where its span begins and holds to the next sample, so its time-weighted mean is exactly the
growth of the counter. Where growth is unknown (last sample, gap, reset) the signal pauses: a marker ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.spans import Flags, StepFallback, Values, distinct, is_among, spans

_MARGIN = 1.05
"""A counter is read some ms before or after its time stamp."""


def growth_per_second(counter: Points, fallback_step_ms: StepFallback, highest: float) -> Points:
    """A counter as the rate of its growth until the next sample, in its unit per second; above ``highest`` it is none."""
    rate = np.diff(counter.values) / (np.diff(counter.times_ms) / 1000)
    is_known = _linked(counter, fallback_step_ms) & (rate >= 0) & (rate <= highest * _MARGIN)
    return _gauge(counter, rate, is_known)


def growth_ratio(counter: Points, divisor: Points, fallback_step_ms: StepFallback) -> Points:
    """A counter's growth over another's, where both were sampled at one instant."""
    mine = is_among(counter.times_ms, divisor.times_ms)
    theirs = is_among(divisor.times_ms, counter.times_ms)
    shared = Points(counter.times_ms[mine], counter.values[mine], distinct([counter.stale_ms, divisor.stale_ms]))
    if not shared.count:
        return shared
    change, base = np.diff(shared.values), np.diff(divisor.values[theirs])
    is_known = _linked(shared, fallback_step_ms) & (change >= 0) & (base > 0)
    return _gauge(shared, np.divide(change, base, out=np.zeros(change.size), where=base > 0), is_known)


def mask_of(flags: Sequence[Points]) -> Points:
    """Flags, each worth its bit (0 or the bit's value), as one mask: at each instant the sum of those sampled then."""
    times = distinct([each.times_ms for each in flags])
    values = np.zeros(times.size)
    for each in flags:
        values[np.searchsorted(times, each.times_ms)] += each.values
    return Points(times, values, distinct([each.stale_ms for each in flags]))


def _linked(counter: Points, fallback_step_ms: StepFallback) -> Flags:
    return spans(counter.times_ms, counter.stale_ms, fallback_step_ms).is_linked[:-1]


def _gauge(counter: Points, values: Values, is_known: Flags) -> Points:
    """Values at the instants at which they begin; markers where one is not known."""
    known = np.append(is_known, False)
    times = counter.times_ms
    stale = distinct([counter.stale_ms, times[~known]])
    return Points(times[known], np.append(values, 0.0)[known], stale)
