"""Reads a group of series by the server's read path, in parts that the server can answer.

VictoriaMetrics' ``/api/v1/export`` streams one JSON line per series or part of a series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import orjson
import requests

from gpureport.collect.sources.exchange import LargeError, body_parts, decoded
from gpureport.collect.sources.prometheus.connection import Connection, TooMuchError
from gpureport.collect.sources.prometheus.outline import Matcher, selector
from gpureport.collect.sources.prometheus.probe import ReadPath, Server
from gpureport.collect.sources.prometheus.remote_read import OtherEncodingError, read_remote
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, STALE_BITS, Labels, SeriesBatch, concatenate, series_batch
from gpureport.values.window import Window

_MOST_BYTES = 256 << 20
_MOST_LINE_BYTES = 16 << 20
_MOST_SERIES = 100_000
_MOST_EXPORTED = 4_000_000
_BARE_WORD = re.compile(rb"[+-]?(?:Inf|NaN)(?=[],])")


def read_export(connection: Connection, matchers: Sequence[Matcher], window: Window) -> SeriesBatch:
    """Return raw samples of [start, end). A null is a staleness marker, because VictoriaMetrics stores no other NaN.

    TooMuchError for more samples than one answer may have.
    """
    # Small integer milliseconds would be read as seconds. Seconds with a fraction are unambiguous.
    form = {"match[]": selector(matchers), "start": window.start_ms / 1000, "end": (window.end_ms - 1) / 1000}
    return connection.request("POST", "/api/v1/export", lambda response: _exported(response, connection.url), data=form)


def _exported(response: requests.Response, url: str) -> SeriesBatch:
    labels, times, values = [], [], []
    sample_count = 0
    for line in _lines(body_parts(response.raw, _MOST_BYTES)):
        series = _parse(line, url)
        found = np.array(series["values"], dtype=np.float64)
        found.view(np.uint64)[np.isnan(found)] = STALE_BITS
        times.append(np.array(series["timestamps"], np.int64))
        values.append(found)
        labels.append(series["metric"])
        sample_count += found.size
        if len(labels) > _MOST_SERIES or sample_count > _MOST_EXPORTED:
            raise LargeError(f"more than {_MOST_SERIES:,} series or {_MOST_EXPORTED:,} samples")
    return series_batch(labels, times, values)


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the non-empty lines. LargeError for a line that does not end."""
    rest = bytearray()  # grows in place: a line may arrive in hundreds of parts
    for part in parts:
        rest += part
        if b"\n" in part:
            *lines, rest = rest.split(b"\n")
            yield from map(bytes, filter(None, lines))
        if len(rest) > _MOST_LINE_BYTES:
            raise LargeError("a line without an end")
    if rest:
        yield bytes(rest)


def _parse(line: bytes, url: str) -> dict[str, Any]:
    try:
        series: dict[str, Any] = _loads(line)
        if len(series["values"]) == len(series["timestamps"]) and isinstance(series["metric"], dict):
            return series
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise SourceError(f"{url}/api/v1/export: a line of the answer is cut off or is not a series: {line[:80]!r}; run again")


def _loads(line: bytes) -> Any:
    """Return the decoded line. Older versions write infinities as bare words; they are quoted for numpy."""
    try:
        return decoded(line)
    except orjson.JSONDecodeError:
        head, key, points = line.partition(b'"values":[')
        return orjson.loads(head + key + _BARE_WORD.sub(rb'"\g<0>"', points))


def read_matrix(connection: Connection, matchers: Sequence[Matcher], window: Window) -> tuple[SeriesBatch, list[str]]:
    """Return raw samples of [start, end) and the server's warnings.

    The range query covers the whole window and is evaluated one millisecond before its end. Under both boundary rules (2.x
    closed, 3.x left-open) it returns the window, plus at most one sample just before the start, which is dropped.
    """
    form = {
        "query": f"{selector(matchers)}[{window.end_ms - window.start_ms}ms]",
        "time": f"{(window.end_ms - 1) / 1000:.3f}",
        "timeout": f"{connection.settings.read_timeout_seconds:.0f}s",
    }
    reply = connection.json("/api/v1/query", form)
    result = (reply.get("data") or {}).get("result") or []
    warnings = [*(reply.get("warnings") or []), *(["the answer is partial"] if reply.get("isPartial") else [])]
    return _batch(result, window), warnings


def _batch(result: list[dict[str, Any]], window: Window) -> SeriesBatch:
    labels: list[Labels] = []
    times, values = [], []
    for series in result:
        # A native histogram has no values. Points are freed when read: decoded JSON is many times the size of arrays.
        points = series.pop("values", [])
        found = np.rint(np.array([point[0] for point in points]) * 1000).astype(np.int64)
        inside = found >= window.start_ms
        times.append(found[inside])
        values.append(np.array([point[1] for point in points], dtype=np.float64)[inside])
        labels.append({METRIC_LABEL: "", **series["metric"]})
    return series_batch(labels, times, values)


_SHORTEST = timedelta(minutes=1)
_SAMPLES_PER_REQUEST = 1_000_000
_MOST_SAMPLES = 10_000_000
"""Maximum samples of one query: several times the largest group that can be configured."""


@dataclass
class Reading:
    """Samples of [start, end), their read path, and the server's warnings."""

    batch: SeriesBatch
    read_path: ReadPath
    warnings: list[str] = field(default_factory=list)
    request_count: int = 0


def read(
    connection: Connection, server: Server, matchers: Sequence[Matcher], window: Window, expected_samples: int = 0
) -> Reading:
    """Return raw samples of the window. Its time parts are disjoint, so no sample comes twice.

    The window is divided by the sample budget, then in halves where the server reports too much data. SourceError when even a
    minute is too much.
    """
    try:
        return _read_by(server.read_path, connection, server, matchers, window, expected_samples)
    except OtherEncodingError:
        if connection.settings.read_path != "auto":
            raise
        return _read_by("matrix", connection, server, matchers, window, expected_samples)


def _read_by(
    path: ReadPath, connection: Connection, server: Server, matchers: Sequence[Matcher], window: Window, expected_samples: int
) -> Reading:
    reading = Reading(concatenate([]), path)
    batches = []
    # Chunks are a tenth of JSON's size and need no query evaluation: only the other paths are divided in advance.
    part_count = 1 if path == "remote-read" else max(1, -(-expected_samples // _SAMPLES_PER_REQUEST))
    sample_count = 0
    for part in _cut(window, part_count):
        for batch in _read_or_halve(reading, connection, server, matchers, part):
            batches.append(batch)
            sample_count += batch.sample_count
            if sample_count > _MOST_SAMPLES:
                raise SourceError(f"{connection.url} answers a query with more than {_MOST_SAMPLES:,} samples; check the server")
    reading.batch = concatenate(batches)
    return reading


def _cut(window: Window, count: int) -> Iterator[Window]:
    step = (window.end_at - window.start_at) / count
    for number in range(count):
        end = window.end_at if number == count - 1 else window.start_at + (number + 1) * step
        yield Window(window.start_at + number * step, end)


def _read_or_halve(
    reading: Reading, connection: Connection, server: Server, matchers: Sequence[Matcher], window: Window
) -> Iterator[SeriesBatch]:
    reading.request_count += 1
    try:
        yield _read_once(reading, connection, server, matchers, window)
        return
    except TooMuchError as error:
        if window.end_at - window.start_at <= _SHORTEST:
            raise SourceError(f"{error}; even a minute is too much: raise the server's limits") from error
    # outside of the handler, because the error keeps the oversized answer in memory
    for half in _cut(window, 2):
        yield from _read_or_halve(reading, connection, server, matchers, half)


def _read_once(
    reading: Reading, connection: Connection, server: Server, matchers: Sequence[Matcher], window: Window
) -> SeriesBatch:
    if reading.read_path == "remote-read":
        return read_remote(connection, server.external_labels, matchers, window)
    if reading.read_path == "victoria-metrics":
        return read_export(connection, matchers, window)
    batch, warnings = read_matrix(connection, matchers, window)
    reading.warnings += [warning for warning in warnings if warning not in reading.warnings]
    return batch
