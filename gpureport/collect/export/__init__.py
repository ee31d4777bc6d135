"""Export of one UTC day from a Prometheus-compatible server into the lake, in groups of nodes.

A group's samples of the whole day are in memory together. Memory is bounded by the group (``samples_per_group``) times the worker
processes, for a fleet of any size. Nothing is visible in the lake before all groups are written.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

import numpy as np

from gpureport.collect.export.planning import (
    ExportSettings,
    NoSeriesError,
    Plan,
    plan_from_glimpse,
    plan_from_list,
    window_to_read,
    with_unread,
)
from gpureport.collect.shape import Reading, Tally, reading_of, shape
from gpureport.collect.sources.prometheus import Connection, Group, Labelled, NoApiError, Server, open_connection, probe, read
from gpureport.collect.sources.provenance import Origin, add_tallies, source_table
from gpureport.lake import Change, DamagedError, Lake, open_lake
from gpureport.store import Place
from gpureport.values.catalog import Catalog
from gpureport.values.errors import AuthError, SourceError
from gpureport.values.runtime.garbage import garbage_collection_off
from gpureport.values.runtime.parallel import Processes, Progress
from gpureport.values.series import METRIC_LABEL, SeriesBatch, concatenate
from gpureport.values.window import Window

__all__ = ["ExportSettings", "Exported", "NoSeriesError", "export_day", "load_loops"]


@dataclass(frozen=True)
class Exported:
    """Result of an export."""

    day: date
    read_paths: str
    series_count: int
    sample_count: int
    warnings: tuple[str, ...]
    is_written: bool
    unread: Mapping[str, int] = field(default_factory=dict)
    """Series of accelerator metrics outside of the catalog, by metric."""


@dataclass(frozen=True)
class _GroupResult:
    warnings: tuple[str, ...]
    read_path: str
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    devices: frozenset[str] = frozenset()


def export_day(settings: ExportSettings, place: Place, day: date, progress: Progress, only_if_grown: bool = False) -> Exported:
    """Export one day. With ``only_if_grown``, write only where the server has more samples than the lake.

    The number of processes is the number of concurrent requests to the server. SourceError where the server cannot be read;
    NoSeriesError where it has no series of the catalog for the day.
    """
    connection, lake = open_connection(settings.prometheus, settings.environ), open_lake(place, create=True)
    held = held_sample_counts(lake, settings.cluster, day)
    server = probe(connection)
    if held and only_if_grown and not _may_have_grown(held, connection, server, settings, day):
        return Exported(day, server.read_path, 0, 0, (), is_written=False)
    with _loading_loops(settings.catalog):
        plan = plan_from_glimpse(connection, server, settings, day) or plan_from_list(connection, settings, day)
        plan = with_unread(plan, connection, settings, day)
    export = _Export(settings, server, lake, progress, sum(held.values()), bool(held) and only_if_grown)
    try:
        return export.run(plan, day)
    except _SplitDeviceError:
        return export.run(plan_from_list(connection, settings, day), day)


def _may_have_grown(held: Mapping[str, int], connection: Connection, server: Server, settings: ExportSettings, day: date) -> bool:
    """Whether the server may have more samples of the day than the lake; True where its count is unknown."""
    if server.read_path == "victoria-metrics":  # its queries omit samples that its export includes
        return True
    try:
        counts = Labelled(connection, window_to_read(day)).sample_counts(settings.catalog.requested, settings.scope)
    except (AuthError, NoApiError):
        raise
    except SourceError:
        return True
    return not counts or any(count > held.get(metric, 0) for metric, count in counts.items())


class _SplitDeviceError(Exception):
    """A device was fetched in two groups, so its copies were not compared."""


@dataclass(frozen=True)
class _Export:
    """An export of any day."""

    settings: ExportSettings
    server: Server
    lake: Lake
    progress: Progress
    held: int
    """Number of samples behind the day's rows in the lake."""
    only_if_grown: bool

    def run(self, plan: Plan, day: date) -> Exported:
        """Fetch a plan and commit the day. _SplitDeviceError, with the lake unchanged, where two groups share a device."""
        fetch = _Fetch(self.settings, self.server, day, plan.reading)
        workers = Processes(self.settings.prometheus.max_concurrency)
        groups = list(enumerate(plan.groups))
        with self.lake.change() as change:
            done = _export_groups(fetch, lambda work: workers.each(partial(work.export, change=change), groups, self.progress))
            _refuse_split_devices(done)
            exported = replace(_exported(day, done, plan.warnings), unread=plan.unread)
            if self.only_if_grown and exported.sample_count <= self.held:
                change.abandon()
                return replace(exported, is_written=False)
            exported = replace(exported, warnings=(*fewer_samples_warning(self.held, exported.sample_count), *exported.warnings))
            server = f"{self.server.flavour} {self.server.version}".strip()
            origin = Origin("prometheus", server, exported.read_paths, exported.warnings)
            rows = source_table(add_tallies(each.tallies for each in done), self.settings.catalog, origin, Window.of_day(day))
            change.write("source", self.settings.cluster, day, rows)
        return exported


def _refuse_split_devices(done: Sequence[_GroupResult]) -> None:
    seen = Counter(device for each in done for device in each.devices)
    if any(count > 1 for count in seen.values()):
        raise _SplitDeviceError


@contextmanager
def _loading_loops(catalog: Catalog) -> Iterator[None]:
    """Load the compiled loops while the server answers the first queries. Forked workers inherit them."""
    loading = threading.Thread(target=load_loops, args=(catalog,))
    with garbage_collection_off():
        loading.start()
        try:
            yield
        except Exception:
            loading.join()
            raise
        loading.join()  # a process that exits does not wait


def load_loops(catalog: Catalog) -> None:
    """Compile the loops for reading and shaping, or load them from the cache, by running each once."""
    from gpureport.collect.sources.prometheus.remote_read import batch_of

    window = Window.of_day(date(2000, 1, 1))
    batch_of([], window, {}, "")
    labels = {METRIC_LABEL: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "UUID": "GPU-0", "pod": "train-0"}
    times = window.start_ms + np.arange(0, 90_000, 30_000)
    shape(SeriesBatch([labels], np.array([0, times.size]), times, np.arange(times.size, dtype=np.float64)), catalog, window)


def held_sample_counts(lake: Lake, cluster: str, day: date) -> dict[str, int]:
    """Return the number of samples behind the lake's day, by metric; empty where the day was never exported."""
    files = list[str]()
    with suppress(DamagedError):  # the day is replaced anyway
        files += [str(file) for file in found.files] if (found := lake.partition("source", cluster, day)) else []
    if not files:
        return {}
    import duckdb  # takes a tenth of a second; only a repeated export needs it

    counting = "select asked, sum(sample_count)::bigint from read_parquet(?) where kind <> 'kubernetes' group by all"
    with duckdb.connect() as con:
        return dict(con.execute(counting, [files]).fetchall())


def fewer_samples_warning(held: int, sample_count: int) -> tuple[str, ...]:
    """Return a warning where the new day has fewer samples than the lake had."""
    return (f"the lake had {held:,} samples of the day",) if sample_count < held else ()


@dataclass(frozen=True)
class _Fetch:
    """The export of one day: each numbered group of nodes is fetched, shaped and staged by itself."""

    settings: ExportSettings
    server: Server
    day: date
    reading: Reading

    def export(self, task: tuple[int, Group], change: Change) -> _GroupResult:
        """Stage one group's parts and return its result."""
        number, group = task
        batch, done = self._read(group, window_to_read(self.day))
        shaped = shape(batch, self.settings.catalog, Window.of_day(self.day), self.settings.keep_raw, self.reading)
        del batch  # free memory before the rows are encoded
        for table, rows in shaped.tables().items():
            change.write(table, self.settings.cluster, self.day, rows, part=number)
        return replace(done, tallies=shaped.tallies, devices=shaped.devices)

    def _read(self, group: Group, around: Window) -> tuple[SeriesBatch, _GroupResult]:
        connection = open_connection(self.settings.prometheus, self.settings.environ)
        readings = [read(connection, self.server, query.matchers, around, query.expected_samples) for query in group.queries]
        warnings = tuple(warning for reading in readings for warning in reading.warnings)
        paths = ", ".join(sorted({reading.read_path for reading in readings}))
        return concatenate([reading.batch for reading in readings]), _GroupResult(warnings, paths)


def _export_groups(fetch: _Fetch, all_groups: Callable[[_Fetch], list[_GroupResult]]) -> list[_GroupResult]:
    """Return every group's result. A second pass corrects a wrong unit that the whole day reveals (DCGM 4.6)."""
    done = all_groups(fetch)
    reading = reading_of(add_tallies(each.tallies for each in done), fetch.reading)
    return done if reading == fetch.reading else all_groups(replace(fetch, reading=reading))


def _exported(day: date, done: Sequence[_GroupResult], warnings: tuple[str, ...]) -> Exported:
    everything = sorted({*warnings, *(warning for each in done for warning in each.warnings)})
    tallies = add_tallies(each.tallies for each in done).values()
    series_count, samples = sum(tally.series_count for tally in tallies), sum(tally.sample_count for tally in tallies)
    paths = ", ".join(sorted({each.read_path for each in done}))
    return Exported(day, paths, series_count, samples, tuple(everything), is_written=True)
