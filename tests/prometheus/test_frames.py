"""The framing of a stream, in whatever parts the network delivers it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.sources.prometheus.remote_read import TruncatedError, frames
from gpureport.values.errors import SourceError

from .backends import frame

MESSAGES = st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 40_000).map(bytes)), max_size=6)


@settings(max_examples=200)
@given(MESSAGES, st.lists(st.integers(0, 50_000), max_size=8))
def test_messages_come_out_whole_however_the_body_is_cut(messages: list[bytes], cuts: list[int]) -> None:
    body = b"".join(frame(message) for message in messages)
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    parts = [body[left:right] for left, right in pairwise(edges)]
    assert list(frames(parts)) == messages


def test_messages_come_out_whole_octet_by_octet() -> None:
    messages = [b"a", b"", b"b" * 200]
    body = b"".join(frame(message) for message in messages)
    assert list(frames(body[at : at + 1] for at in range(len(body)))) == messages


@pytest.mark.parametrize("kept", range(1, 8))
def test_a_body_that_ends_within_a_frame_is_truncated(kept: int) -> None:
    with pytest.raises(TruncatedError, match="middle of a frame"):
        list(frames([frame(b"whole"), frame(b"abc")[:kept]]))


def test_every_flipped_bit_of_a_message_is_noticed() -> None:
    whole = frame(b"some message")
    for bit in range(8, len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SourceError, match="checksum"):
            list(frames([bytes(damaged)]))


def test_a_length_beyond_any_frame_is_no_stream() -> None:
    with pytest.raises(SourceError, match="not a stream of chunks"):
        list(frames([b"\xff\xff\xff\xff\x7f" + b"\0" * 100]))


def test_a_length_without_end_is_no_frame() -> None:
    with pytest.raises(SourceError):
        list(frames([b"\xff" * 100]))
