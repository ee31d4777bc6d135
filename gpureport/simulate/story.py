"""All events on a node, and one day of them; in the review scenario, events are planned so that a report has one answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpureport.simulate.inventory import SICK_GPU, Node, make_node, role, stable_uuid
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.planted import Planted, Xid, make_planted
from gpureport.simulate.workload import Kind, Life, Phase, Pod, Slot, first_step, make_pods, make_slots
from gpureport.values.window import DAY_MS


@dataclass(frozen=True)
class NodeHistory:
    """A node with its pods and planted events over the whole plan."""

    plan: SimulationPlan
    node: Node
    planted: Planted
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class Day:
    """One day of a node; steps are counted from its midnight."""

    history: NodeHistory
    number: int

    @property
    def plan(self) -> SimulationPlan:
        """Return the plan of the simulation."""
        return self.history.plan

    @property
    def node(self) -> Node:
        """Return the node of the story."""
        return self.history.node

    @property
    def steps(self) -> int:
        """Return the number of scrapes per day."""
        return self.plan.steps_per_day

    @property
    def start_ms(self) -> int:
        """Return midnight in milliseconds since the epoch."""
        return self.plan.start_second * 1000 + self.number * DAY_MS

    def cut(self, start_step: int, end_step: int) -> slice:
        """Convert steps of the plan to steps of the day; empty where the day has none of them."""
        first = self.number * self.steps
        start = min(self.steps, max(0, start_step - first))
        return slice(start, max(start, min(self.steps, end_step - first)))

    def interval(self, pod: Pod) -> slice:
        """Return the steps in which the pod holds its slot."""
        return self.cut(first_step(self.plan, pod.life.start), first_step(self.plan, pod.life.end))


def node_history(plan: SimulationPlan, index: int) -> NodeHistory:
    """Return one node's story, determined only by the plan and the node's number."""
    node = make_node(plan, index)
    if plan.scenario == "review":
        planted = review_planted(plan, node)
        return NodeHistory(plan, node, planted, tuple(review_pods(plan, node, planted)))
    planted = make_planted(plan, node)
    return NodeHistory(plan, node, planted, tuple(make_pods(plan, node, planted)))


def node_histories(plan: SimulationPlan) -> Iterator[NodeHistory]:
    """Return all nodes' stories, in order."""
    return (node_history(plan, index) for index in range(plan.node_count))


_DAY = 86_400
_HOUR = 3600
_WAIT = 12 * _HOUR
"""Waiting time of the starved team's pods; all other pods are placed within minutes."""
_XID_CODES = (63, 94, 48)
_HEAT_RATIO = 0.3

_IDLE = Kind("reserve", "research", "main", 0, (0, 0), 0.0, 0.0, (0.4, 0.4), (0, 0), "none")
_BANDWIDTH = Kind("embed", "search", "embedder", 0, (0.42, 0.42), 0.05, 1.6, (0.5, 0.5), (0, 0), "steady")
_TRAINER = Kind("pretrain", "research", "trainer", 0, (0.9, 0.9), 0.62, 0.45, (0.7, 0.7), (0, 0), "steady")
_STARVED = Kind("segment", "vision", "trainer", 0, (0.85, 0.85), 0.5, 0.4, (0.6, 0.6), (0, 0), "steady")
_TENANT = Kind("rank", "serving", "ranker", 0, (0.8, 0.8), 0.3, 0.3, (0.7, 0.7), (0, 0), "steady")


def review_pods(plan: SimulationPlan, node: Node, planted: Planted) -> list[Pod]:
    """Return the node's pods: planned for special roles, else random, without idle pods or throttling."""
    found = role(plan, node.index)
    if found == "troubled":
        return list(_troubled(plan, node))
    if found == "rack":
        return [_pod(plan, _slot(node, 0, tuple(range(len(node.gpus)))), _TRAINER, *_whole_plan(plan), _thermal_phase(plan))]
    return [] if found == "stranded" else make_pods(plan, node, planted)


def review_planted(plan: SimulationPlan, node: Node) -> Planted:
    """Return no gaps and no resets; only the sick GPU has XID errors, of three kinds, spread over the plan."""
    if role(plan, node.index) != "troubled":
        return Planted((), (), (), ())
    quarter = plan.step_count // (len(_XID_CODES) + 1)
    xids = tuple(Xid(SICK_GPU, quarter * (number + 1), code) for number, code in enumerate(_XID_CODES))
    return Planted((), (), (), xids)


def _troubled(plan: SimulationPlan, node: Node) -> Iterator[Pod]:
    """Yield pods: GPUs 0-1 idle, 2 bandwidth-bound, 3 sick, 4-6 used by a starved team, 7 used by its only instance."""
    tenth = (plan.end_second - plan.start_second) // 10 // _HOUR * _HOUR
    start, end = plan.start_second + tenth, plan.start_second + 8 * tenth
    yield _pod(plan, _slot(node, 0, (0, 1)), _IDLE, start - 60, start, end)
    yield _pod(plan, _slot(node, 1, (2,)), _BANDWIDTH, *_whole_plan(plan))
    yield _pod(plan, _slot(node, 2, (SICK_GPU,)), _TRAINER, *_whole_plan(plan))
    for number, row in enumerate((4, 5, 6)):
        yield from _daily_pods(plan, _slot(node, 3 + number, (row,)))
    cut = make_slots(plan, node)[-1]
    yield _pod(plan, Slot(node, 6, cut.rows, "", cut.resource), _TENANT, *_whole_plan(plan))


def _daily_pods(plan: SimulationPlan, slot: Slot) -> Iterator[Pod]:
    """Yield one pod per day on a slot, each requested 12 h before its placement."""
    for day in range(plan.days):
        start = plan.start_second + day * _DAY + _WAIT
        yield _pod(plan, slot, _STARVED, start - _WAIT, start, start + _DAY - _HOUR)


def _slot(node: Node, index: int, rows: tuple[int, ...]) -> Slot:
    return Slot(node, index, rows, "", "nvidia.com/gpu")


def _whole_plan(plan: SimulationPlan) -> tuple[int, int, int]:
    """Return creation, start and end of a pod that runs from before the plan until after it."""
    return plan.start_second - _DAY - 60, plan.start_second - _DAY, plan.end_second + _DAY


def _thermal_phase(plan: SimulationPlan) -> Phase:
    """Return a thermal phase from a quarter to three fifths of the plan."""
    return Phase("thermal", plan.step_count // 4, plan.step_count * 3 // 5, _HEAT_RATIO)


def _pod(plan: SimulationPlan, slot: Slot, kind: Kind, created: int, start: int, end: int, phase: Phase | None = None) -> Pod:
    name = f"{kind.stem}-{slot.node.index}-{slot.index}-{max(0, start - plan.start_second) // _DAY}"
    life = Life(kind, created, start, end, is_failed=False)
    return Pod(name, stable_uuid(plan, "pod", name, start), slot, life, kind.load[0], kind.memory[0], phase)
