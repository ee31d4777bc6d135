"""A block's index: which series there are, and where the chunks of each are.

Format: prometheus/tsdb/docs/format/index.md, versions 1 and 2. Numbers are big-endian; a series is found by its reference,
from the postings of its labels.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from gpureport.values.errors import SourceError

_MAGIC = 0xBAAAD700
_TOC_BYTES = 52
_U32 = struct.Struct(">I")


class Chunk(NamedTuple):
    """A chunk: its first and last time (ms), the number of its segment file from 0, and where it is in it."""

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
    """An index in memory; IndexError and struct.error where it is damaged."""

    def __init__(self, path: Path) -> None:
        self._bytes = octets = path.read_bytes()
        if len(octets) < _TOC_BYTES + 5 or self._u32(0) != _MAGIC or octets[4] not in (1, 2):
            raise SourceError(f"{path} is no index of a block; copy the block again")
        self._version = octets[4]
        toc = struct.unpack(">6Q", octets[-_TOC_BYTES:-4])
        self._symbol_table, self._postings_table = toc[0], toc[5]
        self._symbols = dict(self._read_symbols())

    def series_of(self, label: str, values: Collection[str]) -> Iterator[Series]:
        """Every series whose label has one of the values."""
        for offset in [offset for name, value, offset in self._postings() if name == label and value in values]:
            count = self._u32(offset + 4)
            for reference in struct.unpack_from(f">{count}I", self._bytes, offset + 8):
                yield self._series(reference)

    def _read_symbols(self) -> Iterator[tuple[int, str]]:
        """Symbols by number; by their place in the file in version 1."""
        at = self._symbol_table + 8
        for number in range(self._u32(self._symbol_table + 4)):
            place = at
            text, at = self._text(at)
            yield (place if self._version == 1 else number), text

    def _postings(self) -> Iterator[tuple[str, str, int]]:
        """(label, value, where its postings are)."""
        at = self._postings_table + 8
        for _ in range(self._u32(self._postings_table + 4)):
            _, at = self._varint(at)
            name, at = self._text(at)
            value, at = self._text(at)
            offset, at = self._varint(at)
            yield name, value, offset

    def _series(self, reference: int) -> Series:
        _, at = self._varint(reference if self._version == 1 else 16 * reference)
        count, at = self._varint(at)
        labels = {}
        for _ in range(count):
            name, at = self._varint(at)
            value, at = self._varint(at)
            labels[self._symbols[name]] = self._symbols[value]
        return Series(reference, labels, self._chunks(at))

    def _chunks(self, at: int) -> list[Chunk]:
        count, at = self._varint(at)
        chunks: list[Chunk] = []
        last, place = 0, 0
        for number in range(count):
            step, at = self._varint(at)
            length, at = self._varint(at)
            moved, at = self._varint(at)
            first = last + (_signed(step) if number == 0 else step)
            last, place = first + length, place + (moved if number == 0 else _signed(moved))
            chunks.append(Chunk(first, last, place >> 32, place & 0xFFFFFFFF))
        return chunks

    def _u32(self, at: int) -> int:
        return int(_U32.unpack_from(self._bytes, at)[0])

    def _varint(self, at: int) -> tuple[int, int]:
        number = shift = 0
        while True:
            octet = self._bytes[at]
            number |= (octet & 0x7F) << shift
            at += 1
            if octet < 0x80:
                return number, at
            shift += 7

    def _text(self, at: int) -> tuple[str, int]:
        length, at = self._varint(at)
        return self._bytes[at : at + length].decode(), at + length


def tombstones(path: Path | None) -> dict[int, list[tuple[int, int]]]:
    """Deleted ranges by the reference of their series: first and last time, both included."""
    found: dict[int, list[tuple[int, int]]] = {}
    octets = path.read_bytes()[5:-4] if path else b""
    numbers = iter(_varints(octets))
    for reference in numbers:
        found.setdefault(reference, []).append((_signed(next(numbers)), _signed(next(numbers))))
    return found


def _varints(octets: bytes) -> Iterator[int]:
    number = shift = 0
    for octet in octets:
        number |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            yield number
            number = shift = 0


def _signed(number: int) -> int:
    """A varint's number as a signed one."""
    return number >> 1 ^ -(number & 1)
