"""Compute facts from the lake: of one cluster and day, or of several days with few rows.

All rows of a device and day are in one part of the lake, so samples are summed part by part, several parts at once. DuckDB
makes the other tables once for the day, with one thread: sums then run in the same order every time. A table is written and
dropped as soon as no later query reads it, so memory holds only a few tables.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from gpureport import __version__
from gpureport.compute.fact_views import EXPECTED, TELEMETRY, Batch, ClusterDay, day_hours, expected_before, expected_next, limits
from gpureport.compute.identity import made_with, note_entries, outdated_entries
from gpureport.compute.idle_power import BASELINE, idle_baseline
from gpureport.compute.intervals import OF_SAMPLES, OF_SERIES, create_tables, holder_sums, interval_sums
from gpureport.compute.query import Failure, Query, build, connection, failures_of, load, needed, of_life, ordered, require_checks
from gpureport.compute.quotas import quota_facts_of_day
from gpureport.config.findings import expectations
from gpureport.lake import Change, Lake, Partition, scan_view
from gpureport.lake.parquet import ROW_GROUP_ROWS
from gpureport.lake.views import rows_named
from gpureport.schedulers.model import DEFAULT_RULES, Rules
from gpureport.values.errors import LakeError
from gpureport.values.runtime.spill import spill_folder
from gpureport.values.runtime.stopping import abandoned_when_stopped
from gpureport.values.text.safe import quoted

_STEP, _COUNTED = "day.demand_step", "facts.scheduler_hour"
"""Counts are made from steps that are cut to the day; the steps themselves are not kept."""
_ENERGY_BEFORE = "day.energy_before"
_STATE_FACTS = (
    "facts.claim_device",
    "facts.claim_hour",
    "facts.claim_reservation",
    "facts.claim_use",
    "facts.device_request",
    "facts.device_capacity",
    "facts.container_request",
    "facts.container_run",
    "facts.node_allocation",
    "facts.overallocation",
    "facts.state_agreement",
    "facts.refuted_holder",
    "facts.pod_wait",
)
_TABLES_OF_DAY = ("day.pod_life", "day.pod_request", "day.node_snapshot", "day.claim_snapshot", "day.kepler_series")
_TABLES_AROUND_DAY = (
    *_STATE_FACTS,
    "day.snapshot_life",
    "day.device_grant",
    "day.gpu_node",
    "day.namespace_label",
    "day.node_sharing",
    "day.outage",
    "day.pod_controller",
    "day.reservation",
    "day.authoritative_use",
    "day.fragmentation",
)
"""State from snapshots: the last snapshot before the day and the first after it show its start and its end."""


def state_of_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch) -> dict[str, pa.Table]:
    """Tables that need the data of one day alone, by name."""
    _build(con, lake, batch, _TABLES_OF_DAY, timedelta())
    return {table: con.sql(f"from {table}").to_arrow_table() for table in _TABLES_OF_DAY}


def state_around_day(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch) -> dict[str, pa.Table]:
    """Tables that also need the snapshots of the days around each day, by name, cut to the day."""
    _build(con, lake, batch, (*_TABLES_AROUND_DAY, _COUNTED), timedelta(days=1))
    return {table: _of_day(con, batch, table) for table in _TABLES_AROUND_DAY} | _counted(con, batch)


def _counted(con: duckdb.DuckDBPyConnection, batch: Batch) -> dict[str, pa.Table]:
    con.register("_cut", _of_day(con, batch, _STEP))
    con.execute(f"create or replace table {_STEP} as from _cut")
    build(con, load()[_COUNTED], {})
    return {_COUNTED: con.sql(f"from {_COUNTED}").to_arrow_table()}


def _build(con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch, targets: Collection[str], around: timedelta) -> None:
    """Make the tables in an empty database."""
    chosen = needed(load(), targets)
    batch.open_lake(con, lake, chosen, around)
    for query in chosen:
        build(con, query, {})
        if query.table == "day.node_snapshot":
            _drop_other_days(con, batch, query.table)


def _drop_other_days(con: duckdb.DuckDBPyConnection, batch: Batch, table: str) -> None:
    """Delete a node's state of the days around, if the day itself has state of that node: GPU sharing may differ by then."""
    is_own = f"day = ({limits(batch.window)['since']})::date"
    listed = f"select (cluster, node_name) from {table} where {is_own}"
    con.execute(f"delete from {table} where not ({is_own}) and (cluster, node_name) in ({listed})")


def _of_day(con: duckdb.DuckDBPyConnection, batch: Batch, table: str) -> pa.Table:
    """Rows of the day: its hours, or intervals cut to the day; all rows of a table without times (lives of pods)."""
    start, end = limits(batch.window).values()
    if "hour_start_at" in con.table(table).columns:
        return con.sql(f"from {table} where hour_start_at >= {start} and hour_start_at < {end}").to_arrow_table()
    if "start_at" not in con.table(table).columns:
        return con.table(table).to_arrow_table()
    cut = f"greatest(start_at, {start}) as start_at, least(end_at, {end}) as end_at"
    met = f"start_at < {end} and (end_at > {start} or start_at = {start})"
    return con.sql(f"select * replace ({cut}) from {table} where {met}").to_arrow_table()


@dataclass(frozen=True)
class ComputeSettings:
    """Settings that facts depend on, and limits on memory and threads."""

    memory_threshold_ratio: float = 0.9
    idle_watts: Mapping[str, float] = field(default_factory=dict)
    """Configured idle power by GPU UUID, by model or for ``all``; it is used instead of the measured idle power."""
    quota_rules: Rules = DEFAULT_RULES
    memory_limit: str = "1GB"
    threads: int = 2

    @property
    def meaning(self) -> dict[str, Any]:
        """Settings that facts depend on, by name."""
        return {
            "saturation.memory_threshold_ratio": self.memory_threshold_ratio,
            "power.idle_watts": dict(self.idle_watts),
            **{f"quota {name}": value for name, value in self.quota_rules.of_facts.items()},
        }


@dataclass
class ComputeResult:
    """Rows written, by facts table, and the checks of severity warn that found rows."""

    rows: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[ClusterDay, Failure]] = field(default_factory=list)


def compute_days(lake: Lake, days: Sequence[ClusterDay], settings: ComputeSettings, version: str = __version__) -> ComputeResult:
    """Replace the facts of days, which are in order: the days of a cluster follow each other.

    Each query runs once for all days, because few rows take less time than the query itself. Sums of doubles agree with those
    of a day computed alone to nine digits, because rows come in another order. LakeError where the lake has no data of a day.
    QueryError where a check of severity fail finds rows; the lake then stays unchanged.
    """
    batch = Batch(days)
    samples = {batch.name(each): _samples(lake, *each) for each in days}
    lake.fetch(found for table in TELEMETRY for each in days if (found := lake.partition(table, *each)))
    opened = connection(settings.memory_limit, 1, has_functions=False)  # several threads would add in any order
    with lake.change() as change, spill_folder() as folder, opened as con:
        queries = load()
        made = {"gpureport_version": version, **made_with(queries, settings.meaning).entries}
        given = _state(lake, batch, settings)
        own = {each: {each[1]} for each in days}
        batch.views(con, lake, [*TELEMETRY, "device_sample"], own)
        if files := [file for each in samples.values() for file in each.files]:
            scan_view(con, files, rows_named([*samples.values()], batch.named(own)))
        create_tables(con, given)
        notes = {name: {**made, **note_entries(lake, each)} for name, each in samples.items()}
        for name, note in notes.items():
            change.note(samples[name].cluster, samples[name].date, {**note, "change": change.staging.name})
        for each, note in outdated_entries(lake, {each: notes[batch.name(each)] for each in days}).items():
            change.note(*each, note)
        return _Days(con, lake, batch, samples, settings, queries, change, notes, folder).computed(given)


def _samples(lake: Lake, cluster: str, day: date) -> Partition:
    samples = lake.partition("device_sample", cluster, day)
    if samples is None and lake.partition("source", cluster, day) is None:
        raise LakeError(f"the lake at {lake} has no data of {cluster} for {day}; export or import that day first")
    return samples or Partition("device_sample", cluster, day, (), lake)


@dataclass(frozen=True)
class _Days:
    """The facts of days, made in one database: sums of samples part by part, then all other tables at once."""

    con: duckdb.DuckDBPyConnection
    lake: Lake
    batch: Batch
    samples: Mapping[str, Partition]
    settings: ComputeSettings
    queries: Mapping[str, Query]
    change: Change
    notes: Mapping[str, Mapping[str, str]]
    folder: Path
    """Folder for results that are too large for memory; it is deleted at the end."""

    def computed(self, given: Collection[str]) -> ComputeResult:
        """Make every table. After its last use a table is dropped; a table of facts is staged before."""
        result = ComputeResult(dict.fromkeys(of_life(self.queries, "facts"), 0))
        plan = self._plan(given)
        read = {table for query in plan for table in query.reads}
        for table in set(given) - read:
            self._release(table, result)
        for query, over in ordered(plan):
            self._make(query, result)
            for table in over:
                self._release(table, result)
        return result

    def _plan(self, given: Collection[str]) -> list[Query]:
        """Tables to make, in order; a check of a cluster follows the tables that it reads."""
        kept = of_life(self.queries, "facts")
        made = {*given, *(query.table for query in needed(self.queries, kept, given))}
        of_cluster = (each for each in self.queries.values() if each.life == "checks" and "cluster" in each.grain)
        checks = [each.table for each in of_cluster if made.issuperset(each.reads)]
        return needed(self.queries, [*kept, *checks], given)

    def _make(self, query: Query, result: ComputeResult) -> None:
        params = {
            "memory_threshold_ratio": self.settings.memory_threshold_ratio,
            **expectations(),
            **day_hours([day for _, day in self.batch.days]),
        }
        if query.life == "checks":
            if require_checks(self.con, {query.table: query}, query.reads, params):
                found = (
                    (each, failure) for each in self.batch.days for failure in failures_of(self.con, query, self.batch.name(each))
                )
                result.failures += [(each, failure.of_cluster(each[0])) for each, failure in found]
        elif query.table == BASELINE:
            learned = {table: self.con.table(table).to_arrow_table() for table in query.reads}
            with connection(self.settings.memory_limit, 1, has_functions=False) as con:
                create_tables(con, learned)
                found = idle_baseline(con, self.lake, self.batch, query, self.settings.idle_watts)
            create_tables(self.con, {BASELINE: found})
        elif query.table == _ENERGY_BEFORE:
            self._make_from_the_day_before(query, params)
        elif query.table in OF_SAMPLES:
            interval_sums(self.con, query, [*self.samples.values()], params, self.folder, self.settings.threads)
        elif query.table in OF_SERIES:
            holder_sums(self.con, query, [self.lake.partition("sample", *each) for each in self.batch.days], params)
        elif query.table == EXPECTED:
            self._make_in_order(query, params)
        else:
            build(self.con, query, params)

    def _make_from_the_day_before(self, query: Query, params: Mapping[str, Any]) -> None:
        """Make a table from the samples of each day and the day before; if its other inputs are empty, no samples are read."""
        given = {table: self.con.table(table).to_arrow_table() for table in query.reads if not table.startswith("lake.")}
        with connection(self.settings.memory_limit, 1, has_functions=False) as con:
            around = (timedelta(days=1), timedelta()) if any(rows.num_rows for rows in given.values()) else ()
            days = {each: {each[1] - shift for shift in around} for each in self.batch.days}
            self.batch.views(con, self.lake, ["device_sample"], days)
            create_tables(con, given)
            build(con, query, params)
            found = con.table(query.table).to_arrow_table()
        create_tables(self.con, {query.table: found})

    def _make_in_order(self, query: Query, params: Mapping[str, Any]) -> None:
        """Make a table day by day: each day needs the devices that the previous day of its cluster left."""
        last = ""
        for cluster, day in self.batch.days:
            name = self.batch.name((cluster, day))
            before = expected_next(self.con, name) if last == cluster else expected_before(self.lake, cluster, day, name)
            only = replace(query, sql=f"select * from ({query.sql}) where cluster = {quoted(name)}")
            build(self.con, only, {**params, **day_hours([day]), "expected_before": before})
            self.con.execute(f"{'insert into found' if last else 'create table found as'} from {query.table}")
            last = cluster
        self.con.execute(f"create or replace table {query.table} as from found; drop table found")

    def _release(self, table: str, result: ComputeResult) -> None:
        if table in result.rows:
            result.rows[table] = self._stage(table)
        if not table.startswith("lake.") and table not in OF_SAMPLES:
            self.con.execute(f"drop table {table}")

    def _stage(self, table: str) -> int:
        """Stage a table's rows in order of their keys, ``ROW_GROUP_ROWS`` a part; return their number."""
        keys = ", ".join(name for name in self.queries[table].grain if name != "cluster")
        found = self.con.sql(f"from {table} order by cluster, {keys}").to_arrow_reader(ROW_GROUP_ROWS)
        count, empty, numbers = 0, found.schema.empty_table(), Counter[str]()
        made = (part for rows in found for part in _by_cluster(pa.Table.from_batches([rows])))
        for name, rows in chain(made, ((name, empty) for name in self.samples)):
            where = (table.replace(".", "/"), self.samples[name].cluster, self.samples[name].date)
            self.change.write(*where, rows.drop("cluster"), numbers[name], self.notes[name])
            numbers[name] += 1
            count += rows.num_rows
        return count


def _by_cluster(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each cluster; the rows of a cluster are adjacent."""
    start = 0
    for each in rows["cluster"].value_counts().to_pylist():
        yield each["values"], rows.slice(start, each["counts"])
        start += each["counts"]


def _state(lake: Lake, batch: Batch, settings: ComputeSettings) -> dict[str, pa.Table]:
    """Tables of the days' state, by name; the three functions that make them are independent and run in parallel."""

    def build(make: Callable[..., dict[str, pa.Table]]) -> dict[str, pa.Table]:
        with connection(settings.memory_limit, 1, has_functions=False) as con:  # several threads would add in any order
            return make(con, lake, batch)

    quotas = partial(quota_facts_of_day, rules=settings.quota_rules)
    with abandoned_when_stopped(ThreadPoolExecutor(settings.threads)) as pool:
        return dict(ChainMap(*pool.map(build, (state_around_day, state_of_day, quotas))))
