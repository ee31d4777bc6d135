"""A block's samples: its XOR chunks, decoded many at a time; histograms are left out."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.sources.blocks.finding import Block
from gpureport.collect.sources.blocks.index import Chunk, Index, Series, tombstones
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch
from gpureport.values.window import Window

_XOR = 1
_CHUNKS_AT_ONCE = 20_000
_HEAD = 8
"""Octets of a segment file before its first chunk."""


def read_block(
    block: Block, metrics: Collection[str], match: Mapping[str, str], added: Labels, window: Window
) -> Iterator[SeriesBatch]:
    """The block's samples of [start, end) of some metrics, many series at a time; what was deleted is left out.

    ``added`` labels are put to those of each series. SourceError where the block is damaged.
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

    pieces = [[found for chunk in chunks if (found := segments.xor(chunk)) is not None] for _, chunks in chosen]
    joined = [piece for each in pieces for piece in each]
    ends = np.cumsum([len(piece) for piece in joined], dtype=np.int64)
    bounds = np.stack([np.append(0, ends[:-1])[: ends.size], ends], axis=1)
    octets = np.frombuffer(b"".join([*joined, b"\0" * PADDING]), np.uint8)
    counts, times, values = decode(octets, bounds, window.start_ms, window.end_ms)
    per_series = _sums(counts, [len(each) for each in pieces])
    kept = _not_deleted([deleted.get(series.reference, []) for series, _ in chosen], per_series, times)
    return SeriesBatch(
        labels=[{**series.labels, **added} for series, _ in chosen],
        offsets=np.append(0, np.cumsum(_sums(kept.astype(np.int64), per_series.tolist()))).astype(np.int64),
        times_ms=times[kept],
        values=values[kept],
    )


def _sums(numbers: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.int64]:
    """The sums of runs of so many numbers each."""
    through = np.append(0, np.cumsum(numbers))
    ends = np.cumsum(np.array(lengths, np.int64))
    return np.asarray(through[ends] - through[ends - np.array(lengths, np.int64)], np.int64)


def _not_deleted(
    deleted: Sequence[Sequence[tuple[int, int]]], counts: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.bool_]:
    kept = np.ones(times.size, np.bool_)
    for spans, end, count in zip(deleted, np.cumsum(counts).tolist(), counts.tolist(), strict=True):
        for first, last in spans:
            own = times[end - count : end]
            kept[end - count : end] &= (own < first) | (own > last)
    return kept


class _Segments:
    """The files that hold a block's chunks; each is opened when a chunk of it is read."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._names = block.segments()
        self._open: dict[int, mmap.mmap] = {}

    def xor(self, chunk: Chunk) -> bytes | None:
        """The octets of a chunk; None of one that is no XOR chunk."""
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


def _varint(octets: mmap.mmap, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        octet = octets[at]
        number |= (octet & 0x7F) << shift
        at += 1
        if octet < 0x80:
            return number, at
        shift += 7
