"""Metrics about the jobs: gauges of the last run and snapshot, as a Prometheus textfile and to a Pushgateway.

All of them are gauges, even those named ``_total``: they describe one run, and do not grow from run to run. An unknown value
is left out, never 0. The text is valid both as OpenMetrics and in Prometheus' older format, which node_exporter reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import push_to_gateway
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gpureport.config import Metrics
from gpureport.values.catalog import PUBLISHER, PUBLISHER_LABEL
from gpureport.values.errors import GpureportError, OutputError, SourceError, UsageError

_LOG = logging.getLogger(__name__)
LAST_SUCCESS = "gpureport_run_last_success_timestamp_seconds"
_SNAPSHOT = "gpureport_snapshot"
LAST_SNAPSHOT = f"{_SNAPSHOT}_last_success_timestamp_seconds"
_PUSH_SECONDS = 30


class Value(NamedTuple):
    """One sample of a gauge."""

    metric: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Night:
    """Result of a run; ``database`` is the report's DuckDB file, if one was written."""

    instance: str
    ended_at: datetime
    exit_code: int
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    sample_counts: Mapping[str, int] = field(default_factory=dict)
    """Number of fetched samples, by cluster."""
    database: Path | None = None
    failure: str = ""
    """Kind of the failure, such as SourceError; '' for none."""

    @property
    def is_success(self) -> bool:
        """Whether the report is written and every source was read. Exit codes 3 and 4 are results of the report, not failures."""
        return self.exit_code in (0, 3, 4)


def publish(night: Night, settings: Metrics) -> None:
    """Write and push the configured metrics of a run. A failure is only a warning, because the run itself is done."""
    if not settings.is_wanted:
        return
    _publish(_Job("gpureport", night.instance, LAST_SUCCESS, night.is_success), settings, list(_values(night)))


def publish_snapshot(settings: Metrics, cluster: str, ended_at: datetime, failure: GpureportError | None) -> None:
    """Write and push whether a snapshot was complete; its textfile is in the folder of the run's textfile."""
    if not settings.is_wanted:
        return
    values = [Value(f"{_SNAPSHOT}_success", {"cluster": cluster}, float(failure is None))]
    values.append(Value(f"{_SNAPSHOT}_exit_code", {"cluster": cluster}, failure.exit_code if failure else 0))
    if failure is None:
        values.append(Value(LAST_SNAPSHOT, {"cluster": cluster}, ended_at.timestamp()))
    path = Path(settings.file)
    file = str(path.with_name(f"{path.stem}-snapshot-{cluster}{path.suffix}")) if settings.file else ""
    job = _Job("gpureport_snapshot", cluster, LAST_SNAPSHOT, failure is None)
    _publish(job, settings.model_copy(update={"file": file}), values)


class _Job(NamedTuple):
    """A job in the metrics: the Pushgateway's job and instance, the gauge that a failure leaves unchanged, and its success."""

    name: str
    instance: str
    last_success: str
    is_success: bool


def _publish(job: _Job, settings: Metrics, values: Sequence[Value]) -> None:
    for how in (_write, _push):
        try:
            how(job, settings, values)
        except (OutputError, SourceError, UsageError) as error:
            _LOG.warning(f"the job's metrics are not published: {error}")


def _values(night: Night) -> Iterator[Value]:
    yield Value("gpureport_run_success", {}, float(night.is_success))
    yield Value("gpureport_run_exit_code", {}, night.exit_code)
    if night.is_success:
        yield Value(LAST_SUCCESS, {}, night.ended_at.timestamp())
    else:
        yield Value("gpureport_run_failure_reason", {"reason": night.failure}, 1.0)
    for stage, seconds in night.stage_seconds.items():
        yield Value("gpureport_run_duration_seconds", {"stage": stage}, round(seconds, 3))
    for cluster, count in sorted(night.sample_counts.items()):
        yield Value("gpureport_run_samples_total", {"cluster": cluster}, count)
    if night.database:
        with duckdb.connect(str(night.database), read_only=True) as con:
            yield from _report_values(con)


_BY_CLUSTER = {
    "gpureport_run_coverage_ratio": """
        select cluster, sum(observed_device_seconds) / nullif(sum(expected_device_seconds), 0)
        from report.coverage where signal = 'any' group by cluster order by cluster
    """,
    "gpureport_run_unknown_gpu_hours": """
        select cluster, unknown_gpu_hours from report.gpu_hour_balance where dimension = 'cluster' order by cluster
    """,
}
_BY_RESOURCE = {
    "cluster_gpu_pending_pod_count": "pending_pod_count_avg",
    "cluster_gpu_pending_request_total": "pending_request_units_avg",
    "cluster_gpu_requested_allocatable_ratio": "requested_allocatable_ratio_avg",
}
"""OpenCost's gauges: the mean of the report's last hour for which it is known."""


def _report_values(con: duckdb.DuckDBPyConnection) -> Iterator[Value]:
    for metric, statement in _BY_CLUSTER.items():
        for cluster, value in con.execute(statement).fetchall():
            if value is not None:
                yield Value(metric, {"cluster": cluster}, value)
    for metric, column in _BY_RESOURCE.items():
        rows = con.execute(
            f"select cluster, resource, arg_max({column}, hour_start_at) from report.scheduler_pressure "
            f"where {column} is not null group by cluster, resource order by cluster, resource"
        ).fetchall()
        for cluster, resource, value in rows:
            yield Value(metric, {"cluster": cluster, "resource": resource, PUBLISHER_LABEL: PUBLISHER}, value)


HELP = {
    "gpureport_run_success": "1 if the last run wrote its report and read every source, else 0.",
    "gpureport_run_exit_code": "Exit code of the last run.",
    LAST_SUCCESS: "When the last successful run ended, in seconds since 1970.",
    "gpureport_run_failure_reason": "1 for the kind of failure that ended the last run; absent after a success.",
    f"{_SNAPSHOT}_success": "1 if the last snapshot read every list, else 0.",
    f"{_SNAPSHOT}_exit_code": "Exit code of the last snapshot.",
    LAST_SNAPSHOT: "When the last whole snapshot was taken, in seconds since 1970.",
    "gpureport_run_duration_seconds": "How long a stage of the last run took, for all its days.",
    "gpureport_run_samples_total": "Samples that the last run fetched.",
    "gpureport_run_coverage_ratio": "Observed over expected device time of the reported day.",
    "gpureport_run_unknown_gpu_hours": "GPU-hours of the reported day with unknown use or allocation.",
    "cluster_gpu_pending_pod_count": "Pods of phase Pending that request the resource, mean of the last known hour.",
    "cluster_gpu_pending_request_total": "Units that they request, mean of the last known hour.",
    "cluster_gpu_requested_allocatable_ratio": "Requested over allocatable units, mean of the last known hour.",
}


def _registry(values: Sequence[Value]) -> CollectorRegistry:
    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    for metric, labels, value in values:
        if metric not in gauges:
            gauges[metric] = Gauge(metric, HELP[metric], list(labels), registry=registry)
        gauge = gauges[metric].labels(**labels) if labels else gauges[metric]
        gauge.set(value)
    return registry


def _text(registry: CollectorRegistry) -> bytes:
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def _write(job: _Job, settings: Metrics, values: Sequence[Value]) -> None:
    """Write the textfile completely or not at all; a failed run keeps the time of the last success."""
    if not settings.file:
        return
    path = Path(settings.file)
    if not job.is_success:
        values = [*values, *_last_success(path, job.last_success)]
    draft = path.with_name(f".{path.name}.draft")  # node_exporter reads only *.prom
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(_text(_registry(values)))
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); check metrics.file") from error


def _last_success(path: Path, name: str) -> list[Value]:
    """Return the last success from the previous run's file; none where the file is missing or has other content."""
    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []
    return [Value(name, each.labels, each.value) for family in families for each in family.samples if each.name == name]


def _push(job: _Job, settings: Metrics, values: Sequence[Value]) -> None:
    """Replace all values of the job, so that no old coverage outlives a failure; the last success is a separate group."""
    if not settings.pushgateway_url:
        return
    groups = {job.name: [each for each in values if each.metric != job.last_success]}
    if job.is_success:
        groups[f"{job.name}_success"] = [each for each in values if each.metric == job.last_success]
    try:
        for name, chosen in groups.items():
            push_to_gateway(
                settings.pushgateway_url,
                name,
                _registry(chosen),
                grouping_key={"instance": job.instance},
                timeout=_PUSH_SECONDS,
                handler=_handler(settings),
            )
    except (OSError, ValueError) as error:
        raise SourceError(f"the Pushgateway {settings.pushgateway_url} did not accept them ({error}); check metrics.*") from error


def _handler(settings: Metrics) -> Callable[..., Any]:
    """Return a request function with the credentials of the HTTP client file, and with a time limit in every case."""
    from gpureport.collect.sources.exchange import Deadline, excerpt, shortened
    from gpureport.collect.sources.prometheus import http_access, session

    def send(url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes) -> Callable[[], None]:
        fixed: dict[str, Any] = {"timeout": timeout, "allow_redirects": False, "stream": True}

        def done() -> None:
            with (
                Deadline(_PUSH_SECONDS),
                session(http_access(settings.http_config_file)) as http,
                http.request(method, url, headers=dict(headers), data=data, **fixed) as reply,
            ):
                if reply.status_code >= 300:
                    raise OSError(f"status {reply.status_code}: {shortened(excerpt(reply.raw).decode('utf-8', 'replace'))}")

        return done

    return send
