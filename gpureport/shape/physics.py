"""What a device can physically do: power, and growth of its counters, beyond it are not believed, and counted by reason.

A value is never dropped because it is merely unlikely: the bounds are what no board does.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gpureport.shape.copies import Points
from gpureport.shape.spans import StepFallback, Times, Values, hourly_steps, spans
from gpureport.tables import SIGNAL_BY_NAME

if TYPE_CHECKING:
    from gpureport.shape.devices import DeviceSignals

_MARGIN = 1.5
_UNKNOWN_BOUND_WATTS = 3000.0
_HIGHEST_RATE = {"seconds": 1.05, "count": 1e6}
"""Growth per second, by unit: a clock is read some ms before or after its time stamp; a link repeats no more packets."""
_STUCK_MS = 600_000
_STUCK_JOULES = 10_000.0
_REASONS = ("outlier", "beyond_bound", "backward_step")


def believe(found: DeviceSignals, board_watts: float) -> None:
    """Take out of a device's signals what it cannot have done; ``board_watts`` is its model's, 0 where unknown."""
    bound = bound_watts(found.points.get("power_limit_watts"), board_watts)
    _bound_power(found, bound)
    for name, points in list(found.points.items()):
        signal = SIGNAL_BY_NAME[name]
        if signal.kind == "counter":
            is_energy = signal.unit == "joules"
            rate = (bound if is_energy else _HIGHEST_RATE[signal.unit]) / 1000
            beside = found.points.get("power_watts") if is_energy else None
            found.points[name] = _believed(points, rate, found.fallback[name], found.origin[name].dropped, beside)


def bound_watts(limit: Points | None, board_watts: float) -> float:
    """What the board cannot exceed; a limit counts that two samples show, for a single one may be wrong."""
    shown = 0.0
    if limit is not None:
        shown = float(np.partition(limit.values, -2)[-2]) if limit.count > 1 else float(limit.values[0])
    known = max(shown, board_watts)
    return _MARGIN * known if known > 0 else _UNKNOWN_BOUND_WATTS


def _bound_power(found: DeviceSignals, bound: float) -> None:
    power = found.points.get("power_watts")
    if power is None or power.values.max() <= bound:
        return
    kept = power.values <= bound
    found.origin["power_watts"].dropped["implausible"] += int((~kept).sum())
    if kept.any():
        found.points["power_watts"] = Points(power.times_ms[kept], power.values[kept], power.stale_ms)
    else:
        del found.points["power_watts"]


def _believed(points: Points, rate: float, fallback: StepFallback, dropped: Counter[str], power: Points | None) -> Points:
    """A counter with its outliers out and the growth marked that it cannot have had; ``rate`` is per ms."""
    from gpureport.shape.loops import is_suspect, judged

    if not is_suspect(points.times_ms, points.values, rate, _STUCK_MS if power is not None else 0):
        return points
    steps, _ = hourly_steps(points.times_ms, fallback)
    kept, refused, counts = judged(points.times_ms, points.values, steps, rate)
    dropped.update({reason: int(count) for reason, count in zip(_REASONS, counts, strict=True) if count})
    times, values, refused = points.times_ms[kept], points.values[kept], refused[kept]
    if power is not None and (stuck := _refuse_stuck(times, values, refused, steps[kept], rate, power)):
        dropped["stuck"] += stuck
    return Points(times, values, points.stale_ms, refused)


def _refuse_stuck(times: Times, values: Values, refused: Values, steps: Times, rate: float, power: Points) -> int:
    """Refuse the growth of a counter that stands still beside power; how many samples it stood still for.

    What it then catches up with in one step is the energy of that time, which power tells already.
    """
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    ends = np.append(starts[1:], values.size - 1)
    count = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if times[end] - times[start] < _STUCK_MS or _joules(power, int(times[start]), int(times[end])) < _STUCK_JOULES:
            continue
        last = end if values[end] == values[start] else end - 1
        refused[start:last] = 0.0
        growth = values[end] - values[last]
        if growth > rate * (times[end] - times[last] + steps[end]):
            refused[last] = growth
        count += int((~np.isnan(refused[start:end])).sum())
    return count


def _joules(power: Points, start_ms: int, end_ms: int) -> float:
    """∫P over a time, as far as power is in force."""
    first = max(0, int(np.searchsorted(power.times_ms, start_ms, side="right")) - 1)
    last = int(np.searchsorted(power.times_ms, end_ms, side="left"))
    if last <= first:
        return 0.0
    held = spans(power.times_ms[first:last], power.stale_ms, lambda: None)
    seconds = np.clip(held.ends_ms, start_ms, end_ms) - np.clip(held.times_ms, start_ms, end_ms)
    return float((seconds / 1000 * power.values[first:last]).sum())
