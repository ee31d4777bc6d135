"""Decoder of Prometheus' XOR chunks: a compiled loop over their bits.

A chunk is a big-endian sample count (16 bits) and a bit stream: first time as a signed varint, first value raw, a time delta as
an unsigned varint. Each later sample is a delta of deltas in one of five widths and the XOR with the previous value (Gorilla,
VLDB 2015; prometheus/tsdb/chunkenc).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpureport.values.errors import SourceError
from gpureport.values.runtime.compiled import Number, compiled, inlined

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

PADDING = 64
"""Bytes required after the last chunk: a damaged chunk is detected after the sample that crosses its end."""
_DAMAGED = "the server's block is damaged: check its disk"

# Forms 0.., 10., 110 and 111 of a delta of deltas (bits after the first 1): widths of prefix and number, and largest positive
# number.
_PREFIX = np.array([1, 2, 3, 3], np.int64)
_WIDTH = np.array([14, 17, 20, 64], np.int64)
_HALF = np.array([1 << 13, 1 << 16, 1 << 19, (1 << 63) - 1], np.int64)


class CorruptChunkError(SourceError):
    """A chunk's bits do not match its sample count."""


def announced_samples(octets: Octets, chunks: Ints) -> int:
    """Return the number of samples in the headers of all chunks. CorruptChunkError for a chunk without a header."""
    if chunks.size and (chunks[:, 1] - chunks[:, 0]).min() < 2:
        raise CorruptChunkError(f"a chunk is shorter than its own header; {_DAMAGED}")
    starts = chunks[:, 0]
    return int((octets[starts].astype(np.int64) << 8 | octets[starts + 1]).sum())


def decode(octets: Octets, chunks: Ints, low_ms: int, high_ms: int) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Decode chunks at (start, end) to (sample counts, times in ms, values), limited to [low, high). Values are bit-exact.

    PADDING bytes must follow the chunks. CorruptChunkError for a chunk that ends before its last sample.
    """
    announced = announced_samples(octets, chunks)
    times, bits = np.empty(announced, np.int64), np.empty(announced, np.uint64)
    counts = np.empty(len(chunks), np.int64)
    total = _decode_all(octets, chunks, low_ms, high_ms, counts, times, bits)
    if total < 0:
        raise CorruptChunkError(f"a chunk ends before its last sample; {_DAMAGED}")
    return counts, times[:total], bits[:total].view(np.float64)


@inlined
def _word(octets: Octets, bit: Number) -> Number:
    """Return at least the next 57 bits from a position, left-aligned in 64."""
    at = np.uint64(bit) >> np.uint64(3)
    word = (
        np.uint64(octets[at]) << np.uint64(56)
        | np.uint64(octets[at + np.uint64(1)]) << np.uint64(48)
        | np.uint64(octets[at + np.uint64(2)]) << np.uint64(40)
        | np.uint64(octets[at + np.uint64(3)]) << np.uint64(32)
        | np.uint64(octets[at + np.uint64(4)]) << np.uint64(24)
        | np.uint64(octets[at + np.uint64(5)]) << np.uint64(16)
        | np.uint64(octets[at + np.uint64(6)]) << np.uint64(8)
        | np.uint64(octets[at + np.uint64(7)])
    )
    return word << (np.uint64(bit) & np.uint64(7))


@inlined
def _bits(octets: Octets, bit: Number, width: Number) -> Number:
    """Return the next ``width`` (1..64) bits from a position, right-aligned."""
    word = _word(octets, bit)
    beyond = (bit & 7) + width - 64
    if beyond > 0:
        word |= np.uint64(octets[(bit >> 3) + 8]) >> np.uint64(8 - (bit & 7))
    return word >> np.uint64(64 - width)


@compiled
def _varint(octets: Octets, bit: Number) -> tuple[Number, Number]:
    """Return (the varint at a position, at most 64 bits; the position after it)."""
    number = np.uint64(0)
    for group in range(10):
        octet = _bits(octets, bit, 8)
        number |= (octet & np.uint64(0x7F)) << np.uint64(7 * group)
        bit += 8
        if octet < np.uint64(0x80):
            break
    return number, bit


@compiled
def _delta_of_delta(octets: Octets, bit: Number) -> tuple[Number, Number]:
    """Return (number, position after it). The first bit, a 1, is read already."""
    form = 0
    for ones in range(3):
        if not _bits(octets, bit + ones, 1):
            break
        form += 1
    number = np.int64(_bits(octets, bit + _PREFIX[form], _WIDTH[form]))
    # In the short forms, numbers in the upper half except its first are negative.
    if form < 3 and number > _HALF[form]:
        number -= 2 * _HALF[form]
    return number, bit + _PREFIX[form] + _WIDTH[form]


@inlined
def _next_time(octets: Octets, bit: Number, is_second: Number, delta: Number) -> tuple[Number, Number]:
    """Return (time delta of a sample, position after it), from the previous delta."""
    if is_second:
        number, bit = _varint(octets, bit)
        return np.int64(number), bit
    change, bit = _delta_of_delta(octets, bit + 1)
    return delta + change, bit


@inlined
def _next_xor(
    octets: Octets, word: Number, bit: Number, width: Number, trailing: Number
) -> tuple[Number, Number, Number, Number]:
    """Return (XOR of a sample's value, the position after it, and the window of significant bits in force)."""
    if not word >> np.uint64(63):
        return np.uint64(0), bit + 1, width, trailing
    bit += 2
    if word >> np.uint64(62) & np.uint64(1):  # a new window: five bits of leading zeros, six of significant bits (0 is 64)
        leading = np.int64(word >> np.uint64(57)) & 31
        width = np.int64(word >> np.uint64(51)) & 63
        if width == 0:
            width = np.int64(64)
        # A chunk that claims more bits than a value has is damaged. The check of its end finds it.
        trailing = max(64 - leading - width, 0)
        bit += 11
    return _bits(octets, bit, width) << np.uint64(trailing), bit + width, width, trailing


@compiled
def _decode_one(
    octets: Octets, start: Number, end: Number, low_ms: Number, high_ms: Number, times: Ints, bits: Bits, at: Number
) -> Number:
    """Store one chunk's samples in the window from ``at`` on. Return the position after them, -1 for a corrupt chunk."""
    count = np.int64(octets[start]) << 8 | np.int64(octets[start + 1])
    bit, last_bit = (start + 2) * 8, end * 8
    time_ms, delta, value = np.int64(0), np.int64(0), np.uint64(0)
    width, trailing = np.int64(1), np.int64(0)
    for sample in range(count):
        if sample == 0:
            number, bit = _varint(octets, bit)
            time_ms = np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1))
            value = _bits(octets, bit, 64)
            bit += 64
        else:
            word = _word(octets, bit)
            if sample > 1 and not word >> np.uint64(63):  # same delta: the value's first bits are read already
                bit, word = bit + 1, word << np.uint64(1)
            else:
                delta, bit = _next_time(octets, bit, sample == 1, delta)
                word = _word(octets, bit)
            time_ms += delta
            changed, bit, width, trailing = _next_xor(octets, word, bit, width, trailing)
            value ^= changed
        if bit > last_bit:
            return -1
        if low_ms <= time_ms < high_ms:
            times[at] = time_ms
            bits[at] = value
            at += 1
    return at


@compiled
def _decode_all(octets: Octets, chunks: Ints, low_ms: Number, high_ms: Number, counts: Ints, times: Ints, bits: Bits) -> Number:
    """Return the total number of samples; -1 where a chunk is corrupt."""
    at = 0
    for number in range(len(chunks)):
        after = _decode_one(octets, chunks[number, 0], chunks[number, 1], low_ms, high_ms, times, bits, at)
        if after < 0:
            return -1
        counts[number] = after - at
        at = after
    return at
