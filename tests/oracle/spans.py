"""From instants to spans: how long a value is in force and how far a counter grew meanwhile."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median

HOUR_MS = 3_600_000
GUESSED_STEP_MS = 60_000


@dataclass(frozen=True)
class Span:
    """A value in force over [start_ms, end_ms).

    ``increase``: growth to the next sample over exactly this span, None where it is not known.
    ``gap_increase``: growth over the gap or reset that ended at ``start_ms``, None where there was none.
    """

    start_ms: int
    end_ms: int
    value: float
    increase: float | None
    gap_increase: float | None


def spans(values: dict[int, float], stale_ms: list[int], fallback_step_ms: int | None) -> list[Span]:
    """Spans of one device signal: values by instant, instants of staleness markers, the step where an hour has too few."""
    times = sorted(values)
    found = []
    for position, start in enumerate(times):
        following = times[position + 1] if position + 1 < len(times) else None
        end = _end(times, start, following, stale_ms, fallback_step_ms)
        found.append(
            Span(
                start,
                end,
                values[start],
                _increase(values, start, end, following),
                _gap_increase(values, times, position, found[-1].end_ms if found else None),
            )
        )
    return found


def _end(times: list[int], start: int, following: int | None, stale_ms: list[int], fallback: int | None) -> int:
    step = step_at(times, start, fallback)
    ends = [start + step] if following is None else [following, start + 3 * step]
    ends += [marker for marker in stale_ms if marker > start]
    return min(ends)


def step_at(times: list[int], start: int, fallback: int | None) -> int:
    """The median step in force at an instant: the largest of its hour's and the two beside it, of those with three steps."""
    hour = start // HOUR_MS
    known = [step for near in (hour - 1, hour, hour + 1) if (step := _hour_steps(tuple(times)).get(near)) is not None]
    if known:
        return max(known)
    return GUESSED_STEP_MS if fallback is None else fallback


@lru_cache(64)
def _hour_steps(times: tuple[int, ...]) -> dict[int, int]:
    """The median step of each hour that has three."""
    steps: dict[int, list[int]] = defaultdict(list)
    for before, after in pairwise(times):
        steps[before // HOUR_MS].append(after - before)
    return {hour: math.floor(median(found)) for hour, found in steps.items() if len(found) >= 3}


def _increase(values: dict[int, float], start: int, end: int, following: int | None) -> float | None:
    if following is None or end != following or values[following] < values[start]:
        return None
    return values[following] - values[start]


def _gap_increase(values: dict[int, float], times: list[int], position: int, end_before: int | None) -> float | None:
    if end_before is None:
        return None
    before, now = values[times[position - 1]], values[times[position]]
    if now < before:
        return now
    return now - before if end_before != times[position] else None


def overlap_seconds(span: Span, start_ms: int, end_ms: int) -> float:
    """Seconds of a span within [start_ms, end_ms)."""
    return max(0, min(span.end_ms, end_ms) - max(span.start_ms, start_ms)) / 1000


def seconds(found: list[Span], start_ms: int, end_ms: int) -> float:
    """Seconds of [start_ms, end_ms) in which a value was in force."""
    return math.fsum(overlap_seconds(span, start_ms, end_ms) for span in found)


def integral(found: list[Span], start_ms: int, end_ms: int) -> float:
    """∫ value dt over [start_ms, end_ms), in value × seconds."""
    return math.fsum(span.value * overlap_seconds(span, start_ms, end_ms) for span in found)


def linked_growth(found: list[Span], start_ms: int, end_ms: int) -> tuple[float, float]:
    """Growth within [start_ms, end_ms) over spans whose growth is known, and the seconds of those spans."""
    grown, over = [], []
    for span in found:
        part = overlap_seconds(span, start_ms, end_ms)
        if span.increase is not None and part > 0:
            grown.append(span.increase * part * 1000 / (span.end_ms - span.start_ms))
            over.append(part)
    return math.fsum(grown), math.fsum(over)


def gap_growth(found: list[Span], start_ms: int, end_ms: int) -> float:
    """Growth over gaps and resets that ended within [start_ms, end_ms)."""
    return math.fsum(span.gap_increase for span in found if span.gap_increase is not None and start_ms <= span.start_ms < end_ms)
