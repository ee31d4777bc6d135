"""Staging of raw samples on disk before they are shaped, so that memory holds only a few devices at a time.

A sample near midnight is staged for both days: it shows how long the other day's first or last sample holds.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape import Reading, Tally, device_uuid, read_labels, reading_of, shape
from gpureport.collect.shape.identity import series_id
from gpureport.collect.sources.provenance import add_tallies
from gpureport.lake import Change
from gpureport.values.catalog import Catalog
from gpureport.values.errors import LakeError
from gpureport.values.series import Labels, SeriesBatch
from gpureport.values.window import DAY_MS, Window

MARGIN = timedelta(minutes=15)
"""Margin around a day. Its samples show how long the day's first and last samples hold."""
_MARGIN_MS = MARGIN // timedelta(milliseconds=1)
_SLOTS = 64
_SAMPLES_AT_ONCE = 500_000
_ROW = np.dtype([("series", "<i4"), ("time_ms", "<i8"), ("value", "<f8")])


class KnownSeries:
    """Numbers of distinct series, and the slot of each. All series of a device have the same slot."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.labels: list[Labels] = []
        self._slots: list[int] = []
        self._numbers: dict[int, int] = {}

    def numbers(self, labels: Iterable[Labels]) -> NDArray[np.int32]:
        """Return the number of each series."""
        return np.array([self._number(each) for each in labels], np.int32)

    def slots(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the slot of each series number."""
        return np.array([self._slots[number] for number in numbers.tolist()], np.int64)

    def _number(self, labels: Labels) -> int:
        identity = series_id(labels)
        number = self._numbers.setdefault(identity, len(self.labels))
        if number == len(self.labels):
            meaning = self.catalog.meaning(labels)
            device = device_uuid(labels, meaning) if meaning else ""
            self.labels.append(labels)
            self._slots.append(zlib.crc32((device or str(identity)).encode()) % _SLOTS)
        return number


class RawDays:
    """Raw samples in files of a folder, by day and slot. Of several samples at one time, the first received is kept."""

    def __init__(self, folder: Path, known: KnownSeries) -> None:
        self._folder = folder
        self._known = known
        self._counts: Counter[tuple[int, int]] = Counter()
        self._series: dict[int, set[int]] = defaultdict(set)
        self._own_days: set[int] = set()
        self.sample_count = 0
        self.last_ms = 0
        folder.mkdir()

    def add(self, batch: SeriesBatch, days: Collection[date] | None = None) -> None:
        """Add samples to the files. With ``days``, only samples that those days need are added."""
        if not batch.sample_count:
            return
        numbers = self._known.numbers(batch.labels)
        lengths = np.diff(batch.offsets)
        rows = np.empty(batch.sample_count, _ROW)
        rows["series"], rows["time_ms"], rows["value"] = np.repeat(numbers, lengths), batch.times_ms, batch.values
        slots = np.repeat(self._known.slots(numbers), lengths)
        number = batch.times_ms // DAY_MS
        self.sample_count += batch.sample_count
        self.last_ms = max(self.last_ms, int(batch.times_ms.max()))
        self._own_days |= set(np.unique(number).tolist())
        since = batch.times_ms % DAY_MS
        wanted = None if days is None else {_number_of(day) for day in days}
        for shift, is_there in ((0, since >= 0), (-1, since < _MARGIN_MS), (1, since >= DAY_MS - _MARGIN_MS)):
            if is_there.any():
                self._append(rows[is_there], number[is_there] + shift, slots[is_there], wanted)

    def days(self) -> list[date]:
        """Return the UTC days that have samples of their own."""
        return [datetime.fromtimestamp(number * DAY_MS / 1000, UTC).date() for number in sorted(self._own_days)]

    def labels(self, day: date) -> list[Labels]:
        """Return the series that the day needs."""
        return [self._known.labels[number] for number in sorted(self._series[_number_of(day)])]

    def count(self, day: date, slot: int) -> int:
        """Return the number of samples in a slot that the day needs."""
        return self._counts[_number_of(day), slot]

    def rows(self, day: date, slots: Iterable[int]) -> NDArray[Any]:
        """Return the samples in some slots that the day needs."""
        files = (self._file(_number_of(day), slot) for slot in slots)
        return np.concatenate([np.empty(0, _ROW), *(np.fromfile(file, _ROW) for file in files if file.exists())])

    def _append(self, rows: NDArray[Any], days: NDArray[np.int64], slots: NDArray[np.int64], wanted: set[int] | None) -> None:
        keys = days * _SLOTS + slots
        order = np.argsort(keys, kind="stable")
        found, first = np.unique(keys[order], return_index=True)
        for key, part in zip(found.tolist(), np.split(rows[order], first[1:]), strict=True):
            day, slot = divmod(key, _SLOTS)
            if wanted is None or day in wanted:
                self._counts[day, slot] += part.size
                self._series[day].update(np.unique(part["series"]).tolist())
                self._write(self._file(day, slot), part)

    def _write(self, path: Path, rows: NDArray[Any]) -> None:
        try:
            with path.open("ab") as file:
                file.write(rows.tobytes())
        except OSError as error:
            raise LakeError(f"samples for the lake cannot wait in {path.parent}: {error.strerror}; free space there") from error

    def _file(self, day: int, slot: int) -> Path:
        return self._folder / f"{day}-{slot}"


class DayWriter:
    """Shapes the samples of a few devices at a time and stages the rows. Earlier sources have precedence."""

    def __init__(self, change: Change, cluster: str, known: KnownSeries, sources: Sequence[RawDays], keep_raw: bool) -> None:
        self._change = change
        self._cluster = cluster
        self._known = known
        self._sources = sources
        self._keep_raw = keep_raw

    def write(self, day: date) -> Mapping[str, Tally]:
        """Stage a day's tables. A second pass corrects a wrong unit that the day's values reveal (DCGM 4.6)."""
        assumed = read_labels(labels for source in self._sources for labels in source.labels(day))
        tallies = self._shaped(day, assumed)
        reading = reading_of(tallies, assumed)
        return tallies if reading == assumed else self._shaped(day, reading)

    def _shaped(self, day: date, reading: Reading) -> Mapping[str, Tally]:
        window = Window.of_day(day)
        tallies = []
        for number, slots in enumerate(self._groups(day)):
            shaped = shape(self._batch(day, slots), self._known.catalog, window, self._keep_raw, reading)
            for table, rows in shaped.tables().items():
                self._change.write(table, self._cluster, day, rows, part=number)
            tallies.append(shaped.tallies)
        return add_tallies(tallies)

    def _groups(self, day: date) -> Iterator[list[int]]:
        group: list[int] = []
        held = 0
        for slot in range(_SLOTS):
            count = sum(source.count(day, slot) for source in self._sources)
            if group and held + count > _SAMPLES_AT_ONCE:
                yield group
                group, held = [], 0
            group, held = [*group, slot], held + count
        yield group

    def _batch(self, day: date, slots: list[int]) -> SeriesBatch:
        """Return each series once, with sorted samples. Of several samples at one time, the first received is kept."""
        rows = np.concatenate([source.rows(day, slots) for source in self._sources])
        rows = rows[np.lexsort((rows["time_ms"], rows["series"]))]
        is_new = np.append(True, rows["series"][1:] != rows["series"][:-1])[: rows.size]
        rows = rows[is_new | np.append(True, rows["time_ms"][1:] != rows["time_ms"][:-1])[: rows.size]]
        numbers, first = np.unique(rows["series"], return_index=True)
        return SeriesBatch(
            labels=[self._known.labels[number] for number in numbers.tolist()],
            offsets=np.append(first, rows.size).astype(np.int64),
            times_ms=np.ascontiguousarray(rows["time_ms"]),
            values=np.ascontiguousarray(rows["value"]),
        )


def _number_of(day: date) -> int:
    return Window.of_day(day).start_ms // DAY_MS
