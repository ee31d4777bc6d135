"""What a check says, and what its code means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpureport.catalog.figures import FIGURES

Status = Literal["missing", "partial", "note", "ok"]

CHECKS = {
    "device_series": "whether any exporter's device series are there at all",
    "signal": "whether a device signal that figures need is there, from which metric, on how many devices",
    "values_left_out": "a signal that came, but none of whose values could be believed (lake only)",
    "signal_conditional": "a signal whose absence does not have to mean that anything is missing",
    "unread_metrics": "metrics of accelerators, by their names, that the catalog does not know (server only)",
    "not_on_model": "a signal that GPUs of this model cannot have, whatever is configured",
    "virtual_gpu": "a signal of the board that a guest of a virtual GPU cannot read; the exporter on its host can",
    "pod_labels": "whether the series of a device name the workload that holds it",
    "exporter_without_pods": "an exporter that never names workloads",
    "target_labels_win": "the scrape's own pod label pushed the workload's to exported_pod (honorLabels: false)",
    "pod_uid": "whether workloads are named with the pod's uid, so that two pods of one name are told apart",
    "shared_one_owner": "a GPU handed out several times, whose labels name one holder at a time",
    "alternating_owner": "labels that alternate between holders: the last pod wins, or the kubelet failed (lake only)",
    "claim_labels": "pods with resource claims whose devices carry no dra_* labels",
    "virtual_gpus_hide_claims": "virtual-GPU mode and resource claims together: the exporter then attributes no claims",
    "host_label": "whether the host label is a node's name, and not the exporter pod's",
    "node_without_exporter": "a node with allocatable accelerators that no exporter reports",
    "hardware_without_driver": "a node with an accelerator in its PCI slots or its capacity, and none allocatable",
    "kube_state_metrics": "whether kube-state-metrics is scraped",
    "kube_state_series": "a series of kube-state-metrics that is missing",
    "node_labels": "whether kube-state-metrics lets node labels through",
    "claim_series": "whether kube-state-metrics reports resource claims (from 2.20 on)",
    "kubernetes_server": "which Kubernetes API server answers, and its version",
    "kubernetes_list": "whether a list of the cluster's state may be read (nodes, pods, claims, quotas, …)",
    "kubernetes_groups": "which API groups the cluster has, and whether it lists them",
    "claim_version": "which versions of resource.k8s.io (DRA) are served, and which one is read",
    "server": "which server answers, and how its samples are fetched",
    "retention": "whether the server keeps samples for as long as missing days are filled in",
    "replicas": "the same device scraped through several replicas or jobs",
    "scrape_interval": "how far apart samples are, and whether each brings a new value",
    "counter_reset": "energy counters that were reset",
}
"""The stable codes of ``gpureport doctor``, each with what it looks at."""


@dataclass(frozen=True)
class Remedy:
    """Exact lines, and the place where they go."""

    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what is there, what its absence costs and what to add.

    ``missing`` costs its figures on all devices, ``partial`` on some, ``note`` costs none.
    """

    code: str
    status: Status
    subject: str
    found: str
    costs: tuple[str, ...] = ()
    """Figures of the report that are unknown because of it; ``<table>.*`` for all of a table."""
    add: tuple[Remedy, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether a report lacks something because of it."""
        return self.status in ("missing", "partial")


def verdict(findings: Iterable[Finding], subject: str, what: str = "a report") -> str:
    """One sentence: what a report (or whatever else is made of it) would lack."""
    losses = [finding for finding in findings if finding.is_loss]
    if not losses:
        return f"{what} from {subject} would be whole"
    everywhere = _costs(losses, "missing")
    somewhere = [cost for cost in _costs(losses, "partial") if cost not in everywhere]
    lacks = [*_counted(everywhere, "all", ""), *_counted(somewhere, "some", " on some devices")]
    return f"{what} from {subject} would lack {' and '.join(lacks)}"


def _costs(losses: Iterable[Finding], status: Status) -> list[str]:
    return list(dict.fromkeys(cost for finding in losses if finding.status == status for cost in finding.costs))


def _counted(costs: list[str], how_many: str, where: str) -> list[str]:
    """Rows of whole tables, columns that are no figures, and figures by number and name."""
    tables = [cost.removesuffix(".*") for cost in costs if cost.endswith(".*")]
    figures = [name for name in FIGURES if name in costs]
    others = [cost for cost in costs if not cost.endswith(".*") and cost not in FIGURES]
    found = [f"{how_many} rows of {', '.join(tables)}"] if tables else []
    found += [f"{name}{where}" for name in others]
    return found + ([f"{len(figures)} of {len(FIGURES)} figures{where} ({', '.join(figures)})"] if figures else [])
