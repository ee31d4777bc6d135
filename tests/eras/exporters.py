"""The recording as exporters of other makes and of MIG instances would have told it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eras.holders import device_points, with_one_pod_named
from eras.names import AMD, BOARD_METRICS, CAPACITY_MIB, INSTANCE_METRICS, NVIDIA_SMI, NVIDIA_SMI_FLAGS
from eras.recording import WORKLOAD, Series
from eras.renaming import Told, scaled


def through_nvidia_smi(series: Told) -> list[Series]:
    """nvidia_gpu_exporter: a bare uuid is all that a series says; an info metric says the rest, and nobody names pods."""
    points = device_points(series)
    scrape = {"instance": "10.244.1.7:9835", "job": "nvidia-gpu-exporter", "node": "gpu-node-0"}
    uuid = next(each.labels["UUID"] for each in series if each.is_gpu).removeprefix("GPU-")
    labels = {"uuid": uuid, **scrape}
    told = [each for each in series if not each.is_gpu]
    for metric, (name, factor) in NVIDIA_SMI.items():
        told.append(Series(name, labels, scaled(points[metric], factor)))
    for name, bit in NVIDIA_SMI_FLAGS.items():
        flags = {time: float(int(mask) & bit != 0) for time, mask in points["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"].items()}
        told.append(Series(f"nvidia_smi_clocks_event_reasons_{name}", labels, flags))
    info = {"name": "NVIDIA H200", "index": "0", "driver_version": "580.159.04", "pci_bus_id": "00000000:00:06.0"}
    instants = dict.fromkeys(points["DCGM_FI_DEV_POWER_USAGE"], 1.0)
    return [*told, Series("nvidia_smi_gpu_info", {**labels, **info}, instants)]


def beside_nvidia_smi(series: Told) -> list[Series]:
    """dcgm-exporter and nvidia_gpu_exporter on one node: most signals come twice, by two names."""
    return [*series, *(each for each in through_nvidia_smi(series) if each.is_gpu)]


def through_amds_exporter(series: Told) -> list[Series]:
    """AMD device-metrics-exporter with its prefix, the trainer alone named: microjoules, MB, empty labels when idle."""
    told = [each for each in series if not each.is_gpu]
    for each in with_one_pod_named(series):
        named = {name: each.labels.get(name, "") for name in ("namespace", "pod", "container")}
        labels = {**_amd_labels(each.labels), **named}
        if each.metric in AMD:
            name, factor = AMD[each.metric]
            told.append(Series(name, labels, scaled(each.points, factor)))
        if each.metric == "DCGM_FI_DEV_FB_FREE":
            told.append(Series("amd_gpu_total_vram", labels, dict.fromkeys(each.points, float(CAPACITY_MIB))))
        if each.metric in ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK"):
            clock = "SYSTEM" if each.metric == "DCGM_FI_DEV_SM_CLOCK" else "MEMORY"
            told.append(Series("amd_gpu_clock", {**labels, "clock_type": f"GPU_CLOCK_TYPE_{clock}"}, each.points))
    return told


def _amd_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {
        "gpu_uuid": labels.get("UUID", ""),
        "gpu_id": labels.get("gpu", ""),
        "card_model": labels.get("modelName", ""),
        "hostname": labels.get("Hostname", ""),
        "gpu_partition_id": "0",
        "gpu_compute_partition_type": "spx",
        "instance": "10.244.1.7:5000",
        "job": "device-metrics-exporter",
    }


def with_copies_on_mig_instances(series: Told) -> list[Series]:
    """Two MIG instances: every board value stands on both, the trainer has all of the first and nobody the second."""
    told = [each for each in series if not each.is_gpu]
    points = device_points(series)
    trainer = next(each for each in series if each.pod == "train-llm-0" and each.metric == "DCGM_FI_DEV_POWER_USAGE")
    held = set(trainer.points)
    bare = trainer.without_labels(*WORKLOAD)
    first = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.71gb"}
    second = {"GPU_I_ID": "2", "GPU_I_PROFILE": "3g.71gb"}
    for metric in (*BOARD_METRICS, *INSTANCE_METRICS):
        named = {time: value for time, value in points[metric].items() if time in held}
        unnamed = {time: value for time, value in points[metric].items() if time not in held}
        told.append(replace(trainer, metric=metric, points=named).without_labels("vgpu").with_labels(**first))
        told.append(replace(bare, metric=metric, points=unnamed).with_labels(**first))
    copies = [replace(bare, metric=metric, points=points[metric]).with_labels(**second) for metric in BOARD_METRICS]
    return told + copies
