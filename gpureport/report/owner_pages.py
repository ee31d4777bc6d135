"""A page for each owner: the report's tables as far as they are about its namespaces, with its own first screen."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl

from gpureport import formats
from gpureport.report import charts
from gpureport.report.first_screen import FirstScreen, Share, finding_lines
from gpureport.report.ground import AboveIdle, held, is_least
from gpureport.report.header import Header
from gpureport.report.html import write_html
from gpureport.report.ledger import BUCKETS, Balance, added, by_holder
from gpureport.report.owner_panels import owner_panels
from gpureport.report.results import Result
from gpureport.report.tiles import Tile, effective
from gpureport.report.workloads import read_workloads

Namespace = tuple[str, str]
"""Cluster and namespace."""
FOLDER = "by"
_NAME_MAX = 60
_NAMED = 20
_PARTS = ("effective", "allocated_busy", "allocated_ineffective", "allocated_idle", "reserved_idle")
"""The buckets that have an owner."""


def write_owner_pages(
    con: duckdb.DuckDBPyConnection, results: Sequence[Result], header: Header, owners: Mapping[Namespace, str], folder: Path
) -> dict[str, Path]:
    """Write ``<owner>.html`` for every owner of a namespace that held or reserved a GPU; the files by owner, '' for nobody's."""
    ledger = next((result for result in results if result.name == "gpu_hour_ledger"), None)
    by_owner: dict[str, dict[str, float]] = {}
    for holder, buckets in by_holder(ledger).items():
        owner = owners.get((holder[0], holder[1]), "")
        by_owner[owner] = added([by_owner.get(owner, {}), buckets])
    ranked = sorted(by_owner, key=lambda owner: (-held(by_owner[owner]), owner))
    folder.mkdir(parents=True, exist_ok=True)
    workloads, written = read_workloads(con), {}
    for rank, owner in enumerate(ranked, 1):
        own = [_owned(result, owners, owner) for result in results if {"cluster", "namespace"} <= set(result.rows.columns)]
        first = _screen(owner, by_owner, rank, own)
        second = owner_panels(con, {result.name: result for result in own}, workloads)
        written[owner] = write_html(con, own, header, first, folder / f"{file_name(owner)}.html", second=second)
    return written


def file_name(owner: str) -> str:
    """The owner as a file's name: letters, digits and hyphens; a digest tells apart what became alike by that."""
    kept = re.sub(r"[^a-z0-9]+", "-", owner.lower()).strip("-")[:_NAME_MAX] or "nobody"
    return kept if kept == owner else f"{kept}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


def _owned(result: Result, owners: Mapping[Namespace, str], owner: str) -> Result:
    """The table's rows of the owner's namespaces."""
    keys = result.rows.select("cluster", "namespace").rows()
    kept = [number for number, key in enumerate(keys) if key[1] and owners.get(key, "") == owner]
    maps = {column: tuple(found[number] for number in kept) for column, found in result.maps.items()}
    return Result(result.query, result.rows[kept], maps)


def _screen(owner: str, by_owner: Mapping[str, Mapping[str, float]], rank: int, own: Sequence[Result]) -> FirstScreen:
    buckets = {bucket.name: by_owner[owner].get(bucket.name, 0.0) for bucket in BUCKETS}
    whole = Balance(owner, 0, sum(buckets.values()), 0.0, buckets)
    tables = {result.name: result for result in own}
    findings = tables.get("finding")
    return FirstScreen(
        whose=owner or "namespaces without an owner",
        capacity=_told_namespaces(tables),
        sentences=_sentences(whole, held(buckets), sum(map(held, by_owner.values())), f"{rank:,} of {len(by_owner):,}"),
        bar=charts.ledger_bar(whole) if whole.capacity_gpu_hours else "",
        shares=tuple(_share(whole, name) for name in _PARTS),
        closing="",
        tiles=_tiles(whole, tables.get("container_power")),
        compared="",
        models=(),
        days="",
        findings=None if findings is None else finding_lines(findings),
        finding_count=0 if findings is None else findings.rows.height,
    )


def _told_namespaces(tables: Mapping[str, Result]) -> str:
    names = sorted(set(tables["gpu_hour_ledger"].rows["namespace"].to_list())) if "gpu_hour_ledger" in tables else []
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{formats.counted(len(names), 'namespace')}: {', '.join(names[:_NAMED])}{more}"


def _sentences(whole: Balance, own: float, everybodys: float, rank: str) -> tuple[str, ...]:
    share = formats.percent(own / everybodys if everybodys else None)
    idle = whole.of("allocated_idle", "reserved_idle")
    return (
        f"{formats.gpu_hours(own)} held, {share} of all that was held ({rank} by hours); {_depth(whole, own)}.",
        f"{formats.gpu_hours(idle)} were held or reserved without being used.",
        "Only what concerns these namespaces is here; what nobody held, and what was not seen, is in the whole report.",
    )


def _depth(whole: Balance, own: float) -> str:
    if not whole.is_depth_known:
        return "how much of it was effective is unknown, for SM activity is not measured"
    return f"{effective(replace(whole, capacity_gpu_hours=own))} of it effective"


def _share(whole: Balance, name: str) -> Share:
    bucket = next(each for each in BUCKETS if each.name == name)
    css = name.removeprefix("allocated_").replace("_", "-")
    return Share(css, bucket.title, bucket.meaning, formats.percent(whole.share(name)), formats.significant(whole.of(name)))


def _tiles(whole: Balance, power: Result | None) -> tuple[Tile, ...]:
    hours = (("Held", _PARTS[:4]), ("Effective", _PARTS[:1]), ("Idle", _PARTS[3:]))
    told = [_hours(whole, title, names) for title, names in hours]
    if power is not None and power.rows.height:
        own = power.rows.select(pl.col("active_joules") + pl.col("held_joules")).to_series()
        partial = "of all devices" if own.null_count() == 0 else f"of {own.len() - own.null_count():,} of {own.len():,} devices"
        known = AboveIdle(float(own.sum()) if own.count() else None, bool(power.rows.select(is_least().any()).item()))
        told.append(Tile("Energy above idle", known.told, partial))
    return tuple(told)


def _hours(whole: Balance, title: str, names: Sequence[str]) -> Tile:
    if title == "Effective" and not whole.is_depth_known:
        return Tile(title, formats.UNKNOWN, "SM activity is not measured")
    return Tile(title, formats.gpu_hours(whole.of(*names)), formats.percent(whole.share(*names)))
