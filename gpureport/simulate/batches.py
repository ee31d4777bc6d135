"""The series of a cluster: one batch per day and node group, in the memory of that group and day."""

from __future__ import annotations

from collections.abc import Iterator

from gpureport.simulate.exporter import exporter_series, kube_series
from gpureport.simulate.physics import Carried, node_day
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import Day, node_story
from gpureport.values.series import SeriesBatch, concatenate

NODES_PER_GROUP = 16
"""128 GPUs: a group's day of 14 signals is about 5 million samples, 90 MB."""


def node_groups(plan: SimulationPlan) -> list[range]:
    """Node numbers by group."""
    firsts = range(0, plan.node_count, NODES_PER_GROUP)
    return [range(first, min(plan.node_count, first + NODES_PER_GROUP)) for first in firsts]


def simulate_batches(plan: SimulationPlan) -> Iterator[SeriesBatch]:
    """All samples, one batch per day and node group, days in order."""
    groups = [GroupSimulation(plan, group) for group in node_groups(plan)]
    for day_number in range(plan.days):
        for group in groups:
            yield group.batch(day_number)


class GroupSimulation:
    """The nodes of a group and where their counters stand. Days are to be asked in order."""

    def __init__(self, plan: SimulationPlan, group: range) -> None:
        self._stories = [node_story(plan, index) for index in group]
        self._carried = [Carried() for _ in group]

    def batch(self, day_number: int) -> SeriesBatch:
        """All series of the group on a day of the plan (0 = the first)."""
        batches = []
        for story, carried in zip(self._stories, self._carried, strict=True):
            day = Day(story, day_number)
            batches.append(exporter_series(day, node_day(day, carried)))
            if story.plan.kube_state_step_seconds:
                batches.append(kube_series(day))
        return concatenate(batches)
