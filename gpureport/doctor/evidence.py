"""Evidence about a cluster, from servers or a lake, and the findings that checks make of it: plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpureport.collect.state import Kind
from gpureport.values.catalog import FIGURES
from gpureport.values.series import Labels

RESOURCES = (
    r"nvidia_com_(gpu|mig).*|amd_com_(gpu|cpx|dpx|qpx|spx|tpx).*|gpu_intel_com_(i915|xe)|habana_ai_gaudi.*|google_com_tpu"
    r"|aliyun_com_gpu.*|(koordinator_sh|kubernetes_io|volcano_sh)_v?gpu.*"
)
"""Resource names with everything but letters and digits written as an underscore; a regular expression."""
_RESOURCE = re.compile(RESOURCES)
# Node Feature Discovery's pci-<vendor>.present and pci-<class>_<vendor>.present; not Intel's, whose graphics are in most servers.
_PCI_LABEL = re.compile(r"label_feature_node_kubernetes_io_pci_(?:\w+_)?(10de|1002)_present")
# gpu.nvidia.com, gaudi.intel.com, hami-core-gpu.project-hami.io; not compute-domain.nvidia.com, which hands out no GPU.
_DRIVER = re.compile(r"(?:[a-z0-9-]*gpu|gaudi|tpu)\..+")
_VENDORS = {"10de": "nvidia", "1002": "amd"}


def resource_vendor(resource: str) -> str:
    """Vendor of a resource: nvidia_com_gpu → nvidia."""
    return resource.removeprefix("gpu_").partition("_")[0]


def is_accelerator(resource: str) -> bool:
    """Whether a resource is a device that a report is about."""
    return _RESOURCE.fullmatch(resource) is not None


def is_accelerator_driver(driver: str) -> bool:
    """Whether a DRA driver hands out devices that a report is about."""
    return _DRIVER.fullmatch(driver) is not None


def as_exported(name: str) -> str:
    """A resource's or label's name as kube-state-metrics writes it: nvidia.com/gpu → nvidia_com_gpu."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def node_of(labels: Mapping[str, str]) -> str:
    """The node that a series of kube-state-metrics is about, also where the scrape's own label displaced it."""
    return labels.get("exported_node") or labels.get("node", "")


def pci_vendor(labels: Mapping[str, str]) -> str:
    """Vendor of the accelerator in a node's PCI labels; '' for none."""
    for name, value in labels.items():
        if value == "true" and (found := _PCI_LABEL.fullmatch(name)):
            return _VENDORS[found[1]]
    return ""


def pci_labels(names: Iterable[str]) -> list[str]:
    """Those of the label names that report accelerators in PCI slots."""
    return sorted(name for name in names if _PCI_LABEL.fullmatch(name))


Status = Literal["missing", "partial", "note", "ok"]


@dataclass(frozen=True)
class Remedy:
    """Exact lines, and the place where they go."""

    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One row: what was read, what is there, what its absence costs and what to add.

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


@dataclass(frozen=True)
class Carried:
    """A device signal on a node: which metric carries it there, and for how many GPUs; a GPU with MIG instances counts once."""

    signal: str
    metric: str
    exporter: str
    host: str
    """As the exporter's host label has it; '' where there is none."""
    node: str
    """As the scrape's node label has it; '' where there is none."""
    model: str
    is_mig: bool
    device_count: int
    host_label: str = ""
    """The label that ``host`` is from, where a server is read."""


@dataclass(frozen=True)
class KubeState:
    """State from kube-state-metrics; of nodes also from the API server."""

    series: Mapping[str, int] = field(default_factory=dict)
    """Series by metric."""
    allocatable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → accelerator resource, as kube-state-metrics writes it (nvidia_com_gpu), or DRA driver → how many, where any."""
    hardware: Mapping[str, str] = field(default_factory=dict)
    """Node → vendor of an accelerator that its PCI labels show, or that it has by its capacity."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Accelerator resource → containers that request it."""
    nodes: frozenset[str] = frozenset()
    """Names of all nodes that are known."""
    is_relabelled: bool = False
    """The scrape's labels displaced kube-state-metrics' own: a pod is in ``exported_pod``."""
    has_snapshots: bool = False


@dataclass(frozen=True)
class Rhythm:
    """Scrape rhythm of one device of each exporter at most; None where it is unknown."""

    step_seconds: float | None = None
    fresh_ratio: float | None = None
    """Share of the power samples that differ from the one before."""
    reset_count: int = 0


@dataclass(frozen=True)
class ServerSeen:
    """Server that samples come from."""

    name: str
    read_path: str
    retention_days: float | None = None


@dataclass(frozen=True)
class Listing:
    """Result of listing one object of a kind that the API server has."""

    kind: Kind
    version: str = ""
    """As the server names it, group and all: resource.k8s.io/v1."""
    refusal: str = ""
    """Its words where the list may not be read, else ''."""


@dataclass(frozen=True)
class ApiServer:
    """Lists and permissions of a Kubernetes API server."""

    url: str
    name: str
    """With its version, as far as it shows."""
    listings: tuple[Listing, ...] = ()
    """Of kinds that it has; the others are not installed."""
    dra_versions: tuple[str, ...] = ()
    """Versions of resource.k8s.io, the preferred one first; none where it is not served."""
    groups_not_served: tuple[str, ...] = ()
    """API groups of quota systems and the like."""
    groups_refusal: str = ""
    """Its words where it does not show which groups it serves, so that DRA and quota objects are not found."""

    def may_list(self, kind: Kind) -> bool:
        """Whether the kind is there and its list may be read."""
        return any(each.kind == kind and not each.refusal for each in self.listings)


@dataclass(frozen=True)
class Evidence:
    """All that was seen."""

    subject: str
    """Target as text: a URL and an instant, or a lake and a day."""
    carried: tuple[Carried, ...] = ()
    labels: tuple[Labels, ...] = ()
    """Label sets of device series: one metric of each exporter, on some nodes where there are many."""
    pods: tuple[Labels, ...] = ()
    """Label sets of kube_pod_info and of requests, of the pods that are named on devices."""
    kube: KubeState = KubeState()
    rhythm: Rhythm = Rhythm()
    server: ServerSeen | None = None
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Signals of which some device has series and no value: reason → values left out on such devices."""
    alternating_devices: int = 0
    """Devices whose labels name A, then B, then A again."""
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    """Series of metrics that are of accelerators and not in the catalog, by metric."""
    api: ApiServer | None = None
    has_telemetry: bool = True
    """False where Kubernetes alone was read."""
