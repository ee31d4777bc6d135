"""Export: one UTC day of a Prometheus-compatible server into the lake, group of nodes by group of nodes.

A group's samples of the whole day are in hand at once, so memory is bounded by the group (``samples_per_group``) times the
worker processes, whatever the size of the fleet. Nothing becomes visible before every group is written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from gpureport.catalog import Catalog
from gpureport.engines import Engine, Processes, Progress
from gpureport.errors import SourceError
from gpureport.lake import Change, Lake, open_lake
from gpureport.provenance import Origin, add_tallies, source_table
from gpureport.series import METRIC_LABEL, Labels, SeriesBatch, concatenate
from gpureport.shape import DEVICE_LABELS, Reading, Tally, device_uuid, reading_of, relabelled_jobs, shape
from gpureport.sources.prometheus import (
    Connection,
    Group,
    Matcher,
    PrometheusSettings,
    Question,
    Server,
    list_series,
    one_of,
    open_connection,
    plan_groups,
    probe,
    read,
    samples_per_hour,
)
from gpureport.store import Place
from gpureport.window import Window

MARGIN = timedelta(minutes=15)
"""Samples around the day that tell how far its first and last ones reach."""

ASSUMED_SAMPLES_PER_HOUR = 240
"""Where no series could be looked at: dcgm-exporter's usual 15 s."""


class NoSeriesError(SourceError):
    """The server answers, but knows none of the catalogue's series on that day."""


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
    read_paths: str
    series_count: int
    sample_count: int
    warnings: tuple[str, ...]
    is_written: bool


@dataclass(frozen=True)
class _Done:
    tallies: Mapping[str, Tally]
    warnings: tuple[str, ...]
    read_path: str


def export_day(
    settings: ExportSettings,
    place: Place,
    day: date,
    progress: Progress,
    only_if_grown: bool = False,
    engine: Engine | None = None,
) -> Exported:
    """Write one day's partitions whole; with ``only_if_grown`` only where more samples came than the lake holds.

    Groups are the engine's tasks; without one as many processes of this machine fetch them as the server is to bear.
    SourceError where the server cannot be read, NoSeriesError where it holds none of the catalogue's series for the day.
    """
    connection = open_connection(settings.prometheus, settings.environ)
    with _loading_loops(settings.catalog):
        server = probe(connection)
        series, warnings = _series(connection, settings, day)
        groups = _plan(connection, settings, series, day)
    fetch, series_count = _Fetch(settings, server, day, Reading(relabelled_jobs(series))), len(series)
    del series  # or every worker would be forked with a copy of all labels
    lake = open_lake(place, create=True)
    held = held_sample_count(lake, settings.cluster, day) if only_if_grown else -1
    with lake.change() as change:
        chosen = engine or Processes(settings.prometheus.max_concurrency)
        done = _read_right(fetch, lambda work: chosen.each(work, list(enumerate(groups)), change, progress))
        exported = _exported(day, server, series_count, done, warnings)
        if exported.sample_count <= held:
            change.abandon()
            return replace(exported, is_written=False)
        _write_source(change, settings, exported, done)
    return exported


@contextmanager
def _loading_loops(catalog: Catalog) -> Iterator[None]:
    """Load the compiled loops while the server lists its series: workers are forked with them."""
    loading = threading.Thread(target=load_loops, args=(catalog,))
    loading.start()
    try:
        yield
    finally:
        loading.join()


def load_loops(catalog: Catalog) -> None:
    """Have the loops of reading, shaping and writing compiled, or fetched from where they are kept, by using each."""
    from gpureport.lake.decimals import scaled
    from gpureport.sources.prometheus.remote_read import batch_of

    window = Window.of_day(date(2000, 1, 1))
    batch_of([], window, {}, "")
    labels = {METRIC_LABEL: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "UUID": "GPU-0", "pod": "train-0"}
    times = window.start_ms + np.arange(0, 90_000, 30_000)
    shape(SeriesBatch([labels], np.array([0, times.size]), times, np.arange(times.size, dtype=np.float64)), catalog, window)
    scaled(pa.array([0.0]).to_numpy(), 1.0, 1.0)


def held_sample_count(lake: Lake, cluster: str, day: date) -> int:
    """How many samples the lake's day rests on; -1 where the day was never exported."""
    for partition in lake.partitions("source"):
        if (partition.cluster, partition.date) == (cluster, day):
            files = [str(file) for file in partition.files]
            row = duckdb.execute("select sum(sample_count) from read_parquet(?) where kind <> 'kubernetes'", [files]).fetchone()
            return int(row[0]) if row and row[0] is not None else -1
    return -1


def _series(connection: Connection, settings: ExportSettings, day: date) -> tuple[list[Labels], tuple[str, ...]]:
    metrics = one_of(METRIC_LABEL, settings.catalog.asked)
    matchers = [metrics, *_scope(settings)]
    series, warnings = list_series(connection, matchers, Window.of_day(day).widened(MARGIN))
    if not series:
        raise NoSeriesError(
            f"{connection.url} holds no series of the catalogue for {day}; check the date, the server's retention, "
            "and that dcgm-exporter is scraped"
        )
    return list(series), tuple(warnings)


def _plan(connection: Connection, settings: ExportSettings, series: Sequence[Labels], day: date) -> list[Group]:
    """Groups by a budget of samples; how dense they are is seen on one series."""
    window = Window.of_day(day).widened(MARGIN)
    hourly = samples_per_hour(connection, series[0], window) or ASSUMED_SAMPLES_PER_HOUR
    samples_per_series = round(hourly * window.seconds / 3600)
    groups = plan_groups(series, settings.samples_per_group, samples_per_series, _device_of(settings.catalog), DEVICE_LABELS)
    return [Group(tuple(_within(question, _scope(settings)) for question in group.questions)) for group in groups]


def _scope(settings: ExportSettings) -> tuple[Matcher, ...]:
    """What every series must bear: of a server that holds several clusters, the one's label."""
    return tuple(Matcher(name, "=", value) for name, value in sorted(settings.prometheus.match.items()))


def _within(question: Question, scope: tuple[Matcher, ...]) -> Question:
    return replace(question, matchers=(*question.matchers, *scope))


def _device_of(catalog: Catalog) -> Callable[[Labels], str]:
    def device_of(labels: Labels) -> str:
        meaning = catalog.meaning(labels)
        return device_uuid(labels, meaning) if meaning else ""

    return device_of


@dataclass(frozen=True)
class _Fetch:
    """A day of numbered groups of nodes, each fetched, shaped and staged by itself."""

    settings: ExportSettings
    server: Server
    day: date
    reading: Reading

    def reads(self, _task: tuple[int, Group], _lake_path: Path) -> Sequence[Path]:
        """Nothing of the lake."""
        return ()

    def do(self, task: tuple[int, Group], change: Change) -> _Done:
        """Stage one group's parts; what was read of it."""
        number, group = task
        window = Window.of_day(self.day)
        batch, done = self._read(group, window.widened(MARGIN))
        shaped = shape(batch, self.settings.catalog, window, self.settings.keep_raw, self.reading)
        del batch  # not held while the rows are encoded
        for table, rows in shaped.tables().items():
            if rows.num_rows or table == "device_sample":
                change.write(table, self.settings.cluster, self.day, rows, part=f"part-{number:04d}")
        return replace(done, tallies=shaped.tallies)

    def _read(self, group: Group, around: Window) -> tuple[SeriesBatch, _Done]:
        connection = open_connection(self.settings.prometheus, self.settings.environ)
        readings = [
            read(connection, self.server, question.matchers, around, question.expected_samples) for question in group.questions
        ]
        warnings = tuple(warning for reading in readings for warning in reading.warnings)
        paths = ", ".join(sorted({reading.read_path for reading in readings}))
        return concatenate([reading.batch for reading in readings]), _Done({}, warnings, paths)


def _read_right(fetch: _Fetch, all_groups: Callable[[_Fetch], list[_Done]]) -> list[_Done]:
    """Every group's outcome; once more where the whole day shows that a metric was read in the wrong unit (DCGM 4.6)."""
    done = all_groups(fetch)
    reading = reading_of(add_tallies(each.tallies for each in done), fetch.reading.relabelled_jobs)
    return done if reading == fetch.reading else all_groups(replace(fetch, reading=reading))


def _exported(day: date, server: Server, series_count: int, done: Sequence[_Done], warnings: tuple[str, ...]) -> Exported:
    everything = sorted({*warnings, *(warning for each in done for warning in each.warnings)})
    samples = sum(tally.sample_count for tally in add_tallies(each.tallies for each in done).values())
    paths = ", ".join(sorted({each.read_path for each in done}))
    return Exported(day, server, paths, series_count, samples, tuple(everything), is_written=True)


def _write_source(change: Change, settings: ExportSettings, exported: Exported, done: Sequence[_Done]) -> None:
    server = f"{exported.server.flavour} {exported.server.version}".strip()
    origin = Origin("prometheus", server, exported.read_paths, exported.warnings)
    tallies = add_tallies(each.tallies for each in done)
    rows = source_table(tallies, settings.catalog, origin, Window.of_day(exported.day))
    change.write("source", settings.cluster, exported.day, rows)
