"""Streamed remote read: XOR chunks as the server holds them, decoded here; the fastest path, and it shows staleness markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import requests
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from gpureport.errors import SourceError
from gpureport.series import Labels, SeriesBatch
from gpureport.sources.prometheus.connection import Connection
from gpureport.sources.prometheus.frames import frames
from gpureport.sources.prometheus.matcher import Matcher
from gpureport.sources.prometheus.messages import XOR_ENCODING, ChunkedSeries, read_request
from gpureport.window import Window

STREAMED = "application/x-streamed-protobuf"
_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Read-Version": "0.1.0",
}
_PIECE_BYTES = 1 << 18


class OtherEncodingError(SourceError):
    """The server's chunks are of another encoding than XOR; another path can still read them."""


@contextmanager
def post_read(connection: Connection, matchers: Sequence[Matcher], start_ms: int, end_ms: int) -> Iterator[requests.Response]:
    """The streamed reply for [start_ms, end_ms], both included."""
    body = read_request(matchers, start_ms, end_ms)
    with connection.request("POST", "/api/v1/read", data=body, headers=_HEADERS, stream=True) as response:
        yield response


def read_remote(
    connection: Connection, external_labels: Mapping[str, str], matchers: Sequence[Matcher], window: Window
) -> SeriesBatch:
    """Raw samples of [start, end), staleness markers included; external labels set apart.

    OtherEncodingError for chunks that are not XOR, SourceError for a broken or truncated stream.
    """
    messages: list[bytes] = []
    with post_read(connection, matchers, window.start_ms, window.end_ms - 1) as response:
        if not response.headers.get("Content-Type", "").startswith(STREAMED):
            raise OtherEncodingError(f"{connection.url} does not stream chunks; use --read-path matrix")
        messages += frames(response.iter_content(_PIECE_BYTES))
    return batch_of(messages, window, external_labels, connection.url)


def batch_of(messages: Sequence[bytes], window: Window, external_labels: Mapping[str, str], url: str) -> SeriesBatch:
    """Decode everything at once; chunks reach beyond the window, so what lies outside is cut off."""
    from gpureport.sources.prometheus.wire import layout
    from gpureport.sources.prometheus.xor import PADDING, decode

    body = b"".join([*messages, b"\0" * PADDING])
    octets = np.frombuffer(body, np.uint8)
    found = layout(octets, np.cumsum([len(message) for message in messages], dtype=np.int64), XOR_ENCODING)
    if found.fault:
        raise _refusal(found.fault, url)
    counts, times, values = decode(octets, found.chunks, window.start_ms, window.end_ms)
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.concatenate([[0], ends[found.series[:, 4]]]).astype(np.int64)
    return SeriesBatch(_labels(body, found.series, external_labels), offsets, times, values, dict(external_labels))


def _refusal(fault: int, url: str) -> SourceError:
    if fault > 0:
        return OtherEncodingError(f"{url} sends chunks of encoding {fault}, not XOR; use --read-path matrix")
    return SourceError("the server's answer is not a stream of chunks; check the URL, or use --read-path matrix")


def _labels(body: bytes, series: NDArray[np.int64], external_labels: Mapping[str, str]) -> list[Labels]:
    """The labels of each series, external ones left out; all but the name are parsed once for the series that share them."""
    known: dict[bytes, Labels] = {}

    def parsed(octets: bytes) -> Labels:
        if octets not in known:
            known[octets] = _parsed(octets, external_labels)
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
