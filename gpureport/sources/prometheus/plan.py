"""Which series to fetch together: groups of whole nodes that fit a budget of samples, no device in two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpureport.series import METRIC_LABEL, Labels
from gpureport.sources.prometheus.matcher import Matcher, one_of

_HOST_LABELS = ("Hostname", "hostname", "node", "node_name", "instance")

DeviceOf = Callable[[Labels], str]
"""Which device a series is of, the same for every exporter's spelling; '' for what is no device's."""


@dataclass(frozen=True)
class Question:
    """Series to be fetched at once: the conditions on their labels, how many match, and how many samples to expect."""

    matchers: tuple[Matcher, ...]
    series_count: int
    expected_samples: int


@dataclass(frozen=True)
class Group:
    """Series to be shaped together, fetched by one question for each way in which exporters name host and device."""

    questions: tuple[Question, ...]

    @property
    def series_count(self) -> int:
        """How many series its questions match."""
        return sum(question.series_count for question in self.questions)

    @property
    def expected_samples(self) -> int:
        """How many samples to expect."""
        return sum(question.expected_samples for question in self.questions)


class _Family(NamedTuple):
    """Series that name device and host by the same labels; ``host_label`` is '' where they name no host."""

    uuid_label: str
    host_label: str

    @property
    def key(self) -> str:
        """The label by whose values the family is divided: a host's is shorter to ask for than its devices'."""
        return self.host_label or self.uuid_label


class _Place(NamedTuple):
    """One value of a family's key."""

    family: _Family
    value: str


def plan_groups(
    series: Sequence[Labels], sample_budget: int, samples_per_series: int, device_of: DeviceOf, uuid_labels: Sequence[str]
) -> list[Group]:
    """Groups whose union is exactly the series, each series in one; a node larger than the budget is a group of its own.

    ``uuid_labels``: the labels by which exporters name a device, in the order in which ``device_of`` looks for them. A device
    that several exporters describe, each in its own way, is whole in one group.
    """
    places: dict[_Place, list[Labels]] = defaultdict(list)
    others: list[Labels] = []
    for labels in series:
        uuid_label = _first_label(labels, uuid_labels)
        if uuid_label:
            family = _Family(uuid_label, _first_label(labels, _HOST_LABELS))
            places[_Place(family, labels[family.key])].append(labels)
        else:
            others.append(labels)
    sets = _packed(_inseparable(places, device_of), places, max(1, sample_budget // samples_per_series))
    groups = [_group(found, places, samples_per_series, uuid_labels) for found in sets]
    if others:
        absent = [Matcher(name, "=", "") for name in uuid_labels]
        groups.append(Group((Question((_metrics(others), *absent), len(others), len(others) * samples_per_series),)))
    return groups


def _first_label(labels: Labels, names: Iterable[str]) -> str:
    return next((name for name in names if labels.get(name)), "")


def _inseparable(places: Mapping[_Place, Sequence[Labels]], device_of: DeviceOf) -> list[list[_Place]]:
    """Places that share a device, directly or through others; each set is fetched as one."""
    leader = {place: place for place in places}

    def find(place: _Place) -> _Place:
        while leader[place] != place:
            place = leader[place]
        return place

    first_of: dict[str, _Place] = {}
    for place in sorted(places):
        for device in {device_of(labels) for labels in places[place]}:
            one, other = sorted((find(first_of.setdefault(device, place)), find(place)))
            leader[other] = one
    sets: dict[_Place, list[_Place]] = defaultdict(list)
    for place in sorted(places):
        sets[find(place)].append(place)
    return list(sets.values())


def _packed(sets: Sequence[list[_Place]], places: Mapping[_Place, Sequence[Labels]], series_budget: int) -> list[list[_Place]]:
    """Consecutive sets put together while they fit the budget."""
    packs: list[list[_Place]] = []
    room = 0
    for found in sets:
        size = sum(len(places[place]) for place in found)
        if not packs or size > room:
            packs.append([])
            room = series_budget
        packs[-1] += found
        room -= size
    return packs


def _group(
    found: Sequence[_Place], places: Mapping[_Place, Sequence[Labels]], samples_per_series: int, uuid_labels: Sequence[str]
) -> Group:
    by_family: dict[_Family, list[_Place]] = defaultdict(list)
    for place in found:
        by_family[place.family].append(place)
    questions = []
    for family, own in sorted(by_family.items()):
        members = [labels for place in own for labels in places[place]]
        conditions = _conditions(family, members, [place.value for place in own], uuid_labels)
        questions.append(Question(conditions, len(members), len(members) * samples_per_series))
    return Group(tuple(questions))


def _conditions(
    family: _Family, members: Sequence[Labels], values: Sequence[str], uuid_labels: Sequence[str]
) -> tuple[Matcher, ...]:
    """What only the family's series fulfil: a label looked for earlier is absent, its own is there."""
    earlier = uuid_labels[: list(uuid_labels).index(family.uuid_label)]
    hosts = _HOST_LABELS[: _HOST_LABELS.index(family.host_label)] if family.host_label else _HOST_LABELS
    absent = [Matcher(name, "=", "") for name in (*earlier, *hosts)]
    conditions = [_metrics(members), one_of(family.key, values), *absent]
    if family.key != family.uuid_label:  # kube-state-metrics names nodes too
        conditions.append(Matcher(family.uuid_label, "!=", ""))
    return tuple(conditions)


def _metrics(series: Iterable[Labels]) -> Matcher:
    return one_of(METRIC_LABEL, (labels[METRIC_LABEL] for labels in series))
