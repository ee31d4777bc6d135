"""Identity of a series: device, workload, node and provenance, read from labels.

Exporters spell the same thing in many ways; ``names.py`` holds the spellings. Missing and empty mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpureport.collect.shape import names
from gpureport.collect.shape.names import first
from gpureport.collect.shape.reading import PLAIN, Reading, place
from gpureport.values.catalog import Catalog, Meaning
from gpureport.values.series import Labels


class DeviceKey(NamedTuple):
    """Identity of a GPU or MIG instance within its cluster."""

    device_uuid: str
    gpu_instance_id: str


class Workload(NamedTuple):
    """Workload that a series names; ``pod_uid`` is '' where the labels do not have it."""

    namespace: str
    pod: str
    pod_uid: str
    container: str


class Provenance(NamedTuple):
    """Scrape target of a sample; copies of one value differ in it, or in the workload."""

    job: str
    instance: str
    replica: str


class DeviceLabels(NamedTuple):
    """Device as its labels describe it."""

    node_name: str
    gpu_index: str
    gpu_device: str
    gpu_model: str
    gpu_instance_profile: str
    pci_bus_id: str
    driver_version: str
    make: str


NOBODY = Workload("", "", "", "")


@dataclass(frozen=True)
class Identity:
    """All that a series' labels say."""

    labels: Labels
    meaning: Meaning
    device: DeviceKey | None
    """The key of the row that the value belongs to; None for what is not a device's."""
    holder_device: DeviceKey | None
    """The device or instance that the workload labels speak of: under MIG the instance, also on board values."""
    workload: Workload
    provenance: Provenance
    device_labels: DeviceLabels

    @property
    def is_owned(self) -> bool:
        """Whether a workload is named."""
        return self.workload.pod != ""

    @property
    def node_name_rank(self) -> int:
        """Rank of the source of a node's name: 0 DCGM's, 1 another exporter's, 2 the address that was scraped, 3 none."""
        if not self.device_labels.node_name:
            return 3
        is_scraped = self.device_labels.node_name == names.scraped_host(self.labels)
        return 2 if is_scraped else int(self.meaning.exporter != "dcgm-exporter")


def identify(labels: Labels, catalog: Catalog, reading: Reading = PLAIN) -> Identity | None:
    """Read a series' labels; None for a metric that the catalog does not name, or a device value without a device."""
    meaning = catalog.meaning(labels)
    if meaning is None:
        return None
    raw, labels = labels, catalog.spelled(labels)
    uuid = names.device_uuid(labels, meaning) if meaning.scope != "cluster" else ""
    if meaning.names_device and not uuid:
        return None
    instance_id = names.instance_id(labels, meaning) if uuid else ""
    holder = DeviceKey(uuid, instance_id) if uuid else None
    board = meaning.scope == "board"
    return Identity(
        labels=raw,
        meaning=meaning,
        device=(DeviceKey(uuid, "") if board else holder) if meaning.is_device else None,
        holder_device=holder,
        workload=_workload(labels, meaning, reading),
        provenance=Provenance(labels.get("job", ""), labels.get("instance", ""), first(labels, names.REPLICA)),
        device_labels=_device_labels(labels, meaning, instance_id),
    )


def _workload(labels: Labels, meaning: Meaning, reading: Reading) -> Workload:
    if meaning.is_of_host:
        return NOBODY
    if meaning.exporter == "kepler":  # whose labels pod and container, if any, are those of Kepler's own pod
        return Workload(labels.get("pod_namespace", ""), labels.get("pod_name", ""), labels.get("pod_id", ""), "")
    if pod := labels.get("exported_pod"):
        namespace, container = labels.get("exported_namespace", ""), labels.get("exported_container", "")
        return Workload(namespace, pod, first(labels, names.POD_UID), container)
    pod = first(labels, names.POD)
    if not pod or place(labels) in reading.exporters:
        return NOBODY
    if pod not in reading.requesting and names.is_exporter(labels, pod, labels.get("job", "") in reading.honoring):
        return NOBODY
    return Workload(first(labels, names.NAMESPACE), pod, first(labels, names.POD_UID), first(labels, names.CONTAINER))


def _device_labels(labels: Labels, meaning: Meaning, instance_id: str) -> DeviceLabels:
    if meaning.scope == "cluster":
        return DeviceLabels(names.node_name(labels), "", "", "", "", "", "", "")
    return DeviceLabels(
        node_name=names.node_name(labels),
        gpu_index=first(labels, names.INDEX),
        gpu_device=first(labels, names.DEVICE_FILE),
        gpu_model=labels.get("name", "") if meaning.exporter == "nvidia_gpu_exporter" else first(labels, names.MODEL),
        gpu_instance_profile=names.profile(labels, instance_id),
        pci_bus_id=first(labels, names.PCI),
        driver_version=first(labels, names.DRIVER),
        make=labels.get("make") or meaning.vendor,
    )
