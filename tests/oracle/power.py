"""Energy of a GPU and of its holders, span by span, from the rules alone.

Of each span of the power signal: its energy is the counter's growth; idle is the baseline's part of it; what is above goes to the
holders by their own utilisation where the span is active, and in equal parts where it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from oracle.device import Device, Owner, owner_of
from oracle.samples import Sample
from oracle.spans import Span, overlap_seconds

LEFT_OUT_MS = 60_000
BEGUN_RATIO = 1.1


@dataclass
class Energy:
    """Joules of a holder."""

    active: float = 0.0
    held: float = 0.0
    idle: float = 0.0
    kepler: float = 0.0
    held_seconds: float = 0.0


@dataclass
class Ledger:
    """Joules of a GPU: ``measured`` is idle + the holders' active and held + ``unattributed``."""

    idle_watts: float
    measured: float = 0.0
    idle: float = 0.0
    unattributed: float = 0.0
    held_seconds: float = 0.0
    held: float = 0.0
    holders: dict[Owner, Energy] = field(default_factory=lambda: defaultdict(Energy))


def ledger(device: Device, samples: list[Sample]) -> Ledger:
    """Where the energy of a device went; ``samples`` for the utilisation of its holders themselves."""
    found = Ledger(idle_watts(device))
    util = holders_util(samples)
    for span, start_ms, end_ms, owners in parts(device):
        grown = growth(device, span)
        if grown is None:
            continue
        part = (end_ms - start_ms) / (span.end_ms - span.start_ms)
        _share(found, device, span, grown * part, part, owners, util)
    return found


def _share(
    found: Ledger,
    device: Device,
    span: Span,
    joules: float,
    part: float,
    owners: list[Owner],
    util: dict[Owner, dict[int, float]],
) -> None:
    seconds = part * (span.end_ms - span.start_ms) / 1000
    idle = min(joules, found.idle_watts * seconds)
    above = joules - idle
    found.measured += joules
    found.idle += idle
    if not owners:
        found.unattributed += above
        return
    values = [util.get(owner, {}).get(span.start_ms) for owner in owners]
    is_active = is_board_active(device, span) or any(value for value in values)
    by_power = span.value * seconds
    begun = min(above, joules - by_power) if joules > BEGUN_RATIO * by_power else 0.0
    active, held = (above, 0.0) if is_active else (begun, above - begun)
    known = [value for value in values if value is not None]
    is_reported = len(known) == len(owners) and sum(known) > 0
    for owner, value in zip(owners, values, strict=True):
        holder = found.holders[owner]
        share = value / sum(known) if is_reported and value is not None else 1 / len(owners)
        holder.active += active * share
        holder.held += held / len(owners)
        holder.idle += idle / len(owners)
        holder.kepler += above * share
        holder.held_seconds += 0.0 if is_active else seconds
    found.held += held
    found.held_seconds += 0.0 if is_active else seconds


def parts(device: Device) -> Iterator[tuple[Span, int, int, list[Owner]]]:
    """The spans of power, cut where a holder comes or goes; the holders of each part."""
    bounds = sorted({bound for found in device.owners.values() for run in found for bound in (run.start_ms, run.end_ms)})
    for span in device.signals["power_watts"]:
        cuts = [span.start_ms, *(bound for bound in bounds if span.start_ms < bound < span.end_ms), span.end_ms]
        for start_ms, end_ms in pairwise(cuts):
            owners = [
                owner
                for owner, found in device.owners.items()
                if any(run.start_ms <= start_ms and end_ms <= run.end_ms for run in found)
            ]
            yield span, start_ms, end_ms, owners


def growth(device: Device, span: Span) -> float | None:
    """The growth of the counter over a span; None where it has none: the last sample's time is not measured."""
    [counter] = [each for each in device.signals["energy_joules"] if each.start_ms == span.start_ms]
    return counter.increase


def in_force(device: Device, signal: str, at_ms: int) -> float:
    """A signal's value at an instant; 0 where it has none."""
    return next((span.value for span in device.signals.get(signal, []) if span.start_ms <= at_ms < span.end_ms), 0.0)


def is_board_active(device: Device, span: Span) -> bool:
    """The GPU's own signals show activity at the span's start."""
    return (
        in_force(device, "gpu_util", span.start_ms) > 0
        or in_force(device, "gr_engine_active", span.start_ms) >= 0.001
        or in_force(device, "sm_active", span.start_ms) >= 0.001
        or in_force(device, "pcie_tx", span.start_ms) >= 100e6
        or in_force(device, "pcie_rx", span.start_ms) >= 100e6
    )


def idle_watts(device: Device) -> float:
    """The power that a twentieth of the free time did not exceed: not held, nor in the minute before, nor active."""
    free: dict[int, float] = defaultdict(float)
    for span in device.signals["power_watts"]:
        if not is_board_active(device, span):
            free[round(span.value)] += free_seconds(device, span)
    total = sum(free.values())
    reached = 0.0
    for watts in sorted(free):
        reached += free[watts]
        if reached >= 0.05 * total:
            return float(watts)
    raise AssertionError("never free")


def free_seconds(device: Device, span: Span) -> float:
    """Seconds of a span in which nobody holds the device or did a minute before."""
    taken = sorted((run.start_ms, run.end_ms + LEFT_OUT_MS) for found in device.owners.values() for run in found)
    at, total = span.start_ms, 0.0
    for start_ms, end_ms in taken:
        total += overlap_seconds(span, at, max(at, start_ms))
        at = max(at, end_ms)
    return total + overlap_seconds(span, at, max(at, span.end_ms))


def holders_util(samples: list[Sample]) -> dict[Owner, dict[int, float]]:
    """The utilisation of holders themselves: GPU_UTIL with a pod, where the device's own stands beside it."""
    found: dict[Owner, dict[int, float]] = defaultdict(dict)
    for sample in samples:
        if sample.metric == "DCGM_FI_DEV_GPU_UTIL" and sample.label("pod"):
            found[owner_of(sample)][sample.time_ms] = sample.value
    return found
