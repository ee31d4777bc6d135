"""From team to container to device by links inside the page: those with the most GPU-hours; the rest is in the CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.amount import amount
from gpureport.report.cards import Card, Row, container_card, device_card
from gpureport.report.ground import AboveIdle, Ground, Places, effective_told, held, hours_told, read_ground
from gpureport.report.ledger import BUCKETS, HELD, Balance, added
from gpureport.report.results import Result
from gpureport.report.timelines import CONTAINER, DEVICE, Key, courses, step_hours
from gpureport.report.unknown import Unknown, cell
from gpureport.report.use_strip import Meaning, meanings
from gpureport.report.workloads import Workload, read_workloads, workload_of
from gpureport.window import Window

WORKLOADS_OF_A_TEAM = 10
CONTAINERS_OF_A_TEAM = 20
COURSES_SHOWN = 25
_ROUNDING = 1e-6
"""Of a sum, what may be missing because its parts have nine digits."""


@dataclass(frozen=True)
class Team:
    """A namespace and its containers, the most GPU-hours first."""

    anchor: str
    name: str
    facts: tuple[tuple[str, str], ...]
    bar: str
    share: float
    """Its GPU-hours as percent of the largest team's: how long its bar is."""
    workloads: tuple[Row, ...]
    """Pods that belong together; () where each pod is one of its own."""
    workload_count: int
    rows: tuple[Row, ...]
    container_count: int


@dataclass(frozen=True)
class DrillDown:
    """Everything below the first screen that links lead to."""

    teams: tuple[Team, ...] = ()
    team_count: int = 0
    together: str = ""
    """What all teams held, and what was held by nobody known."""
    containers: tuple[Card, ...] = ()
    container_count: int = 0
    devices: tuple[Card, ...] = ()
    device_count: int = 0
    step: str = ""
    meanings: tuple[Meaning, ...] = ()
    places: Places = field(default_factory=Places)


def drill_down(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Result], window: Window) -> DrillDown:
    """The whole of it; nothing where the report has no table of containers."""
    if "container" not in tables or "container_saturation" not in tables:
        return DrillDown()
    ground = read_ground(tables, read_workloads(con))
    places = ground.places
    shown = {keys: courses(con, table, keys, wanted, window) for table, keys, wanted in _wanted(places)}
    return DrillDown(
        teams=tuple(_team(ground, key, anchor) for key, anchor in places.teams.items()),
        team_count=len({key[:2] for key in ground.keys}),
        together=_together(ground),
        containers=tuple(container_card(ground, key, shown[CONTAINER].get(key, [])) for key in places.containers),
        container_count=len(ground.keys),
        devices=tuple(device_card(ground, key, shown[DEVICE].get(key, [])) for key in places.devices),
        device_count=tables["device"].rows.height if "device" in tables else 0,
        step=formats.duration(step_hours(window) * 3600),
        meanings=meanings(),
        places=places,
    )


def _together(ground: Ground) -> str:
    """The sum of all teams, shown or not, and what is missing to the ledger's held hours."""
    named = sum(map(held, ground.hours.values()))
    if "gpu_hour_ledger" not in ground.tables:
        return ""
    rows = ground.tables["gpu_hour_ledger"].rows
    whole = float(rows.filter(pl.col("bucket").is_in(HELD))["gpu_hours"].sum())
    rest = whole - named
    more = f", and holders without a name {formats.gpu_hours(rest)} more" if rest > _ROUNDING * whole else ""
    return f"Together they held {formats.gpu_hours(named)}{more}."


def _wanted(places: Places) -> tuple[tuple[str, tuple[str, ...], list[Key]], ...]:
    return (
        ("container_hour", CONTAINER, list(places.containers)[:COURSES_SHOWN]),
        ("device_hour", DEVICE, list(places.devices)[:COURSES_SHOWN]),
    )


def _team(ground: Ground, key: Key, anchor: str) -> Team:
    keys = [each for each in ground.keys if each[:2] == key]
    pods = dict.fromkeys(each[:4] for each in keys)
    buckets = added(ground.hours.get(pod, {}) for pod in pods)
    all_held = Balance("", 0, held(buckets), 0.0, {bucket.name: buckets.get(bucket.name, 0.0) for bucket in BUCKETS})
    workloads = _workloads(ground, keys)
    return Team(
        anchor=anchor,
        name=key[1] or "no namespace",
        facts=(("pods", f"{len(pods):,}"), ("containers", f"{len(keys):,}"), *hours_told(buckets)),
        bar=charts.ledger_bar(all_held) if all_held.capacity_gpu_hours else "",
        share=round(100 * all_held.capacity_gpu_hours / ground.largest_gpu_hours, 1) if ground.largest_gpu_hours else 0.0,
        workloads=tuple(_workload_row(ground, *each) for each in _largest(ground, workloads))
        if len(workloads) < len(pods)
        else (),
        workload_count=len(workloads),
        rows=tuple(_team_row(ground, each) for each in keys[:CONTAINERS_OF_A_TEAM]),
        container_count=len(keys),
    )


def _workloads(ground: Ground, keys: Sequence[Key]) -> dict[Workload, list[Key]]:
    """Containers by workload."""
    found: dict[Workload, list[Key]] = {}
    for key in keys:
        found.setdefault(workload_of(key[:4], ground.workloads), []).append(key)
    return found


_Told = tuple[Workload, Sequence[Key], Mapping[str, float]]
"""A workload, its containers, and its GPU-hours by bucket."""


def _largest(ground: Ground, workloads: Mapping[Workload, Sequence[Key]]) -> Sequence[_Told]:
    """Those with the most GPU-hours; a pod counts once, however many containers it has."""
    told = [
        (each, keys, added(ground.hours.get(pod, {}) for pod in dict.fromkeys(key[:4] for key in keys)))
        for each, keys in workloads.items()
    ]
    return sorted(told, key=lambda found: (-held(found[2]), found[0].name, found[0].kind))[:WORKLOADS_OF_A_TEAM]


def _workload_row(ground: Ground, each: Workload, keys: Sequence[Key], buckets: Mapping[str, float]) -> Row:
    cells = (
        each.name,
        each.told_kind,
        f"{len({key[:4] for key in keys}):,}",
        formats.significant(held(buckets)),
        effective_told(buckets),
        formats.significant(buckets.get("allocated_idle", 0.0)),
    )
    return Row(next((ground.places.containers[key] for key in keys if key in ground.places.containers), ""), cells)


def _team_row(ground: Ground, key: Key) -> Row:
    result, number = ground.tables["container"], ground.numbers[key]
    row, reasons = result.rows.row(number, named=True), result.reasons[number]
    buckets = ground.hours.get(key[:4], {})
    cells = (
        key[2],
        key[4],
        row["node_name"],
        formats.value("device_count", row["device_count"]),
        formats.significant(held(buckets)) if buckets else formats.UNKNOWN,
        formats.significant(buckets.get("allocated_idle", 0.0)) if buckets else formats.UNKNOWN,
        *(cell(row, reasons, name) for name in ("gpu_util_ratio_avg", "gpu_usage_avg", "sm_active_avg")),
        _energy(ground.joules.get(key, AboveIdle())),
    )
    return Row(ground.places.containers.get(key, ""), cells)


def _energy(found: AboveIdle) -> str:
    return Unknown("not_collected") if found.joules is None else amount(found.told, found.joules)
