"""Planted events of a node, in scrape steps: gaps, exporter restarts, driver reloads and XID errors."""

from __future__ import annotations

from dataclasses import dataclass

from gpureport.simulate.inventory import Node, random
from gpureport.simulate.plan import SimulationPlan

XID_MESSAGES = {
    13: "graphics engine exception",
    31: "memory page fault",
    43: "GPU stopped processing",
    48: "double bit ECC error",
    63: "row remapping recorded",
    74: "NVLink error",
    94: "contained ECC error",
    119: "GSP RPC timeout",
}
_CODES = tuple(XID_MESSAGES)
_PURPOSE = 1
_SHOWCASE_EVERY = 16
"""Every 16th node, from the first, has all kinds of events on the first day, so that small clusters have them."""


@dataclass(frozen=True)
class Gap:
    """Steps [start_step, end_step) without a scrape of the node's exporter."""

    start_step: int
    end_step: int
    cause: str


@dataclass(frozen=True)
class Xid:
    """An XID error on a GPU, reported from a step on."""

    gpu_index: int
    step: int
    code: int


@dataclass(frozen=True)
class Planted:
    """All events of a node over the plan, in order of time."""

    gaps: tuple[Gap, ...]
    restart_steps: tuple[int, ...]
    reload_steps: tuple[int, ...]
    xids: tuple[Xid, ...]

    def reload_intervals(self) -> list[tuple[int, int]]:
        """Return steps [start, end) of driver reloads, when no pod can run."""
        return [(gap.start_step, gap.end_step) for gap in self.gaps if gap.cause == "driver reload"]


def make_planted(plan: SimulationPlan, node: Node) -> Planted:
    """Return the node's events; a day's events depend only on seed, node and day."""
    gaps: list[Gap] = []
    xids: list[Xid] = []
    for day in range(plan.days):
        day_gaps = _day_gaps(plan, node, day)
        gaps += day_gaps
        xids += _day_xids(plan, node, day, day_gaps)
    restarts = tuple(gap.end_step for gap in gaps if gap.cause == "exporter restart")
    reloads = tuple(gap.end_step for gap in gaps if gap.cause == "driver reload")
    return Planted(tuple(gaps), restarts, reloads, tuple(sorted(xids, key=lambda xid: xid.step)))


def _is_showcase(node: Node, day: int) -> bool:
    return day == 0 and node.index % _SHOWCASE_EVERY == 0


def _day_gaps(plan: SimulationPlan, node: Node, day: int) -> list[Gap]:
    """Return at most one gap of each kind; each kind has its own third of the day, so gaps never touch."""
    draw = random(plan, _PURPOSE, node.index, day)
    third = plan.steps_per_day // 3
    kinds = (("scrape gap", 0.15, 2, 40), ("driver reload", 0.02, 4, 12), ("exporter restart", 0.05, 1, 3))
    gaps = []
    for number, (cause, chance, least, most) in enumerate(kinds):
        is_planted = draw.random() < chance or _is_showcase(node, day)
        length = int(draw.integers(least, most))
        start = day * plan.steps_per_day + number * third + int(draw.integers(third // 8, third // 2))
        if is_planted and third > 4 * length:
            gaps.append(Gap(start, start + length, cause))
    return gaps


def _day_xids(plan: SimulationPlan, node: Node, day: int, gaps: list[Gap]) -> list[Xid]:
    """Return XID errors outside gaps; the code changes every day, because a repeated code would not be visible."""
    draw = random(plan, _PURPOSE, node.index, day, 1)
    steps = plan.steps_per_day
    xids = []
    for gpu in node.gpus:
        is_planted = draw.random() < 0.01 or (_is_showcase(node, day) and gpu.index == len(node.gpus) - 1)
        step = day * steps + int(draw.integers(steps // 8, steps))
        if is_planted and not any(gap.start_step <= step < gap.end_step for gap in gaps):
            xids.append(Xid(gpu.index, step, _CODES[(2 * day + gpu.index + node.index) % len(_CODES)]))
    return xids
