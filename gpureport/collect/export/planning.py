"""Groups of series to fetch together: planned from a glimpse where the server allows one, else from a list of all series."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, product

from gpureport.collect.shape import DEVICE_LABELS, PLAIN, Reading, device_uuid, place, read_labels
from gpureport.collect.shape.reading import NOT_EXTENDED, REQUESTS
from gpureport.collect.sources.prometheus import (
    HOST_LABELS,
    Connection,
    Glimpse,
    Group,
    Labelled,
    Matcher,
    NoApiError,
    Outline,
    Server,
    TooMuchError,
    glimpse,
    list_series,
    one_of,
    plan_groups,
    samples_per_hour,
)
from gpureport.collect.staging import MARGIN
from gpureport.config import Prometheus as PrometheusSettings
from gpureport.values.catalog import ACCELERATOR_METRICS, Catalog
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window


@dataclass(frozen=True)
class ExportSettings:
    """Prometheus server, query limits and pace of an export."""

    prometheus: PrometheusSettings
    environ: Mapping[str, str]
    catalog: Catalog
    cluster: str
    keep_raw: bool
    samples_per_group: int
    """Samples that a worker holds at once, at about 100 bytes each."""

    @property
    def scope(self) -> tuple[Matcher, ...]:
        """Label matchers of every query: on a server of several clusters, the cluster's label."""
        return tuple(Matcher(name, "=", value) for name, value in sorted(self.prometheus.match.items()))


def window_to_read(day: date) -> Window:
    """The day with what is read around it."""
    return Window.of_day(day).widened(MARGIN)


ASSUMED_SAMPLES_PER_HOUR = 240
"""Scrape interval of dcgm-exporter by default, 15 s: for a server on which no series could be sampled."""


class NoSeriesError(SourceError):
    """The server answers, but knows none of the catalog's series on that day."""


@dataclass(frozen=True)
class Plan:
    """Groups to fetch, and what else their labels show."""

    groups: list[Group]
    reading: Reading
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)


def with_unread(plan: Plan, connection: Connection, settings: ExportSettings, day: date) -> Plan:
    """The plan, with the series that it does not read where the server reports them."""
    wanted = [Matcher(METRIC_LABEL, "=~", ACCELERATOR_METRICS), *settings.scope]
    try:
        counts = Labelled(connection, window_to_read(day)).at_a_time(METRIC_LABEL, wanted)
    except SourceError:
        return plan
    return replace(plan, unread=settings.catalog.unread({metric: math.ceil(count) for metric, count in counts.items()}))


def plan_from_glimpse(connection: Connection, server: Server, settings: ExportSettings, day: date) -> Plan | None:
    """A plan for a hundredth of the time that a list takes, in which a device may be in two groups.

    None for other servers: only Prometheus itself is sure to list every value of a label.
    """
    if server.read_path != "remote-read":
        return None
    labelled = Labelled(connection, window_to_read(day))
    try:
        catalog = settings.catalog
        seen = glimpse(labelled, catalog.requested, settings.scope, _device_of(catalog), device_labels(catalog))
        if seen is None:
            return None
        groups = _groups(connection, settings, seen.outline, seen.example, day)
        return Plan(groups, _reading(labelled, seen, settings))
    except NoApiError:
        raise
    except SourceError:
        return None


def plan_from_list(connection: Connection, settings: ExportSettings, day: date) -> Plan:
    """A plan from the labels of every series, in which no device is in two groups.

    NoSeriesError where there are none of the catalog's on the day.
    """
    outline, reading, all_warnings = Outline(device_labels(settings.catalog)), PLAIN, list[str]()
    example: Labels | None = None
    for series, warnings in _listed(connection, settings, settings.catalog.requested, day):
        example = example or next(iter(series), None)
        outline.add(series, _device_of(settings.catalog))
        reading = read_labels(series, reading)
        all_warnings += [warning for warning in warnings if warning not in all_warnings]
    if example is None:
        raise NoSeriesError(
            f"{connection.url} holds no series of the catalog for {day}; check the date, the server's retention, "
            "and that dcgm-exporter is scraped"
        )
    return Plan(_groups(connection, settings, outline, example, day), reading, tuple(all_warnings))


def _listed(
    connection: Connection, settings: ExportSettings, metrics: Sequence[str], day: date
) -> Iterator[tuple[list[Labels], list[str]]]:
    """All series and the server's warnings, metrics in halves where a list of all is too much for one answer."""
    matchers = [one_of(METRIC_LABEL, metrics), *settings.scope]
    try:
        yield list_series(connection, matchers, window_to_read(day))
        return
    except TooMuchError:
        if len(metrics) == 1:
            raise
    for half in (metrics[: len(metrics) // 2], metrics[len(metrics) // 2 :]):
        yield from _listed(connection, settings, half, day)


def _groups(connection: Connection, settings: ExportSettings, outline: Outline, example: Labels, day: date) -> list[Group]:
    """Groups by a budget of samples; how dense they are is seen on one series or device."""
    window = window_to_read(day)
    hourly = samples_per_hour(connection, _lasting(example), window) or ASSUMED_SAMPLES_PER_HOUR
    groups = plan_groups(outline, settings.samples_per_group, round(hourly * window.seconds / 3600))
    return [_within(group, settings.scope) for group in groups]


def _lasting(example: Labels) -> Labels:
    """Labels common to one metric's series of a device, whatever its pods: the example's own pod may soon have ended."""
    common = {name: value for name, value in example.items() if name in (METRIC_LABEL, *HOST_LABELS, *DEVICE_LABELS)}
    return common if common.keys() & set(DEVICE_LABELS) else example


def _within(group: Group, scope: tuple[Matcher, ...]) -> Group:
    return Group(tuple(replace(query, matchers=(*query.matchers, *scope)) for query in group.queries))


def device_labels(catalog: Catalog) -> tuple[str, ...]:
    """The labels that can identify a device, the user's own first."""
    return (*(own for own, name in catalog.own_labels if name in DEVICE_LABELS), *DEVICE_LABELS)


def _device_of(catalog: Catalog) -> Callable[[Labels], str]:
    def device_of(labels: Labels) -> str:
        meaning = catalog.meaning(labels)
        return device_uuid(catalog.spelled(labels), meaning) if meaning else ""

    return device_of


def _reading(labelled: Labelled, seen: Glimpse, settings: ExportSettings) -> Reading:
    """As ``read_labels`` finds it from all series."""
    if "pod" not in seen.names:
        return PLAIN
    every = [one_of(METRIC_LABEL, seen.metrics), *settings.scope]
    requests = [one_of(METRIC_LABEL, REQUESTS), *settings.scope, Matcher("resource", "!~", NOT_EXTENDED)]
    own = [[*every, Matcher("pod", "=", ""), Matcher(label, "!=", "")] for label in DEVICE_LABELS if label in seen.names]
    requesting = [labelled.values("pod", requests)]
    targets: Iterable[tuple[str, ...]] = ()
    if "exported_pod" in seen.names:
        exported = [*every, Matcher("exported_pod", "!=", "")]
        namespaces, containers, pods = (labelled.values(name, exported) for name in ("namespace", "container", "pod"))
        targets = product(namespaces or [""], {"", *containers}, pods)
        requesting.append(labelled.values("exported_pod", requests))
    return Reading(
        frozenset(place(dict(zip(("namespace", "container", "pod"), each, strict=True))) for each in targets),
        requesting=frozenset(chain(*requesting)),
        honoring=frozenset(chain(*(labelled.values("job", each) for each in own))),
    )
