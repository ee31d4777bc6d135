"""From team to container to device by links inside the page: those with the most GPU-hours; the rest is in the CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.ledger import BUCKETS, HELD, Balance, added, by_holder
from gpureport.report.results import Result
from gpureport.report.timelines import CONTAINER, DEVICE, Key, courses, step_hours
from gpureport.report.use_strip import Strip, use_strip
from gpureport.window import Window

TEAMS_SHOWN = 40
CONTAINERS_OF_A_TEAM = 20
CARDS_SHOWN = 60
COURSES_SHOWN = 30
_TEAM = ("cluster", "namespace")


@dataclass(frozen=True)
class Places:
    """Where in the page a team, a container or a device is told of, by key; '' where only the files tell of it."""

    teams: Mapping[Key, str] = field(default_factory=dict)
    containers: Mapping[Key, str] = field(default_factory=dict)
    devices: Mapping[Key, str] = field(default_factory=dict)

    def of(self, column: str, row: Mapping[str, Any]) -> str:
        """The place behind a cell of a table's row."""
        keys, places = {
            "namespace": (_TEAM, self.teams),
            "pod": (CONTAINER, self.containers),
            "device_uuid": (DEVICE, self.devices),
        }.get(column, ((), {}))
        return places.get(tuple(str(row.get(key, "")) for key in keys), "") if keys else ""


@dataclass(frozen=True)
class Row:
    """A row of a small table: the first cell's link, '' for none, and the cells."""

    link: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Team:
    """A namespace and its containers, the most GPU-hours first."""

    anchor: str
    name: str
    facts: tuple[tuple[str, str], ...]
    bar: str
    share: float
    """Its GPU-hours as percent of the largest team's: how long its bar is."""
    rows: tuple[Row, ...]
    container_count: int


@dataclass(frozen=True)
class Card:
    """A container or a device: what it is, how it was used and strained, its course, what it leads to."""

    anchor: str
    title: str
    above: str
    """The place of its team; '' for a device."""
    above_title: str
    facts: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    strips: tuple[Strip, ...]
    course: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class DrillDown:
    """Everything below the first screen that links lead to."""

    teams: tuple[Team, ...] = ()
    team_count: int = 0
    containers: tuple[Card, ...] = ()
    container_count: int = 0
    devices: tuple[Card, ...] = ()
    device_count: int = 0
    step: str = ""
    places: Places = field(default_factory=Places)


@dataclass(frozen=True)
class _Ground:
    """The tables, and what is looked up in them again and again."""

    tables: Mapping[str, Result]
    hours: Mapping[Key, Mapping[str, float]]
    """By pod (HOLDER), GPU-hours by bucket."""
    joules: Mapping[Key, float | None]
    keys: Sequence[Key]
    """Containers, the most GPU-hours first."""
    numbers: Mapping[Key, int]
    """Row of report.container by key."""
    places: Places
    largest_gpu_hours: float
    """Held by the team that holds the most."""


def drill_down(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Result], window: Window) -> DrillDown:
    """The whole of it; nothing where the report has no table of containers."""
    if "container" not in tables or "container_saturation" not in tables:
        return DrillDown()
    ground = _ground(tables)
    places = ground.places
    shown = {keys: courses(con, table, keys, wanted, window) for table, keys, wanted in _wanted(places)}
    return DrillDown(
        teams=tuple(_team(ground, key, anchor) for key, anchor in places.teams.items()),
        team_count=len({key[:2] for key in ground.keys}),
        containers=tuple(_container(ground, key, shown[CONTAINER].get(key, [])) for key in places.containers),
        container_count=len(ground.keys),
        devices=tuple(_device(ground, key, shown[DEVICE].get(key, [])) for key in places.devices),
        device_count=tables["device"].rows.height if "device" in tables else 0,
        step=formats.duration(step_hours(window) * 3600),
        places=places,
    )


def _wanted(places: Places) -> tuple[tuple[str, tuple[str, ...], list[Key]], ...]:
    return (
        ("container_hour", CONTAINER, list(places.containers)[:COURSES_SHOWN]),
        ("device_hour", DEVICE, list(places.devices)[:COURSES_SHOWN]),
    )


def _ground(tables: Mapping[str, Result]) -> _Ground:
    hours = by_holder(tables.get("gpu_hour_ledger"))
    rows = tables["container"].rows.select(*CONTAINER, "device_seconds").rows()
    numbers = {tuple(row[:5]): number for number, row in enumerate(rows)}
    weights = {tuple(row[:5]): (_held(hours.get(row[:4], {})), row[5] or 0.0) for row in rows}
    keys = sorted(weights, key=lambda key: (*(-each for each in weights[key]), key))
    by_team: dict[Key, float] = {key[:2]: 0.0 for key in keys}
    for holder, buckets in hours.items():
        by_team[holder[:2]] = by_team.get(holder[:2], 0.0) + _held(buckets)
    places, largest = _places(tables, by_team, keys), max(by_team.values(), default=0.0)
    return _Ground(tables, hours, _joules(tables.get("container_power")), keys, numbers, places, largest)


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


def _held(buckets: Mapping[str, float]) -> float:
    return sum(buckets.get(name, 0.0) for name in HELD)


def _joules(power: Result | None) -> dict[Key, float | None]:
    """Energy above idle of each container; None where that of any of its devices is unknown."""
    if power is None or power.rows.height == 0:
        return {}
    own = pl.col("active_joules") + pl.col("held_joules")
    summed = pl.when(own.is_null().any()).then(None).otherwise(own.sum())
    rows = power.rows.group_by(*CONTAINER, maintain_order=True).agg(summed.alias("joules")).rows()
    return {tuple(row[:5]): row[5] for row in rows}


def _hours_told(buckets: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    """GPU-hours held, and the parts that matter."""
    told = (("held", _held(buckets)), *((bucket.title.lower(), buckets.get(bucket.name, 0.0)) for bucket in BUCKETS[:4]))
    return tuple((title, formats.gpu_hours(found)) for title, found in told if found or title in ("held", "held idle"))


def _team(ground: _Ground, key: Key, anchor: str) -> Team:
    keys = [each for each in ground.keys if each[:2] == key]
    pods = dict.fromkeys(each[:4] for each in keys)
    buckets = added(ground.hours.get(pod, {}) for pod in pods)
    held = Balance("", 0, _held(buckets), 0.0, {bucket.name: buckets.get(bucket.name, 0.0) for bucket in BUCKETS})
    return Team(
        anchor=anchor,
        name=key[1] or "no namespace",
        facts=(("pods", f"{len(pods):,}"), ("containers", f"{len(keys):,}"), *_hours_told(buckets)),
        bar=charts.ledger_bar(held) if held.capacity_gpu_hours else "",
        share=round(100 * held.capacity_gpu_hours / ground.largest_gpu_hours, 1) if ground.largest_gpu_hours else 0.0,
        rows=tuple(_team_row(ground, each) for each in keys[:CONTAINERS_OF_A_TEAM]),
        container_count=len(keys),
    )


def _team_row(ground: _Ground, key: Key) -> Row:
    row = ground.tables["container"].rows.row(ground.numbers[key], named=True)
    buckets = ground.hours.get(key[:4], {})
    cells = (
        key[2],
        key[4],
        row["node_name"],
        formats.value("device_count", row["device_count"]),
        formats.significant(_held(buckets)) if buckets else formats.UNKNOWN,
        formats.significant(buckets.get("allocated_idle", 0.0)) if buckets else formats.UNKNOWN,
        formats.value("gpu_usage_avg", row["gpu_usage_avg"]),
        formats.value("sm_active_avg", row["sm_active_avg"]),
        formats.energy(ground.joules.get(key)),
    )
    return Row(ground.places.containers.get(key, ""), cells)


def _container(ground: _Ground, key: Key, points: Sequence[Mapping[str, Any]]) -> Card:
    result, number = ground.tables["container"], ground.numbers[key]
    row = result.rows.row(number, named=True)
    return Card(
        anchor=ground.places.containers[key],
        title=f"{key[2]} / {key[4]}",
        above=ground.places.teams.get(key[:2], ""),
        above_title=key[1],
        facts=(
            ("node", row["node_name"]),
            ("GPU", f"{row['device_count']:,} × {row['gpu_model'] or 'unknown model'}"),
            ("sharing", row["sharing_mode"]),
            ("seen", formats.duration(row["observed_seconds"])),
            ("coverage of its life", formats.percent(row["coverage_ratio"])),
            *_hours_told(ground.hours.get(key[:4], {})),
            ("energy above idle", formats.energy(ground.joules.get(key))),
        ),
        sentences=_boundness(ground, key),
        strips=use_strip(row, result.reasons[number]),
        course=charts.timeline(points) if points else "",
        rows=tuple(_device_of(ground, each) for each in _where(ground.tables["container_saturation"], CONTAINER, key)),
    )


def _where(result: Result, columns: Sequence[str], key: Key) -> list[dict[str, Any]]:
    """The table's rows of a key."""
    wanted = pl.all_horizontal([pl.col(column) == found for column, found in zip(columns, key, strict=True)])
    return list(result.rows.filter(wanted).iter_rows(named=True))


def _boundness(ground: _Ground, key: Key) -> tuple[str, ...]:
    """What limits it, a sentence for each thing that is said of any of its devices."""
    if "boundness" not in ground.tables:
        return ()
    return tuple(dict.fromkeys(row["boundness"] for row in _where(ground.tables["boundness"], CONTAINER, key)))


def _device_of(ground: _Ground, row: Mapping[str, Any]) -> Row:
    """A device as one of its holders sees it."""
    return Row(ground.places.of("device_uuid", row), (_device_name(row), row["node_name"], *_activity(row)))


def _holder_of(ground: _Ground, row: Mapping[str, Any]) -> Row:
    """A holder as its device sees it."""
    return Row(ground.places.of("pod", row), (row["pod"], row["namespace"], *_activity(row)))


def _activity(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("gpu_usage_avg", "sm_active_avg", "memory_used_ratio_max", "any_throttle_ratio", "xid_error_count")
    return (formats.duration(row["observed_seconds"]), *(formats.value(name, row[name]) for name in names))


def _device_name(row: Mapping[str, Any]) -> str:
    short = formats.shortened("device_uuid", row["device_uuid"])
    return f"{short} instance {row['gpu_instance_id']}" if row["gpu_instance_id"] else short


def _device(ground: _Ground, key: Key, points: Sequence[Mapping[str, Any]]) -> Card:
    result = ground.tables["device"]
    number = result.rows.select(*DEVICE).rows().index(key)
    row = result.rows.row(number, named=True)
    return Card(
        anchor=ground.places.devices[key],
        title=_device_name(row),
        above="",
        above_title=row["node_name"],
        facts=(
            ("model", row["gpu_model"] or "unknown"),
            ("node", row["node_name"]),
            ("seen", formats.duration(row["observed_seconds"])),
            ("of that nobody held it", formats.duration(row["unheld_seconds"])),
            ("coverage of the window", formats.percent(row["coverage_ratio"])),
            ("energy", formats.energy(row["energy_joules"])),
            ("power, mean", f"{formats.value('power_watts_avg', row['power_watts_avg'])} W"),
            ("UUID", row["device_uuid"]),
        ),
        sentences=(),
        strips=use_strip(row, result.reasons[number]),
        course=charts.timeline(points) if points else "",
        rows=tuple(_holder_of(ground, each) for each in _where(ground.tables["container_saturation"], DEVICE, key)[:20]),
    )
