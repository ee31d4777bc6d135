"""Positions of labels and chunks in remote-read answers, found in one pass over the bytes without copies.

ChunkedReadResponse has ChunkedSeries (field 1), with labels (1: name 1, value 2) and chunks (2: times 1 and 2, encoding 3, data
4). Unknown fields are skipped, as protobuf requires.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.values.runtime.compiled import Number, compiled

Octets = NDArray[np.uint8]
Places = NDArray[np.int64]

DAMAGED = -1
"""Fault code: the bytes are not such a message."""

_NAME = np.frombuffer(b"\x0a\x08__name__", np.uint8)
_SMALLEST = 12
"""Minimum bytes of a series or chunk with content. A message with shorter ones is damaged."""
_HISTOGRAMS = (2, 3)
"""Encodings of native histograms, of integers and of floats. They are skipped, as in blocks."""


class Layout(NamedTuple):
    """Offsets into the messages. A row of ``series`` is (labels, name, end of name, end of labels, chunks so far)."""

    series: Places
    chunks: Places
    fault: int
    """0 for no fault, DAMAGED, or the first encoding that is neither the requested one nor a histogram's."""


def layout(octets: Octets, message_ends: Places, encoding: int) -> Layout:
    """Find the labels and name of every series, and the data (start, end) of its chunks."""
    most = octets.size // _SMALLEST + 1024
    series, chunks = np.empty((most, 5), np.int64), np.empty((most, 2), np.int64)  # untouched pages cost nothing
    series_count, chunk_count, fault = _find(octets, message_ends, encoding, series, chunks)
    return Layout(series[:series_count], chunks[:chunk_count], int(fault))


@compiled
def _uvarint(octets: Octets, at: Number, end: Number) -> tuple[Number, Number]:
    """Return (number, offset after it). The offset is DAMAGED where the number does not end."""
    number = np.int64(0)
    for place in range(10):
        if at >= end:
            return 0, DAMAGED
        octet = np.int64(octets[at])
        at += 1
        number |= (octet & 0x7F) << (7 * place)
        if octet < 0x80:
            return number, at
    return 0, DAMAGED


@compiled
def _field(octets: Octets, at: Number, end: Number) -> tuple[Number, Number, Number, Number]:
    """Return (number × 8 + wire type, value, start of the content, end of the field). The end is DAMAGED for an invalid field."""
    tag, at = _uvarint(octets, at, end)
    if at == DAMAGED:
        return 0, 0, 0, DAMAGED
    kind = tag & 7
    if kind == 0:
        value, after = _uvarint(octets, at, end)
        return tag, value, at, after
    size = np.int64(8) if kind == 1 else np.int64(4)
    if kind == 2:
        size, at = _uvarint(octets, at, end)
    if kind not in (1, 2, 5) or at == DAMAGED or size < 0 or size > end - at:
        return 0, 0, 0, DAMAGED
    return tag, 0, at, at + size


@compiled
def _is_name(octets: Octets, start: Number, end: Number) -> Number:
    return end - start >= _NAME.size and (octets[start : start + _NAME.size] == _NAME).all()


@compiled
def _chunk(octets: Octets, at: Number, end: Number) -> tuple[Number, Number, Number]:
    """Return (encoding, start and end of the data). The encoding is DAMAGED for an invalid chunk."""
    encoding, first, last = 0, at, at
    while at < end:
        tag, value, start, after = _field(octets, at, end)
        if after == DAMAGED:
            return DAMAGED, 0, 0
        if tag == 3 << 3:
            encoding = value
        elif tag == 4 << 3 | 2:
            first, last = start, after
        at = after
    return encoding, first, last


@compiled
def _series(
    octets: Octets, at: Number, end: Number, wanted: Number, row: Places, chunks: Places, chunk_count: Number
) -> tuple[Number, Number]:
    """Fill one series' row. Return (chunks so far, fault: an encoding, DAMAGED or 0)."""
    row[:4] = at
    while at < end:
        tag, _, start, after = _field(octets, at, end)
        if after == DAMAGED:
            return chunk_count, DAMAGED
        if tag == 1 << 3 | 2:
            if row[3] == row[0]:
                row[0] = at
            if _is_name(octets, start, after):
                row[1], row[2] = at, after
            row[3] = after
        elif tag == 2 << 3 | 2:
            encoding, first, last = _chunk(octets, start, after)
            if encoding == wanted and chunk_count < len(chunks):
                chunks[chunk_count, 0], chunks[chunk_count, 1] = first, last
                chunk_count += 1
            elif encoding not in _HISTOGRAMS:
                return chunk_count, encoding if encoding not in (0, wanted) else DAMAGED
        at = after
    row[4] = chunk_count
    return chunk_count, 0


@compiled
def _find(octets: Octets, message_ends: Places, wanted: Number, series: Places, chunks: Places) -> tuple[Number, Number, Number]:
    """Return (series found, chunks found, fault)."""
    series_count, chunk_count, at = 0, 0, 0
    for end in message_ends:
        while at < end:
            tag, _, start, after = _field(octets, at, end)
            if after == DAMAGED:
                return series_count, chunk_count, DAMAGED
            if tag == 1 << 3 | 2:
                if series_count == len(series):
                    return series_count, chunk_count, DAMAGED
                chunk_count, wrong = _series(octets, start, after, wanted, series[series_count], chunks, chunk_count)
                if wrong:
                    return series_count, chunk_count, wrong
                series_count += 1
            at = after
    return series_count, chunk_count, 0
