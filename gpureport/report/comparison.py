"""Changes between two periods or reports: their tables for a terminal, as JSON or as CSV."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import duckdb
import polars as pl

from gpureport.compute.look_back import FIRST_SCRAPE, compared_tables, parameters
from gpureport.compute.query import Query, build, load, needed, of_life
from gpureport.report.results import Result
from gpureport.values.errors import LakeError
from gpureport.values.text.formats import counted
from gpureport.values.text.rows import Output, plain, print_rows
from gpureport.values.text.safe import quoted, to_json
from gpureport.values.window import Window, day_start, parse_instant

SECTIONS = {
    "bridge": "gpu_hour_bridge",
    "namespaces": "namespace_change",
    "findings": "finding_change",
    "periods": "period",
    "restated": "restated_day",
}
"""Name of each printed section, and its report table."""
_RESTATED = "report.restated_day"
_IN_TERMINAL = {
    "namespace_change": (
        "namespace",
        "change",
        "allocated_change_gpu_hours",
        "allocated_gpu_hours",
        "effective_change_gpu_hours",
    ),
    "finding_change": ("change", "code", "severity", "namespace", "workload", "node_name", "device_uuid", "evidence"),
}
_LOG = logging.getLogger(__name__)
_FINDINGS_MAX = 30
_Rows = tuple[Sequence[str], Sequence[Sequence[Any]]]


def read_comparison(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> dict[str, Result]:
    """Return the tables that compare two windows, by section. The database must have them."""
    return {section: Result(queries[f"report.{table}"], con) for section, table in SECTIONS.items()}


def compare_reports(con: duckdb.DuckDBPyConnection, old: Path, now: Path, judged_by: Mapping[str, Any]) -> dict[str, Query]:
    """Build the tables that compare two reports in an empty database; return their queries.

    ``old`` and ``now`` are folders of reports or their ``gpureport.duckdb``; ``judged_by`` has the parameters of findings and
    coverage. Clusters that are in one report only, or whose data begin within the first period, are left out and logged.
    LakeError for a file that is no report of this version, or where no cluster is left.
    """
    queries = load()
    given, previous = set(compared_tables(queries)), of_life(queries, "previous")
    previous_window = _copy_report(con, old, given)
    for query in needed(queries, previous, given):
        build(con, query, {})
    params = {**parameters(_copy_report(con, now, given), previous_window), **judged_by}
    _keep_common_clusters(con, previous, old, now, _begun_within(con, previous_window))
    targets = [f"report.{table}" for table in SECTIONS.values() if f"report.{table}" != _RESTATED]
    for query in needed(queries, [*targets, "checks.bridge_does_not_add_up"], {*given, *previous}):
        build(con, query, params)
    return queries


def _begun_within(con: duckdb.DuckDBPyConnection, window: Window) -> set[str]:
    """Return the clusters without GPU data from the start of the window: their earlier hours are unknown, not zero."""
    first = window.start_at.date()
    there = min(window.end_at, day_start(first + timedelta(days=1))) - window.start_at - FIRST_SCRAPE
    late = (
        "select cluster from previous.capacity group by cluster having coalesce("
        "max(capacity_seconds / device_count) filter (where day = $1 and unseen_cause != 'not_exported'), 0) < $2"
    )
    return {cluster for (cluster,) in con.execute(late, [first, there.total_seconds()]).fetchall()}


def _keep_common_clusters(
    con: duckdb.DuckDBPyConnection, previous: Collection[str], old: Path, now: Path, late: Collection[str]
) -> None:
    """Delete late clusters, and those that the later report lacks, from ``previous.*``; queries skip those only in the later."""
    before, after = (
        {cluster for (cluster,) in con.execute(f"select distinct cluster from {table}").fetchall()}
        for table in ("previous.capacity", "period.capacity")
    )
    if not before & after:
        first, second = (", ".join(sorted(names)) or "no cluster" for names in (before, after))
        raise LakeError(f"{old} is of {first} and {now} of {second}; give two reports of one cluster")
    for names, path in ((before - after, old), (after - before, now)):
        if names:
            _LOG.info(f"left out, because only {path} has it: {', '.join(sorted(names))}")
    for cluster in sorted(before.intersection(after, late)):
        reason = f"the data of {cluster} begin within the period of {old}"
        if not (before & after).difference(late):
            raise LakeError(f"{reason}; give a report of a later period")
        _LOG.info(f"left out, because {reason}")
    for table in previous:
        con.execute(
            f"delete from {table} where list_contains($1, cluster) or cluster not in (select cluster from period.capacity)",
            [[*late]],
        )
    for table, path in (("previous.capacity", old), ("period.capacity", now)):
        lacks = f"""select cluster, count(distinct day) from {table} where unseen_cause = 'not_exported'
            and cluster in (select cluster from previous.capacity) group by all order by all"""
        for cluster, days in con.execute(lacks).fetchall():
            _LOG.info(f"hours of {cluster} are unknown on {counted(days, 'day')} of the period of {path}: nothing was exported")


def _copy_report(con: duckdb.DuckDBPyConnection, path: Path, wanted: Collection[str]) -> Window:
    """Copy the ``wanted`` tables of a report's file; return the report's window."""
    file = path / "gpureport.duckdb" if path.is_dir() else path
    try:
        con.execute(f"attach {quoted(file)} as taken (read_only)")
    except duckdb.Error:
        raise LakeError(
            f"{file} is not a report's database; give the folder that 'gpureport report' wrote, or its gpureport.duckdb"
        ) from None
    try:
        con.execute("create schema if not exists period; create schema if not exists report")
        con.execute(f"create or replace table {_RESTATED} as from taken.{_RESTATED}")
        for table in sorted(wanted):
            con.execute(f"create or replace table {table} as from taken.{table}")
        found = con.execute("select value from taken.main.meta where name = 'window'").fetchone()
    except duckdb.Error:
        raise LakeError(f"{file} was written by another version of gpureport; write that report again") from None
    finally:
        con.execute("detach taken")
    window = json.loads(found[0]) if found else {}
    return Window(parse_instant(window["start_at"]), parse_instant(window["end_at"]))


def print_comparison(sections: Mapping[str, Result], only: str | None, output: Output, out: TextIO) -> None:
    """Print all sections or one: main rows and columns in a terminal, else all. CSV has one section, by default the bridge."""
    if output == "csv":
        print_rows(*_whole(sections[only or "bridge"]), output, out)
        return
    chosen = {name: result for name, result in sections.items() if only in (None, name)}
    if output == "json":
        whole = {name: _whole(result) for name, result in chosen.items()}
        document = {name: [dict(zip(names, row, strict=True)) for row in rows] for name, (names, rows) in whole.items()}
        out.write(f"{to_json(plain(document), indent=1)}\n")
    else:
        _print_summaries({name: summarize(chosen[name]) for name, summarize in _SUMMARIES.items() if name in chosen}, out)


def _whole(result: Result) -> _Rows:
    columns = (*result.rows.iter_columns(), *result.maps.values())
    return [*result.rows.columns, *result.maps], [*zip(*columns, strict=True)]


def _print_summaries(summaries: Mapping[str, _Rows], out: TextIO) -> None:
    for name, (names, rows) in summaries.items():
        at_most = _FINDINGS_MAX if name == "findings" else len(rows)
        out.write(f"{name} ({at_most} of {len(rows)}; -o json has all)\n" if len(rows) > at_most else f"{name}\n")
        print_rows(names, rows, "table", out, at_most)
        out.write("\n")


def _periods(result: Result) -> _Rows:
    """Return figures as rows and windows as columns, summed over clusters: quantiles of one cluster, units of one resource."""
    rows = result.rows.sort("period")
    alike = [end for end, name in (("_p95", "cluster"), ("_unit_hours", "demanded_resource")) if rows[name].n_unique() == 1]
    figures = [name for name in rows.columns if name.endswith(("_count", "_gpu_hours", "_joules", "_cost", *alike))]
    windows = {row["period"]: f"{_day(row['since_at'])} … {_day(row['until_at'])}" for row in rows.iter_rows(named=True)}
    parts = [rows.filter(pl.col("period") == period) for period in windows]
    names = ["figure", *(f"{period}: {days}" for period, days in windows.items())]
    return names, [[figure, *(_sum(part[figure]) for part in parts)] for figure in figures]


def _bridge(result: Result) -> _Rows:
    """Sum the steps over clusters and models; all steps of a measure are unknown if any one is."""
    unknown = pl.col("gpu_hours").is_null().any().over("measure")
    rows = result.rows.with_columns(pl.when(~unknown).then("gpu_hours"))
    steps = rows.group_by("measure", "position", "step", maintain_order=True).agg("gpu_hours").sort("measure", "position")
    return ["measure", "step", "gpu_hours"], [[m, step, _sum(pl.Series(hours))] for m, _, step, hours in steps.iter_rows()]


def _namespaces(result: Result) -> _Rows:
    rows = result.rows.sort(pl.col("allocated_change_gpu_hours").abs(), descending=True, nulls_last=True)
    return _chosen(result.name, rows)


def _findings(result: Result) -> _Rows:
    """Return new and resolved findings, the most severe first."""
    severity_rank = pl.col("severity").replace_strict({"critical": 0, "warning": 1, "info": 2}, default=3)
    rows = result.rows.filter(pl.col("change") != "stayed").sort("change", severity_rank, "code", "cluster", "namespace", "pod")
    return _chosen(result.name, rows)


def _chosen(table: str, rows: pl.DataFrame) -> _Rows:
    """Return the main columns; also the cluster if there are several, because their namespaces may have the same names."""
    names = [*(["cluster"] if rows["cluster"].n_unique() > 1 else []), *_IN_TERMINAL[table]]
    return names, rows.select(names).rows()


def _sum(values: pl.Series) -> float | int | None:
    if values.is_null().any():
        return None
    return int(values.sum()) if values.dtype.is_integer() else float(f"{values.sum():.9g}")


def _day(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d}" if not (instant.hour or instant.minute) else f"{instant:%Y-%m-%dT%H:%MZ}"


_SUMMARIES: Mapping[str, Callable[[Result], _Rows]] = {
    "periods": _periods,
    "bridge": _bridge,
    "namespaces": _namespaces,
    "findings": _findings,
    "restated": _whole,
}
