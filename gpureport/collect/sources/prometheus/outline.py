"""Outline of the series (hosts, metrics, devices), the matchers that select them, and lists of series without samples.

From it come the groups that are fetched together: whole nodes within a budget of samples, no device in two of them.
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
    """One condition on a label; regular expressions are anchored, as everywhere in Prometheus."""

    name: str
    operator: Operator
    value: str

    def to_selector(self) -> str:
        """The condition as PromQL; names beyond the classic ones are quoted, as 3.x has it."""
        name = self.name if _CLASSIC_NAME.fullmatch(self.name) else json.dumps(self.name, ensure_ascii=False)
        return f"{name}{self.operator}{json.dumps(self.value, ensure_ascii=False)}"


def selector(matchers: Sequence[Matcher]) -> str:
    """A PromQL selector of all conditions."""
    return "{" + ",".join(matcher.to_selector() for matcher in matchers) + "}"


def one_of(name: str, values: Iterable[str]) -> Matcher:
    """The label is one of these values, taken literally."""
    found = sorted(set(values))
    if len(found) == 1:
        return Matcher(name, "=", found[0])
    return Matcher(name, "=~", "|".join(_literal(value) for value in found))


def _literal(value: str) -> str:
    """Escaped for RE2, which refuses Python's escapes of characters that need none."""
    return re.sub(r"([.+*?()|\[\]{}^$\\])", r"\\\1", value)


def list_series(connection: Connection, matchers: Sequence[Matcher], window: Window) -> tuple[list[Labels], list[str]]:
    """Label sets of the series that match (the server may name a few that ended just outside), and its warnings."""
    form = {"match[]": selector(matchers), "start": window.start_ms / 1000, "end": window.end_ms / 1000}
    reply = connection.json("/api/v1/series", form)
    return list(reply.get("data") or []), list(reply.get("warnings") or [])


def label_values(connection: Connection, label: str, metrics: Sequence[str], window: Window) -> list[str]:
    """The values that a label has on series of these metrics, sorted; none where no series has it."""
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


HOST_LABELS = ("Hostname", "hostname", "node", "node_name", "instance")

DeviceOf = Callable[[Labels], str]
"""Device of a series, the same for every exporter's spelling; '' where there is none."""


class Family(NamedTuple):
    """Series that name device and host by the same labels; ``host_label`` is '' where they name no host."""

    uuid_label: str
    host_label: str

    @property
    def key(self) -> str:
        """The label by whose values the family is divided: a host's is shorter to request than its devices'."""
        return self.host_label or self.uuid_label

    def conditions(self, uuid_labels: Sequence[str]) -> list[Matcher]:
        """Matchers of this family's series alone: its own label exists, the labels of families before it do not."""
        previous = uuid_labels[: list(uuid_labels).index(self.uuid_label)]
        hosts = HOST_LABELS[: HOST_LABELS.index(self.host_label)] if self.host_label else HOST_LABELS
        conditions = absent([*previous, *hosts])
        if self.key != self.uuid_label:  # kube-state-metrics names nodes too
            conditions.append(Matcher(self.uuid_label, "!=", ""))
        return conditions


class Place(NamedTuple):
    """One value of a family's key."""

    family: Family
    value: str


@dataclass
class Content:
    """Content of a place: number of series, if known at a time, metrics and devices."""

    series_count: int = 0
    metrics: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)

    def add(self, labels: Labels, device: str) -> None:
        """Count one series more."""
        self.series_count += 1
        self.metrics.add(labels[METRIC_LABEL])
        self.devices.add(device)


@dataclass(frozen=True)
class Outline:
    """All series by place; ``others`` names no device."""

    uuid_labels: Sequence[str]
    """The labels by which exporters name a device, in order of preference."""
    places: dict[Place, Content] = field(default_factory=dict)
    others: Content = field(default_factory=Content)

    def add(self, series: Iterable[Labels], device_of: DeviceOf) -> None:
        """Put series to their places."""
        for labels in series:
            place = _place(labels, self.uuid_labels)
            content = self.places.setdefault(place, Content()) if place else self.others
            content.add(labels, device_of(labels))


def absent(names: Iterable[str]) -> list[Matcher]:
    """That series have none of these labels."""
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
    """Series to be fetched at once: the conditions on their labels, how many match, and how many samples to expect."""

    matchers: tuple[Matcher, ...]
    series_count: int
    expected_samples: int


@dataclass(frozen=True)
class Group:
    """Series to be shaped together, fetched by one query for each way in which exporters name host and device."""

    queries: tuple[Query, ...]

    @property
    def series_count(self) -> int:
        """Number of series that its queries match."""
        return sum(query.series_count for query in self.queries)

    @property
    def expected_samples(self) -> int:
        """Expected number of samples."""
        return sum(query.expected_samples for query in self.queries)


def plan_groups(outline: Outline, sample_budget: int, samples_per_series: int) -> list[Group]:
    """Groups whose union is exactly the series, each series in one; a node larger than the budget is a group of its own.

    A device that several exporters describe, each in its own way, is whole in one group, as far as the outline knows devices.
    """
    sets = _packed(_inseparable(outline.places), outline.places, max(1, sample_budget // samples_per_series))
    groups = [_group(found, outline, samples_per_series) for found in sets]
    if outline.others.metrics:
        conditions = (one_of(METRIC_LABEL, outline.others.metrics), *absent(outline.uuid_labels))
        groups.append(Group((_query(conditions, [outline.others], samples_per_series),)))
    return groups


def _query(conditions: tuple[Matcher, ...], contents: Iterable[Content], samples_per_series: int) -> Query:
    count = sum(content.series_count for content in contents)
    return Query(conditions, count, count * samples_per_series)


def _inseparable(places: Mapping[Place, Content]) -> list[list[Place]]:
    """Places that share a device, directly or through others; each set is fetched as one."""
    leader = {place: place for place in places}

    def find(place: Place) -> Place:
        while leader[place] != place:
            place = leader[place]
        return place

    first_of: dict[str, Place] = {}
    for place in sorted(places):
        for device in places[place].devices:
            one, other = sorted((find(first_of.setdefault(device, place)), find(place)))
            leader[other] = one
    sets: dict[Place, list[Place]] = defaultdict(list)
    for place in sorted(places):
        sets[find(place)].append(place)
    return list(sets.values())


def _packed(sets: Sequence[list[Place]], places: Mapping[Place, Content], series_budget: int) -> list[list[Place]]:
    """Consecutive sets put together while they fit the budget."""
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
