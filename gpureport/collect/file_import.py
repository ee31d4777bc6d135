"""Import of OpenMetrics files into the lake. Samples are merged by (series, time) with earlier imports.

Imported days keep all raw samples, so that a later file can be merged and the day shaped again. A second import of the same file
changes nothing. prometheus-client parses each distinct label set once. Only the split of a line into series, value and time is
done here, because a day has millions of lines and few series.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prometheus_client.parser import parse_labels

from gpureport.collect.shape import Tally
from gpureport.collect.sources.provenance import Origin, add_tallies, source_table
from gpureport.collect.staging import DayWriter, KnownSeries, RawDays
from gpureport.lake import Lake, Partition, open_lake
from gpureport.lake.parquet import ROW_GROUP_ROWS
from gpureport.store import Place
from gpureport.values.catalog import Catalog
from gpureport.values.errors import LakeError, SourceError
from gpureport.values.runtime.spill import spill_folder
from gpureport.values.series import METRIC_LABEL, STALE_BITS, Labels, SeriesBatch, series_batch
from gpureport.values.window import CLOCKS_DIFFER, Window, from_ms, rfc3339, to_ms

_EARLIEST_SECONDS = 946_684_800.0  # 2000-01-01
_LATEST_SECONDS = 4_102_444_800.0  # 2100-01-01
_SAMPLES_AT_ONCE = 500_000
_LABELLED = re.compile(r'[^\s{"]*\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}')
"""Name and labels at the start of a line. Quoted text may contain any character."""
_HISTOGRAM = re.compile(rf"(?:{_LABELLED.pattern}|[^\s{{]+) +\{{\w+:")
"""Start of a native histogram: its value is fields in braces, and it has no samples."""
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def read_openmetrics(path: Path) -> Iterator[SeriesBatch]:
    """Yield all samples of a file (plain or .gz) in batches, in any order.

    SourceError with the file and line for text that is not OpenMetrics, a missing timestamp, or an end before ``# EOF``.
    """
    samples: dict[str, tuple[array[float], array[float]]] = {}
    labels: dict[str, Labels] = {}
    ended, count = False, 0
    for number, line in enumerate(_lines(path), start=1):
        if line.startswith("#"):
            ended = line.rstrip() == "# EOF"
        elif line.strip():
            _add(samples, line, path, number)
            ended, count = False, count + 1
            if count % _SAMPLES_AT_ONCE == 0:
                yield _batch(samples, labels, path)
                samples.clear()
    if not ended:
        raise SourceError(f"{path} ends without '# EOF': it was cut off; export it again, or wait until it is written")
    yield _batch(samples, labels, path)


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="\n") as file:  # a label may contain other line ends
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read ({_reason(error)}); check the path, or export it again") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text ({error.reason}); OpenMetrics is; export it again") from error


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".").lower()


def _add(samples: dict[str, tuple[array[float], array[float]]], line: str, path: Path, number: int) -> None:
    has_exemplar = " # " in line  # an exemplar, or a label with these characters
    labelled = _LABELLED.match(line) if has_exemplar else None
    end = labelled.end() if labelled else 0 if has_exemplar else line.rfind("}") + 1
    head, *rest = [line[:end], line[end:]] if end else line.split(maxsplit=1)
    fields = "".join(rest).split(" # ")[0].split()
    try:
        value, seconds = map(float, fields)
    except ValueError:
        if _HISTOGRAM.match(line):
            return
        if len(fields) == 1:
            wrong = "no timestamp; write each sample as 'name{labels} value seconds'"
        else:
            wrong = f"{line.strip()[:80]!r} is not an OpenMetrics sample; export it again"
        raise SourceError(f"{path}, line {number}: {wrong}") from None
    if not _EARLIEST_SECONDS <= seconds < _LATEST_SECONDS:
        raise SourceError(
            f"{path}, line {number}: the time {fields[1]} is not in 2000…2099 as seconds; "
            "OpenMetrics times are seconds, divide milliseconds by 1000"
        )
    found = samples.get(head)
    times, values = found or samples.setdefault(head, (array("d"), array("d")))
    times.append(seconds)
    values.append(value)


def _batch(samples: dict[str, tuple[array[float], array[float]]], labels: dict[str, Labels], path: Path) -> SeriesBatch:
    return series_batch(
        [labels.get(head) or labels.setdefault(head, _labels(head, path)) for head in samples],
        [np.rint(np.frombuffer(seconds) * 1000).astype(np.int64) for seconds, _ in samples.values()],
        [np.frombuffer(values) for _, values in samples.values()],
    )


def _labels(head: str, path: Path) -> dict[str, str]:
    """Parse the metric name and labels of ``name{…}`` with prometheus-client."""
    name, _, listed = head.partition("{")
    try:
        labels = parse_labels(listed.removesuffix("}"), True)
        metric = name or labels.pop(METRIC_LABEL, "")  # a quoted name may have other characters
        if METRIC_LABEL in labels or not (_NAME.fullmatch(name) if name else metric):
            raise ValueError("it has no name, or a wrong one")
    except ValueError as error:
        raise SourceError(f"{path}: {head[:120]!r} is not an OpenMetrics series ({error}); export it again") from error
    return {METRIC_LABEL: metric, **labels}


@dataclass(frozen=True)
class Imported:
    """Result of an import: the UTC days written, and the series and samples in the files."""

    days: tuple[date, ...]
    series_count: int
    sample_count: int
    nameless: Mapping[str, int]
    """Values dropped because no UUID label identifies their device, by metric."""
    unread: Mapping[str, int]
    """Series of accelerator metrics outside of the catalog, by metric."""


def import_files(place: Place, files: Sequence[Path], cluster: str, catalog: Catalog, now: datetime | None = None) -> Imported:
    """Import the files and write every day in them. An error in any file leaves the lake unchanged.

    SourceError for a file that cannot be read, has no usable samples, or is later than ``now``. LakeError where a day was
    exported without raw samples.
    """
    named = ", ".join(map(str, files))
    known = KnownSeries(catalog)
    with spill_folder() as folder:
        fresh, kept = RawDays(folder / "fresh", known), RawDays(folder / "kept", known)
        for path in files:
            for batch in read_openmetrics(path):
                fresh.add(batch)
        _refuse_empty_or_future(fresh, named, now)
        series, imported_days = list(known.labels), fresh.days()
        lake = open_lake(place, create=True)
        with lake.change() as change:
            days = _days_to_write(lake, cluster, imported_days)
            for raw in _raw_partitions(lake, cluster, days):
                for batch in _read_raw(lake, raw):
                    kept.add(batch, days)
            writer = DayWriter(change, cluster, known, [kept, fresh], keep_raw=True)
            tallies = {day: writer.write(day) for day in days}
            for day, by_metric in tallies.items():
                origin = Origin("file", "OpenMetrics", "openmetrics")
                change.write("source", cluster, day, source_table(by_metric, catalog, origin, Window.of_day(day)))
            total_tallies = add_tallies(tallies.values())
            _refuse_unusable(total_tallies, named)
    nameless = {metric: tally.dropped["nameless"] for metric, tally in sorted(total_tallies.items()) if tally.dropped["nameless"]}
    unread = catalog.unread(Counter(labels.get(METRIC_LABEL, "") for labels in series))
    return Imported(tuple(imported_days), len(series), fresh.sample_count, nameless, unread)


def _refuse_empty_or_future(fresh: RawDays, named: str, now: datetime | None) -> None:
    if fresh.sample_count == 0:
        raise SourceError(f"{named}: no samples; give OpenMetrics text with timestamps")
    if now is not None and fresh.last_ms > to_ms(now + CLOCKS_DIFFER):
        raise SourceError(f"{named}: samples reach to {rfc3339(from_ms(fresh.last_ms))}, in the future; check both clocks")


def _refuse_unusable(tallies: Mapping[str, Tally], named: str) -> None:
    """Raise SourceError where nothing is usable. Raised inside the change, so nothing is written."""
    if any(tally.series_count for tally in tallies.values()):
        return
    if any(tally.dropped["nameless"] for tally in tallies.values()):
        raise SourceError(
            f"{named}: no value has a UUID label, so none can be assigned to a device; scrape with the exporter's own labels"
        )
    raise SourceError(f"{named}: no metric that gpureport knows; see queries/catalog/signal.csv, or add rows under [[signals]]")


def _with_neighbours(days: Iterable[date]) -> list[date]:
    """Return the days and their neighbors. A sample after midnight shows how long the last one before it holds."""
    return sorted({day + timedelta(days=shift) for day in days for shift in (-1, 0, 1)})


def _days_to_write(lake: Lake, cluster: str, imported_days: Sequence[date]) -> list[date]:
    """Return the days of the files, and their neighbors that have raw samples."""
    exported = {each.date for each in lake.partitions("device_sample") if each.cluster == cluster}
    raw = {each.date for each in lake.partitions("raw_sample") if each.cluster == cluster}
    for day in _with_neighbours(imported_days):
        if day in exported - raw:
            raise LakeError(
                f"{day} of cluster {cluster} was exported without its raw samples, so nothing can be merged into it; "
                "export it again with --keep-raw, or import into another --cluster"
            )
    return [day for day in _with_neighbours(imported_days) if day in imported_days or day in raw]


def _raw_partitions(lake: Lake, cluster: str, days: Sequence[date]) -> list[Partition]:
    """Return the lake's raw samples of the days and their neighbors."""
    found = (lake.partition("raw_sample", cluster, day) for day in _with_neighbours(days))
    return [raw for raw in found if raw is not None]


def _read_raw(lake: Lake, raw: Partition) -> Iterator[SeriesBatch]:
    """Yield a partition's raw samples, one row group at a time."""
    series = lake.partition("series", raw.cluster, raw.date)
    labels: dict[int, Labels] = {}
    for file in series.files if series else ():
        for rows in _row_groups(file, ["series_id", "metric", "labels"]):
            labels |= {row["series_id"]: {METRIC_LABEL: row["metric"], **dict(row["labels"])} for row in rows.to_pylist()}
    for file in raw.files:
        for rows in _row_groups(file, ["series_id", "seen_at", "value"]):
            yield _raw_batch(rows, labels)


def _raw_batch(rows: pa.RecordBatch, labels: Mapping[int, Labels]) -> SeriesBatch:
    ids = rows["series_id"].to_numpy()
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: ids.size])
    return SeriesBatch(
        labels=[labels[int(ids[index])] for index in first],
        offsets=np.append(first, ids.size).astype(np.int64),
        times_ms=rows["seen_at"].to_numpy(zero_copy_only=False).astype("datetime64[ms]").astype(np.int64),
        values=_raw_values(rows["value"]),
    )


def _row_groups(file: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in batches."""
    yield from pq.ParquetFile(file, pre_buffer=False).iter_batches(ROW_GROUP_ROWS, columns=columns, use_threads=False)


def _raw_values(column: pa.Array) -> np.ndarray:
    """Return values with staleness markers in place of nulls."""
    is_marker = np.asarray(column.is_null())
    bits = np.array(column.fill_null(0.0), np.float64).view(np.uint64).copy()
    bits[is_marker] = STALE_BITS
    return bits.view(np.float64)
