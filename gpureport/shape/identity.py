"""Whose series is it: device, workload, node and provenance, read from labels.

Workload labels and host labels by habit: dcgm-exporter's own, ``exported_*`` where target labels won (dcgm-exporter 27,
85, 144), host label renamed in dcgm-exporter 655. Missing and empty mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpureport.catalog import Catalog, Meaning
from gpureport.series import METRIC_LABEL, Labels


class DeviceKey(NamedTuple):
    """Identity of a GPU or MIG instance within its cluster."""

    device_uuid: str
    gpu_instance_id: str


class Workload(NamedTuple):
    """Who is named on a series; ``pod_uid`` is '' where the labels do not carry it."""

    namespace: str
    pod: str
    pod_uid: str
    container: str


class Provenance(NamedTuple):
    """Which scrape target a sample came through; copies of one value differ in it, or in the workload."""

    job: str
    instance: str
    replica: str


class DeviceLabels(NamedTuple):
    """What the labels say of the device itself."""

    node_name: str
    gpu_index: str
    gpu_device: str
    gpu_model: str
    gpu_instance_profile: str
    pci_bus_id: str
    driver_version: str


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


def identify(labels: Labels, catalog: Catalog) -> Identity | None:
    """Read a series' labels; None for a metric that the catalogue does not name, or a device value without a device."""
    meaning = catalog.by_metric.get(labels.get(METRIC_LABEL, ""))
    if meaning is None:
        return None
    uuid = _first(labels, "UUID", "uuid", "gpu_uuid")
    if meaning.is_device and not uuid:
        return None
    instance_id = labels.get("GPU_I_ID", "")
    holder = DeviceKey(uuid, instance_id) if uuid else None
    board = meaning.scope == "board"
    return Identity(
        labels=labels,
        meaning=meaning,
        device=DeviceKey(uuid, "") if board else holder if meaning.is_device else None,
        holder_device=holder if meaning.is_device else None,
        workload=_workload(labels),
        provenance=Provenance(
            labels.get("job", ""),
            labels.get("instance", ""),
            _first(labels, "prometheus_replica", "replica", "__replica__"),
        ),
        device_labels=_device_labels(labels, "" if board else instance_id),
    )


def _first(labels: Labels, *names: str) -> str:
    for name in names:  # a loop, not a generator: it runs for every series
        if value := labels.get(name):
            return value
    return ""


def _workload(labels: Labels) -> Workload:
    for prefix in ("exported_", ""):
        if pod := labels.get(f"{prefix}pod", ""):
            return Workload(
                labels.get(f"{prefix}namespace", ""),
                pod,
                _first(labels, "pod_uid", "uid"),
                labels.get(f"{prefix}container", ""),
            )
    return NOBODY


def _device_labels(labels: Labels, instance_id: str) -> DeviceLabels:
    return DeviceLabels(
        node_name=_first(labels, "Hostname", "hostname", "node", "instance"),
        gpu_index=labels.get("gpu", ""),
        gpu_device=labels.get("device", ""),
        gpu_model=_first(labels, "modelName", "model_name"),
        gpu_instance_profile=labels.get("GPU_I_PROFILE", "") if instance_id else "",
        pci_bus_id=labels.get("pci_bus_id", ""),
        driver_version=_first(labels, "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    )
