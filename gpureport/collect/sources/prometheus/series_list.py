"""List of series: names and labels, without samples."""

from __future__ import annotations

from collections.abc import Sequence

from gpureport.collect.sources.prometheus.connection import Connection
from gpureport.collect.sources.prometheus.matcher import Matcher, one_of, selector
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window


def list_series(connection: Connection, matchers: Sequence[Matcher], window: Window) -> tuple[list[Labels], list[str]]:
    """Label sets of the series that match (the server may name a few that ended just outside), and its warnings."""
    form = {"match[]": selector(matchers), "start": window.start_ms / 1000, "end": window.end_ms / 1000}
    reply = connection.json("/api/v1/series", form)
    return list(reply.get("data") or []), list(reply.get("warnings") or [])


def label_values(connection: Connection, label: str, metrics: Sequence[str], window: Window) -> list[str]:
    """The values that a label has on series of these metrics, sorted; none where no series bears it."""
    matchers = [one_of(METRIC_LABEL, metrics), Matcher(label, "!=", "")]
    series, _ = list_series(connection, matchers, window)
    return sorted({labels[label] for labels in series})


def samples_per_hour(connection: Connection, labels: Labels, window: Window) -> int | None:
    """Samples an hour of the fullest series with these labels, from a few instants; None where there is none."""
    matchers = [Matcher(name, "=", value) for name, value in sorted(labels.items())]
    most = 0
    for part in (0.25, 0.5, 0.75, 1.0):
        at = window.start_ms + part * (window.end_ms - window.start_ms)
        form = {"query": f"max(count_over_time({selector(matchers)}[1h]))", "time": f"{at / 1000:.3f}"}
        result = (connection.json("/api/v1/query", form).get("data") or {}).get("result") or []
        most = max(most, *(int(float(each["value"][1])) for each in result), 0)
    return most or None
