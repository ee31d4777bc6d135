"""Outline of many series from a few label queries. A list of all series would take the server seconds.

Hosts and metrics are exact. Devices, and series per host at a time, are estimated from one metric. Devices without that metric on
a host are missing there, so a reader must check that no device is in two groups.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gpureport.collect.sources.prometheus.connection import Connection
from gpureport.collect.sources.prometheus.outline import (
    HOST_LABELS,
    DeviceOf,
    Family,
    Matcher,
    Outline,
    absent,
    list_series,
    one_of,
    selector,
)
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window

_TIMES = (0.125, 0.375, 0.625, 0.875)
"""Times at which series are counted, as shares of the window."""


class PartialAnswerError(SourceError):
    """The server reports an incomplete search. A list of series is necessary: it keeps the server's warnings."""


@dataclass(frozen=True)
class Glimpse:
    """An outline, one example series, and the label names of the series."""

    outline: Outline
    example: Labels
    names: frozenset[str]
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    """Label queries on series with samples in a window."""

    connection: Connection
    window: Window

    def names(self, matchers: Sequence[Matcher]) -> frozenset[str]:
        """Return the label names of the series."""
        return frozenset(self._data(self.connection.json("/api/v1/labels", self._form(matchers))))

    def values(self, label: str, matchers: Sequence[Matcher] = ()) -> list[str]:
        """Return a label's values on the series; without matchers, on all series of the server."""
        return self._data(self.connection.json(f"/api/v1/label/{quote(label)}/values", params=self._form(matchers)))

    def series(self, matchers: Sequence[Matcher]) -> list[Labels]:
        """Return the label sets of the series."""
        found, warnings = list_series(self.connection, matchers, self.window)
        return self._data({"data": found, "warnings": warnings})

    def mean_series_counts(self, label: str, matchers: Sequence[Matcher]) -> dict[str, float]:
        """Count the series at a time by the label's values: the mean over a few times."""
        found: dict[str, float] = defaultdict(float)
        for part in _TIMES:
            at = self.window.start_ms + part * (self.window.end_ms - self.window.start_ms)
            form = {"query": f"count by ({label}) ({selector(matchers)})", "time": f"{at / 1000:.3f}"}
            for each in (self.connection.json("/api/v1/query", form).get("data") or {}).get("result") or []:
                found[each["metric"].get(label, "")] += float(each["value"][1]) / len(_TIMES)
        return dict(found)

    def sample_counts(self, metrics: Sequence[str], scope: Sequence[Matcher]) -> dict[str, int]:
        """Return the server's number of samples by metric. Prometheus 2.x also counts a sample 1 ms before the window."""
        found = dict[str, int]()
        for metric in sorted({*metrics}.intersection(self.values(METRIC_LABEL))):
            series = selector([Matcher(METRIC_LABEL, "=", metric), *scope])
            length, at = self.window.end_ms - self.window.start_ms, self.window.end_ms - 1
            form = {"query": f"sum(count_over_time({series}[{length}ms]))", "time": f"{at / 1000:.3f}"}
            reply = self.connection.json("/api/v1/query", form)
            data = self._data({**reply, "data": (reply.get("data") or {}).get("result")})
            found[metric] = sum(int(float(each["value"][1])) for each in data)
        return found

    def _form(self, matchers: Sequence[Matcher]) -> dict[str, Any]:
        bounds = {"start": self.window.start_ms / 1000, "end": self.window.end_ms / 1000}
        return {"match[]": selector(matchers), **bounds} if matchers else bounds

    def _data(self, reply: dict[str, Any]) -> list[Any]:
        if reply.get("warnings") or reply.get("isPartial"):
            raise PartialAnswerError(f"{self.connection.url} answered in part: {reply.get('warnings')}")
        return list(reply.get("data") or [])


def glimpse(
    labelled: Labelled, metrics: Sequence[str], scope: Sequence[Matcher], device_of: DeviceOf, uuid_labels: Sequence[str]
) -> Glimpse | None:
    """Return the outline of these metrics' series; the first metric is the likeliest on every host. None without series.

    SourceError where the server does not answer such queries, or answers incompletely.
    """
    known = set(labelled.values(METRIC_LABEL))
    present = tuple(metric for metric in metrics if metric in known)
    if not present:
        return None
    every = [one_of(METRIC_LABEL, present), *scope]
    names = labelled.names(every)
    outline, examples = Outline(uuid_labels), []
    for number, label in enumerate(uuid_labels):
        if label in names:
            own = [*scope, *absent(uuid_labels[:number]), Matcher(label, "!=", "")]
            examples += _add_devices(outline, labelled, present, own, names, device_of)
    outline.others.metrics.update(labelled.values(METRIC_LABEL, [*every, *absent(uuid_labels)]))
    if outline.others.metrics and not examples:
        examples = labelled.series([one_of(METRIC_LABEL, [min(outline.others.metrics)]), *scope])
    return Glimpse(outline, examples[0], names, present) if examples else None


def _add_devices(
    outline: Outline,
    labelled: Labelled,
    metrics: Sequence[str],
    own: Sequence[Matcher],
    names: frozenset[str],
    device_of: DeviceOf,
) -> list[Labels]:
    """Add the places of series with one UUID label, from one metric; hosts without that metric from all metrics."""
    uuid_label, every = own[-1].name, [one_of(METRIC_LABEL, metrics), *own]
    found = set(labelled.values(METRIC_LABEL, every))
    if not found:
        return []
    one_metric = next(metric for metric in metrics if metric in found)
    seen = labelled.series([one_of(METRIC_LABEL, [one_metric]), *own])
    sketch = Outline(outline.uuid_labels)
    sketch.add(seen, device_of)
    if len(seen) > len(set(map(device_of, seen))):
        _add_mean_counts(sketch, labelled, [one_of(METRIC_LABEL, [one_metric]), *own])
    for content in sketch.places.values():
        content.series_count *= len(found)
        content.metrics.update(found)
    for host_label in (*(label for label in HOST_LABELS if label in names), ""):
        family = Family(uuid_label, host_label)
        conditions = [*every, *family.conditions(outline.uuid_labels)]
        shown = {place.value for place in sketch.places if place.family == family}
        if unseen := set(labelled.values(family.key, [*conditions, Matcher(family.key, "!=", "")])) - shown:
            more = labelled.series([*conditions, one_of(family.key, unseen)])
            sketch.add(more, device_of)
            seen += more
    outline.places.update(sketch.places)
    return seen


def _add_mean_counts(sketch: Outline, labelled: Labelled, matchers: Sequence[Matcher]) -> None:
    """Count the series at one time: of consecutive pods on a device, only one has samples then."""
    for family in {place.family for place in sketch.places}:
        counted = labelled.mean_series_counts(family.key, [*matchers, *family.conditions(sketch.uuid_labels)])
        for place, content in sketch.places.items():
            if place.family == family and place.value in counted:
                content.series_count = min(content.series_count, math.ceil(counted[place.value]))
