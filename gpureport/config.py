"""One TOML file, ``GPUREPORT_SECTION__KEY`` in the environment, and flags → one frozen ``Config``; flags win.

Unknown keys are errors: a misspelt threshold that is silently ignored would print a wrong number.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpureport.errors import UsageError
from gpureport.findings import Suppression, Thresholds
from gpureport.log import LogFormat
from gpureport.window import AGE

PREFIX = "GPUREPORT_"
DEFAULT_FILE = Path("gpureport.toml")
DEFAULT_MEMORY_THRESHOLD_RATIO = 0.9
_SEED_ENABLED = "GPU_SATURATION_METRICS_ENABLED"
_SEED_THRESHOLD = "GPU_MEMORY_SATURATION_THRESHOLD"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Saturation(_Section):
    """What saturation figures are computed, and from where memory counts as full."""

    enabled: bool = True
    memory_threshold_ratio: float = Field(DEFAULT_MEMORY_THRESHOLD_RATIO, gt=0, le=1)


class Prometheus(_Section):
    """How to reach the server; secrets are named by file or environment variable, never written here."""

    url: str = ""
    read_path: Literal["auto", "remote-read", "matrix", "victoria-metrics"] = "auto"
    bearer_token_file: str = ""
    bearer_token_env: str = ""
    username: str = ""
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure_skip_verify: bool = False
    headers: dict[str, str] = {}
    match: dict[str, str] = {}
    cluster_label: str = ""
    http_config_file: str = ""
    connect_timeout_seconds: float = Field(10.0, gt=0)
    read_timeout_seconds: float = Field(120.0, gt=0)
    max_samples_per_request: int = Field(10_000_000, gt=0)
    max_concurrency: int = Field(2, gt=0, le=64)
    retries: int = Field(4, ge=0, le=20)


KubernetesSystem = Literal["dra", "kubernetes", "nos", "scheduler-plugins", "kueue", "koordinator", "volcano", "kai"]
"""What brings objects beside nodes, namespaces and pods; ``kubernetes`` stands for its own resource quotas."""


class Kubernetes(_Section):
    """How to reach the cluster's API server, and what to ask; credentials are the kubeconfig's or the service account's."""

    enabled: bool = True
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")], ...] = ()
    systems: tuple[KubernetesSystem, ...] = get_args(KubernetesSystem)
    connect_timeout_seconds: float = Field(10.0, gt=0)
    read_timeout_seconds: float = Field(60.0, gt=0)
    page_timeout_seconds: float = Field(300.0, gt=0)
    page_size: int = Field(500, gt=0, le=10_000)
    retries: int = Field(3, ge=0, le=20)


class ClusterSource(_Section):
    """One of several clusters: its servers, with the sections [prometheus] and [kubernetes] as what they do not say."""

    name: str
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes(enabled=False)


class Export(_Section):
    """How a day is cut for fetching, and how far ``run`` looks back."""

    samples_per_group: int = Field(2_500_000, gt=0)
    keep_raw: bool = False
    backfill_days: int = Field(7, ge=0)
    restate_days: int = Field(3, ge=0)


class Power(_Section):
    """What energy is attributed by."""

    idle_watts: dict[str, Annotated[float, Field(ge=0, lt=10_000)]] = {}


class Nos(_Section):
    """What nos' chart was installed with."""

    gpu_memory_gb_per_gpu: int = Field(32, gt=0, le=10_000)


class QuotaSystems(_Section):
    """What quota systems count by, where their objects do not say."""

    nos: Nos = Nos()


class Owners(_Section):
    """Whose the holders are."""

    team_label: str = Field("team", min_length=1)


class Prices(_Section):
    """What an hour of a GPU costs, by model or for ``all``, and a kWh; in one currency, whichever it is."""

    gpu_hour: dict[str, Annotated[float, Field(ge=0)]] = {}
    kwh: float | None = Field(None, ge=0)


class Carbon(_Section):
    """What a kWh emits, of the grid where it is used and by contract: a number, or the path of a CSV time series."""

    pue: float = Field(1.0, ge=1)
    grams_per_kwh: Annotated[float, Field(ge=0)] | Path | None = None
    market_grams_per_kwh: Annotated[float, Field(ge=0)] | Path | None = None


class Compute(_Section):
    """DuckDB's limits."""

    memory_limit: str = Field("1GB", pattern=r"^\d+(\.\d+)? ?([KMGT]i?B|%)$")
    threads: int = Field(2, gt=0)


class Report(_Section):
    """When a figure is too thin to print, and a report to succeed."""

    figure_min_coverage_ratio: float = Field(0.5, ge=0, le=1)
    min_coverage_ratio: float = Field(0.0, ge=0, le=1)
    idle_policy: Literal["separate", "holder", "pool"] = "separate"
    fail_on: str = ""
    by: str = ""


class Scheduler(_Section):
    """Which of the scheduler's gauges the report tells."""

    pending_pod_count: bool = True
    pending_request_units: bool = True
    requested_allocatable_ratio: bool = True


class Link(_Section):
    """What a model's links can carry in one direction, for clusters whose exporter does not say."""

    pcie_bytes_per_second: float | None = Field(None, gt=0)
    nvlink_bytes_per_second: float | None = Field(None, gt=0)


MetricName = Literal[
    "gpureport_run_success",
    "gpureport_run_exit_code",
    "gpureport_run_last_success_timestamp_seconds",
    "gpureport_run_duration_seconds",
    "gpureport_run_samples_total",
    "gpureport_run_coverage_ratio",
    "gpureport_run_unknown_gpu_hours",
    "cluster_gpu_pending_pod_count",
    "cluster_gpu_pending_request_total",
    "cluster_gpu_requested_allocatable_ratio",
]


class Metrics(_Section):
    """Where a run publishes how it went."""

    file: str = ""
    pushgateway_url: str = Field("", pattern=r"^[^@]*$")
    job: str = Field("gpureport", min_length=1)
    username: str = ""
    password_file: str = ""
    leave_out: tuple[MetricName, ...] = ()


class Retention(_Section):
    """For how long samples and facts are kept, as 30d, 8w or 2y; without end where nothing is said."""

    keep_samples: str = Field("", pattern=AGE)
    keep_facts: str = Field("", pattern=AGE)


class Config(_Section):
    """Everything that can be set; each section is documented in docs/operations.md."""

    cluster: str = "default"
    log_format: LogFormat = "text"
    lake: Path = Path("lake")
    out: Path = Path("out")
    saturation: Saturation = Saturation()
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes()
    export: Export = Export()
    power: Power = Power()
    quota: QuotaSystems = QuotaSystems()
    owners: Owners = Owners()
    prices: Prices = Prices()
    carbon: Carbon = Carbon()
    compute: Compute = Compute()
    metrics: Metrics = Metrics()
    retention: Retention = Retention()
    clusters: tuple[ClusterSource, ...] = ()
    report: Report = Report()
    scheduler: Scheduler = Scheduler()
    thresholds: Thresholds = Thresholds()
    suppressions: tuple[Suppression, ...] = ()
    signals: tuple[dict[str, str], ...] = ()
    links: dict[str, Link] = {}

    def each_cluster(self) -> list[Config]:
        """A configuration per cluster: one of all, or of those in ``clusters`` all or the one that ``cluster`` names."""
        if not self.clusters:
            return [self]
        names = [each.name for each in self.clusters]
        if "cluster" in self.model_fields_set and self.cluster not in names:
            raise UsageError(f"no cluster {self.cluster!r} is configured; the configuration has {', '.join(names)}")
        chosen = [each for each in self.clusters if "cluster" not in self.model_fields_set or each.name == self.cluster]
        return [
            self.model_copy(update={"cluster": each.name, "prometheus": each.prometheus, "kubernetes": each.kubernetes})
            for each in chosen
        ]

    @property
    def facts_hash(self) -> str:
        """Twelve hex digits that change when a setting that facts depend on does."""
        relevant = {"memory_threshold_ratio": self.saturation.memory_threshold_ratio, "signals": self.signals}
        return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()[:12]


def load_config(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any]) -> tuple[Config, list[str]]:
    """The configuration and the warnings that came with it; ``flags`` are dotted names, those set to None are absent.

    UsageError for an unknown key, a value out of range, or a file that is not there or no TOML.
    """
    values = _read_file(path)
    warnings = _apply_seed_names(values, environ)
    for name, text in sorted(environ.items()):
        if name.startswith(PREFIX):
            _set(values, name[len(PREFIX) :].lower().split("__"), _parse(text))
    for dotted, value in flags.items():
        if value is not None:
            _set(values, dotted.split("."), value)
    _complete_clusters(values)
    try:
        return Config.model_validate(values), warnings
    except ValidationError as error:
        raise UsageError(f"configuration: {_first_problem(error)}") from None


def _complete_clusters(values: dict[str, Any]) -> None:
    """Give each of ``clusters`` what it leaves to the sections of all; Kubernetes is read only where the cluster names one.

    Else every cluster would be given the state of the one in which the job runs.
    """
    clusters = values.get("clusters")
    if not isinstance(clusters, list) or not all(isinstance(each, dict) for each in clusters):
        return  # for pydantic to refuse
    names = [each.get("name") for each in clusters]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"configuration: two clusters are named {twice[0]!r}")
    for each in clusters:
        each["prometheus"] = {**values.get("prometheus", {}), **each.get("prometheus", {})}
        own = each.get("kubernetes", {"enabled": False})
        each["kubernetes"] = {**values.get("kubernetes", {}), **own}


def _read_file(path: Path | None) -> dict[str, Any]:
    """The TOML file; without a path ``gpureport.toml`` in this folder, if it is there."""
    if path is None and not DEFAULT_FILE.exists():
        return {}
    chosen = path or DEFAULT_FILE
    try:
        return tomllib.loads(chosen.read_text())
    except OSError as error:
        raise UsageError(f"{chosen} cannot be read ({error.strerror}); check --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{chosen} is no TOML: {error}") from None


def _apply_seed_names(values: dict[str, Any], environ: Mapping[str, str]) -> list[str]:
    """OpenCost's two names; a threshold outside (0, 1] falls back to 0.9 there, so it does here, with a warning."""
    warnings = []
    if (enabled := environ.get(_SEED_ENABLED)) is not None:
        _set(values, ["saturation", "enabled"], enabled)
    if (text := environ.get(_SEED_THRESHOLD)) is not None:
        threshold = _number(text)
        if threshold is None or not 0 < threshold <= 1:
            warnings.append(f"{_SEED_THRESHOLD}={text!r} is outside (0, 1]; {DEFAULT_MEMORY_THRESHOLD_RATIO} is used")
            threshold = DEFAULT_MEMORY_THRESHOLD_RATIO
        _set(values, ["saturation", "memory_threshold_ratio"], threshold)
    return warnings


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse(text: str) -> Any:
    """Lists and tables are written as JSON; anything else is text, which pydantic reads as the field's type."""
    if text[:1] in "[{":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _set(values: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise UsageError(f"configuration: {name!r} is not a section")
    values[names[-1]] = value


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"unknown key {where!r}; see docs/operations.md for those that exist"
    return f"{where} = {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"
