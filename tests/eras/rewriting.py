"""Each era and label habit as a rewriting of the recorded series.

Names and units are those of DCGM's field list and dcgm-exporter's CSV files of the era; habits are those that scrape
configurations, replicas and restarts bring about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eras.recording import WORKLOAD, Series

MIB = 1048576.0
Renaming = Mapping[str, tuple[str, float]]
"""Old name → the era's name, and what the old value is multiplied by."""

OLD_NAMESPACE: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("dcgm_power_usage", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("dcgm_total_energy_consumption", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("dcgm_gpu_utilization", 1),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("dcgm_mem_copy_utilization", 1),
    "DCGM_FI_DEV_FB_USED": ("dcgm_fb_used", 1),
    "DCGM_FI_DEV_FB_FREE": ("dcgm_fb_free", 1),
    "DCGM_FI_DEV_SM_CLOCK": ("dcgm_sm_clock", 1),
    "DCGM_FI_DEV_MEM_CLOCK": ("dcgm_memory_clock", 1),
    "DCGM_FI_DEV_GPU_TEMP": ("dcgm_gpu_temp", 1),
    "DCGM_FI_DEV_XID_ERRORS": ("dcgm_xid_errors", 1),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("dcgm_pcie_replay_counter", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("dcgm_fi_prof_gr_engine_active", 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("dcgm_fi_prof_pipe_tensor_active", 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dcgm_fi_prof_dram_active", 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("dcgm_fi_prof_pcie_tx_bytes", 1),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("dcgm_fi_prof_pcie_rx_bytes", 1),
}
OLD_LABELS = {"UUID": "uuid", "pod": "pod_name", "namespace": "pod_namespace", "container": "container_name"}

DCGM_4_7: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("DCGM_FI_DEV_BOARD_POWER_WATTS", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3),
    "DCGM_FI_DEV_GPU_UTIL": ("DCGM_FI_DEV_GPU_UTIL_RATIO", 1e-2),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1e-2),
    "DCGM_FI_DEV_FB_USED": ("DCGM_FI_DEV_FB_USED_BYTES", MIB),
    "DCGM_FI_DEV_FB_FREE": ("DCGM_FI_DEV_FB_FREE_BYTES", MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("DCGM_FI_DEV_FB_RESERVED_BYTES", MIB),
    "DCGM_FI_DEV_SM_CLOCK": ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6),
    "DCGM_FI_DEV_GPU_TEMP": ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1),
    "DCGM_FI_DEV_XID_ERRORS": ("DCGM_FI_DEV_XID_ERROR", 1),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1),
    "DCGM_FI_PROF_SM_ACTIVE": ("DCGM_FI_PROF_SM_UTIL_RATIO", 1),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 1),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1),
    "DCGM_FI_DEV_POWER_VIOLATION": ("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": ("DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", 1e-9),
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": ("DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", 1e-9),
}

NVIDIA_SMI: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("nvidia_smi_power_draw_watts", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("nvidia_smi_energy_joules_total", 1e-3),
    "DCGM_FI_DEV_GPU_UTIL": ("nvidia_smi_utilization_gpu_ratio", 1e-2),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("nvidia_smi_utilization_memory_ratio", 1e-2),
    "DCGM_FI_DEV_FB_USED": ("nvidia_smi_memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE": ("nvidia_smi_memory_free_bytes", MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("nvidia_smi_memory_reserved_bytes", MIB),
    "DCGM_FI_DEV_SM_CLOCK": ("nvidia_smi_clocks_current_sm_clock_hz", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("nvidia_smi_clocks_current_memory_clock_hz", 1e6),
    "DCGM_FI_DEV_GPU_TEMP": ("nvidia_smi_temperature_gpu", 1),
}
NVIDIA_SMI_FLAGS = {
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}

BOARD_METRICS = (
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
)
INSTANCE_METRICS = (
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
)

Told = Sequence[Series]


def as_recorded(series: Told) -> list[Series]:
    """Nothing changed."""
    return list(series)


def with_old_namespace(series: Told) -> list[Series]:
    """dcgm-exporter 1.x, or a later one with --use-old-namespace; it knew neither pod uids nor most custom fields."""
    return [
        each.without_labels("pod_uid").renamed_labels(OLD_LABELS) if each.is_gpu else each
        for each in _renamed(series, OLD_NAMESPACE)
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
    renamed = [each.renamed_labels(labels) if each.is_gpu else each for each in _renamed(series, DCGM_4_7)]
    told = [_in_whole_joules(each) if each.metric.endswith("_JOULES_TOTAL") else each for each in renamed]
    return told + [_capacity(each) for each in told if each.metric == "DCGM_FI_DEV_FB_RESERVED_BYTES"]


def _in_whole_joules(series: Series) -> Series:
    return replace(series, points={time: float(math.floor(value)) for time, value in series.points.items()})


def _capacity(reserved: Series) -> Series:
    """An H200's memory in all: the largest used + free + reserved of the recording, 143,770 MiB - 1 of rounding."""
    return replace(reserved, metric="DCGM_FI_DEV_FB_CAPACITY_BYTES", points=dict.fromkeys(reserved.points, CAPACITY_MIB * MIB))


CAPACITY_MIB = 143_770


def with_ratios_in_percent(series: Told) -> list[Series]:
    """DCGM 4.6 with a custom CSV: the aliases say ratio and print whole percent."""
    names = {
        "DCGM_FI_DEV_GPU_UTIL": ("DCGM_FI_DEV_GPU_UTIL_RATIO", 1.0),
        "DCGM_FI_DEV_MEM_COPY_UTIL": ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1.0),
    }
    kept = {each.metric: (each.metric, 1.0) for each in series}
    return _renamed(series, {**kept, **names})


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


def through_two_replicas(series: Told) -> list[Series]:
    """Two Prometheus servers of one name, their samples at equal instants: every series twice."""
    return [each.with_labels(prometheus_replica=f"prometheus-{number}") for number in (0, 1) for each in series]


def through_two_replicas_with_outages(series: Told) -> list[Series]:
    """The same, each of them down for a while, never both."""
    first_ms = min(time for each in series for time in each.points)
    told = []
    for number, (down, up) in enumerate([(60_000, 80_000), (200_000, 230_000)]):
        for each in series:
            kept = {time: value for time, value in each.points.items() if not first_ms + down <= time < first_ms + up}
            told.append(replace(each, points=kept).with_labels(prometheus_replica=f"prometheus-{number}"))
    return [each for each in told if each.points]


def through_two_jobs(series: Told) -> list[Series]:
    """One exporter scraped by two jobs, of which one lets the target's labels win."""
    relabelled = [each.with_labels(job="gpu-operator") for each in with_exported_labels(series) if each.is_gpu]
    return [*series, *relabelled]


def through_two_servers(series: Told) -> list[Series]:
    """Two Prometheus servers that scrape half a second apart: every value twice, at two instants."""
    late = [replace(each, points={time + 500: value for time, value in each.points.items()}) for each in series]
    return [
        *(each.with_labels(prometheus_replica="prometheus-0") for each in series),
        *(each.with_labels(prometheus_replica="prometheus-1") for each in late),
    ]


def with_the_last_pod_named(series: Told) -> list[Series]:
    """Without virtual GPUs a device has one series, and it is named after one of its pods, another at each scrape."""
    return _one_series_per_name(series, _in_turn(holders_at(series)))


def _in_turn(holders: Mapping[int, list[str]]) -> dict[int, str]:
    """One holder by instant: who comes or goes then, else who was not named for longest."""
    named: dict[int, str] = {}
    last_named: dict[str, int] = {}
    times = sorted(holders)
    for position, time in enumerate(times):
        before = holders[times[position - 1]] if position else []
        after = holders[times[position + 1]] if position + 1 < len(times) else []
        changing = [pod for pod in holders[time] if pod not in before or pod not in after]
        named[time] = min(changing or holders[time] or [""], key=lambda pod: last_named.get(pod, 0))
        last_named[named[time]] = time
    return named


def with_one_pod_named(series: Told) -> list[Series]:
    """Without virtual GPUs, and the kubelet's order puts the longest-lived pod last: the others are never named."""
    holders = holders_at(series)
    first = next(pods[0] for _, pods in sorted(holders.items()) if pods)
    return _one_series_per_name(series, {time: first if first in pods else "" for time, pods in holders.items()})


def holders_at(series: Told) -> dict[int, list[str]]:
    """The pods that hold the device at each instant, by the virtual-GPU copies of its power."""
    found: dict[int, list[str]] = {}
    for each in series:
        if each.metric == "DCGM_FI_DEV_POWER_USAGE":
            for time in each.points:
                found.setdefault(time, []).extend([each.pod] if each.pod else [])
    return found


def _one_series_per_name(series: Told, named: Mapping[int, str]) -> list[Series]:
    """One device series of each metric, cut into a label set for each name that it takes."""
    labels = {each.pod: each.without_labels("vgpu", "pod_uid").labels for each in series if each.is_gpu}
    told = [each for each in series if not each.is_gpu]
    for metric, points in device_points(series).items():
        for pod in dict.fromkeys(named.values()):
            mine = {time: value for time, value in points.items() if named[time] == pod}
            told += [Series(metric, labels[pod], mine)] if mine else []
    return told


def device_points(series: Told) -> dict[str, dict[int, float]]:
    """The device's own values by metric: of GPU_UTIL and FB_USED those without a pod, of the rest any copy."""
    found: dict[str, dict[int, float]] = {}
    for each in sorted(filter(lambda one: one.is_gpu, series), key=lambda one: one.pod != ""):
        is_the_pods = each.pod and each.metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
        if not is_the_pods:
            points = found.setdefault(each.metric, {})
            points |= {time: value for time, value in each.points.items() if time not in points}
    return {metric: dict(sorted(points.items())) for metric, points in found.items()}


def with_a_restarted_exporter(series: Told) -> list[Series]:
    """In the middle a newer exporter takes over, as another scrape target and with other labels."""
    middle = _middle(series)
    told = []
    for each in series:
        if not each.is_gpu:
            told.append(each)
            continue
        restarted = each.between(middle, _NEVER).renamed_labels({"Hostname": "hostname"})
        told += [each.between(0, middle), restarted.with_labels(instance="10.244.1.31:9400", service="dcgm")]
    return [each for each in told if each.points]


def with_exporters_that_overlap(series: Told) -> list[Series]:
    """A rolling update: for five seconds the old exporter and the new one are both scraped."""
    middle = _middle(series)
    told = []
    for each in series:
        new = each.between(middle, _NEVER).with_labels(instance="10.244.1.31:9400")
        told += [each.between(0, middle + 5000), new] if each.is_gpu else [each]
    return [each for each in told if each.points]


def with_another_driver(series: Told) -> list[Series]:
    """The driver's version changes in the middle, and with it the labels of every series."""
    middle = _middle(series)
    told = []
    for each in series:
        after = each.between(middle, _NEVER)
        told += [each.between(0, middle), after.with_labels(DCGM_FI_DRIVER_VERSION=LATER_DRIVER)] if each.is_gpu else [each]
    return [each for each in told if each.points]


LATER_DRIVER = "580.167.08"
_NEVER = 1 << 60


def _middle(series: Iterable[Series]) -> int:
    times = sorted({time for each in series for time in each.points})
    return times[len(times) // 2]


def through_nvidia_smi(series: Told) -> list[Series]:
    """nvidia_gpu_exporter: a bare uuid is all that a series says; an info metric says the rest, and nobody names pods."""
    points = device_points(series)
    scrape = {"instance": "10.244.1.7:9835", "job": "nvidia-gpu-exporter", "node": "gpu-node-0"}
    uuid = next(each.labels["UUID"] for each in series if each.is_gpu).removeprefix("GPU-")
    labels = {"uuid": uuid, **scrape}
    told = [each for each in series if not each.is_gpu]
    for metric, (name, factor) in NVIDIA_SMI.items():
        told.append(Series(name, labels, _scaled(points[metric], factor)))
    for name, bit in NVIDIA_SMI_FLAGS.items():
        flags = {time: float(int(mask) & bit != 0) for time, mask in points["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"].items()}
        told.append(Series(f"nvidia_smi_clocks_event_reasons_{name}", labels, flags))
    info = {"name": "NVIDIA H200", "index": "0", "driver_version": "580.159.04", "pci_bus_id": "00000000:00:06.0"}
    instants = dict.fromkeys(points["DCGM_FI_DEV_POWER_USAGE"], 1.0)
    return [*told, Series("nvidia_smi_gpu_info", {**labels, **info}, instants)]


def beside_nvidia_smi(series: Told) -> list[Series]:
    """dcgm-exporter and nvidia_gpu_exporter on one node: most signals come twice, by two names."""
    return [*series, *(each for each in through_nvidia_smi(series) if each.is_gpu)]


AMD: Renaming = {
    "DCGM_FI_DEV_POWER_USAGE": ("amd_gpu_package_power", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("amd_gpu_energy_consumed", 1000),
    "DCGM_FI_DEV_GPU_UTIL": ("amd_gpu_gfx_activity", 1),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("amd_gpu_umc_activity", 1),
    "DCGM_FI_DEV_FB_USED": ("amd_gpu_used_vram", 1),
    "DCGM_FI_DEV_FB_FREE": ("amd_gpu_free_vram", 1),
    "DCGM_FI_DEV_GPU_TEMP": ("amd_gpu_junction_temperature", 1),
}


def through_amds_exporter(series: Told) -> list[Series]:
    """AMD device-metrics-exporter with its prefix, the trainer alone named: microjoules, MB, empty labels when idle."""
    told = [each for each in series if not each.is_gpu]
    for each in with_one_pod_named(series):
        named = {name: each.labels.get(name, "") for name in ("namespace", "pod", "container")}
        labels = {**_amd_labels(each.labels), **named}
        if each.metric in AMD:
            name, factor = AMD[each.metric]
            told.append(Series(name, labels, _scaled(each.points, factor)))
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


def _renamed(series: Told, names: Renaming) -> list[Series]:
    """Series under the era's names and in its units; what it has no name for is left out."""
    told = [each for each in series if not each.is_gpu]
    for each in series:
        if each.is_gpu and each.metric in names:
            name, factor = names[each.metric]
            told.append(replace(each, metric=name, points=_scaled(each.points, factor)))
    return told


def _scaled(points: Mapping[int, float], factor: float) -> dict[int, float]:
    """In the era's unit, with the six decimals that exporters print."""
    return {time: value if factor == 1 else round(value * factor, 6) for time, value in points.items()}
