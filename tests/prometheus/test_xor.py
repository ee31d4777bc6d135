"""Decoding XOR chunks gives what a bit-by-bit encoder put in, whatever the samples."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpureport.collect.sources.prometheus.xor import PADDING, CorruptChunkError, decode
from gpureport.values.series import STALE_BITS

from .samples import Sample, bits
from .xor_oracle import encode

Chunk = list[Sample]

# Both sides of every width's bound, and what lies far outside.
BOUNDS = [0, 1, -1, *(sign * (half + step) for half in (1 << 13, 1 << 16, 1 << 19) for sign in (1, -1) for step in (-1, 0, 1))]
STEPS = st.one_of(st.just(0), st.sampled_from(BOUNDS), st.integers(-(1 << 40), 1 << 40))
SPECIAL = [0, 1, 1 << 63, STALE_BITS, bits(float("nan")), bits(float("inf")), bits(float("-inf")), bits(1.0), (1 << 64) - 1]
VALUES = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(0, (1 << 64) - 1),
    st.floats(allow_nan=False).map(bits),
    st.integers(0, 100).map(lambda percent: bits(float(percent))),  # alike, so that a window is used again
    st.builds(lambda width, at: ((1 << width) - 1) << at, st.integers(1, 16), st.integers(0, 48)),
)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    values = draw(st.lists(VALUES, max_size=40))
    times = [draw(st.integers(-(1 << 50), 1 << 50))]
    delta = draw(st.one_of(st.just(15_000), st.integers(-(1 << 40), 1 << 40)))
    for _ in values[1:]:
        times.append(times[-1] + delta)
        delta += draw(STEPS)
    return list(zip(times, values, strict=False))


def decode_all(
    encoded: list[bytes], low_ms: int = -(1 << 63), high_ms: int = (1 << 63) - 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The chunks end to end, as they lie in an answer."""
    ends = np.cumsum([len(chunk) for chunk in encoded], dtype=np.int64)
    starts = np.concatenate([[0], ends])[:-1].astype(np.int64)
    octets = np.frombuffer(b"".join([*encoded, b"\0" * PADDING]), np.uint8)
    return decode(octets, np.stack([starts, ends], axis=1), low_ms, high_ms)


def decoded(encoded: list[bytes]) -> list[Chunk]:
    counts, times, values = decode_all(encoded)
    pairs = list(zip(times.tolist(), values.view("u8").tolist(), strict=True))
    ends = counts.cumsum().tolist()
    return [pairs[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


@settings(max_examples=300)
@given(st.lists(chunks(), max_size=12))
@example([[], [(0, 0)], [(0, 1), (-5, 2)]])
@example([[(-1, STALE_BITS)] * 3, []])
def test_what_was_encoded_is_decoded_bit_for_bit(together: list[Chunk]) -> None:
    assert decoded([encode(chunk) for chunk in together]) == together


def test_a_chunk_of_no_samples_among_others_is_empty() -> None:
    one = [(1_000, bits(1.0)), (2_000, bits(1.0))]
    assert decoded([encode([]), encode(one), encode([])]) == [[], one, []]


def test_the_oracle_agrees_with_a_chunk_worked_out_by_hand() -> None:
    """Two samples: 0 ms → 1.0, 1 ms → 1.0: varint 0, eight octets of 1.0, delta 1, one zero bit for the same value."""
    by_hand = b"\x00\x02" + b"\x00" + struct.pack(">d", 1.0) + b"\x01" + b"\x00"
    assert encode([(0, bits(1.0)), (1, bits(1.0))]) == by_hand
    assert decoded([by_hand]) == [[(0, bits(1.0)), (1, bits(1.0))]]


@settings(max_examples=100)
@given(st.lists(chunks(), max_size=6), st.integers(-(1 << 50), 1 << 50), st.integers(0, 1 << 41))
def test_samples_outside_the_window_are_left_out(together: list[Chunk], low_ms: int, length_ms: int) -> None:
    _, times, values = decode_all([encode(chunk) for chunk in together], low_ms, low_ms + length_ms)
    inside = [pair for chunk in together for pair in chunk if low_ms <= pair[0] < low_ms + length_ms]
    assert list(zip(times.tolist(), values.view("u8").tolist(), strict=True)) == inside


def test_no_chunks_are_no_samples() -> None:
    counts, times, values = decode_all([])
    assert (counts.size, times.size, values.size) == (0, 0, 0)


@settings(max_examples=100)
@given(chunks().filter(lambda chunk: len(chunk) > 0), st.data())
def test_a_chunk_that_was_cut_short_is_corrupt(chunk: Chunk, data: st.DataObject) -> None:
    encoded = encode(chunk)
    kept = data.draw(st.integers(0, len(encoded) - 1))
    whole = encode([(0, 0)] * 5)
    with pytest.raises(CorruptChunkError, match="damaged"):
        decode_all([whole, encoded[:kept], whole])


@settings(max_examples=200)
@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5), st.integers(0, 200))
def test_arbitrary_octets_are_samples_or_corrupt_and_nothing_else(octets: list[bytes], count: int) -> None:
    try:
        counts, _, _ = decode_all([count.to_bytes(2, "big") + each for each in octets])
    except CorruptChunkError:
        return
    assert counts.tolist() == [count] * len(octets)
