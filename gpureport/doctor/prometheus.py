"""Evidence from a server: its numbers of series, and label sets of a few nodes; samples are never fetched in bulk."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from gpureport.collect.shape import names
from gpureport.collect.sources.prometheus import Connection, Matcher, one_of, probe
from gpureport.collect.sources.prometheus.outline import selector
from gpureport.doctor import evidence
from gpureport.doctor.cluster import CLAIM_SERIES
from gpureport.doctor.workloads import POD_SERIES, SAMPLED_SERIES, chosen_hosts, leading_metrics, named_pods
from gpureport.values.catalog import ACCELERATOR_METRICS, Catalog, Meaning
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import rfc3339

LABEL_WINDOW = timedelta(hours=1)
"""Look-back for label sets: long enough to see holders, short enough to see a changed setting."""
RHYTHM_WINDOW = "30m"
_HOSTS = ("Hostname", "hostname", "node", "node_name")
_DAYS = {"y": 365.0, "w": 7.0, "d": 1.0, "h": 1 / 24, "m": 1 / 1440, "s": 1 / 86400, "ms": 1 / 86400e3}
_MIG = "gpureport_mig"
_TRUNCATED = "truncated due to limit"
_NODES = "node, exported_node"
_AMD_CARD = ("serial_number", "gpu_id")
_ACCELERATORS = Matcher("resource", "=~", evidence.RESOURCES)

Row = tuple[Labels, float]


class _Questions:
    """Instant queries at one time, and the server's warnings; every series must match ``scope``."""

    def __init__(self, connection: Connection, at: datetime, scope: Sequence[Matcher]) -> None:
        self.connection = connection
        self.at_seconds = at.timestamp()
        self.scope = scope
        self.warnings: list[str] = []

    def where(self, *matchers: Matcher) -> str:
        """Return a PromQL selector within the scope."""
        return selector([*matchers, *self.scope])

    def vector(self, query: str) -> list[Row]:
        """Return labels and value of each row of an instant query."""
        return [(each["metric"], float(each["value"][1])) for each in self.rows(query)]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of an instant query as the server gives them."""
        reply = self._query("/api/v1/query", {"query": query, "time": f"{self.at_seconds:.3f}"})
        return list((reply.get("data") or {}).get("result") or [])

    def series(self, matchers: Sequence[Matcher], limit: int) -> list[Labels]:
        """Return label sets of the last hour, at most ``limit``; servers that know a limit apply it themselves."""
        return list(self._metadata("/api/v1/series", matchers, limit).get("data") or [])[:limit]

    def label_names(self, matchers: Sequence[Matcher]) -> list[str]:
        """Return label names of the last hour's series."""
        return list(self._metadata("/api/v1/labels", matchers, 0).get("data") or [])

    def _metadata(self, path: str, matchers: Sequence[Matcher], limit: int) -> dict[str, Any]:
        start = self.at_seconds - LABEL_WINDOW.total_seconds()
        form = {"match[]": self.where(*matchers), "start": f"{start:.3f}", "end": f"{self.at_seconds:.3f}"}
        return self._query(path, {**form, "limit": str(limit)} if limit else form)

    def _query(self, path: str, form: Mapping[str, str]) -> dict[str, Any]:
        reply = self.connection.json(path, form)
        # A list cut at the requested limit is the expected answer.
        self.warnings += [str(each) for each in reply.get("warnings") or [] if _TRUNCATED not in str(each)]
        return reply


def examine_server(connection: Connection, catalog: Catalog, at: datetime, match: Mapping[str, str]) -> evidence.Evidence:
    """Return evidence on the server's series with these labels at this instant. SourceError where it cannot be read."""
    server = probe(connection)
    query = _Questions(connection, at, [Matcher(name, "=", value) for name, value in sorted(match.items())])
    wanted = one_of(METRIC_LABEL, [*catalog.requested, CLAIM_SERIES])
    series = {labels[METRIC_LABEL]: int(count) for labels, count in query.vector(f"count by (__name__) ({query.where(wanted)})")}
    carried = _carried(query, catalog, series)
    accelerators = query.where(Matcher(METRIC_LABEL, "=~", ACCELERATOR_METRICS))
    counts = {labels[METRIC_LABEL]: int(count) for labels, count in query.vector(f"count by (__name__) ({accelerators})")}
    name, labels = f"{server.flavour} {server.version}".strip(), _label_sets(query, carried)
    of_pods = one_of("pod", named_pods(labels))
    return evidence.Evidence(
        subject=f"{connection.url} at {rfc3339(at)}{f' ({selector(query.scope)})' if match else ''}",
        carried=carried,
        labels=labels,
        pods=tuple(
            each for metric in POD_SERIES if metric in series for each in query.series([_named(metric), of_pods], SAMPLED_SERIES)
        ),
        kube=_kube(query, catalog, series),
        rhythm=_rhythm(query, carried),
        server=evidence.ServerSeen(name, server.read_path, retention_days(connection)),
        warnings=tuple(dict.fromkeys(query.warnings)),
        unread=catalog.unread(counts),
    )


def _carried(query: _Questions, catalog: Catalog, series: Mapping[str, int]) -> tuple[evidence.Carried, ...]:
    """Return device counts by metric and node, with one query for all metrics that have the same label conditions."""
    by_condition: dict[str, list[Meaning]] = defaultdict(list)
    for row in catalog.rows:
        if row.is_device and row.metric in series:
            by_condition[row.labels].append(row)
    found: dict[evidence.Carried, None] = {}
    for rows in by_condition.values():
        for labels, count in query.vector(_device_count(query, rows)):
            for row in rows:
                if row.metric == labels[METRIC_LABEL]:
                    found[_one_carried(row, labels, int(count))] = None
    return tuple(found)


def _device_count(query: _Questions, rows: Sequence[Meaning]) -> str:
    """Return PromQL for the number of GPUs with each metric, by node and model; copies of a GPU and its instances count once."""
    conditions = [Matcher(name, "!=", "") if value == "*" else Matcher(name, "=", value) for name, value in rows[0].conditions]
    where = query.where(one_of(METRIC_LABEL, [row.metric for row in rows]), *conditions)
    by_place = ", ".join([METRIC_LABEL, *_HOSTS, *names.MODEL, _MIG])
    by_device = ", ".join([by_place, *names.UUID, *_AMD_CARD])
    return f'count by ({by_place}) (count by ({by_device}) (label_replace({where}, "{_MIG}", "true", "GPU_I_ID", ".+")))'


def _one_carried(row: Meaning, labels: Labels, count: int) -> evidence.Carried:
    return evidence.Carried(
        signal=row.signal,
        metric=row.metric,
        exporter=row.exporter,
        host=names.first(labels, _HOSTS),
        host_label=next((label for label in _HOSTS if labels.get(label)), ""),
        node=labels.get("node", ""),
        model=names.first(labels, names.MODEL),
        is_mig=_MIG in labels,
        device_count=count,
    )


def _label_sets(query: _Questions, carried: Sequence[evidence.Carried]) -> tuple[Labels, ...]:
    """Return label sets of each exporter's leading metric on the chosen hosts."""
    found: list[Labels] = []
    for metric in leading_metrics(carried):
        hosts: dict[str, list[str]] = defaultdict(list)
        for host_label, host in chosen_hosts(each for each in carried if each.metric == metric):
            hosts[host_label].append(host)
        for host_label, named in hosts.items():
            on_hosts = [one_of(host_label, named)] if host_label else [Matcher(label, "=", "") for label in _HOSTS]
            found += query.series([_named(metric), *on_hosts], SAMPLED_SERIES)
    return tuple(found)


def _kube(query: _Questions, catalog: Catalog, series: Mapping[str, int]) -> evidence.KubeState:
    metrics = {row.metric for row in catalog.rows if row.exporter == "kube-state-metrics"} | {CLAIM_SERIES}
    known = {metric: count for metric, count in sorted(series.items()) if metric in metrics}
    if not known:
        return evidence.KubeState()
    allocatable = _by_node(query, "kube_node_status_allocatable")
    capacity = _by_node(query, "kube_node_status_capacity")
    requests = query.vector(f"count by (resource) ({query.where(_named('kube_pod_container_resource_requests'), _ACCELERATORS)})")
    by_slot = _hardware(query) if "kube_node_labels" in known else {}
    hardware = {node: evidence.resource_vendor(min(resources)) for node, resources in capacity.items()} | by_slot
    named = query.vector(f"count by ({_NODES}) ({query.where(_named('kube_node_info'))})")
    return evidence.KubeState(
        series=known,
        allocatable=allocatable,
        hardware=hardware,
        requests={labels["resource"]: int(count) for labels, count in requests},
        nodes=frozenset([*allocatable, *hardware, *(evidence.node_of(labels) for labels, _ in named)]),
        is_relabelled="exported_pod" in query.label_names([_named("kube_pod_info")]),
    )


def _named(metric: str) -> Matcher:
    return Matcher(METRIC_LABEL, "=", metric)


def _by_node(query: _Questions, metric: str) -> dict[str, dict[str, int]]:
    """Return node → accelerator resource → count above 0."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for labels, count in query.vector(f"max by ({_NODES}, resource) ({query.where(_named(metric), _ACCELERATORS)}) > 0"):
        found[evidence.node_of(labels)][labels["resource"]] = int(count)
    return dict(found)


def _hardware(query: _Questions) -> dict[str, str]:
    """Return node → vendor, from PCI labels; one query finds which of these labels exist."""
    labels = evidence.pci_labels(query.label_names([_named("kube_node_labels")]))
    if not labels:
        return {}
    rows = query.vector(f"count by ({_NODES}, {', '.join(labels)}) ({query.where(_named('kube_node_labels'))})")
    return evidence.vendors(found for found, _ in rows)


def _rhythm(query: _Questions, carried: Sequence[evidence.Carried]) -> evidence.Rhythm:
    """Return the rhythm of the power and energy samples of one host over half an hour."""
    power = [values for _, values in _of_one_host(query, carried, "power_watts")]
    energy = [values for _, values in _of_one_host(query, carried, "energy_joules")]
    times = max((times for times, _ in _of_one_host(query, carried, None)), key=len, default=[])
    return evidence.Rhythm(
        step_seconds=statistics.median(after - before for before, after in pairwise(times)) if len(times) > 2 else None,
        fresh_ratio=_fresh_ratio(max(power, key=len, default=[])),
        reset_count=sum(after < before for values in energy for before, after in pairwise(values)),
    )


def _fresh_ratio(values: Sequence[float]) -> float | None:
    steps = [after != before for before, after in pairwise(values)]
    return sum(steps) / len(steps) if len(steps) > 1 else None


def _of_one_host(
    query: _Questions, carried: Sequence[evidence.Carried], signal: str | None
) -> list[tuple[list[float], list[float]]]:
    """Return times (in seconds) and values of each series of the first host with the signal (with any signal for None)."""
    one = next((each for each in carried if each.host and signal in (None, each.signal)), None)
    if one is None:
        return []
    where = query.where(_named(one.metric), Matcher(one.host_label, "=", one.host))
    rows = query.rows(f"{where}[{RHYTHM_WINDOW}]")
    return [([float(time) for time, _ in row["values"]], [float(value) for _, value in row["values"]]) for row in rows]


def retention_days(connection: Connection) -> float | None:
    """Return the retention of samples in days; None where the server does not publish it as a time."""
    try:
        data = connection.json("/api/v1/status/runtimeinfo").get("data") or {}
    except SourceError:
        return None
    text = str(data.get("storageRetention", ""))
    found = re.match(r"(?:\d+(?:ms|[ywdhms]))+", text)
    parts = re.findall(r"(\d+)(ms|[ywdhms])", found[0]) if found else []
    return sum(int(number) * _DAYS[unit] for number, unit in parts) or None
