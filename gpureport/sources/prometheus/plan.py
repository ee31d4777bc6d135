"""Which series to fetch together: groups of whole nodes that fit a budget of samples, no device in two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpureport.series import METRIC_LABEL, Labels
from gpureport.sources.prometheus.matcher import Matcher, one_of

_HOST_LABELS = ("Hostname", "hostname", "node", "instance")
_UUID_LABELS = ("UUID", "uuid", "gpu_uuid")


@dataclass(frozen=True)
class Group:
    """Series to be fetched by one question: its conditions, how many series they match, and how many samples to expect."""

    matchers: tuple[Matcher, ...]
    series_count: int
    expected_samples: int


def plan_groups(series: Sequence[Labels], sample_budget: int, samples_per_series: int) -> list[Group]:
    """Groups whose union is exactly the series, each series in one; a node larger than the budget is a group of its own.

    Grouped by host where every device series carries the same host label, else by UUID; one group for everything where
    devices go by different UUID labels, for then no question tells them apart.
    """
    of_device = [labels for labels in series if _first_label(labels, _UUID_LABELS)]
    uuid_labels = {_first_label(labels, _UUID_LABELS) for labels in of_device}
    if len(uuid_labels) > 1:
        return [_group([_metrics(series)], series, samples_per_series)]
    others = [labels for labels in series if not _first_label(labels, _UUID_LABELS)]
    groups = []
    if of_device:
        groups = _device_groups(of_device, uuid_labels.pop(), max(1, sample_budget // samples_per_series), samples_per_series)
    if others:
        absent = [Matcher(name, "=", "") for name in _UUID_LABELS]
        groups.append(_group([_metrics(others), *absent], others, samples_per_series))
    return groups


def _first_label(labels: Labels, names: Iterable[str]) -> str:
    return next((name for name in names if labels.get(name)), "")


def _device_groups(series: Sequence[Labels], uuid_label: str, series_budget: int, samples_per_series: int) -> list[Group]:
    hosts = {_first_label(labels, _HOST_LABELS) for labels in series}
    key = hosts.pop() if len(hosts) == 1 and "" not in hosts else uuid_label
    by_value: dict[str, list[Labels]] = defaultdict(list)
    for labels in series:
        by_value[labels[key]].append(labels)
    groups = []
    for values in _packed(_inseparable(by_value, uuid_label), by_value, series_budget):
        members = [labels for value in values for labels in by_value[value]]
        conditions = [_metrics(members), one_of(key, values)]
        if key != uuid_label:  # kube-state-metrics names nodes too
            conditions.append(Matcher(uuid_label, "!=", ""))
        groups.append(_group(conditions, members, samples_per_series))
    return groups


def _inseparable(by_value: Mapping[str, Sequence[Labels]], uuid_label: str) -> list[list[str]]:
    """Label values that share a device, directly or through others; each set is fetched as one."""
    leader = {value: value for value in by_value}

    def find(value: str) -> str:
        while leader[value] != value:
            value = leader[value]
        return value

    first_of: dict[str, str] = {}
    for value in sorted(by_value):
        for uuid in {labels[uuid_label] for labels in by_value[value]}:
            one, other = sorted((find(first_of.setdefault(uuid, value)), find(value)))
            leader[other] = one
    sets: dict[str, list[str]] = defaultdict(list)
    for value in sorted(by_value):
        sets[find(value)].append(value)
    return list(sets.values())


def _packed(sets: Sequence[list[str]], by_value: Mapping[str, Sequence[Labels]], series_budget: int) -> list[list[str]]:
    """Consecutive sets put together while they fit the budget."""
    packs: list[list[str]] = []
    room = 0
    for values in sets:
        size = sum(len(by_value[value]) for value in values)
        if not packs or size > room:
            packs.append([])
            room = series_budget
        packs[-1] += values
        room -= size
    return packs


def _metrics(series: Iterable[Labels]) -> Matcher:
    return one_of(METRIC_LABEL, (labels[METRIC_LABEL] for labels in series))


def _group(matchers: Sequence[Matcher], members: Sequence[Labels], samples_per_series: int) -> Group:
    return Group(tuple(matchers), len(members), len(members) * samples_per_series)
