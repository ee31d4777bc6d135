"""Plan of the groups of series to fetch together: from a glimpse where the server allows it, else from a list of all series."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, product

from gpureport.collect.shape import DEVICE_LABELS, PLAIN, Reading, device_uuid, read_labels, target
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
    """Samples in a worker's memory at once, at about 100 bytes each."""

    @property
    def scope(self) -> tuple[Matcher, ...]:
        """Label matchers of every query: the cluster's label, on a server for several clusters."""
        return tuple(Matcher(name, "=", value) for name, value in sorted(self.prometheus.match.items()))


def window_to_read(day: date) -> Window:
    """Return the day with the margin around it."""
    return Window.of_day(day).widened(MARGIN)


ASSUMED_SAMPLES_PER_HOUR = 240
"""Default scrape interval of dcgm-exporter, 15 s: for a server on which no series can be sampled."""


class NoSeriesError(SourceError):
    """The server answers, but has no series of the catalog for that day."""


@dataclass(frozen=True)
class Plan:
    """Groups to fetch, and the reading of their labels."""

    groups: list[Group]
    reading: Reading
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)


def with_unread(plan: Plan, connection: Connection, settings: ExportSettings, day: date) -> Plan:
    """Return the plan with counts of series outside of the catalog, where the server reports them."""
    wanted = [Matcher(METRIC_LABEL, "=~", ACCELERATOR_METRICS), *settings.scope]
    try:
        counts = Labelled(connection, window_to_read(day)).mean_series_counts(METRIC_LABEL, wanted)
    except SourceError:
        return plan
    return replace(plan, unread=settings.catalog.unread({metric: math.ceil(count) for metric, count in counts.items()}))


def plan_from_glimpse(connection: Connection, server: Server, settings: ExportSettings, day: date) -> Plan | None:
    """Plan in a hundredth of the time of a full list. Two groups may then have the same device.

    None for other servers than Prometheus: they may not list every value of a label.
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
    """Plan from the labels of every series. No two groups have the same device.

    NoSeriesError where the server has no series of the catalog for the day.
    """
    outline, reading, all_warnings = Outline(device_labels(settings.catalog)), PLAIN, list[str]()
    example: Labels | None = None
    for series, warnings in _list_series_in_parts(connection, settings, settings.catalog.requested, day):
        example = example or next(iter(series), None)
        outline.add(series, _device_of(settings.catalog))
        reading = read_labels(series, reading)
        all_warnings += [warning for warning in warnings if warning not in all_warnings]
    if example is None:
        raise NoSeriesError(
            f"{connection.url} has no series of the catalog for {day}; check the date, the server's retention, "
            "and that dcgm-exporter is scraped"
        )
    return Plan(_groups(connection, settings, outline, example, day), reading, tuple(all_warnings))


def _list_series_in_parts(
    connection: Connection, settings: ExportSettings, metrics: Sequence[str], day: date
) -> Iterator[tuple[list[Labels], list[str]]]:
    """Yield all series with the server's warnings. Where the list is too large for one answer, the metrics are halved."""
    matchers = [one_of(METRIC_LABEL, metrics), *settings.scope]
    try:
        yield list_series(connection, matchers, window_to_read(day))
        return
    except TooMuchError:
        if len(metrics) == 1:
            raise
    for half in (metrics[: len(metrics) // 2], metrics[len(metrics) // 2 :]):
        yield from _list_series_in_parts(connection, settings, half, day)


def _groups(connection: Connection, settings: ExportSettings, outline: Outline, example: Labels, day: date) -> list[Group]:
    """Return groups within a budget of samples. One series or device shows the sample rate."""
    window = window_to_read(day)
    hourly = samples_per_hour(connection, _without_pod_labels(example), window) or ASSUMED_SAMPLES_PER_HOUR
    groups = plan_groups(outline, settings.samples_per_group, round(hourly * window.seconds / 3600))
    return [_with_scope(group, settings.scope) for group in groups]


def _without_pod_labels(example: Labels) -> Labels:
    """Return the labels common to a metric's series of a device, without its pod, which may have ended early."""
    common = {name: value for name, value in example.items() if name in (METRIC_LABEL, *HOST_LABELS, *DEVICE_LABELS)}
    return common if common.keys() & set(DEVICE_LABELS) else example


def _with_scope(group: Group, scope: tuple[Matcher, ...]) -> Group:
    return Group(tuple(replace(query, matchers=(*query.matchers, *scope)) for query in group.queries))


def device_labels(catalog: Catalog) -> tuple[str, ...]:
    """Return the labels that can identify a device, the user's own first."""
    return (*(own for own, name in catalog.own_labels if name in DEVICE_LABELS), *DEVICE_LABELS)


def _device_of(catalog: Catalog) -> Callable[[Labels], str]:
    def device_of(labels: Labels) -> str:
        meaning = catalog.meaning(labels)
        return device_uuid(catalog.spelled(labels), meaning) if meaning else ""

    return device_of


def _reading(labelled: Labelled, seen: Glimpse, settings: ExportSettings) -> Reading:
    """Find the same reading as ``read_labels``, from queries on labels."""
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
        frozenset(target(dict(zip(("namespace", "container", "pod"), each, strict=True))) for each in targets),
        requesting=frozenset(chain(*requesting)),
        honoring=frozenset(chain(*(labelled.values("job", each) for each in own))),
    )
