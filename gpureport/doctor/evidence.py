"""Evidence about a cluster, from servers or a lake, and the findings of checks on it: plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpureport.collect.state import Kind
from gpureport.values.catalog import FIGURES
from gpureport.values.series import Labels

RESOURCES = (
    r"nvidia_com_(gpu|mig).*|amd_com_(gpu|cpx|dpx|qpx|spx|tpx).*|gpu_intel_com_(i915|xe)|habana_ai_gaudi.*|google_com_tpu"
    r"|aliyun_com_gpu.*|(koordinator_sh|kubernetes_io|volcano_sh)_v?gpu.*|(aws_amazon|k8s_amazonaws|huawei|cambricon|hygon|dcu|metax_tech"
    r"|mthreads|enflame|iluvatar|kunlunxin|baidu|birentech|tencent|qualcomm|tenstorrent)_com_.+|(iluvatar|furiosa|rebellions)_ai_.+"
)
"""Regular expression of resource names of queries/functions/is_accelerator.sql, as kube-state-metrics writes them."""
_RESOURCE = re.compile(RESOURCES)
# Node Feature Discovery's pci-<vendor>.present and pci-<class>_<vendor>.present; not Intel's, whose graphics are in most servers.
_PCI_LABEL = re.compile(r"label_feature_node_kubernetes_io_pci_(?:\w+_)?(10de|1002)_present")
# gpu.nvidia.com, gaudi.intel.com, hami-core-gpu.project-hami.io; not compute-domain.nvidia.com, which allocates no GPU.
_DRIVER = re.compile(r"(?:[a-z0-9-]*gpu|gaudi|tpu)\..+")
_SHOWN = 5
_VENDORS = {"10de": "nvidia", "1002": "amd"}


def resource_vendor(resource: str) -> str:
    """Return the vendor of a resource: nvidia_com_gpu → nvidia."""
    return resource.removeprefix("gpu_").partition("_")[0]


def is_accelerator(resource: str) -> bool:
    """Return whether a resource is an accelerator that reports cover."""
    return _RESOURCE.fullmatch(resource) is not None


def is_accelerator_driver(driver: str) -> bool:
    """Return whether a DRA driver allocates accelerators that reports cover."""
    return _DRIVER.fullmatch(driver) is not None


def as_exported(name: str) -> str:
    """Return a resource's or label's name as kube-state-metrics writes it: nvidia.com/gpu → nvidia_com_gpu."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def node_of(labels: Mapping[str, str]) -> str:
    """Return the node of a series of kube-state-metrics, even if the scrape's own label replaced it."""
    return labels.get("exported_node") or labels.get("node", "")


def pci_vendor(labels: Mapping[str, str]) -> str:
    """Return the vendor of the accelerator in a node's PCI labels; '' for none."""
    for name, value in labels.items():
        if value == "true" and (found := _PCI_LABEL.fullmatch(name)):
            return _VENDORS[found[1]]
    return ""


def vendors(nodes: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return node → vendor, from the labels of nodes as kube-state-metrics writes them."""
    return {node_of(labels): vendor for labels in nodes if (vendor := pci_vendor(labels))}


def pci_labels(names: Iterable[str]) -> list[str]:
    """Return the label names that report accelerators in PCI slots."""
    return sorted(name for name in names if _PCI_LABEL.fullmatch(name))


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


Status = Literal["missing", "partial", "note", "ok"]


@dataclass(frozen=True)
class Remedy:
    """Exact lines to add, and their place."""

    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """A finding: what was read, what was found, which figures its absence costs, and what to add.

    ``missing`` costs figures on all devices, ``partial`` on some, ``note`` costs none.
    """

    code: str
    status: Status
    subject: str
    found: str
    costs: tuple[str, ...] = ()
    """Figures of the report that it makes unknown; ``<table>.*`` is a whole table."""
    add: tuple[Remedy, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether a report lacks data because of it."""
        return self.status in ("missing", "partial")


def verdict(findings: Iterable[Finding], subject: str, what: str = "a report") -> str:
    """Return one sentence on what a report (or another result) would lack."""
    losses = [finding for finding in findings if finding.is_loss]
    if not losses:
        return f"{what} from {subject} would be complete"
    everywhere = _costs(losses, "missing")
    somewhere = [cost for cost in _costs(losses, "partial") if cost not in everywhere]
    lacks = [*_counted(everywhere, "all", ""), *_counted(somewhere, "some", " on some devices")]
    return f"{what} from {subject} would lack {' and '.join(lacks)}"


def _costs(losses: Iterable[Finding], status: Status) -> list[str]:
    return list(dict.fromkeys(cost for finding in losses if finding.status == status for cost in finding.costs))


def _counted(costs: list[str], how_many: str, where: str) -> list[str]:
    """Return the losses: whole tables, columns that are not figures, and figures by number and name."""
    tables = [cost.removesuffix(".*") for cost in costs if cost.endswith(".*")]
    figures = [name for name in FIGURES if name in costs]
    others = [cost for cost in costs if not cost.endswith(".*") and cost not in FIGURES]
    found = [f"{how_many} rows of {', '.join(tables)}"] if tables else []
    found += [f"{name}{where}" for name in others]
    return found + ([f"{len(figures)} of {len(FIGURES)} figures{where} ({', '.join(figures)})"] if figures else [])


@dataclass(frozen=True)
class Carried:
    """A device signal on a node: its metric there, and the number of GPUs. A GPU with MIG instances counts once."""

    signal: str
    metric: str
    exporter: str
    host: str
    """Value of the exporter's host label; '' without one."""
    node: str
    """Value of the scrape's node label; '' without one."""
    model: str
    is_mig: bool
    device_count: int
    host_label: str = ""
    """Name of the label that has ``host``, if a server is read."""


@dataclass(frozen=True)
class KubeState:
    """State from kube-state-metrics; for nodes also from the API server."""

    series: Mapping[str, int] = field(default_factory=dict)
    """Number of series by metric."""
    allocatable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → accelerator resource (as kube-state-metrics writes it, nvidia_com_gpu) or DRA driver → count above 0."""
    hardware: Mapping[str, str] = field(default_factory=dict)
    """Node → vendor of an accelerator in its PCI labels or its capacity."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Accelerator resource → number of containers that request it."""
    nodes: frozenset[str] = frozenset()
    """Names of all known nodes."""
    is_relabelled: bool = False
    """Whether the scrape's labels replaced kube-state-metrics' own: a pod is then in ``exported_pod``."""
    has_snapshots: bool = False


@dataclass(frozen=True)
class Rhythm:
    """Scrape rhythm of at most one device of each exporter; None where it is unknown."""

    step_seconds: float | None = None
    fresh_ratio: float | None = None
    """Share of the power samples that differ from the previous sample."""
    reset_count: int = 0


@dataclass(frozen=True)
class ServerSeen:
    """Server from which samples come."""

    name: str
    read_path: str
    retention_days: float | None = None


@dataclass(frozen=True)
class Listing:
    """Result of listing one object of a kind on the API server."""

    kind: Kind
    version: str = ""
    """Version with its group, as the server names it: resource.k8s.io/v1."""
    refusal: str = ""
    """Message of the server where it refuses the list, else ''."""


@dataclass(frozen=True)
class ApiServer:
    """Lists and permissions of a Kubernetes API server."""

    url: str
    name: str
    """Name with its version, as far as the server shows it."""
    listings: tuple[Listing, ...] = ()
    """Listings of the kinds on the server; the other kinds are not installed."""
    dra_versions: tuple[str, ...] = ()
    """Versions of resource.k8s.io, the preferred one first; none where the server does not have it."""
    groups_not_served: tuple[str, ...] = ()
    """API groups, such as those of quota systems, that the server does not have."""
    groups_refusal: str = ""
    """Message of the server where it does not show its groups; DRA and quota objects are then not found."""

    def may_list(self, kind: Kind) -> bool:
        """Return whether the kind exists and may be listed."""
        return any(each.kind == kind and not each.refusal for each in self.listings)


@dataclass(frozen=True)
class Evidence:
    """All evidence about a cluster."""

    subject: str
    """Target as text: a URL and an instant, or a lake and a day."""
    carried: tuple[Carried, ...] = ()
    labels: tuple[Labels, ...] = ()
    """Label sets of device series: one metric of each exporter; on some nodes if there are many."""
    pods: tuple[Labels, ...] = ()
    """Label sets of kube_pod_info and of requests, for the pods that device series name."""
    kube: KubeState = KubeState()
    rhythm: Rhythm = Rhythm()
    server: ServerSeen | None = None
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Signals that have series but no value on some device: signal → reason → number of values left out there."""
    alternating_devices: int = 0
    """Number of devices whose labels name A, then B, then A again."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Node → number of GPUs that had data on the day before and have none; only of a day in a lake."""
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    """Accelerator metrics that are not in the catalog → number of series."""
    api: ApiServer | None = None
    has_telemetry: bool = True
    """False where only Kubernetes was read."""
