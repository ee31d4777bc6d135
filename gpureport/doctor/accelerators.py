"""Kubernetes resources and node labels of accelerators, as kube-state-metrics writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

RESOURCES = r"nvidia_com_(gpu|mig).*|amd_com_gpu.*|gpu_intel_com_(i915|xe)|habana_ai_gaudi.*|google_com_tpu"
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
