"""The whole configuration: its sections, and what it is for each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from gpureport.config.findings import Suppression, Thresholds
from gpureport.config.meaning import Carbon, Compute, Link, Owners, Power, Prices, QuotaSystems, Report, Retired, Saturation
from gpureport.config.section import ClusterName, Section
from gpureport.config.servers import ClusterSource, Export, Kubernetes, Metrics, Prometheus, Retention
from gpureport.store import ObjectAddress, Place, Reach, parse_place
from gpureport.values.errors import UsageError
from gpureport.values.text.log import LogFormat


def _place(given: object) -> Place:
    if not isinstance(given, str | Path | ObjectAddress) or given == "":
        raise ValueError("write a folder, or s3://BUCKET/PREFIX")
    return parse_place(given)


ConfiguredPlace = Annotated[Place, BeforeValidator(_place)]
"""A folder or an address, as a text may name either."""


def _without_secrets(url: str) -> str:
    """A URL of a host; what is wrong is not repeated, for it may be a secret."""
    if not re.fullmatch(r"(https?://[^@/?#\s]+/?)?", url):
        raise UsageError("object_store.endpoint_url is http(s)://HOST[:PORT], without credentials and path; correct it")
    return url


class ObjectStore(Section):
    """Connection to the storage; credentials come from the environment, a profile or a role."""

    endpoint_url: Annotated[str, AfterValidator(_without_secrets)] = ""
    region: str = ""
    ca_file: str = ""

    def reach(self, environ: Mapping[str, str]) -> Reach:
        """These settings with what the environment adds: credentials, and where copies lie."""
        caches = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/") / ".cache"
        return Reach(**self.model_dump(), cache=Path(caches) / "gpureport", environ=dict(environ))


class Config(Section):
    """Everything that can be set; each section is documented in docs/operations.md."""

    cluster: ClusterName = "default"
    log_format: LogFormat = "text"
    lake: ConfiguredPlace = Path("lake")
    lake_delta: bool = False
    out: ConfiguredPlace = Path("out")
    object_store: ObjectStore = ObjectStore()
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
    thresholds: Thresholds = Thresholds()
    suppressions: tuple[Suppression, ...] = ()
    retired: tuple[Retired, ...] = ()
    signals: tuple[dict[str, str], ...] = ()
    labels: dict[str, str] = Field({})
    links: dict[str, Link] = Field({})

    def reached(self, environ: Mapping[str, str]) -> Config:
        """The same, with what the environment says of how object storage is reached."""
        return self.model_copy(update={name: self.reached_place(getattr(self, name), environ) for name in ("lake", "out")})

    def reached_place(self, place: Place, environ: Mapping[str, str]) -> Place:
        """A folder as it is, an address with how it is reached."""
        if isinstance(place, ObjectAddress):
            return replace(place, reach=self.object_store.reach(environ))
        return place

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
