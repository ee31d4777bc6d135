"""Raw samples by instant query ``selector[range]``: the portable path, with true timestamps and no limit of points.

``query_range`` would not do: it resamples, and invents points up to five minutes after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpureport.series import METRIC_LABEL, Labels, SeriesBatch
from gpureport.sources.prometheus.connection import Connection
from gpureport.sources.prometheus.matcher import Matcher, selector
from gpureport.window import Window


def read_matrix(connection: Connection, matchers: Sequence[Matcher], window: Window) -> tuple[SeriesBatch, list[str]]:
    """Raw samples of [start, end), and what the server warned of.

    Evaluated one millisecond before the end over the window's whole length, the range holds exactly the window under both
    boundary rules (2.x closed, 3.x left-open) but for one sample just before the start, which is dropped.
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
        points = series.pop(
            "values", []
        )  # none of a native histogram; freed as it is read: decoded JSON is many times the size of its arrays
        found = np.rint(np.array([point[0] for point in points]) * 1000).astype(np.int64)
        inside = found >= window.start_ms
        times.append(found[inside])
        values.append(np.array([point[1] for point in points], dtype=np.float64)[inside])
        labels.append({METRIC_LABEL: "", **series["metric"]})
    lengths = [each.size for each in times]
    return SeriesBatch(
        labels,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(times) if times else np.empty(0, np.int64),
        np.concatenate(values) if values else np.empty(0, np.float64),
    )
