"""All that happens on a node, and one day of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpureport.simulate.inventory import Node, make_node
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.planted import Planted, make_planted
from gpureport.simulate.review import review_planted, review_pods
from gpureport.simulate.workload import Pod, first_step, make_pods
from gpureport.values.window import DAY_MS


@dataclass(frozen=True)
class NodeStory:
    """A node with its pods and planted events over the whole plan."""

    plan: SimulationPlan
    node: Node
    planted: Planted
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class Day:
    """A day of a node; steps are counted from its midnight."""

    story: NodeStory
    number: int

    @property
    def plan(self) -> SimulationPlan:
        """The plan."""
        return self.story.plan

    @property
    def node(self) -> Node:
        """The node."""
        return self.story.node

    @property
    def steps(self) -> int:
        """Scrapes a day."""
        return self.plan.steps_per_day

    @property
    def start_ms(self) -> int:
        """Midnight, in milliseconds since the epoch."""
        return self.plan.start_second * 1000 + self.number * DAY_MS

    def cut(self, start_step: int, end_step: int) -> slice:
        """Steps of the plan as steps of the day; empty where the day has none of them."""
        first = self.number * self.steps
        start = min(self.steps, max(0, start_step - first))
        return slice(start, max(start, min(self.steps, end_step - first)))

    def span(self, pod: Pod) -> slice:
        """The steps at which the pod holds its slot."""
        return self.cut(first_step(self.plan, pod.life.start), first_step(self.plan, pod.life.end))


def node_story(plan: SimulationPlan, index: int) -> NodeStory:
    """One node's story, made from the plan and the node's number alone."""
    node = make_node(plan, index)
    if plan.scenario == "review":
        planted = review_planted(plan, node)
        return NodeStory(plan, node, planted, tuple(review_pods(plan, node, planted)))
    planted = make_planted(plan, node)
    return NodeStory(plan, node, planted, tuple(make_pods(plan, node, planted)))


def stories(plan: SimulationPlan) -> Iterator[NodeStory]:
    """Every node's story, in order."""
    return (node_story(plan, index) for index in range(plan.node_count))
