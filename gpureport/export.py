"""Export: one UTC day of a Prometheus-compatible server into the lake, group of nodes by group of nodes.

A group's samples of the whole day are in hand at once, so memory is bounded by the group (``samples_per_group``) times the
worker processes, whatever the size of the fleet. Nothing becomes visible before every group is written.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb

from gpureport.catalog import Catalog
from gpureport.errors import SourceError
from gpureport.lake import Change, Lake, open_lake
from gpureport.provenance import Origin, add_tallies, source_table
from gpureport.series import Labels
from gpureport.shape import Tally, shape
from gpureport.sources.prometheus import (
    Connection,
    Matcher,
    PrometheusSettings,
    Server,
    list_series,
    open_connection,
    plan_groups,
    probe,
    read,
)
from gpureport.window import Window

MARGIN = timedelta(minutes=15)
"""Samples around the day that tell how far its first and last ones reach."""

Progress = Callable[[int, int], None]
"""Told (groups done, groups in all)."""


@dataclass(frozen=True)
class ExportSettings:
    """What to ask, of whom, and how gently."""

    prometheus: PrometheusSettings
    environ: Mapping[str, str]
    catalog: Catalog
    cluster: str
    samples_per_group: int
    keep_raw: bool


@dataclass(frozen=True)
class Exported:
    """What an export did."""

    day: date
    server: Server
    series_count: int
    sample_count: int
    warnings: tuple[str, ...]
    is_written: bool


@dataclass(frozen=True)
class _Task:
    """One group's work, as sent to a worker process."""

    settings: ExportSettings
    server: Server
    change: Change
    day: date
    number: int
    matchers: Sequence[Matcher]


@dataclass(frozen=True)
class _Done:
    tallies: Mapping[str, Tally]
    warnings: tuple[str, ...]
    read_path: str


def export_day(settings: ExportSettings, lake_path: Path, day: date, progress: Progress, only_if_grown: bool = False) -> Exported:
    """Write one day's partitions whole; with ``only_if_grown`` only where more samples came than the lake holds.

    SourceError where the server cannot be read or holds none of the catalogue's series for the day.
    """
    connection = open_connection(settings.prometheus, settings.environ)
    server = probe(connection)
    series, warnings = _series(connection, settings, day)
    groups = plan_groups(series, settings.samples_per_group)
    lake = open_lake(lake_path, create=True)
    held = held_sample_count(lake, settings.cluster, day) if only_if_grown else -1
    with lake.change() as change:
        tasks = [_Task(settings, server, change, day, number, group.matchers) for number, group in enumerate(groups)]
        done = list(_run(tasks, settings.prometheus.max_concurrency, progress))
        exported = _exported(day, server, len(series), done, warnings)
        if exported.sample_count <= held:
            change.abandon()
            return Exported(day, server, len(series), exported.sample_count, exported.warnings, is_written=False)
        _write_source(change, settings, exported, done)
    return exported


def held_sample_count(lake: Lake, cluster: str, day: date) -> int:
    """How many samples the lake's day rests on; -1 where the day was never exported."""
    for partition in lake.partitions("source"):
        if (partition.cluster, partition.date) == (cluster, day):
            files = [str(file) for file in partition.files]
            row = duckdb.execute("select sum(sample_count) from read_parquet(?)", [files]).fetchone()
            return int(row[0]) if row and row[0] is not None else 0
    return -1


def _series(connection: Connection, settings: ExportSettings, day: date) -> tuple[list[Labels], tuple[str, ...]]:
    metrics = "|".join(sorted(row.metric for row in settings.catalog.rows))
    window = Window.of_day(day)
    series, warnings = list_series(connection, [Matcher("__name__", "=~", metrics)], window.widened(MARGIN))
    if not series:
        raise SourceError(
            f"{settings.prometheus.url} holds no series of the catalogue for {day}; check the date, the server's retention, "
            "and that dcgm-exporter is scraped"
        )
    return list(series), tuple(warnings)


def _run(tasks: Sequence[_Task], concurrency: int, progress: Progress) -> Iterator[_Done]:
    """Every group's outcome, in order of the groups; one that fails ends the others."""
    workers = min(concurrency, len(tasks))
    if workers <= 1:
        for number, task in enumerate(tasks, start=1):
            yield _export_group(task)
            progress(number, len(tasks))
        return
    # Forked before this process has threads of its own: a worker is ready in milliseconds, with everything imported.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
        futures = [pool.submit(_export_group, task) for task in tasks]
        _await(futures, progress)
        for future in futures:
            yield future.result()


def _await(futures: Sequence[Future[_Done]], progress: Progress) -> None:
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        progress(len(futures) - len(pending), len(futures))
        if any(future.exception() for future in finished):
            for future in pending:
                future.cancel()


def _export_group(task: _Task) -> _Done:
    """Fetch, shape and stage one group; runs in a worker process."""
    settings = task.settings
    window = Window.of_day(task.day)
    connection = open_connection(settings.prometheus, settings.environ)
    reading = read(connection, task.server, task.matchers, window.widened(MARGIN))
    shaped = shape(reading.batch, settings.catalog, window, settings.keep_raw)
    for table, rows in shaped.tables().items():
        if rows.num_rows or table == "device_sample":
            task.change.write(table, settings.cluster, task.day, rows, part=f"part-{task.number:04d}")
    return _Done(shaped.tallies, tuple(reading.warnings), reading.read_path)


def _exported(day: date, server: Server, series_count: int, done: Sequence[_Done], warnings: tuple[str, ...]) -> Exported:
    everything = sorted({*warnings, *(warning for each in done for warning in each.warnings)})
    samples = sum(tally.sample_count for tally in add_tallies(each.tallies for each in done).values())
    return Exported(day, server, series_count, samples, tuple(everything), is_written=True)


def _write_source(change: Change, settings: ExportSettings, exported: Exported, done: Sequence[_Done]) -> None:
    paths = ", ".join(sorted({each.read_path for each in done}))
    server = f"{exported.server.flavour} {exported.server.version}".strip()
    origin = Origin("prometheus", server, paths, exported.warnings)
    tallies = add_tallies(each.tallies for each in done)
    rows = source_table(tallies, settings.catalog, origin, Window.of_day(exported.day))
    change.write("source", settings.cluster, exported.day, rows)
