"""The servers of a cluster: how to reach them, and what to ask."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from gpureport.config.section import ClusterName, LabelName, Seconds, Section, formed


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
    retries: int = Field(9, ge=0, le=20)


KubernetesSystem = Literal["dra", "kubernetes", "nos", "scheduler-plugins", "kueue", "koordinator", "volcano", "kai"]
"""Systems with objects beside nodes, namespaces and pods; ``kubernetes`` is its own resource quotas."""


class Kubernetes(Section):
    """Connection to the API server, and its lists; credentials are the kubeconfig's or the service account's."""

    enabled: bool = True
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[Annotated[str, formed(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")], ...] = ()
    systems: tuple[KubernetesSystem, ...] = get_args(KubernetesSystem)
    read_timeout_seconds: Seconds = 60.0
    page_size: int = Field(500, gt=0, le=10_000)
    retries: int = Field(9, ge=0, le=20)


class ClusterSource(Section):
    """One of several clusters: its servers, with the sections [prometheus] and [kubernetes] as what they do not say."""

    name: ClusterName
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes(enabled=False)
