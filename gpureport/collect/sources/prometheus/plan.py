"""Groups of series to fetch together: whole nodes within a budget of samples, no device in two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpureport.collect.sources.prometheus.outline import Content, Family, Matcher, Outline, Place, absent, one_of
from gpureport.values.series import METRIC_LABEL


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
        """Number of series that its queries match."""
        return sum(question.series_count for question in self.questions)

    @property
    def expected_samples(self) -> int:
        """Expected number of samples."""
        return sum(question.expected_samples for question in self.questions)


def plan_groups(outline: Outline, sample_budget: int, samples_per_series: int) -> list[Group]:
    """Groups whose union is exactly the series, each series in one; a node larger than the budget is a group of its own.

    A device that several exporters describe, each in its own way, is whole in one group, as far as the outline knows devices.
    """
    sets = _packed(_inseparable(outline.places), outline.places, max(1, sample_budget // samples_per_series))
    groups = [_group(found, outline, samples_per_series) for found in sets]
    if outline.others.metrics:
        conditions = (one_of(METRIC_LABEL, outline.others.metrics), *absent(outline.uuid_labels))
        groups.append(Group((_question(conditions, [outline.others], samples_per_series),)))
    return groups


def _question(conditions: tuple[Matcher, ...], contents: Iterable[Content], samples_per_series: int) -> Question:
    count = sum(content.series_count for content in contents)
    return Question(conditions, count, count * samples_per_series)


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
    room = 0
    for found in sets:
        size = sum(places[place].series_count for place in found)
        if not packs or size > room:
            packs.append([])
            room = series_budget
        packs[-1] += found
        room -= size
    return packs


def _group(found: Sequence[Place], outline: Outline, samples_per_series: int) -> Group:
    by_family: dict[Family, list[Place]] = defaultdict(list)
    for place in found:
        by_family[place.family].append(place)
    questions = []
    for family, own in sorted(by_family.items()):
        contents = [outline.places[place] for place in own]
        metrics = one_of(METRIC_LABEL, set().union(*(content.metrics for content in contents)))
        conditions = (metrics, one_of(family.key, [place.value for place in own]), *family.conditions(outline.uuid_labels))
        questions.append(_question(conditions, contents, samples_per_series))
    return Group(tuple(questions))
