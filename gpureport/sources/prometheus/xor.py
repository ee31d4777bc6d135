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
_ONE = np.uint64(1)
_DOD_WIDTH = np.array([0, 14, 17, 20, 64], np.int64)


class CorruptChunkError(SourceError):
    """A chunk's bits do not add up to the samples that it announces."""


def decode(chunks: Sequence[bytes]) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """(sample counts, times in ms, values) of the chunks, samples end to end in the chunks' order; values bit-exact.

    CorruptChunkError for a chunk that ends before its last sample.
    """
    if not chunks:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64)
    parts = [_decode_batch(chunks[first : first + BATCH_CHUNKS]) for first in range(0, len(chunks), BATCH_CHUNKS)]
    counts, times, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return counts, times, values


def _decode_batch(chunks: Sequence[bytes]) -> tuple[Ints, Ints, NDArray[np.float64]]:
    stream = _Stream(chunks)
    counts = stream.counts
    longest = int(counts.max())
    # Longest chunks first, so that those still running are always a leading slice.
    order = np.argsort(-counts, kind="stable")
    times = np.empty((longest, counts.size), np.int64)
    values = np.empty((longest, counts.size), np.uint64)
    running_at = np.searchsorted(-counts[order], -np.arange(longest), side="left")
    _Steps(stream, order).run(running_at, times, values)
    stream.check_ends()
    # Back from sample-by-sample to chunk-by-chunk, in the order the chunks came.
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    inside = np.arange(longest) < counts[:, None]
    return counts, times.T[place][inside], values.T[place][inside].view(np.float64)


class _Stream:
    """The chunks' bytes as one array, and where in it each chunk's next bit is."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        sizes = np.array([len(chunk) for chunk in chunks], np.int64)
        if (sizes < 2).any():
            raise CorruptChunkError("a chunk is shorter than its own header; the server's block is damaged: check its disk")
        joined = b"".join([*chunks, b"\0" * _PADDING])
        self.octets = np.frombuffer(joined, np.uint8)
        # Every byte offset as the start of a big-endian 64-bit word: an unaligned read without a Python step.
        self.words = np.lib.stride_tricks.as_strided(self.octets[:8].view(">u8"), (len(joined) - 8,), (1,))
        starts = np.cumsum(sizes) - sizes
        self.counts: Ints = self.octets[starts].astype(np.int64) << 8 | self.octets[starts + 1]
        self.bit: Ints = (starts + 2) * 8
        self.end_bit: Ints = (starts + sizes) * 8

    def check_ends(self) -> None:
        """CorruptChunkError where a chunk was read past its end."""
        if (self.bit > self.end_bit).any():
            raise CorruptChunkError("a chunk ends before its last sample; the server's block is damaged: check its disk")


class _Steps:
    """The state of the running chunks, and one sample's advance."""

    def __init__(self, stream: _Stream, order: Ints) -> None:
        self.stream = stream
        self.order = order
        self.bit = stream.bit[order]
        self.last_byte = np.int64(stream.octets.size - 9)
        count = order.size
        self.time: Ints = np.zeros(count, np.int64)
        self.delta: Ints = np.zeros(count, np.int64)
        self.value: Bits = np.zeros(count, np.uint64)
        self.leading: Ints = np.zeros(count, np.int64)
        self.trailing: Ints = np.zeros(count, np.int64)

    def run(self, running_at: Ints, times: Ints, values: Bits) -> None:
        """Fill ``times`` and ``values`` sample by sample; column i is the i-th longest chunk."""
        for sample, running in enumerate(running_at):
            if sample == 0:
                self.time[:running] = self._varint(running, is_signed=True)
                self.value[:running] = self._bits(self.bit[:running], 64)
                self.bit[:running] += 64
            else:
                self._advance_time(int(running), sample)
                self._advance_value(int(running))
            times[sample, :running] = self.time[:running]
            values[sample, :running] = self.value[:running]
        self.stream.bit[self.order] = self.bit

    def _word(self, bit: Ints) -> Bits:
        """The 57 or more bits from each position on, left-aligned in 64."""
        byte = np.minimum(bit >> 3, self.last_byte)
        word: Bits = self.stream.words[byte].astype(np.uint64) << (bit & 7).astype(np.uint64)
        return word

    def _bits(self, bit: Ints, width: int | Ints) -> Bits:
        """The next ``width`` (1..64) bits from each position on, right-aligned."""
        byte = np.minimum(bit >> 3, self.last_byte)
        shift = (bit & 7).astype(np.uint64)
        word = self.stream.words[byte].astype(np.uint64) << shift
        tail = self.stream.octets[byte + 8].astype(np.uint64) >> (np.uint64(8) - shift)
        found: Bits = (word | tail) >> (np.uint64(64) - np.asarray(width, np.int64).astype(np.uint64))
        return found

    def _varint(self, running: int, is_signed: bool) -> Ints:
        """The next varint of each running chunk (64 bits at most), zigzag where signed."""
        result = np.zeros(running, np.uint64)
        more = np.ones(running, np.bool_)
        for group in range(10):
            octet = self._bits(self.bit[:running], 8)
            result |= np.where(more, (octet & np.uint64(0x7F)) << np.uint64(7 * group), np.uint64(0))
            self.bit[:running] += np.where(more, 8, 0)
            more &= octet >= np.uint64(0x80)
            if not more.any():
                break
        if is_signed:
            result = (result >> _ONE) ^ (~(result & _ONE) + _ONE)
        return result.view(np.int64)

    def _advance_time(self, running: int, sample: int) -> None:
        if sample == 1:
            self.delta[:running] = self._varint(running, is_signed=False)
        else:
            self._advance_delta(running)
        self.time[:running] += self.delta[:running]

    def _advance_delta(self, running: int) -> None:
        """Add the delta of delta: prefix 0 none, 10 of 14 bits, 110 of 17, 1110 of 20, 1111 of 64."""
        bit = self.bit[:running]
        word = self._word(bit)
        changed = np.flatnonzero(word >> np.uint64(63))
        if changed.size == 0:
            self.bit[:running] += 1
            return
        top = (word[changed] >> np.uint64(60)).astype(np.int64)
        form = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4], np.int64)[top]
        prefix = np.array([1, 2, 3, 4, 4], np.int64)[form]
        width = _DOD_WIDTH[form]
        raw = self._bits(bit[changed] + prefix, width).view(np.int64)
        half = np.int64(1) << np.minimum(width - 1, 62)
        is_negative = (width < 64) & (raw > half)
        self.delta[changed] += np.where(is_negative, raw - (np.int64(1) << np.minimum(width, 62)), raw)
        advance = np.ones(running, np.int64)
        advance[changed] = prefix + width
        self.bit[:running] += advance

    def _advance_value(self, running: int) -> None:
        """XOR with the value before: 0 same, 10 in the last window of bits, 11 with a new window."""
        bit = self.bit[:running]
        word = self._word(bit)
        changed = np.flatnonzero(word >> np.uint64(63))
        if changed.size == 0:
            self.bit[:running] += 1
            return
        word = word[changed]
        is_new = (word >> np.uint64(62)) & _ONE != 0
        if is_new.any():
            self._new_windows(changed[is_new], word[is_new])
        width = 64 - self.leading[changed] - self.trailing[changed]
        header = np.where(is_new, 13, 2)
        xor = self._bits(bit[changed] + header, np.maximum(width, 1)) << self.trailing[changed].astype(np.uint64)
        self.value[changed] ^= xor
        advance = np.ones(running, np.int64)
        advance[changed] = header + width
        self.bit[:running] += advance

    def _new_windows(self, chunk: Ints, word: Bits) -> None:
        """Five bits of leading zeros, six of significant bits (0 stands for 64)."""
        leading = ((word >> np.uint64(57)) & np.uint64(31)).astype(np.int64)
        significant = ((word >> np.uint64(51)) & np.uint64(63)).astype(np.int64)
        significant = np.where(significant == 0, 64, significant)
        self.leading[chunk] = leading
        self.trailing[chunk] = np.maximum(64 - leading - significant, 0)
