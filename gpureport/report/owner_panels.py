"""The second screen of an owner's page: its days, its waits, its workloads and what they leave unused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import duckdb
import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.amount import amount
from gpureport.report.ground import effective_told, held
from gpureport.report.ledger import BUCKETS, HOLDER, Balance, added, by_holder
from gpureport.report.panel_lists import LISTS, ROWS_SHOWN, Listing
from gpureport.report.panels import Panel, listed
from gpureport.report.results import Result
from gpureport.report.tiles import DAYS_FOR_A_COURSE
from gpureport.report.timelines import Key
from gpureport.report.workloads import Workload, workload_of

_GPU_HOURS = ("held", "effective", "held idle", "reserved idle")
_WORKLOADS = (("workload", "", False), ("kind", "", False), ("pods", "", True), *((name, "GPU-h", True) for name in _GPU_HOURS))
_WAITS = (("pod", "", False), ("asked for", "", False), ("waited", "", True), ("and then", "", False))


def owner_panels(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, Result], workloads: Mapping[Key, Workload]
) -> tuple[Panel, ...]:
    """Every panel of an owner's own tables; its pods' waits are read from the facts of the open database."""
    ledger = tables.get("gpu_hour_ledger")
    lists = (listed(tables, name) for name in LISTS if name in tables)
    panels = (_days(ledger), _waits(con, ledger), _workloads(ledger, workloads), *lists)
    return tuple(panel for panel in panels if panel.chart or panel.listing or panel.missing)


def _days(ledger: Result | None) -> Panel:
    parts = _by_day(ledger)
    panel = Panel(
        anchor="own-days",
        title="Day by day",
        sentence="GPU-hours held or reserved each day, and what became of them; colours as in the bar above.",
        missing=f"Needs {DAYS_FOR_A_COURSE} days or more to show a course; there is use on {len(parts)}.",
        table="gpu_hour_ledger",
    )
    if len(parts) < DAYS_FOR_A_COURSE:
        return panel
    most = max(parts, key=lambda part: part.capacity_gpu_hours)
    told = f"most, {formats.gpu_hours(most.capacity_gpu_hours)}, on {most.value}"
    return panel.drawn(charts.days(parts), f"GPU-hours of each day, stacked by bucket: {told}", (("", told),))


def _by_day(ledger: Result | None) -> list[Balance]:
    """Held and reserved hours of each day; days without any stand between the first and the last as empty ones."""
    if ledger is None or ledger.rows.height == 0:
        return []
    sums = ledger.rows.group_by("day", "bucket").agg(pl.col("gpu_hours").sum()).sort("day", "bucket").rows()
    first, last = sums[0][0], sums[-1][0]
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    hours: dict[date, dict[str, float]] = {day: dict.fromkeys((bucket.name for bucket in BUCKETS), 0.0) for day in days}
    for day, bucket, gpu_hours in sums:
        hours[day][bucket] = gpu_hours
    return [Balance(day.isoformat(), 0, sum(found.values()), 0.0, found) for day, found in hours.items()]


def _workloads(ledger: Result | None, known: Mapping[Key, Workload]) -> Panel:
    found: dict[Workload, list[Mapping[str, float]]] = {}
    for pod, hours in by_holder(ledger).items():
        found.setdefault(workload_of(pod, known), []).append(hours)
    told = [(each, len(pods), added(pods)) for each, pods in found.items()]
    told.sort(key=lambda each: (-_unused(each[2]), -held(each[2]), each[0].name, each[0].kind))
    rows = tuple(_workload(*each) for each in told[:ROWS_SHOWN])
    return Panel(
        anchor="own-workloads",
        title="Workloads, and what they leave unused",
        sentence="GPU-hours by what made the pods; most idle hours first.",
        missing="",
        table="gpu_hour_ledger",
        listing=Listing(_WORKLOADS, rows, len(told)) if rows else None,
    )


def _unused(hours: Mapping[str, float]) -> float:
    return hours.get("allocated_idle", 0.0) + hours.get("reserved_idle", 0.0)


def _workload(each: Workload, pods: int, hours: Mapping[str, float]) -> tuple[str, ...]:
    idle = (formats.significant(hours.get(name, 0.0)) for name in ("allocated_idle", "reserved_idle"))
    return (each.name, each.told_kind, f"{pods:,}", formats.significant(held(hours)), effective_told(hours), *idle)


def _waits(con: duckdb.DuckDBPyConnection, ledger: Result | None) -> Panel:
    """The longest, each pod once; a pod that waits at the end of the window has waited until then."""
    namespaces = [] if ledger is None else ledger.rows.select(*HOLDER[:2]).unique().sort(*HOLDER[:2]).rows()
    waits = _read_waits(con, namespaces)
    placed = pl.Series([seconds for *_, seconds, is_placed in waits if is_placed], dtype=pl.Float64)
    told = f"{formats.counted(len(placed), 'pod')} {'was' if len(placed) == 1 else 'were'} given a place"
    if len(placed):
        half, most = (formats.duration(placed.quantile(part, "linear")) for part in (0.5, 0.95))
        told += f", half of them within {half}, nineteen of twenty within {most}"
    return Panel(
        anchor="own-waits",
        title="Who waited longest for GPUs",
        sentence=f"From creation to placement on a node: {told}. Each pod's wait is in facts.pod_wait of gpureport.duckdb.",
        missing="The waits of these pods were not collected: that takes kube-state-metrics or gpureport snapshot.",
        listing=Listing(_WAITS, tuple(_wait(*each) for each in waits[:ROWS_SHOWN]), len(waits)) if waits else None,
    )


def _wait(pod: str, resource: str, units: float, seconds: float, is_placed: bool) -> tuple[str, ...]:
    asked = f"{formats.significant(units)} × {resource}"
    return (
        pod,
        asked,
        amount(formats.duration(seconds), seconds),
        "was given a place" if is_placed else "still waits, as last seen",
    )


def _read_waits(
    con: duckdb.DuckDBPyConnection, namespaces: Sequence[tuple[str, ...]]
) -> list[tuple[str, str, float, float, bool]]:
    """Pods placed in the window or waiting in it, the longest wait first: name, resource, units, seconds, whether placed."""
    there = "select 1 from information_schema.tables where table_schema = 'period' and table_name = 'pod_wait'"
    if not namespaces or not con.execute(there).fetchone():
        return []
    return con.execute(
        """
        select pod, resource, requested_units, if(is_placed, placing_seconds, waiting_seconds) as seconds, is_placed
        from period.pod_wait
        where (is_placed or is_waiting) and list_contains($namespaces, [cluster, namespace])
        order by seconds desc, pod, pod_uid, resource
        """,
        {"namespaces": [list(each) for each in namespaces]},
    ).fetchall()
