"""Raw series from blocks of Prometheus' storage, in a snapshot folder or as Thanos, Mimir and Cortex store them.

The index (postings, series) and XOR chunks are read, many at a time. Histograms are skipped.

Format: prometheus/tsdb/docs/format/index.md, versions 1 and 2. Numbers are big-endian. The postings of a label refer to its
series.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.store import Bucket, ObjectAddress, Place
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch
from gpureport.values.window import Window

_META = "meta.json"


@dataclass(frozen=True)
class Block:
    """One block: its folder within the place, its time [start, end), and the labels that its uploader added."""

    place: Place
    name: str
    start_ms: int
    end_ms: int
    resolution_ms: int
    labels: Labels = field(default_factory=dict)

    def file(self, name: str) -> Path | None:
        """Return the local path of a block's file, downloaded from a bucket if necessary. None where the file does not exist."""
        if isinstance(self.place, ObjectAddress):
            path = Bucket(self.place).fetch(f"{self.name}/{name}")
        else:
            path = self.place / self.name / name
        return path if path.exists() else None

    def segments(self) -> list[str]:
        """Return the names of the chunk files in order."""
        if isinstance(self.place, ObjectAddress):
            found = (each.name.rpartition("/")[2] for each in Bucket(self.place).objects(f"{self.name}/chunks"))
        else:
            found = (each.name for each in (self.place / self.name / "chunks").glob("*"))
        return sorted(name for name in found if name.isdigit())

    def __str__(self) -> str:
        return f"block {self.name} of {self.place}"


def blocks_of(place: Place, window: Window, match: Mapping[str, str]) -> list[Block]:
    """Return the blocks with samples in the window whose labels do not contradict ``match``.

    SourceError where there is none, or where a part of the window has only downsampled blocks, which have no raw samples.
    """
    blocks = [_block(place, name, text) for name, text in sorted(_metas(place))]
    if not blocks:
        raise SourceError(f"{place} has no blocks; name the folder that has them, each with its {_META}")
    found = [each for each in blocks if _is_wanted(each, window, match)]
    raw = [each for each in found if not each.resolution_ms]
    for each in found:
        if each.resolution_ms and not _is_covered(each, window, raw):
            raise SourceError(
                f"{each} is downsampled to {each.resolution_ms // 1000} s: it has no raw samples; "
                "name blocks of full resolution, or export a day that Thanos still has at full resolution"
            )
    return raw


def _is_wanted(block: Block, window: Window, match: Mapping[str, str]) -> bool:
    overlaps = block.start_ms < window.end_ms and block.end_ms > window.start_ms
    return overlaps and all(block.labels.get(name, value) == value for name, value in match.items())


def _is_covered(block: Block, window: Window, raw: Sequence[Block]) -> bool:
    reached = max(block.start_ms, window.start_ms)
    for each in sorted(raw, key=lambda one: one.start_ms):
        if each.start_ms <= reached:
            reached = max(reached, each.end_ms)
    return reached >= min(block.end_ms, window.end_ms)


def _metas(place: Place) -> Iterator[tuple[str, bytes]]:
    if isinstance(place, ObjectAddress):
        bucket = Bucket(place)
        names = [each.name for each in bucket.objects() if each.name.count("/") == 1 and each.name.endswith(f"/{_META}")]
        found = ((name, bucket.get(name)) for name in names)
        yield from ((name.partition("/")[0], each.data) for name, each in found if each)
    else:
        yield from ((path.parent.name, path.read_bytes()) for path in sorted(place.glob(f"*/{_META}")))


def _block(place: Place, name: str, text: bytes) -> Block:
    try:
        meta = json.loads(text)
        if meta["version"] != 1:
            raise SourceError(f"{place}/{name}/{_META} has version {meta['version']}; this gpureport reads version 1")
        thanos = meta.get("thanos") or {}
        # Mimir's own labels (__compactor_shard_id__, …) do not distinguish copies: a shard has series of its source blocks.
        labels = {label: value for label, value in (thanos.get("labels") or {}).items() if not label.endswith("_id__")}
        resolution = int((thanos.get("downsample") or {}).get("resolution", 0))
        return Block(place, name, int(meta["minTime"]), int(meta["maxTime"]), resolution, labels)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{place}/{name}/{_META} is damaged ({error}); remove the block, or copy it again") from error


_MAGIC = 0xBAAAD700
_TOC_BYTES = 52
_U32 = struct.Struct(">I")


class Chunk(NamedTuple):
    """A chunk: its first and last time (ms), the number of its segment file from 0, and its offset there."""

    first_ms: int
    last_ms: int
    segment: int
    offset: int


class Series(NamedTuple):
    """A series: its reference, labels and chunks."""

    reference: int
    labels: dict[str, str]
    chunks: list[Chunk]


class Index:
    """An index in memory. IndexError and struct.error where it is damaged."""

    def __init__(self, path: Path) -> None:
        self._bytes = octets = path.read_bytes()
        if len(octets) < _TOC_BYTES + 5 or self._u32(0) != _MAGIC or octets[4] not in (1, 2):
            raise SourceError(f"{path} is not the index of a block; copy the block again")
        self._version = octets[4]
        toc = struct.unpack(">6Q", octets[-_TOC_BYTES:-4])
        self._symbol_table, self._postings_table = toc[0], toc[5]
        self._symbols = dict(self._read_symbols())

    def series_of(self, label: str, values: Collection[str]) -> Iterator[Series]:
        """Yield every series with one of these values of the label."""
        for offset in [offset for name, value, offset in self._postings() if name == label and value in values]:
            count = self._u32(offset + 4)
            for reference in struct.unpack_from(f">{count}I", self._bytes, offset + 8):
                yield self._series(reference)

    def _read_symbols(self) -> Iterator[tuple[int, str]]:
        """Yield symbols by number; in version 1, by offset in the file."""
        at = self._symbol_table + 8
        for number in range(self._u32(self._symbol_table + 4)):
            place = at
            text, at = self._text(at)
            yield (place if self._version == 1 else number), text

    def _postings(self) -> Iterator[tuple[str, str, int]]:
        """Yield (label, value, offset of the postings)."""
        at = self._postings_table + 8
        for _ in range(self._u32(self._postings_table + 4)):
            _, at = _varint(self._bytes, at)
            name, at = self._text(at)
            value, at = self._text(at)
            offset, at = _varint(self._bytes, at)
            yield name, value, offset

    def _series(self, reference: int) -> Series:
        _, at = _varint(self._bytes, reference if self._version == 1 else 16 * reference)
        count, at = _varint(self._bytes, at)
        labels = {}
        for _ in range(count):
            name, at = _varint(self._bytes, at)
            value, at = _varint(self._bytes, at)
            labels[self._symbols[name]] = self._symbols[value]
        return Series(reference, labels, self._chunks(at))

    def _chunks(self, at: int) -> list[Chunk]:
        count, at = _varint(self._bytes, at)
        chunks: list[Chunk] = []
        last, place = 0, 0
        for number in range(count):
            step, at = _varint(self._bytes, at)
            length, at = _varint(self._bytes, at)
            moved, at = _varint(self._bytes, at)
            first = last + (_signed(step) if number == 0 else step)
            last, place = first + length, place + (moved if number == 0 else _signed(moved))
            chunks.append(Chunk(first, last, place >> 32, place & 0xFFFFFFFF))
        return chunks

    def _u32(self, at: int) -> int:
        return int(_U32.unpack_from(self._bytes, at)[0])

    def _text(self, at: int) -> tuple[str, int]:
        length, at = _varint(self._bytes, at)
        return self._bytes[at : at + length].decode(), at + length


def tombstones(path: Path | None) -> dict[int, list[tuple[int, int]]]:
    """Return deleted ranges by series reference: first and last time, both included. IndexError for a file that is cut off."""
    found: dict[int, list[tuple[int, int]]] = {}
    octets, at = path.read_bytes()[5:-4] if path else b"", 0
    while at < len(octets):
        reference, at = _varint(octets, at)
        first, at = _varint(octets, at)
        last, at = _varint(octets, at)
        found.setdefault(reference, []).append((_signed(first), _signed(last)))
    return found


def _signed(number: int) -> int:
    """Convert a varint's number to a signed one."""
    return number >> 1 ^ -(number & 1)


_XOR = 1
_CHUNKS_AT_ONCE = 20_000
_HEAD = 8
"""Bytes of a segment file before its first chunk."""


def read_block(
    block: Block, metrics: Collection[str], match: Mapping[str, str], added: Labels, window: Window
) -> Iterator[SeriesBatch]:
    """Yield the block's samples of [start, end) of some metrics, many series at a time, without deleted samples.

    ``added`` labels are added to each series. SourceError where the block is damaged.
    """
    try:
        yield from _batches(
            block, metrics, {name: value for name, value in match.items() if name not in block.labels}, added, window
        )
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise SourceError(f"{block} is damaged ({error}); copy it again, or leave it out") from error


def _batches(
    block: Block, metrics: Collection[str], match: Mapping[str, str], added: Labels, window: Window
) -> Iterator[SeriesBatch]:
    path = block.file("index")
    if path is None:
        raise SourceError(f"{block} has no index; copy it whole")
    deleted = tombstones(block.file("tombstones"))
    segments = _Segments(block)
    chosen: list[tuple[Series, list[Chunk]]] = []
    for series in Index(path).series_of(METRIC_LABEL, metrics):
        chunks = [chunk for chunk in series.chunks if chunk.first_ms < window.end_ms and chunk.last_ms >= window.start_ms]
        if chunks and all(series.labels.get(name) == value for name, value in match.items()):
            chosen.append((series, chunks))
        if sum(len(chunks) for _, chunks in chosen) >= _CHUNKS_AT_ONCE:
            yield _batch(chosen, segments, deleted, added, window)
            chosen = []
    yield _batch(chosen, segments, deleted, added, window)


def _batch(
    chosen: Sequence[tuple[Series, Sequence[Chunk]]],
    segments: _Segments,
    deleted: Mapping[int, list[tuple[int, int]]],
    added: Labels,
    window: Window,
) -> SeriesBatch:
    from gpureport.collect.sources.prometheus.xor import PADDING, decode

    encoded = [[found for chunk in chunks if (found := segments.xor(chunk)) is not None] for _, chunks in chosen]
    joined = [chunk for each in encoded for chunk in each]
    ends = np.cumsum([len(chunk) for chunk in joined], dtype=np.int64)
    bounds = np.stack([np.append(0, ends[:-1])[: ends.size], ends], axis=1)
    octets = np.frombuffer(b"".join([*joined, b"\0" * PADDING]), np.uint8)
    counts, times, values = decode(octets, bounds, window.start_ms, window.end_ms)
    per_series = _sums(counts, [len(each) for each in encoded])
    kept = _not_deleted([deleted.get(series.reference, []) for series, _ in chosen], per_series, times)
    return SeriesBatch(
        labels=[{**series.labels, **added} for series, _ in chosen],
        offsets=np.append(0, np.cumsum(_sums(kept.astype(np.int64), per_series.tolist()))).astype(np.int64),
        times_ms=times[kept],
        values=values[kept],
    )


def _sums(numbers: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return the sums of consecutive runs with these lengths."""
    through = np.append(0, np.cumsum(numbers))
    ends = np.cumsum(np.array(lengths, np.int64))
    return np.asarray(through[ends] - through[ends - np.array(lengths, np.int64)], np.int64)


def _not_deleted(
    deleted: Sequence[Sequence[tuple[int, int]]], counts: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.bool_]:
    kept = np.ones(times.size, np.bool_)
    for ranges, end, count in zip(deleted, np.cumsum(counts).tolist(), counts.tolist(), strict=True):
        for first, last in ranges:
            own = times[end - count : end]
            kept[end - count : end] &= (own < first) | (own > last)
    return kept


class _Segments:
    """Files with a block's chunks. Each is opened when one of its chunks is read."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._names = block.segments()
        self._open: dict[int, mmap.mmap] = {}

    def xor(self, chunk: Chunk) -> bytes | None:
        """Return the bytes of a chunk; None where it is not an XOR chunk."""
        octets = self._of(chunk.segment)
        length, at = _varint(octets, chunk.offset)
        if at + 1 + length > len(octets) or chunk.offset < _HEAD:
            raise ValueError(f"a chunk is not within {self._names[chunk.segment]}")
        return octets[at + 1 : at + 1 + length] if octets[at] == _XOR else None

    def _of(self, segment: int) -> mmap.mmap:
        if segment not in self._open:
            path: Path | None = self._block.file(f"chunks/{self._names[segment]}")
            if path is None:
                raise SourceError(f"{self._block} has no chunks/{self._names[segment]}; copy it whole")
            with path.open("rb") as file:
                self._open[segment] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._open[segment]


def _varint(octets: mmap.mmap | bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        octet = octets[at]
        number |= (octet & 0x7F) << shift
        at += 1
        if octet < 0x80:
            return number, at
        shift += 7
