"""The servers of a cluster: how to reach them, and what to ask."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from gpureport.config.section import ClusterName, LabelName, Seconds, Section, formed


class Prometheus(Section):
    """Connection to Prometheus; secrets are named by file or environment variable, never written here."""

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
    headers: dict[Annotated[str, formed(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", "the name of a header")], str] = Field({})
    match: dict[LabelName, str] = Field({})
    cluster_label: LabelName | Literal[""] = ""
    http_config_file: str = ""
    identity: Literal["", "aws", "google", "azure"] = ""
    connect_timeout_seconds: Seconds = 10.0
    read_timeout_seconds: Seconds = 120.0
    max_concurrency: int = Field(2, gt=0, le=64)
    retries: int = Field(9, ge=0, le=20)

    @model_validator(mode="after")
    def _has_both_halves(self) -> Prometheus:
        """A half of a pair would be sent as nobody, and refused by the server much later."""
        if bool(self.username) != bool(self.password_file or self.password_env):
            raise ValueError("username and password_file (or password_env) go together")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file")
        if self.identity and (self.username or self.bearer_token_file or self.bearer_token_env):
            raise ValueError("identity replaces a token or a user")
        return self


KubernetesSystem = Literal["dra", "kubernetes", "nos", "scheduler-plugins", "kueue", "koordinator", "volcano", "kai"]
"""Systems with objects beside nodes, namespaces and pods; ``kubernetes`` is its own resource quotas."""


class Kubernetes(Section):
    """Connection to the API server, and its lists; credentials are the kubeconfig's or the service account's."""

    enabled: bool = True
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[Annotated[str, formed(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")], ...] = ()
    systems: tuple[KubernetesSystem, ...] = get_args(KubernetesSystem)
    connect_timeout_seconds: Seconds = 10.0
    read_timeout_seconds: Seconds = 60.0
    page_size: int = Field(500, gt=0, le=10_000)
    retries: int = Field(9, ge=0, le=20)


class ClusterSource(Section):
    """One of several clusters: its servers, with the sections [prometheus] and [kubernetes] as what they do not say."""

    name: ClusterName
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes(enabled=False)
