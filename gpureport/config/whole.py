"""The whole configuration: its sections, and what it is for each cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from gpureport.config.findings import Suppression, Thresholds
from gpureport.config.meaning import Carbon, Compute, Link, Owners, Power, Prices, QuotaSystems, Report, Retired, Saturation
from gpureport.config.night import Export, Metrics, Retention
from gpureport.config.section import ClusterName, Section
from gpureport.config.servers import ClusterSource, Kubernetes, Prometheus
from gpureport.config.storage import ConfiguredPlace, ObjectStore
from gpureport.store import ObjectAddress, Place
from gpureport.values.errors import UsageError
from gpureport.values.text.log import LogFormat


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
