"""The first screen's numbers, each with its course over the window and, where it is known, its change against the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.bounds import bounded
from gpureport.report.header import Header
from gpureport.report.ledger import HELD, Balance
from gpureport.report.panels import waiting
from gpureport.report.results import Result
from gpureport.report.trends import Trends, read_trends
from gpureport.report.unknown import Unknown

DAYS_FOR_A_COURSE = 2
_LEAST_UNSEEN = 0.01
_LEDGER = (
    ("Allocated", HELD),
    ("Effective", ("effective",)),
    ("Held idle", ("allocated_idle", "reserved_idle")),
    ("Free", ("free", "stranded")),
    ("Unknown", ("unknown",)),
)


@dataclass(frozen=True)
class Tile:
    """One number; ``course`` is a line over the window's days, ``trend`` the change against the window before, '' without."""

    title: str
    value: str
    detail: str
    trend: str = ""
    course: str = ""


def tiles(tables: Mapping[str, Result], header: Header, whole: Balance | None, by_day: Sequence[Balance]) -> tuple[Tile, ...]:
    """Those that the report's tables can tell."""
    trends = read_trends(tables.get("period"))
    absent = f"{header.absent_count} of {header.signal_count} signals absent"
    ledger = [_depth_told(_ledger_tile(title, names, whole, by_day, trends), whole) for title, names in _LEDGER] if whole else []
    return (
        *ledger,
        *_wait(tables.get("pod_wait"), trends),
        *_unmet(tables, trends),
        *_energy(tables.get("device"), header, trends),
        *_cost(tables.get("cost"), trends),
        Tile("Seen", formats.percent(header.coverage_ratio), f"{formats.percent(header.unknown_ratio)} not seen; {absent}"),
    )


def _ledger_tile(title: str, names: Sequence[str], whole: Balance, by_day: Sequence[Balance], trends: Trends) -> Tile:
    course = charts.spark([each.share(*names) for each in by_day]) if len(by_day) >= DAYS_FOR_A_COURSE else ""
    if names == ("unknown",) or not whole.shows("unknown"):
        return Tile(title, formats.percent(whole.share(*names)), formats.gpu_hours(whole.of(*names)), trends.share(names), course)
    known = formats.gpu_hours(whole.of(*names)) if whole.of(*names) else "none known"
    detail = f"{known}; {formats.gpu_hours(whole.of('unknown'))} are unknown"
    return Tile(title, bounded(whole, *names), detail, trends.share(names) if whole.of(*names) else "", course)


def effective(whole: Balance) -> str:
    """The effective share of capacity; a bound where hours or their SM activity are not known, "—" where that of all is not."""
    if not whole.is_depth_known:
        return Unknown("SM activity is not measured")
    return bounded(whole, "effective", hidden=("allocated_busy", "unknown"))


def _depth_told(tile: Tile, whole: Balance) -> Tile:
    """Without SM activity nobody knows how effective busy hours were; a change of a lower bound is none of the thing."""
    if tile.title != "Effective" or not whole.shows("allocated_busy"):
        return tile
    busy = f"of {formats.gpu_hours(whole.of('allocated_busy'))} busy, SM activity is not known"
    detail = f"{tile.detail}; {busy}" if whole.is_depth_known else busy
    return Tile(tile.title, effective(whole), detail)


def _wait(pod_wait: Result | None, trends: Trends) -> tuple[Tile, ...]:
    """Of the size of request that most pods made: quantiles of several cannot be added."""
    rows = [row for row in _rows(pod_wait) if row["placing_seconds_p95"] is not None]
    if not rows:
        return ()
    most = max(rows, key=lambda row: (row["placed_pod_count"], row["resource"]))
    asked = f"{formats.significant(most['requested_units'])} × {most['resource']}"
    pods = formats.counted(most["placed_pod_count"], "pod")
    of = {f"placing_{name}": most[name] for name in ("gpu_model", "resource", "requested_units")}
    trend = trends.of(most["cluster"]).amount("placing_seconds_p95", of)
    return (Tile("p95 wait", formats.duration(most["placing_seconds_p95"]), f"{pods} asking for {asked}", trend),)


def _unmet(tables: Mapping[str, Result], trends: Trends) -> tuple[Tile, ...]:
    found = waiting(tables)
    if not found.is_known:
        return ()
    trend = trends.amount("unscheduled_unit_hours", {"demanded_resource": found.resource})
    told = f"{formats.significant(found.device_hours)} h"
    gated = f"; not by gated pods, {formats.significant(found.gated_pod_hours)} pod-hours" if found.gated_pod_hours else ""
    return (Tile("Waited for", told, f"of {found.resource}, by pods without a node{gated}", trend),)


def _energy(device: Result | None, header: Header, trends: Trends) -> tuple[Tile, ...]:
    """Energy of whole GPUs; no tile where no device tells any."""
    if device is None:
        return ()
    joules = device.rows.filter(pl.col("gpu_instance_id") == "")["energy_joules"]
    known = joules.drop_nulls().to_list()
    if not known:
        return ()
    partial = f"of {len(known):,} of {formats.counted(len(joules), 'GPU')}" if len(known) < len(joules) else "of all GPUs"
    seen = ", while they were seen" if (header.unknown_ratio or 0.0) >= _LEAST_UNSEEN else ""
    return (Tile("Energy", formats.energy(sum(known)), partial + seen, trends.amount("energy_joules")),)


def _cost(cost: Result | None, trends: Trends) -> tuple[Tile, ...]:
    """What held hours cost by the configured prices; unknown parts leave the whole unknown, so it says of how many."""
    known = [row["allocated_cost"] for row in _rows(cost) if row["allocated_cost"] is not None]
    priced = [row for row in _rows(cost) if row["allocated_gpu_hours"]]
    if not known:
        return ()
    partial = "held hours by the configured prices" if len(known) >= len(priced) else "where a price is configured"
    return (Tile("Cost", formats.significant(sum(known)), partial, trends.amount("allocated_cost")),)


def _rows(result: Result | None) -> list[dict[str, Any]]:
    return list(result.rows.iter_rows(named=True)) if result is not None else []
