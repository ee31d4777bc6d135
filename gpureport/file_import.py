"""Import: OpenMetrics files into the lake, merged by (series, time) with what was imported before.

Imported days keep every raw sample, so that a later file can be merged and the day shaped anew; importing the same file
twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.catalog import Catalog
from gpureport.errors import LakeError, SourceError
from gpureport.lake import Change, Lake, Partition, open_lake
from gpureport.provenance import Origin, add_tallies, source_table
from gpureport.series import METRIC_LABEL, STALE_BITS, Labels, SeriesBatch, concatenate
from gpureport.shape import Reading, Shaped, Tally, exporters, reading_of, shape
from gpureport.shape.known import series_id
from gpureport.sources.openmetrics import read_openmetrics
from gpureport.store import Place
from gpureport.window import DAY_MS, Window, from_ms, rfc3339, to_ms

MARGIN = timedelta(minutes=15)
"""Samples around a day that tell how far its first and last ones reach."""
AHEAD = timedelta(hours=1)
"""How far clocks may differ."""


@dataclass(frozen=True)
class Imported:
    """What an import did: the days (UTC) that were written, and how many series and samples the files held."""

    days: tuple[date, ...]
    series_count: int
    sample_count: int
    nameless: Mapping[str, int]
    """Values left out because no UUID label says whose they are, by metric."""
    unread: Mapping[str, int]
    """Series of metrics that are of accelerators and not in the catalogue, by metric."""


def import_files(place: Place, files: Sequence[Path], cluster: str, catalog: Catalog, now: datetime | None = None) -> Imported:
    """Read the files and write every day that they touch; nothing is written unless all of them are whole.

    SourceError for a file that cannot be read, holds nothing of use, or reaches beyond ``now``; LakeError where an export
    without raw samples already filled one of the days.
    """
    fresh = concatenate([read_openmetrics(path) for path in files])
    named = ", ".join(map(str, files))
    if fresh.sample_count == 0:
        raise SourceError(f"{named}: no samples; give OpenMetrics text with timestamps")
    _refuse_the_future(fresh, named, now)
    lake = open_lake(place, create=True)
    touched = _days(fresh)
    with lake.change() as change:
        batch = distinct(concatenate([*_kept_raw(lake, cluster, _with_neighbours(touched)), fresh]))
        days = [day for day in _with_neighbours(touched) if day in touched or lake.partition("raw_sample", cluster, day)]
        tallies = add_tallies(_write_day(change, cluster, day, batch, catalog) for day in days)
        _refuse_nothing(tallies, named)
    nameless = {metric: tally.dropped["nameless"] for metric, tally in sorted(tallies.items()) if tally.dropped["nameless"]}
    unread = catalog.unread(Counter(labels.get(METRIC_LABEL, "") for labels in fresh.labels))
    return Imported(tuple(sorted(touched)), fresh.series_count, fresh.sample_count, nameless, unread)


def _refuse_the_future(batch: SeriesBatch, named: str, now: datetime | None) -> None:
    last = int(batch.times_ms.max())
    if now is not None and last > to_ms(now + AHEAD):
        raise SourceError(f"{named}: samples reach to {rfc3339(from_ms(last))}, in the future; check both clocks")


def _refuse_nothing(tallies: Mapping[str, Tally], named: str) -> None:
    """Raised within the change, so that nothing is written."""
    if any(tally.series_count for tally in tallies.values()):
        return
    if any(tally.dropped["nameless"] for tally in tallies.values()):
        raise SourceError(
            f"{named}: no value has a UUID label, so none can be assigned to a device; scrape with the exporter's own labels"
        )
    raise SourceError(f"{named}: no metric that gpureport knows; see queries/catalog/signal.csv, or add rows under [[signals]]")


def _days(batch: SeriesBatch) -> set[date]:
    """The UTC days in which the batch has samples."""
    return {datetime.fromtimestamp(int(day) * DAY_MS / 1000, UTC).date() for day in np.unique(batch.times_ms // DAY_MS)}


def _with_neighbours(days: Iterable[date]) -> list[date]:
    """The days and those beside them: a sample after midnight tells how long the last one before it holds."""
    return sorted({day + timedelta(days=shift) for day in days for shift in (-1, 0, 1)})


def _kept_raw(lake: Lake, cluster: str, days: Iterable[date]) -> list[SeriesBatch]:
    """The raw samples that the lake holds of these days."""
    exported = {each.date for each in lake.partitions("device_sample") if each.cluster == cluster}
    kept = []
    for day in days:
        raw = lake.partition("raw_sample", cluster, day)
        if raw is not None:
            kept.append(_read_raw(lake, raw))
        elif day in exported:
            raise LakeError(
                f"{day} of cluster {cluster} was exported without its raw samples, so nothing can be merged into it; "
                "export it again with --keep-raw, or import into another --cluster"
            )
    return kept


def _read_raw(lake: Lake, raw: Partition) -> SeriesBatch:
    series = _table(lake.partition("series", raw.cluster, raw.date), ["series_id", "metric", "labels"])
    labels = {row["series_id"]: {METRIC_LABEL: row["metric"], **dict(row["labels"])} for row in series.to_pylist()}
    rows = _table(raw, None)
    ids = rows["series_id"].to_numpy()
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if ids.size else np.empty(0, np.int64)
    return SeriesBatch(
        labels=[labels[int(ids[index])] for index in first],
        offsets=np.append(first, ids.size).astype(np.int64),
        times_ms=rows["seen_at"].to_numpy().astype("datetime64[ms]").astype(np.int64),
        values=_raw_values(rows["value"]),
    )


def _table(partition: Partition | None, columns: list[str] | None) -> pa.Table:
    """A partition's rows."""
    files = partition.files if partition else ()
    return pa.concat_tables([pq.read_table(file, columns=columns, partitioning=None) for file in files])


def _raw_values(column: pa.ChunkedArray) -> np.ndarray:
    """Values with staleness markers back in place of nulls."""
    is_marker = np.asarray(column.is_null())
    bits = np.array(column.fill_null(0.0), np.float64).view(np.uint64).copy()
    bits[is_marker] = STALE_BITS
    return bits.view(np.float64)


def _write_day(change: Change, cluster: str, day: date, batch: SeriesBatch, catalog: Catalog) -> Mapping[str, Tally]:
    window = Window.of_day(day)
    shaped = _shape(between(batch, window.widened(MARGIN)), catalog, window)
    for table, rows in shaped.tables().items():
        change.write(table, cluster, day, rows)
    origin = Origin("file", "OpenMetrics", "openmetrics")
    change.write("source", cluster, day, source_table(shaped.tallies, catalog, origin, window))
    return shaped.tallies


def _shape(batch: SeriesBatch, catalog: Catalog, window: Window) -> Shaped:
    """Shape a day; once more where its values show that a metric was read in the wrong unit (DCGM 4.6)."""
    assumed = Reading(exporters(batch.labels))
    shaped = shape(batch, catalog, window, keep_raw=True, reading=assumed)
    reading = reading_of(shaped.tallies, assumed.exporters)
    return shaped if reading == assumed else shape(batch, catalog, window, keep_raw=True, reading=reading)


def distinct(batch: SeriesBatch) -> SeriesBatch:
    """Each series once, its samples sorted, and of several at one instant the first that came."""
    numbers: dict[int, int] = {}
    labels: list[Labels] = []
    for each in batch.labels:
        if numbers.setdefault(series_id(each), len(labels)) == len(labels):
            labels.append(each)
    own = np.array([numbers[series_id(each)] for each in batch.labels], np.int64)
    series = np.repeat(own, np.diff(batch.offsets))
    order = np.lexsort((batch.times_ms, series))
    series, times, values = series[order], batch.times_ms[order], batch.values[order]
    kept = np.append(True, (times[1:] != times[:-1]) | (series[1:] != series[:-1]))[: times.size]
    counts = np.bincount(series[kept], minlength=len(labels))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return SeriesBatch(labels, offsets, times[kept], values[kept], batch.external_labels)


def between(batch: SeriesBatch, window: Window) -> SeriesBatch:
    """The batch's samples of [start, end)."""
    inside = (batch.times_ms >= window.start_ms) & (batch.times_ms < window.end_ms)
    counts = np.add.reduceat(np.append(inside, False), batch.offsets[:-1]) * (np.diff(batch.offsets) > 0)
    present = np.flatnonzero(counts)
    return SeriesBatch(
        labels=[batch.labels[int(number)] for number in present],
        offsets=np.concatenate([[0], np.cumsum(counts[present])]).astype(np.int64),
        times_ms=batch.times_ms[inside],
        values=batch.values[inside],
        external_labels=batch.external_labels,
    )
