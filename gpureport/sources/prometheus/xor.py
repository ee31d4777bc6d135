"""Prometheus' XOR chunks, many at once: all chunks advance by one sample in lock-step, each step a few numpy operations.

A chunk is a big-endian sample count (16 bit) and a bit stream: the first time as a signed varint and the first value raw, then a
time delta as an unsigned varint, then per sample a delta of delta in one of five widths and a value as the XOR with
the one before (Gorilla, VLDB 2015; prometheus/tsdb/chunkenc).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpureport.errors import SourceError

Bits = NDArray[np.uint64]
Ints = NDArray[np.int64]

BATCH_CHUNKS = 8192
"""Chunks that advance together: fewer waste calls, more fall out of the processor's cache."""
_PADDING = 32
_DAMAGED = "the server's block is damaged: check its disk"


def _u(number: int) -> np.uint64:
    return np.uint64(number)


class CorruptChunkError(SourceError):
    """A chunk's bits do not add up to the samples that it announces."""


def decode(chunks: Sequence[bytes]) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """(sample counts, times in ms, values) of the chunks, samples end to end in the chunks' order; values bit-exact.

    CorruptChunkError for a chunk that ends before its last sample.
    """
    if any(len(chunk) < 2 for chunk in chunks):
        raise CorruptChunkError(f"a chunk is shorter than its own header; {_DAMAGED}")
    counts = np.array([chunk[0] << 8 | chunk[1] for chunk in chunks], np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    times, values = np.empty(total, np.int64), np.empty(total, np.uint64)
    for first in range(0, len(chunks), BATCH_CHUNKS):
        batch = slice(first, first + BATCH_CHUNKS)
        samples = slice(int(ends[first] - counts[first]), int(ends[batch][-1]))
        _decode_batch(chunks[batch], counts[batch], times[samples], values[samples])
    return counts, times, values.view(np.float64)


def _decode_batch(chunks: Sequence[bytes], counts: Ints, times: Ints, values: Bits) -> None:
    """Fill the samples of some chunks, end to end in their order."""
    # Longest chunks first, so that those still running are always a leading slice.
    order = np.argsort(-counts, kind="stable")
    running_at = np.searchsorted(-counts[order], -np.arange(counts[order[0]]), side="left")
    first_at = (np.cumsum(counts) - counts)[order]
    _Steps(chunks, order).run(running_at, first_at, times, values)


class _Steps:
    """The state of the running chunks, the longest first, and one sample's advance."""

    def __init__(self, chunks: Sequence[bytes], order: Ints) -> None:
        sizes = np.array([len(chunk) for chunk in chunks], np.uint64)
        starts = np.cumsum(sizes) - sizes
        joined = b"".join([*chunks, b"\0" * _PADDING])
        self._octets = np.frombuffer(joined, np.uint8)
        # Every byte offset as the start of a 64-bit word: an unaligned read without a Python step.
        self._words = np.lib.stride_tricks.as_strided(self._octets[:8].view(np.uint64), (len(joined) - 8,), (1,))
        self._last_byte = _u(len(joined) - 9)
        self._bit: Bits = (starts[order] + _u(2)) * _u(8)
        self._end_bit: Bits = (starts + sizes)[order] * _u(8)
        self._time: Ints = np.zeros(order.size, np.int64)
        self._delta: Ints = np.zeros(order.size, np.int64)
        self._value: Bits = np.zeros(order.size, np.uint64)
        self._width: Bits = np.ones(order.size, np.uint64)
        self._trailing: Bits = np.zeros(order.size, np.uint64)

    def run(self, running_at: Ints, first_at: Ints, times: Ints, values: Bits) -> None:
        """Fill ``times`` and ``values`` sample by sample; the i-th longest chunk's first one is at ``first_at[i]``."""
        at = first_at.copy()
        for sample, running in enumerate(running_at.tolist()):
            bit = self._bit[:running]
            if sample == 0:
                self._time[:running] = self._varint(bit, is_signed=True)
                self._value[:running] = self._bits(bit, np.full(running, 64, np.uint64))
                bit += _u(64)
            else:
                self._advance(bit, running, is_second=sample == 1)
            times[at[:running]] = self._time[:running]
            values[at[:running]] = self._value[:running]
            at += 1
        if (self._bit > self._end_bit).any():
            raise CorruptChunkError(f"a chunk ends before its last sample; {_DAMAGED}")

    def _advance(self, bit: Bits, running: int, is_second: bool) -> None:
        """One sample of each running chunk: time, then value."""
        if is_second:
            self._delta[:running] = self._varint(bit, is_signed=False)
            word = self._word(bit)
        else:
            word = self._word(bit)
            changed = np.flatnonzero(word >> _u(63))
            bit += _u(1)
            word <<= _u(1)
            if changed.size:
                self._change_delta(bit, changed, word[changed])
                word[changed] = self._word(bit[changed])
        self._time[:running] += self._delta[:running]
        changed = np.flatnonzero(word >> _u(63))
        bit += _u(1)
        if changed.size:
            self._change_value(bit, changed, word[changed] << _u(1))

    def _word(self, bit: Bits) -> Bits:
        """At least the next 57 bits from each position on, left-aligned in 64."""
        word: Bits = self._words[np.minimum(bit >> _u(3), self._last_byte)]
        word.byteswap(inplace=True)
        word <<= bit & _u(7)
        return word

    def _bits(self, bit: Bits, width: Bits) -> Bits:
        """The next ``width`` (1..64) bits from each position on, right-aligned."""
        word = self._word(bit)
        beyond = np.flatnonzero((bit & _u(7)) + width > _u(64))
        if beyond.size:
            at = bit[beyond]
            octet = self._octets[np.minimum((at >> _u(3)) + _u(8), self._last_byte)].astype(np.uint64)
            word[beyond] |= octet >> (_u(8) - (at & _u(7)))
        word >>= _u(64) - width
        return word

    def _varint(self, bit: Bits, is_signed: bool) -> Ints:
        """The next varint at each position (64 bits at most), zigzag where signed; moves the positions on."""
        result = np.zeros(bit.size, np.uint64)
        more = np.ones(bit.size, np.bool_)
        for group in range(10):
            octet = self._bits(bit, np.full(bit.size, 8, np.uint64))
            result |= np.where(more, (octet & _u(0x7F)) << _u(7 * group), _u(0))
            bit += np.where(more, _u(8), _u(0))
            more &= octet >= _u(0x80)
            if not more.any():
                break
        if is_signed:
            result = (result >> _u(1)) ^ (~(result & _u(1)) + _u(1))
        return result.view(np.int64)

    def _change_delta(self, bit: Bits, changed: Ints, word: Bits) -> None:
        """Add the delta of delta; after the first 1, prefix 0 has 14 bits, 10 has 17, 110 has 20 and 111 has 64."""
        form = _FORM[(word >> _u(61)).astype(np.intp)]
        prefix, width = _PREFIX[form], _WIDTH[form]
        raw = self._bits(bit[changed] + prefix, width).view(np.int64)
        # Of the short forms the upper half, its first number excepted, stands for negative numbers.
        is_negative = (raw > _HALF[form]) & (width < _u(64))
        self._delta[changed] += np.where(is_negative, raw - 2 * _HALF[form], raw)
        bit[changed] += prefix + width

    def _change_value(self, bit: Bits, changed: Ints, word: Bits) -> None:
        """XOR with the value before; after the first 1, 0 keeps the window of significant bits and 1 sets a new one."""
        is_new = word >> _u(63)
        new = np.flatnonzero(is_new)
        if new.size:
            self._set_window(changed[new], word[new])
        header = _u(1) + is_new * _u(11)
        width = self._width[changed]
        xor = self._bits(bit[changed] + header, width)
        xor <<= self._trailing[changed]
        self._value[changed] ^= xor
        bit[changed] += header + width

    def _set_window(self, chunk: Ints, word: Bits) -> None:
        """Five bits of leading zeros, six of significant bits (0 stands for 64)."""
        leading = (word >> _u(58)) & _u(31)
        width = (word >> _u(52)) & _u(63)
        width[width == 0] = 64
        self._width[chunk] = width
        # A chunk may claim more bits than a value has; it is damaged, and its end will tell.
        self._trailing[chunk] = _u(64) - np.minimum(leading + width, _u(64))


# Forms of a delta of delta by the three bits after the first 1: 0.., 10., 110, 111.
_FORM = np.array([0, 0, 0, 0, 1, 1, 2, 3], np.intp)
_PREFIX = np.array([1, 2, 3, 3], np.uint64)
_WIDTH = np.array([14, 17, 20, 64], np.uint64)
_HALF = np.array([1 << 13, 1 << 16, 1 << 19, 0], np.int64)
