"""Streamed remote read: XOR chunks from the server's storage, decoded here. The fastest path, with staleness markers.

Its protobuf messages are built at run time from their field numbers (prometheus/prompb).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cramjam
import google_crc32c
import numpy as np
import requests
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from gpureport.collect.sources.exchange import LargeError, body_parts
from gpureport.collect.sources.prometheus.connection import Answer, Connection, TooMuchError
from gpureport.collect.sources.prometheus.outline import Matcher
from gpureport.values.errors import SourceError
from gpureport.values.series import Labels, SeriesBatch
from gpureport.values.window import Window

_MATCHER_TYPE = {"=": 0, "!=": 1, "=~": 2, "!~": 3}
_STREAMED_XOR_CHUNKS = 1
XOR_ENCODING = 1

_Field = descriptor_pb2.FieldDescriptorProto
_FIELDS: dict[str, list[tuple[str, int, int, bool, str]]] = {
    # message: (field, number, type, repeated, type name)
    "LabelMatcher": [
        ("type", 1, _Field.TYPE_INT32, False, ""),
        ("name", 2, _Field.TYPE_STRING, False, ""),
        ("value", 3, _Field.TYPE_STRING, False, ""),
    ],
    "Query": [
        ("start_timestamp_ms", 1, _Field.TYPE_INT64, False, ""),
        ("end_timestamp_ms", 2, _Field.TYPE_INT64, False, ""),
        ("matchers", 3, _Field.TYPE_MESSAGE, True, "LabelMatcher"),
    ],
    "ReadRequest": [
        ("queries", 1, _Field.TYPE_MESSAGE, True, "Query"),
        ("accepted_response_types", 2, _Field.TYPE_INT32, True, ""),
    ],
    "Label": [("name", 1, _Field.TYPE_STRING, False, ""), ("value", 2, _Field.TYPE_STRING, False, "")],
    "Chunk": [
        ("min_time_ms", 1, _Field.TYPE_INT64, False, ""),
        ("max_time_ms", 2, _Field.TYPE_INT64, False, ""),
        ("type", 3, _Field.TYPE_INT32, False, ""),
        ("data", 4, _Field.TYPE_BYTES, False, ""),
    ],
    "ChunkedSeries": [("labels", 1, _Field.TYPE_MESSAGE, True, "Label"), ("chunks", 2, _Field.TYPE_MESSAGE, True, "Chunk")],
    "ChunkedReadResponse": [
        ("chunked_series", 1, _Field.TYPE_MESSAGE, True, "ChunkedSeries"),
        ("query_index", 2, _Field.TYPE_INT64, False, ""),
    ],
}
_PACKAGE = "gpureport.remote"


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="gpureport_remote.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated, type_name in fields:
            label = _Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if type_name:
                added.type_name = f".{_PACKAGE}.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_MESSAGES = _build()
ChunkedReadResponse = _MESSAGES["ChunkedReadResponse"]
ChunkedSeries = _MESSAGES["ChunkedSeries"]


def read_request(matchers: Sequence[Matcher], start_ms: int, end_ms: int) -> bytes:
    """Return a snappy-compressed request for XOR chunks of [start_ms, end_ms], both included as in the protocol."""
    request = _MESSAGES["ReadRequest"]()
    query = request.queries.add(start_timestamp_ms=start_ms, end_timestamp_ms=end_ms)
    for matcher in matchers:
        query.matchers.add(type=_MATCHER_TYPE[matcher.operator], name=matcher.name, value=matcher.value)
    request.accepted_response_types.append(_STREAMED_XOR_CHUNKS)
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))


_NO_STREAM = "the server's answer is not a stream of chunks; check the URL, and any proxy in between"
_MAX_FRAME_BYTES = 16 << 20
"""Servers limit frames to 1 MiB, so a length above this limit is invalid."""
_CRC_BYTES = 4


class TruncatedError(SourceError):
    """The body ended in the middle of a frame."""


def frames(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the messages of a body that arrives in parts. SourceError for a damaged or truncated frame."""
    buffer = bytearray()
    for part in parts:
        buffer += part
        at = 0
        while (found := _frame(buffer, at)) is not None:
            message, at = found
            yield message
        del buffer[:at]
    if buffer:
        raise TruncatedError("the server's answer ends in the middle of a frame; run again")


def _frame(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    """Return the frame at an offset and the offset after it; None where the frame is incomplete."""
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
    if shift == 70:  # ten bytes without an end
        raise SourceError(_NO_STREAM)
    return None, at


STREAMED = "application/x-streamed-protobuf"
_HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Read-Version": "0.1.0"}
_MOST_BYTES = 20 << 20
_MOST_SERIES = 100_000
_MOST_SAMPLES = 4_000_000
_MOST_LABELS = 2_000_000
"""Limits of one answer: it takes many times its size in memory. A group of nodes has a tenth of them."""


class OtherEncodingError(SourceError):
    """The server's chunks have another encoding than XOR. Another read path can still read them."""


def is_streamed(response: requests.Response) -> bool:
    """Whether a reply is a stream of chunks."""
    return response.headers.get("Content-Type", "").startswith(STREAMED)


def post_read(
    connection: Connection, matchers: Sequence[Matcher], start_ms: int, end_ms: int, read: Callable[[requests.Response], Answer]
) -> Answer:
    """Return the result of ``read`` for the streamed reply of [start_ms, end_ms], both included."""
    body = read_request(matchers, start_ms, end_ms)
    return connection.request("POST", "/api/v1/read", read, data=body, headers=_HEADERS)


def read_remote(
    connection: Connection, external_labels: Mapping[str, str], matchers: Sequence[Matcher], window: Window
) -> SeriesBatch:
    """Return raw samples of [start, end) with staleness markers. External labels are separate.

    OtherEncodingError for chunks that are not XOR, SourceError for a damaged or truncated stream.
    """

    def messages(response: requests.Response) -> list[bytes]:
        if not is_streamed(response):
            raise OtherEncodingError(f"{connection.url} does not stream chunks; set prometheus.read_path to matrix")
        return list(frames(body_parts(response.raw, _MOST_BYTES)))

    found = post_read(connection, matchers, window.start_ms, window.end_ms - 1, messages)
    try:
        return batch_of(found, window, external_labels, connection.url)
    except LargeError as error:
        raise TooMuchError(f"{connection.url}: an answer is implausibly large ({error})") from error


def batch_of(messages: Sequence[bytes], window: Window, external_labels: Mapping[str, str], url: str) -> SeriesBatch:
    """Decode all messages together. Chunks may extend beyond the window; samples outside of it are dropped."""
    from gpureport.collect.sources.prometheus.wire import layout
    from gpureport.collect.sources.prometheus.xor import PADDING, announced_samples, decode

    body = b"".join([*messages, b"\0" * PADDING])
    octets = np.frombuffer(body, np.uint8)
    found = layout(octets, np.cumsum([len(message) for message in messages], dtype=np.int64), XOR_ENCODING)
    if found.fault:
        raise _refusal(found.fault, url)
    if len(found.series) > _MOST_SERIES:
        raise LargeError(f"{len(found.series):,} series")
    if (announced := announced_samples(octets, found.chunks)) > _MOST_SAMPLES:
        raise LargeError(f"{announced:,} samples")
    counts, times, values = decode(octets, found.chunks, window.start_ms, window.end_ms)
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.concatenate([[0], ends[found.series[:, 4]]]).astype(np.int64)
    return SeriesBatch(_labels(body, found.series, external_labels), offsets, times, values, dict(external_labels))


def _refusal(fault: int, url: str) -> SourceError:
    if fault > 0:
        return OtherEncodingError(f"{url} sends chunks of encoding {fault}, not XOR; set prometheus.read_path to matrix")
    return SourceError("the server's answer is not a stream of chunks; check the URL, or set prometheus.read_path to matrix")


def _labels(body: bytes, series: NDArray[np.int64], external_labels: Mapping[str, str]) -> list[Labels]:
    """Return each series' labels without external ones. All but the name are parsed once for the series that share them."""
    known: dict[bytes, Labels] = {}
    label_count = 0

    def parsed(octets: bytes) -> Labels:
        nonlocal label_count
        if octets not in known:
            known[octets] = _parsed(octets, external_labels)
            label_count += len(known[octets])
            if label_count > _MOST_LABELS:
                raise LargeError("more labels than series have")
        return known[octets]

    return [
        {**parsed(body[start:name] + body[name_end:end]), **parsed(body[name:name_end])}
        for start, name, name_end, end, _ in series.tolist()
    ]


def _parsed(octets: bytes, external_labels: Mapping[str, str]) -> Labels:
    try:
        pairs = {label.name: label.value for label in ChunkedSeries.FromString(octets).labels}
    except DecodeError:
        raise _refusal(0, "") from None
    return {name: value for name, value in pairs.items() if external_labels.get(name) != value}
