"""Simulated samples written directly into a lake, with the same result as a collection of the same series."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import pairwise

import numpy as np

from gpureport.collect.shape import Tally, shape
from gpureport.collect.sources.provenance import Origin, add_tallies, source_table
from gpureport.lake import Change, open_lake
from gpureport.simulate.exporter import GroupSimulation, node_groups
from gpureport.simulate.plan import SimulationPlan
from gpureport.store import Place
from gpureport.values.catalog import Catalog, load_catalog
from gpureport.values.runtime.parallel import Processes
from gpureport.values.series import SeriesBatch, concatenate
from gpureport.values.window import Window

_MARGIN = timedelta(minutes=15)
"""Margin of samples around a day, which determines the duration of the day's first and last samples."""

Tallies = list[Mapping[str, Tally]]


@dataclass(frozen=True)
class _Task:
    """Work on one node group, for a worker process."""

    plan: SimulationPlan
    catalog: Catalog
    change: Change
    cluster: str
    number: int
    group: range


def fill_lake(plan: SimulationPlan, place: Place, cluster: str, workers: int | None = None) -> int:
    """Write all simulated days of the cluster completely; return the number of samples.

    Each of ``workers`` processes (default: one per core) keeps three days of a node group in memory, about 0.5 GB.
    LakeError where the lake cannot be written.
    """
    catalog = load_catalog()
    lake = open_lake(place, create=True)
    with lake.change() as change:
        groups = enumerate(node_groups(plan))
        tasks = [_Task(plan, catalog, change, cluster, number, group) for number, group in groups]
        done = Processes(workers or os.cpu_count() or 1).each(_fill_group, tasks)
        for day_number in range(plan.days):
            _write_source(change, tasks[0], day_number, [tallies[day_number] for tallies in done])
    return sum(tally.sample_count for days in done for tallies in days for tally in tallies.values())


def _fill_group(task: _Task) -> Tallies:
    """Simulate, shape and stage one group, day by day; runs in a worker process."""
    write = partial(task.change.write, cluster=task.cluster, part=task.number)
    tallies: Tallies = []
    for day, batch in zip(task.plan.dates, _with_margins(task), strict=True):
        shaped = shape(batch, task.catalog, Window.of_day(day))
        for table, rows in shaped.tables().items():
            write(table, day=day, rows=rows)
        tallies.append(shaped.tallies)
    return tallies


def _with_margins(task: _Task) -> Iterator[SeriesBatch]:
    """Yield each day's batch with the last minutes of the previous day and the first minutes of the next."""
    simulation = GroupSimulation(task.plan, task.group)
    dates = task.plan.dates
    before: SeriesBatch | None = None
    current = simulation.batch(0)
    for number, date in enumerate(dates):
        after = simulation.batch(number + 1) if number + 1 < len(dates) else None
        window = Window.of_day(date).widened(_MARGIN)
        yield concatenate([current, *(_between(each, window) for each in (before, after) if each is not None)])
        if after is not None:
            before, current = current, after


def _between(batch: SeriesBatch, window: Window) -> SeriesBatch:
    """Return the batch's samples in [start, end)."""
    inside = (batch.times_ms >= window.start_ms) & (batch.times_ms < window.end_ms)
    counted = zip(batch.labels, pairwise(batch.offsets.tolist()), strict=True)
    kept = [(labels, count) for labels, (start, end) in counted if (count := int(np.count_nonzero(inside[start:end])))]
    offsets = np.cumsum([0, *(count for _, count in kept)]).astype(np.int64)
    return SeriesBatch([labels for labels, _ in kept], offsets, batch.times_ms[inside], batch.values[inside])


def _write_source(change: Change, task: _Task, day_number: int, tallies: Tallies) -> None:
    day = task.plan.dates[day_number]
    origin = Origin("simulation", f"seed {task.plan.seed}", "simulation")
    rows = source_table(add_tallies(tallies), task.catalog, origin, Window.of_day(day))
    change.write("source", task.cluster, day, rows)
