"""The servers of a cluster and the nightly job: how to reach them, what to read and keep, and where metrics go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from gpureport.config.section import ClusterName, LabelName, Seconds, Section, formed
from gpureport.values.errors import UsageError
from gpureport.values.window import AGE


class Prometheus(Section):
    """Connection to Prometheus; credentials, TLS and headers are in promtool's HTTP client file, never here."""

    url: str = ""
    read_path: Literal["auto", "remote-read", "matrix", "victoria-metrics"] = "auto"
    match: dict[LabelName, str] = Field({})
    cluster_label: LabelName | Literal[""] = ""
    http_config_file: str = ""
    identity: Literal["", "aws", "google", "azure"] = ""
    read_timeout_seconds: Seconds = 120.0
    max_concurrency: int = Field(2, gt=0, le=64)


KubernetesSystem = Literal["dra", "kubernetes", "nos", "scheduler-plugins", "kueue", "koordinator", "volcano", "kai"]
"""Systems with objects beside nodes, namespaces and pods; ``kubernetes`` is its own resource quotas."""


class Kubernetes(Section):
    """Connection to the API server, and its lists; credentials are the kubeconfig's or the service account's."""

    enabled: bool = True
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[Annotated[str, formed(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")], ...] = ()
    systems: tuple[KubernetesSystem, ...] = get_args(KubernetesSystem)


class ClusterSource(Section):
    """One of several clusters: its servers, with the sections [prometheus] and [kubernetes] as what they do not say."""

    name: ClusterName
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes(enabled=False)


class Export(Section):
    """Parts of a day for fetching, and the days that ``run`` reads back."""

    samples_per_group: int = Field(1_800_000, gt=0, le=4_000_000)
    keep_raw: bool = False
    backfill_days: int = Field(7, ge=0, le=3660)
    restate_days: int = Field(3, ge=0, le=366)


def _without_secrets(url: str) -> str:
    """A URL without credentials; one with them is not repeated."""
    if "@" in url:
        raise UsageError("metrics.pushgateway_url must not hold credentials; give metrics.http_config_file")
    if not re.fullmatch(r"(https?://[^/?#\s]+(/[^?#\s]*)?)?", url):
        raise UsageError("metrics.pushgateway_url is not the URL of a server; write it like http://pushgateway:9091")
    return url


def _no_folder(path: str) -> str:
    if path and Path(path).is_dir():
        raise ValueError("this is a folder; name a file in it")
    return path


class Metrics(Section):
    """Destinations of a run's metrics."""

    file: Annotated[str, AfterValidator(_no_folder)] = ""
    pushgateway_url: Annotated[str, AfterValidator(_without_secrets)] = ""
    http_config_file: str = ""

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be published."""
        return bool(self.file or self.pushgateway_url)


_Age = Annotated[str, formed(AGE, "days, weeks or years, as 30d, 8w or 1y, up to 9999d or 99y")]


class Retention(Section):
    """For how long samples and facts are kept, as 30d, 8w or 2y; without end where not set."""

    keep_samples: _Age = ""
    keep_facts: _Age = ""
