"""Streamed remote read: XOR chunks as the server holds them, decoded here; the fastest path, and it shows staleness markers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import requests
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from gpureport.errors import SourceError
from gpureport.series import Labels, SeriesBatch
from gpureport.sources.exchange import LargeError, pieces
from gpureport.sources.prometheus.connection import Answer, Connection, TooMuchError
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
_MOST_BYTES = 32 << 20
_MOST_SERIES = 100_000
_MOST_SAMPLES = 4_000_000
_MOST_LABELS = 2_000_000
"""Limits of one answer, whose memory is many times its size; a group of nodes has a tenth of them."""


class OtherEncodingError(SourceError):
    """The server's chunks are of another encoding than XOR; another path can still read them."""


def is_streamed(response: requests.Response) -> bool:
    """Whether a reply is a stream of chunks."""
    return response.headers.get("Content-Type", "").startswith(STREAMED)


def post_read(
    connection: Connection, matchers: Sequence[Matcher], start_ms: int, end_ms: int, read: Callable[[requests.Response], Answer]
) -> Answer:
    """What ``read`` makes of the streamed reply for [start_ms, end_ms], both included."""
    body = read_request(matchers, start_ms, end_ms)
    return connection.ask("POST", "/api/v1/read", read, data=body, headers=_HEADERS)


def read_remote(
    connection: Connection, external_labels: Mapping[str, str], matchers: Sequence[Matcher], window: Window
) -> SeriesBatch:
    """Raw samples of [start, end), staleness markers included; external labels set apart.

    OtherEncodingError for chunks that are not XOR, SourceError for a broken or truncated stream.
    """

    def messages(response: requests.Response) -> list[bytes]:
        if not is_streamed(response):
            raise OtherEncodingError(f"{connection.url} does not stream chunks; set prometheus.read_path to matrix")
        return list(frames(pieces(response.raw, _MOST_BYTES)))

    found = post_read(connection, matchers, window.start_ms, window.end_ms - 1, messages)
    try:
        return batch_of(found, window, external_labels, connection.url)
    except LargeError as error:
        raise TooMuchError(f"{connection.url}: an answer is too large to be believed ({error})") from error


def batch_of(messages: Sequence[bytes], window: Window, external_labels: Mapping[str, str], url: str) -> SeriesBatch:
    """Decode everything at once; chunks reach beyond the window, so what lies outside is cut off."""
    from gpureport.sources.prometheus.wire import layout
    from gpureport.sources.prometheus.xor import PADDING, announced_samples, decode

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
    """The labels of each series, external ones left out; all but the name are parsed once for the series that share them."""
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
