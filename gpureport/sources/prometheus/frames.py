"""The framing of a streamed remote read: uvarint length, CRC32-Castagnoli, message; again until the body ends."""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from gpureport.errors import SourceError

_NO_STREAM = "the server's answer is not a stream of chunks; check the URL, and any proxy in between"
_MAX_FRAME_BYTES = 16 << 20
"""Servers cut frames at 1 MiB; a longer length is no length."""
_CRC_BYTES = 4


class TruncatedError(SourceError):
    """The body ended in the middle of a frame."""


def frames(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The messages of a body that arrives in pieces; SourceError for a broken frame or one cut short."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        at = 0
        while (found := _frame(buffer, at)) is not None:
            message, at = found
            yield message
        del buffer[:at]
    if buffer:
        raise TruncatedError("the server's answer ends in the middle of a frame; run again")


def _frame(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    """The frame that begins at an offset and the offset after it; None where it is not whole yet."""
    length, start = _uvarint(buffer, at)
    if length is None:
        return None
    end = start + _CRC_BYTES + length
    if end > len(buffer):
        return None
    message = bytes(memoryview(buffer)[start + _CRC_BYTES : end])
    if google_crc32c.value(message) != int.from_bytes(buffer[start : start + _CRC_BYTES], "big"):
        raise SourceError("a frame of the server's answer fails its checksum; run again, and check any proxy in between")
    return message, end


def _uvarint(buffer: bytearray, at: int) -> tuple[int | None, int]:
    length = shift = 0
    for position in range(at, min(at + 10, len(buffer))):
        length |= (buffer[position] & 0x7F) << shift
        if buffer[position] < 0x80:
            if length > _MAX_FRAME_BYTES:
                raise SourceError(_NO_STREAM)
            return length, position + 1
        shift += 7
    if shift == 70:  # ten octets, and none that ends it
        raise SourceError(_NO_STREAM)
    return None, at
