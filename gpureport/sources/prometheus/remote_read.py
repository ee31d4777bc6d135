"""Streamed remote read: XOR chunks as the server holds them, decoded here; the fastest path, and it shows staleness markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import requests
from google.protobuf.message import DecodeError

from gpureport.errors import SourceError
from gpureport.series import Labels, SeriesBatch
from gpureport.sources.prometheus.connection import Connection
from gpureport.sources.prometheus.frames import frames
from gpureport.sources.prometheus.matcher import Matcher
from gpureport.sources.prometheus.messages import XOR_ENCODING, ChunkedReadResponse, read_request
from gpureport.sources.prometheus.xor import decode
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
    labels: list[Labels] = []
    chunk_counts: list[int] = []
    chunks: list[bytes] = []
    with post_read(connection, matchers, window.start_ms, window.end_ms - 1) as response:
        if not response.headers.get("Content-Type", "").startswith(STREAMED):
            raise OtherEncodingError(f"{connection.url} does not stream chunks; use --read-path matrix")
        for message in frames(response.iter_content(_PIECE_BYTES)):
            for series in _parse(message).chunked_series:
                labels.append(_own_labels(series, external_labels))
                chunk_counts.append(len(series.chunks))
                for chunk in series.chunks:
                    _check_encoding(chunk.type, connection.url)
                    chunks.append(chunk.data)
    return _batch(labels, chunk_counts, chunks, window, external_labels)


def _parse(message: bytes) -> Any:
    try:
        return ChunkedReadResponse.FromString(message)
    except DecodeError:
        raise SourceError("the server's answer is no stream of chunks; check the URL, or use --read-path matrix") from None


def _own_labels(series: Any, external_labels: Mapping[str, str]) -> Labels:
    pairs = {label.name: label.value for label in series.labels}
    return {name: value for name, value in pairs.items() if external_labels.get(name) != value}


def _check_encoding(encoding: int, url: str) -> None:
    if encoding != XOR_ENCODING:
        raise OtherEncodingError(f"{url} sends chunks of encoding {encoding}, not XOR; use --read-path matrix")


def _batch(
    labels: list[Labels], chunk_counts: list[int], chunks: list[bytes], window: Window, external_labels: Mapping[str, str]
) -> SeriesBatch:
    """Decode everything at once; chunks reach beyond the window, so what lies outside is cut off."""
    counts, times, values = decode(chunks)
    owners = np.repeat(np.arange(len(labels)), chunk_counts)
    inside = (times >= window.start_ms) & (times < window.end_ms)
    if not inside.all():
        per_sample = np.repeat(owners, counts)[inside]
        times, values = times[inside], values[inside]
        per_series = np.bincount(per_sample, minlength=len(labels))
    else:
        per_series = np.bincount(owners, weights=counts, minlength=len(labels)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(per_series)]).astype(np.int64)
    return SeriesBatch(labels, offsets, times, values, dict(external_labels))
