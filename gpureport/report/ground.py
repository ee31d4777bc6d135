"""What the drill-down is made from: the tables, and what is looked up in them again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from gpureport import formats
from gpureport.report.ledger import BUCKETS, HELD, by_holder
from gpureport.report.results import Result
from gpureport.report.timelines import CONTAINER, DEVICE, Key
from gpureport.report.unknown import Unknown
from gpureport.report.workloads import Workload

TEAMS_SHOWN = 40
CARDS_SHOWN = 40
TEAM = ("cluster", "namespace")


@dataclass(frozen=True)
class Places:
    """Where in the page a team, a container or a device is told of, by key; '' where only the files tell of it."""

    teams: Mapping[Key, str] = field(default_factory=dict)
    containers: Mapping[Key, str] = field(default_factory=dict)
    devices: Mapping[Key, str] = field(default_factory=dict)

    def of(self, column: str, row: Mapping[str, Any]) -> str:
        """The place behind a cell of a table's row."""
        keys, places = {
            "namespace": (TEAM, self.teams),
            "pod": (CONTAINER, self.containers),
            "device_uuid": (DEVICE, self.devices),
        }.get(column, ((), {}))
        return places.get(tuple(str(row.get(key, "")) for key in keys), "") if keys else ""


@dataclass(frozen=True)
class AboveIdle:
    """What a container's devices drew for it above idle; unknown where that of any of them is.

    ``is_least``: one of them was never seen idle, so the lowest that it drew stands for that, and it may have been more.
    """

    joules: float | None = None
    is_least: bool = False

    @property
    def told(self) -> str:
        """As people read it."""
        return f"{'≥ ' if self.is_least and self.joules is not None else ''}{formats.energy(self.joules)}"


@dataclass(frozen=True)
class Ground:
    """The tables, and what is looked up in them again and again."""

    tables: Mapping[str, Result]
    hours: Mapping[Key, Mapping[str, float]]
    """By pod (HOLDER), GPU-hours by bucket."""
    joules: Mapping[Key, AboveIdle]
    keys: Sequence[Key]
    """Containers, the most GPU-hours first."""
    numbers: Mapping[Key, int]
    """Row of report.container by key."""
    places: Places
    largest_gpu_hours: float
    """Held by the team that holds the most."""
    workloads: Mapping[Key, Workload]
    """By pod (HOLDER), of those whose maker is known."""


def read_ground(tables: Mapping[str, Result], workloads: Mapping[Key, Workload]) -> Ground:
    """From the report's tables, and what is known of the pods' makers."""
    hours = by_holder(tables.get("gpu_hour_ledger"))
    rows = tables["container"].rows.select(*CONTAINER, "device_seconds").rows()
    numbers = {tuple(row[:5]): number for number, row in enumerate(rows)}
    weights = {tuple(row[:5]): (held(hours.get(row[:4], {})), row[5] or 0.0) for row in rows}
    keys = sorted(weights, key=lambda key: (*(-each for each in weights[key]), key))
    by_team: dict[Key, float] = {key[:2]: 0.0 for key in keys}
    for holder, buckets in hours.items():
        by_team[holder[:2]] = by_team.get(holder[:2], 0.0) + held(buckets)
    places, largest = _places(tables, by_team, keys), max(by_team.values(), default=0.0)
    return Ground(tables, hours, _joules(tables.get("container_power")), keys, numbers, places, largest, workloads)


def _places(tables: Mapping[str, Result], by_team: Mapping[Key, float], keys: Sequence[Key]) -> Places:
    teams = sorted(by_team, key=lambda team: (-by_team[team], team))[:TEAMS_SHOWN]
    return Places(
        {key: f"team-{number}" for number, key in enumerate(teams, 1)},
        {key: f"container-{number}" for number, key in enumerate(keys[:CARDS_SHOWN], 1)},
        {key: f"device-{number}" for number, key in enumerate(_devices_first(tables), 1)},
    )


def _devices_first(tables: Mapping[str, Result]) -> list[Key]:
    """Those with errors, then the longest seen."""
    if "device" not in tables:
        return []
    rows = tables["device"].rows.select(*DEVICE, "xid_error_count", "observed_seconds").rows()
    rows.sort(key=lambda row: (-(row[3] or 0), -(row[4] or 0.0), row[:3]))
    return [row[:3] for row in rows[:CARDS_SHOWN]]


def held(buckets: Mapping[str, float]) -> float:
    """GPU-hours held, of GPU-hours by bucket."""
    return sum(buckets.get(name, 0.0) for name in HELD)


def _joules(power: Result | None) -> dict[Key, AboveIdle]:
    """By container."""
    if power is None or power.rows.height == 0:
        return {}
    own = pl.col("active_joules") + pl.col("held_joules")
    summed = pl.when(own.is_null().any()).then(None).otherwise(own.sum())
    parts = power.rows.group_by(*CONTAINER, maintain_order=True)
    rows = parts.agg(summed.alias("joules"), is_least().any().alias("is_least")).rows()
    return {tuple(row[:5]): AboveIdle(*row[5:]) for row in rows}


def is_least() -> pl.Expr:
    """Whether a row's energy above idle is a lower bound: neither its device nor another of its model was ever seen free."""
    return pl.col("idle_source").fill_null("").str.contains("lowest_seen", literal=True)


def hours_told(buckets: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    """GPU-hours held, and the parts that matter."""
    told = (("held", held(buckets)), *((bucket.title.lower(), buckets.get(bucket.name, 0.0)) for bucket in BUCKETS[:4]))
    return tuple((title, formats.gpu_hours(found)) for title, found in told if found or title in ("held", "held idle"))


def effective_told(buckets: Mapping[str, float]) -> str:
    """GPU-hours that were effective; at least so many where some of the busy ones may have been, a dash where all of them may."""
    busy, known = buckets.get("allocated_busy", 0.0), buckets.get("effective", 0.0)
    if busy and not known and not buckets.get("allocated_ineffective", 0.0):
        return Unknown("SM activity is not measured")
    return f"{'≥ ' if busy else ''}{formats.significant(known)}"


Told = tuple[Mapping[str, Any], Mapping[str, str]]
"""A row, and why figures of it are unknown."""


def where(result: Result | None, columns: Sequence[str], key: Key) -> list[Told]:
    """The table's rows of a key; [] without the table."""
    if result is None:
        return []
    wanted = pl.all_horizontal([pl.col(column) == found for column, found in zip(columns, key, strict=True)])
    rows = result.rows.with_row_index("number").filter(wanted)
    return [(row, result.reasons[row["number"]]) for row in rows.iter_rows(named=True)]
