"""The servers of a cluster and the nightly job: connections, what to read and keep, and destinations of metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from gpureport.config.section import ClusterName, LabelName, Seconds, Section, formed
from gpureport.values.errors import UsageError
from gpureport.values.window import AGE


class Prometheus(Section):
    """Connection to Prometheus. Credentials, TLS and headers are only in promtool's HTTP client file, never here."""

    url: str = ""
    read_path: Literal["auto", "remote-read", "matrix", "victoria-metrics"] = "auto"
    match: dict[LabelName, str] = Field({})
    cluster_label: LabelName | Literal[""] = ""
    http_config_file: str = ""
    identity: Literal["", "aws", "google", "azure"] = ""
    read_timeout_seconds: Seconds = 120.0
    max_concurrency: int = Field(2, gt=0, le=64)


KubernetesSystem = Literal["dra", "kubernetes", "nos", "scheduler-plugins", "kueue", "koordinator", "volcano", "kai"]
"""Systems with objects other than nodes, namespaces and pods; ``kubernetes`` means its own resource quotas."""


class Kubernetes(Section):
    """Connection to the API server, and what to list; credentials come from the kubeconfig or the service account."""

    enabled: bool = True
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[Annotated[str, formed(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")], ...] = ()
    systems: tuple[KubernetesSystem, ...] = get_args(KubernetesSystem)


class ClusterSource(Section):
    """One of several clusters, with its servers; [prometheus] and [kubernetes] provide the settings that it leaves out."""

    name: ClusterName
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes(enabled=False)


class Export(Section):
    """Size of the parts in which a day is fetched, and the number of days that ``run`` reads again."""

    samples_per_group: int = Field(1_800_000, gt=0, le=4_000_000)
    keep_raw: bool = False
    backfill_days: int = Field(7, ge=0, le=3660)
    restate_days: int = Field(3, ge=0, le=366)


def _without_secrets(url: str) -> str:
    """Return a URL without credentials. The error does not repeat a wrong URL."""
    if "@" in url:
        raise UsageError("metrics.pushgateway_url must not contain credentials; give metrics.http_config_file")
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
        """Whether any destination is configured."""
        return bool(self.file or self.pushgateway_url)


_Age = Annotated[str, formed(AGE, "days, weeks or years, as 30d, 8w or 1y, up to 9999d or 99y")]


class Retention(Section):
    """Retention of samples and facts, such as 30d, 8w or 2y; unlimited where not set."""

    keep_samples: _Age = ""
    keep_facts: _Age = ""
