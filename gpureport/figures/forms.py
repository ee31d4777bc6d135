"""What many figures have in common: their forms, the signals behind them, and when they are absent."""

from __future__ import annotations

from gpureport.figures.figure import Figure

BOARD = "no sample of the signal; a MIG instance (only the board's is known)"
THROTTLE = "no sample of the bitmask; the violation counters do not replace it"
NOT_MAPPED = "no sample of the signal; every pod reads 0 while the device is busy"
POWER = "neither power nor an energy counter was seen"
COUNTER = "fewer than two samples of an energy counter"
IDLE = f"{POWER}; no baseline is known (idle_source)"

PCIE_LINK = ("pcie_link_generation", "pcie_link_width")
MEMORY = ("fb_used_bytes", "fb_free_bytes")
ACTIVITY = ("gpu_util_ratio", "gr_engine_active_ratio", "sm_active_ratio")
ANY_ACTIVITY = tuple((signal,) for signal in ACTIVITY)
POWERS = ("energy_joules", "power_watts")
EITHER = (("energy_joules",), ("power_watts",))
VIOLATIONS = (
    "power_violation_seconds",
    "thermal_violation_seconds",
    "sync_boost_violation_seconds",
    "board_limit_violation_seconds",
)


def mean(signal: str, absent: str = "") -> Figure:
    """A mean of a signal over the time in which it was known."""
    return Figure(f"∫ {signal} dt ÷ s in which it was known", (signal,), absent)


def largest(signal: str, absent: str = "") -> Figure:
    """The largest sample of a signal."""
    return Figure(f"largest sample of {signal}", (signal,), absent)


def violation(signal: str) -> Figure:
    """Growth of a violation counter as a share of the time over which it is known."""
    return Figure(f"growth of {signal} ÷ s over which its growth is known", (signal,), f"fewer than two samples; {BOARD}")


def reason_bits(bits: str, counter: str = "") -> Figure:
    """The share of time with bits of the mask set; first by the reason's own counter where there is one."""
    formula = f"s with {bits} set in throttle_reasons ÷ s in which it was known"
    if not counter:
        return Figure(formula, ("throttle_reasons",), THROTTLE)
    ways = ((counter,), ("throttle_reasons",))
    return Figure(
        f"growth of the reason's own counter ({counter}); without it {formula}", (counter, "throttle_reasons"), THROTTLE, ways
    )


def link_share(signal: str, *link: str) -> Figure:
    """Traffic as a share of what the link can carry."""
    formula = f"mean of {signal} ÷ bytes/s that the link can carry in one direction"
    return Figure(formula, (signal, *link), f"no sample of {signal}; what the link can carry is unknown")
