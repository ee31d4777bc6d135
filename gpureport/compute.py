"""From the lake to the facts of one cluster and day.

A device's rows of a day lie in one part of the lake, so parts are worked on a few at a time: DuckDB with one thread
(sums then run in the order of the files, the same every time), several at once, memory bounded by the batch.
Twice, for what a GPU draws at idle is learned from all parts before any energy is attributed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import accumulate
from pathlib import Path

import duckdb
import pyarrow as pa

from gpureport import __version__
from gpureport.errors import LakeError
from gpureport.facts.day_state import KEPT_ONCE, state_around_day, state_of_day
from gpureport.facts.idle_power import BASELINE, FIRST, idle_baseline
from gpureport.facts.kept import KEPT
from gpureport.facts.lake_days import TELEMETRY
from gpureport.facts.pod_series import kepler_parts
from gpureport.facts.quotas import QUOTA_FACTS, quota_facts_of_day
from gpureport.facts.restatement import footer_entries
from gpureport.lake import Change, Lake, Partition, footer, scan_view, views
from gpureport.query import Failure, Query, build, hold_to_checks, load, needed
from gpureport.runtime.spill import spill_folder
from gpureport.schedulers.model import DEFAULT_RULES, Rules
from gpureport.workers import Threads

_SAMPLES_AT_ONCE = 3_000_000
"""Rows per DuckDB run at most, about: enough to make planning cheap, few enough for the memory limit."""
_SAMPLES_WORTH_TWO_RUNS = 500_000
"""From here on two threads with half the rows each gain more than planning twice costs."""
_OF_PARTS = tuple(table for table in KEPT if table not in (*KEPT_ONCE, *QUOTA_FACTS))
"""Facts that are made part by part."""


@dataclass(frozen=True)
class ComputeSettings:
    """What facts depend on, and what computing them may use of the machine."""

    memory_threshold_ratio: float = 0.9
    idle_watts: Mapping[str, float] = field(default_factory=dict)
    """Power at idle by the UUID of a GPU, by model or for ``all``, where it is to be taken from here."""
    quota_rules: Rules = DEFAULT_RULES
    memory_limit: str = "1GB"
    threads: int = 2


@dataclass
class ComputeResult:
    """Rows written per facts table, and the checks of severity warn that found something."""

    rows: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


@contextmanager
def connection(memory_limit: str = "1GB", threads: int = 1) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory DuckDB in UTC that spills into a folder of its own, which ends with it."""
    with spill_folder() as spill, duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        con.execute(f"set threads = {threads:d}")
        try:
            con.execute("set memory_limit = $limit", {"limit": memory_limit})
        except duckdb.Error as error:
            raise LakeError(f"compute.memory_limit {memory_limit!r} is not a size; write it like 1GB") from error
        con.execute("set temp_directory = $spill", {"spill": str(spill)})
        yield con


def compute_day(
    lake: Lake,
    cluster: str,
    day: date,
    settings: ComputeSettings,
    version: str = __version__,
) -> ComputeResult:
    """Write the facts of one cluster and day, in place of what was there.

    LakeError where the lake holds no samples of the day; QueryError, the lake left as it was, where a check of severity
    fail finds something.
    """
    samples = lake.partition("device_sample", cluster, day)
    if samples is None:
        raise LakeError(f"the lake at {lake} holds nothing of {cluster} for {day}; export or import that day first")
    result = ComputeResult(dict.fromkeys(KEPT, 0))
    workers = Threads(settings.threads)
    lake.bring(found for table in TELEMETRY if (found := lake.partition(table, cluster, day)))
    with lake.change() as change:
        queries = load()
        made_with = {"gpureport_version": version, "config_hash": facts_hash(queries, settings)}
        metadata = {**made_with, **footer_entries(lake, samples)}
        of_the_day = _state(lake, samples, settings, queries)
        apart = kepler_parts(lake, samples) if of_the_day["clean.kepler_series"].num_rows else frozenset[str]()
        begin = _Begin(samples, settings, queries, metadata, _read_by_parts(queries, of_the_day), apart)
        for table in (*KEPT_ONCE, *QUOTA_FACTS):
            result.rows[table] = begin.stage(of_the_day[table], table, "part-0000", change)
        parts = [[file.relative_to(lake.path) for file in files] for files in batches(samples)]
        firsts = workers.each(partial(begin.do, change=change), parts)
        finish = begin.finish(_baseline(lake, begin, firsts))
        for rows, failures in workers.each(partial(finish.do, change=change), list(zip(parts, firsts, strict=True))):
            result.failures += failures
            for table, count in rows.items():
                result.rows[table] += count
    return result


def batches(partition: Partition) -> list[list[Path]]:
    """The partition's parts, neighbours together, in runs of about as many samples each.

    The lake alone decides, so the facts lie in the same files whatever the machine.
    """
    counts = [footer(file).num_rows for file in partition.files]
    run_count, total = _run_count(sum(counts)), max(sum(counts), 1)
    found: dict[int, list[Path]] = {}
    for file, count, through in zip(partition.files, counts, accumulate(counts), strict=True):
        middle = through - count / 2
        found.setdefault(int(middle * run_count / total), []).append(file)
    return list(found.values())


def _run_count(samples: int) -> int:
    """One for few samples; else an even number, for a last run alone would leave one of two cores idle."""
    count = max(math.ceil(samples / _SAMPLES_AT_ONCE), 2 if samples >= _SAMPLES_WORTH_TWO_RUNS else 1)
    return count if count == 1 else count + count % 2


@dataclass(frozen=True)
class _Batches:
    """The facts of a partition, batch by batch; each stages its parts itself, so none wait in memory."""

    partition: Partition
    settings: ComputeSettings
    queries: Mapping[str, Query]
    metadata: Mapping[str, str]
    of_the_day: Mapping[str, pa.Table]
    apart: frozenset[str]
    """Parts whose samples tell of pods on GPUs of other parts: every batch reads them beside its own."""

    def stage(self, found: pa.Table, table: str, part: str, change: Change) -> int:
        """Stage a table's rows as a part, in order of their keys; how many they are."""
        keys = [(name, "ascending") for name in self.queries[table].grain if name != "cluster"]
        rows = found.drop_columns(["cluster"]).sort_by(keys)
        where = (table.replace(".", "/"), self.partition.cluster, self.partition.date)
        change.write(*where, rows, part, self.metadata)
        return int(rows.num_rows)

    @contextmanager
    def open(self, batch: Sequence[Path], given: Mapping[str, pa.Table], lake_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """A database of one thread over the batch's files, with tables that are there already."""
        with connection(_share(self.settings), 1) as con:
            parts = {file.stem for file in batch}
            where = ([self.partition.cluster], [self.partition.date])
            for table in TELEMETRY:
                views(con, Lake(lake_path), [table], *where, parts=parts | self.apart if table == "sample" else parts)
            scan_view(con, [lake_path / file for file in batch])
            _give(con, given)
            yield con


class _Begin(_Batches):
    """What must be known of every batch before ``_Finish`` goes on from it."""

    def do(self, task: Sequence[Path], change: Change) -> dict[str, pa.Table]:
        """The tables of ``FIRST``; nothing is staged."""
        with self.open(task, self.of_the_day, change.lake_path) as con:
            for query in needed(self.queries, FIRST, self.of_the_day):
                build(con, query, {})
            return {table: con.sql(f"from {table}").to_arrow_table() for table in FIRST}

    def finish(self, baseline: pa.Table) -> _Finish:
        """What is to be done with each batch then."""
        return _Finish(
            self.partition, self.settings, self.queries, self.metadata, {**self.of_the_day, BASELINE: baseline}, self.apart
        )


_Begun = tuple[Sequence[Path], Mapping[str, pa.Table]]
"""A batch, and what ``_Begin`` made of it."""


class _Finish(_Batches):
    """The facts of each batch."""

    def do(self, task: _Begun, change: Change) -> tuple[dict[str, int], list[Failure]]:
        """Rows staged per table, and failed checks of severity warn."""
        batch, first = task
        given = {**self.of_the_day, **first}
        with self.open(batch, given, change.lake_path) as con:
            failures = _build_facts(con, self.queries, self.settings, given)
            return {
                table: self.stage(con.sql(f"from {table}").to_arrow_table(), table, batch[0].stem, change) for table in _OF_PARTS
            }, failures


def _baseline(lake: Lake, work: _Batches, firsts: Sequence[Mapping[str, pa.Table]]) -> pa.Table:
    """``facts.idle_baseline`` of the day."""
    settings = work.settings
    with connection(settings.memory_limit, 1) as con:  # several threads add in any order
        free = [first["facts.idle_power_hour"] for first in firsts]
        return idle_baseline(con, lake, work.partition, work.queries, free, settings.idle_watts)


def _state(lake: Lake, partition: Partition, settings: ComputeSettings, queries: Mapping[str, Query]) -> dict[str, pa.Table]:
    """What is known of the whole day, by table; its three subjects know nothing of each other."""

    def made(of: Callable[..., dict[str, pa.Table]]) -> dict[str, pa.Table]:
        with connection(settings.memory_limit, 1) as con:  # several threads add in any order
            return of(con, lake, partition, queries)

    quotas = partial(quota_facts_of_day, rules=settings.quota_rules)
    with ThreadPoolExecutor(settings.threads) as pool:
        return dict(ChainMap(*pool.map(made, (state_around_day, state_of_day, quotas))))


def _read_by_parts(queries: Mapping[str, Query], of_the_day: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """What is known of the day, as far as parts read it: each gets a copy, so what is only kept stays out."""
    chosen = [*needed(queries, FIRST, of_the_day), *needed(queries, _OF_PARTS, {*of_the_day, *FIRST, BASELINE})]
    reads = {table for query in chosen for table in query.reads}
    return {table: rows for table, rows in of_the_day.items() if table in reads}


def _give(con: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Put tables that are there already under their names."""
    con.execute("create schema if not exists clean; create schema if not exists facts")
    for name, rows in tables.items():
        con.register("_given", rows)
        con.execute(f"create table {name} as from _given")
        con.unregister("_given")


def facts_hash(queries: Mapping[str, Query], settings: ComputeSettings) -> str:
    """Twelve hex digits that change when a fact could: by the settings, or by the SQL."""
    sql = "".join(query.sql for query in needed(queries, KEPT))
    idle = json.dumps(settings.idle_watts, sort_keys=True)
    made_with = f"{settings.memory_threshold_ratio!r}\n{idle}\n{settings.quota_rules!r}\n{sql}"
    return hashlib.sha256(made_with.encode()).hexdigest()[:12]


def _share(settings: ComputeSettings) -> str:
    """Each worker's part of the memory limit; a percentage or a size with its unit."""
    digits = settings.memory_limit.rstrip("BbKkMmGgTtIi% ")
    try:
        return f"{float(digits) / settings.threads:g}{settings.memory_limit[len(digits) :]}"
    except ValueError:
        return settings.memory_limit  # DuckDB will say what is wrong with it


def _build_facts(
    con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], settings: ComputeSettings, given: Collection[str]
) -> list[Failure]:
    params = {"memory_threshold_ratio": settings.memory_threshold_ratio}
    chosen = needed(queries, _OF_PARTS, given)
    for query in chosen:
        build(con, query, params)
    return hold_to_checks(con, queries, {*given, *(query.table for query in chosen)}, params)
