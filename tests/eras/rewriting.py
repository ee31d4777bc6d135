"""Each era's names and each habit of labels as a rewriting of the recorded series."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from eras.names import CAPACITY_MIB, DCGM_4_7, MIB, OLD_LABELS, OLD_NAMESPACE
from eras.recording import Series
from eras.renaming import Told, renamed


def as_recorded(series: Told) -> list[Series]:
    """Nothing changed."""
    return list(series)


def with_old_namespace(series: Told) -> list[Series]:
    """dcgm-exporter 1.x, or a later one with --use-old-namespace; it knew neither pod uids nor most custom fields."""
    return [
        each.without_labels("pod_uid").renamed_labels(OLD_LABELS) if each.is_gpu else each
        for each in renamed(series, OLD_NAMESPACE)
    ]


def with_empty_labels_when_idle(series: Told) -> list[Series]:
    """dcgm-exporter 2.x: workload labels are there and empty on an idle GPU; the bitmask has its older name."""
    names = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}
    empty = {"pod": "", "namespace": "", "container": ""}
    return [
        replace(each, metric=names.get(each.metric, each.metric), labels={**empty, **each.without_labels("pod_uid").labels})
        if each.is_gpu
        else each
        for each in series
    ]


def with_dcgm_4_7_names(series: Told) -> list[Series]:
    """dcgm-exporter 4.9 on DCGM 4.7: SI units, whole joules, ``hostname``, and the capacity as a default field."""
    labels = {"Hostname": "hostname", "DCGM_FI_DRIVER_VERSION": "DCGM_FI_SYSTEM_DRIVER_VERSION"}
    named = [each.renamed_labels(labels) if each.is_gpu else each for each in renamed(series, DCGM_4_7)]
    told = [_in_whole_joules(each) if each.metric.endswith("_JOULES_TOTAL") else each for each in named]
    return told + [_capacity(each) for each in told if each.metric == "DCGM_FI_DEV_FB_RESERVED_BYTES"]


def _in_whole_joules(series: Series) -> Series:
    return replace(series, points={time: float(math.floor(value)) for time, value in series.points.items()})


def _capacity(reserved: Series) -> Series:
    """An H200's memory in all: the largest used + free + reserved of the recording, 143,770 MiB - 1 of rounding."""
    return replace(reserved, metric="DCGM_FI_DEV_FB_CAPACITY_BYTES", points=dict.fromkeys(reserved.points, CAPACITY_MIB * MIB))


def with_ratios_in_percent(series: Told) -> list[Series]:
    """DCGM 4.6 with a custom CSV: the aliases say ratio and print whole percent."""
    names = {
        "DCGM_FI_DEV_GPU_UTIL": ("DCGM_FI_DEV_GPU_UTIL_RATIO", 1.0),
        "DCGM_FI_DEV_MEM_COPY_UTIL": ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1.0),
    }
    kept = {each.metric: (each.metric, 1.0) for each in series}
    return renamed(series, {**kept, **names})


def with_exported_labels(series: Told) -> list[Series]:
    """``honorLabels: false``: the target's labels win, so every series names the exporter's own pod."""
    exporter = {"pod": "nvidia-dcgm-exporter-7xk2p", "namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}
    scrape = {"service": "nvidia-dcgm-exporter", "endpoint": "gpu-metrics"}
    return [_relabelled(each, {**exporter, **scrape}) if each.is_gpu else each for each in series]


def with_exported_labels_of_an_unknown_exporter(series: Told) -> list[Series]:
    """The same where no name tells that the pod is an exporter's: only that siblings have ``exported_pod``."""
    exporter = {"pod": "telemetry-7xk2p", "namespace": "monitoring", "container": "main", "job": "hardware"}
    return [_relabelled(each, exporter) if each.is_gpu else each for each in series]


def _relabelled(series: Series, target: Mapping[str, str]) -> Series:
    exported = {name: f"exported_{name}" for name in ("pod", "namespace", "container")}
    return series.renamed_labels(exported).with_labels(**target)


def with_lower_case_hostname(series: Told) -> list[Series]:
    """dcgm-exporter 4.8.3 and later (655)."""
    return [each.renamed_labels({"Hostname": "hostname"}) if each.is_gpu else each for each in series]


def with_node_of_the_scrape(series: Told) -> list[Series]:
    """``--no-hostname``: only the scrape's own label names the node."""
    return [each.renamed_labels({"Hostname": "node"}) if each.is_gpu else each for each in series]


def with_uuids_without_prefix(series: Told) -> list[Series]:
    """UUIDs as nvidia_gpu_exporter prints them."""
    return [each.with_labels(UUID=each.labels["UUID"].removeprefix("GPU-")) if each.is_gpu else each for each in series]
