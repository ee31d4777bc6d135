"""Outline of the series (hosts, metrics, devices), the matchers that select them, and lists of series without samples.

The outline is divided into groups to fetch together: whole nodes within a budget of samples, no device in two groups.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gpureport.collect.sources.prometheus.connection import Connection
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window

_CLASSIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Operator = Literal["=", "!=", "=~", "!~"]


@dataclass(frozen=True)
class Matcher:
    """One condition on a label. Regular expressions are anchored, as always in Prometheus."""

    name: str
    operator: Operator
    value: str

    def to_selector(self) -> str:
        """Return the condition as PromQL. Names with other characters than the classic ones are quoted, as in Prometheus 3.x."""
        name = self.name if _CLASSIC_NAME.fullmatch(self.name) else json.dumps(self.name, ensure_ascii=False)
        return f"{name}{self.operator}{json.dumps(self.value, ensure_ascii=False)}"


def selector(matchers: Sequence[Matcher]) -> str:
    """Return a PromQL selector with all conditions."""
    return "{" + ",".join(matcher.to_selector() for matcher in matchers) + "}"


def one_of(name: str, values: Iterable[str]) -> Matcher:
    """Return the matcher of a label with any of these literal values."""
    found = sorted(set(values))
    if len(found) == 1:
        return Matcher(name, "=", found[0])
    return Matcher(name, "=~", "|".join(_literal(value) for value in found))


def _literal(value: str) -> str:
    """Escape text for RE2, which rejects Python's escapes of ordinary characters."""
    return re.sub(r"([.+*?()|\[\]{}^$\\])", r"\\\1", value)


def list_series(connection: Connection, matchers: Sequence[Matcher], window: Window) -> tuple[list[Labels], list[str]]:
    """Return the matching label sets and the server's warnings. A few series may have ended just outside of the window."""
    form = {"match[]": selector(matchers), "start": window.start_ms / 1000, "end": window.end_ms / 1000}
    reply = connection.json("/api/v1/series", form)
    return list(reply.get("data") or []), list(reply.get("warnings") or [])


def label_values(connection: Connection, label: str, metrics: Sequence[str], window: Window) -> list[str]:
    """Return the sorted values of a label on series of these metrics; none where no series has it."""
    matchers = [one_of(METRIC_LABEL, metrics), Matcher(label, "!=", "")]
    series, _ = list_series(connection, matchers, window)
    return sorted({labels[label] for labels in series})


def samples_per_hour(connection: Connection, labels: Labels, window: Window) -> int | None:
    """Return the largest number of samples per hour of a series with these labels, at a few times; None where there is none."""
    matchers = [Matcher(name, "=", value) for name, value in sorted(labels.items())]
    most = 0
    for part in (0.25, 0.5, 0.75, 1.0):
        at = window.start_ms + part * (window.end_ms - window.start_ms)
        form = {"query": f"max(count_over_time({selector(matchers)}[1h]))", "time": f"{at / 1000:.3f}"}
        result = (connection.json("/api/v1/query", form).get("data") or {}).get("result") or []
        most = max(most, *(int(float(each["value"][1])) for each in result), 0)
    return most or None


HOST_LABELS = ("Hostname", "hostname", "node", "node_name", "instance")

DeviceOf = Callable[[Labels], str]
"""Function that returns the device of a series, independent of the exporter's label names; '' where there is none."""


class Family(NamedTuple):
    """Series with the same labels for device and host. ``host_label`` is '' where they have no host label."""

    uuid_label: str
    host_label: str

    @property
    def key(self) -> str:
        """Label that divides the family. A query by host is shorter than one by all devices of the host."""
        return self.host_label or self.uuid_label

    def conditions(self, uuid_labels: Sequence[str]) -> list[Matcher]:
        """Return the matchers for this family alone: its own labels exist, and those of earlier families do not."""
        previous = uuid_labels[: list(uuid_labels).index(self.uuid_label)]
        hosts = HOST_LABELS[: HOST_LABELS.index(self.host_label)] if self.host_label else HOST_LABELS
        conditions = absent([*previous, *hosts])
        if self.key != self.uuid_label:  # kube-state-metrics has node labels too
            conditions.append(Matcher(self.uuid_label, "!=", ""))
        return conditions


class Place(NamedTuple):
    """One value of a family's key."""

    family: Family
    value: str


@dataclass
class Content:
    """Content of a place: number of series (at one time if known), metrics and devices."""

    series_count: int = 0
    metrics: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)

    def add(self, labels: Labels, device: str) -> None:
        """Add one series."""
        self.series_count += 1
        self.metrics.add(labels[METRIC_LABEL])
        self.devices.add(device)


@dataclass(frozen=True)
class Outline:
    """All series by place. ``others`` are the series without a device."""

    uuid_labels: Sequence[str]
    """Labels in which exporters have a device, in order of preference."""
    places: dict[Place, Content] = field(default_factory=dict)
    others: Content = field(default_factory=Content)

    def add(self, series: Iterable[Labels], device_of: DeviceOf) -> None:
        """Add series to their places."""
        for labels in series:
            place = _place(labels, self.uuid_labels)
            content = self.places.setdefault(place, Content()) if place else self.others
            content.add(labels, device_of(labels))


def absent(names: Iterable[str]) -> list[Matcher]:
    """Return the matchers of series without these labels."""
    return [Matcher(name, "=", "") for name in names]


def _place(labels: Labels, uuid_labels: Sequence[str]) -> Place | None:
    uuid_label = _first_label(labels, uuid_labels)
    if not uuid_label:
        return None
    family = Family(uuid_label, _first_label(labels, HOST_LABELS))
    return Place(family, labels[family.key])


def _first_label(labels: Labels, names: Iterable[str]) -> str:
    return next((name for name in names if labels.get(name)), "")


@dataclass(frozen=True)
class Query:
    """Series to fetch at once: the matchers, and the expected number of samples."""

    matchers: tuple[Matcher, ...]
    expected_samples: int


@dataclass(frozen=True)
class Group:
    """Series to shape together. There is one query for each combination of host and device labels."""

    queries: tuple[Query, ...]


def plan_groups(outline: Outline, sample_budget: int, samples_per_series: int) -> list[Group]:
    """Divide all series into groups, each series in exactly one. A node beyond the budget has its own group.

    A device of several exporters with different labels is in one group, if the outline shows that it is the same device.
    """
    sets = _combine(_places_sharing_devices(outline.places), outline.places, max(1, sample_budget // samples_per_series))
    groups = [_group(found, outline, samples_per_series) for found in sets]
    if outline.others.metrics:
        conditions = (one_of(METRIC_LABEL, outline.others.metrics), *absent(outline.uuid_labels))
        groups.append(Group((_query(conditions, [outline.others], samples_per_series),)))
    return groups


def _query(conditions: tuple[Matcher, ...], contents: Iterable[Content], samples_per_series: int) -> Query:
    return Query(conditions, sum(content.series_count for content in contents) * samples_per_series)


def _places_sharing_devices(places: Mapping[Place, Content]) -> list[list[Place]]:
    """Return sets of places that share devices, directly or through others. Each set is fetched together."""
    leader = {place: place for place in places}

    def find_leader(place: Place) -> Place:
        while leader[place] != place:
            place = leader[place]
        return place

    first_of: dict[str, Place] = {}
    for place in sorted(places):
        for device in places[place].devices:
            one, other = sorted((find_leader(first_of.setdefault(device, place)), find_leader(place)))
            leader[other] = one
    sets: dict[Place, list[Place]] = defaultdict(list)
    for place in sorted(places):
        sets[find_leader(place)].append(place)
    return list(sets.values())


def _combine(sets: Sequence[list[Place]], places: Mapping[Place, Content], series_budget: int) -> list[list[Place]]:
    """Combine consecutive sets within the budget."""
    packs: list[list[Place]] = []
    free = 0
    for found in sets:
        size = sum(places[place].series_count for place in found)
        if not packs or size > free:
            packs.append([])
            free = series_budget
        packs[-1] += found
        free -= size
    return packs


def _group(found: Sequence[Place], outline: Outline, samples_per_series: int) -> Group:
    by_family: dict[Family, list[Place]] = defaultdict(list)
    for place in found:
        by_family[place.family].append(place)
    queries = []
    for family, own in sorted(by_family.items()):
        contents = [outline.places[place] for place in own]
        metrics = one_of(METRIC_LABEL, set().union(*(content.metrics for content in contents)))
        conditions = (metrics, one_of(family.key, [place.value for place in own]), *family.conditions(outline.uuid_labels))
        queries.append(_query(conditions, contents, samples_per_series))
    return Group(tuple(queries))
