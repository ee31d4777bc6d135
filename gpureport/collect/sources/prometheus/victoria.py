"""VictoriaMetrics' ``/api/v1/export``: one JSON line per series or part of one, streamed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import requests

from gpureport.collect.sources.exchange import LargeError, decoded, pieces
from gpureport.collect.sources.prometheus.connection import Connection
from gpureport.collect.sources.prometheus.outline import Matcher, selector
from gpureport.values.errors import SourceError
from gpureport.values.series import STALE_BITS, SeriesBatch, of_pieces
from gpureport.values.window import Window

_MOST_BYTES = 256 << 20
_MOST_LINE_BYTES = 16 << 20
_MOST_SERIES = 100_000
_MOST_SAMPLES = 4_000_000
_BARE_WORD = re.compile(rb"[+-]?(?:Inf|NaN)(?=[],])")


def read_export(connection: Connection, matchers: Sequence[Matcher], window: Window) -> SeriesBatch:
    """Raw samples of [start, end); a null is a staleness marker, for VictoriaMetrics keeps no other NaN.

    TooMuchError for more than one answer may hold.
    """
    # Milliseconds as integers would be read as seconds when small; as a fraction they are never mistaken.
    form = {"match[]": selector(matchers), "start": window.start_ms / 1000, "end": (window.end_ms - 1) / 1000}
    return connection.ask("POST", "/api/v1/export", lambda response: _batch(response, connection.url), data=form)


def _batch(response: requests.Response, url: str) -> SeriesBatch:
    labels, times, values = [], [], []
    sample_count = 0
    for line in _lines(pieces(response.raw, _MOST_BYTES)):
        series = _parse(line, url)
        found = np.array(series["values"], dtype=np.float64)
        found.view(np.uint64)[np.isnan(found)] = STALE_BITS
        times.append(np.array(series["timestamps"], np.int64))
        values.append(found)
        labels.append(series["metric"])
        sample_count += found.size
        if len(labels) > _MOST_SERIES or sample_count > _MOST_SAMPLES:
            raise LargeError(f"more than {_MOST_SERIES:,} series or {_MOST_SAMPLES:,} samples")
    return of_pieces(labels, times, values)


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Lines that are not empty; LargeError for one that does not end."""
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > _MOST_LINE_BYTES:
            raise LargeError("a line without an end")
        yield from filter(None, lines)
    if rest:
        yield rest


def _parse(line: bytes, url: str) -> dict[str, Any]:
    try:
        series: dict[str, Any] = _loads(line)
        if len(series["values"]) == len(series["timestamps"]) and isinstance(series["metric"], dict):
            return series
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise SourceError(f"{url}/api/v1/export: a line of the answer is cut off or is not a series: {line[:80]!r}; run again")


def _loads(line: bytes) -> Any:
    """The decoded line; older versions write infinities as bare words; as text, numpy reads them."""
    try:
        return decoded(line)
    except orjson.JSONDecodeError:
        head, key, points = line.partition(b'"values":[')
        return orjson.loads(head + key + _BARE_WORD.sub(rb'"\g<0>"', points))
