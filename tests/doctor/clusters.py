"""Small clusters as OpenMetrics, each at its own instant of one server: two nodes with two H200 each, unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from prometheus.samples import text_of

from gpureport.values.series import Labels
from gpureport.values.window import to_ms

STEP_SECONDS = 30
SAMPLES = 11

# etc/default-counters.csv and its dcp-metrics-included twin of 4.8.4, by hand.
DEFAULT_CSV = (
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_ENC_UTIL",
    "DCGM_FI_DEV_DEC_UTIL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
)
CUSTOM_ROWS = (
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
    "DCGM_FI_DEV_PCIE_LINK_GEN",
    "DCGM_FI_DEV_PCIE_LINK_WIDTH",
)
PROFILING = tuple(name for name in (*DEFAULT_CSV, *CUSTOM_ROWS) if "_PROF_" in name)

Kube = tuple[tuple[Labels, int], ...]
Relabel = Callable[[dict[str, str]], Labels]


@dataclass(frozen=True)
class Cluster:
    """What is scraped of a small cluster."""

    metrics: tuple[str, ...] = DEFAULT_CSV
    on_node: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Other metrics than ``metrics`` on a node."""
    relabel: Relabel = dict
    """What becomes of a device series' labels."""
    kube: Kube = ()
    """Series of kube-state-metrics, and the value of all their samples."""
    models: dict[str, str] = field(default_factory=dict)
    fresh_every: int = 1
    """A new value with every so many samples."""
    resets: bool = False

    def text(self, ends_at: datetime) -> str:
        """OpenMetrics of five minutes that end at the instant."""
        times = [to_ms(ends_at) - 1000 * STEP_SECONDS * back for back in reversed(range(SAMPLES))]
        values = [str(100 + number // self.fresh_every) for number in range(SAMPLES)]
        if self.resets:
            values[-3:] = ["1", "2", "3"]
        rows = [(labels, values) for labels in self._device_series()] + [
            (labels, [str(value)] * SAMPLES) for labels, value in self.kube
        ]
        return text_of((labels, list(zip(times, numbers, strict=True))) for labels, numbers in rows)

    def _device_series(self) -> Iterator[Labels]:
        metrics = dict.fromkeys([*self.metrics, *(name for names in self.on_node.values() for name in names)])
        for metric in metrics:
            for node in ("n1", "n2"):
                for index in ("0", "1"):
                    if metric in self.on_node.get(node, self.metrics):
                        yield self.relabel(self._labels(metric, node, index))

    def _labels(self, metric: str, node: str, index: str) -> dict[str, str]:
        return {
            "__name__": metric,
            "gpu": index,
            "UUID": f"GPU-{node}-{index}",
            "device": f"nvidia{index}",
            "modelName": self.models.get(node, "NVIDIA H200"),
            "Hostname": node,
            "namespace": "team",
            "pod": f"train-{node}-{index}",
            "container": "main",
            "instance": f"10.0.0.{node[1:]}:9400",
            "job": "dcgm-exporter",
        }


def kube_state(*more: Labels, nodes: str = "n1 n2", per_node: int = 2, resource: str = "nvidia_com_gpu") -> Kube:
    """What kube-state-metrics tells of a pod and of nodes with accelerators."""
    pod = {"namespace": "team", "pod": "train-n1-0", "uid": "u1"}
    series: list[Labels] = [
        {"__name__": "kube_pod_info", **pod, "node": "n1"},
        {"__name__": "kube_pod_created", **pod},
        {"__name__": "kube_pod_completion_time", **pod},
        {"__name__": "kube_pod_status_phase", **pod, "phase": "Running"},
        {"__name__": "kube_pod_container_resource_requests", **pod, "container": "main", "resource": resource},
        {"__name__": "kube_pod_container_resource_requests", **pod, "container": "main", "resource": "cpu"},
    ]
    allocatable: list[Labels] = [
        {"__name__": "kube_node_status_allocatable", "node": node, "resource": resource} for node in nodes.split()
    ]
    series += [{"__name__": "kube_node_info", "node": node} for node in (*nodes.split(), "cpu-1")]
    ready = {"__name__": "kube_node_status_condition", "condition": "Ready", "status": "true"}
    series += [{**ready, "node": node} for node in nodes.split()]
    cordons: list[Labels] = [{"__name__": "kube_node_spec_unschedulable", "node": node} for node in nodes.split()]
    slots: list[Labels] = [{"__name__": "kube_node_labels", "node": node, PCI_LABEL: "true"} for node in nodes.split()]
    amounts = (*((labels, per_node) for labels in allocatable), *((labels, 0) for labels in cordons))
    return (*((labels, 1) for labels in [*series, *slots, *more]), *amounts)


PCI_LABEL = "label_feature_node_kubernetes_io_pci_10de_present"
CLAIM: Labels = {"__name__": "kube_pod_resourceclaim_info", "namespace": "team", "pod": "train-n1-0", "claim_name": "gpu"}
_WORKLOAD = ("namespace", "pod", "container")


def without_workload(labels: dict[str, str]) -> Labels:
    """The Kubernetes mapping is off."""
    return {name: value for name, value in labels.items() if name not in _WORKLOAD}


def target_labels_win(labels: dict[str, str]) -> Labels:
    """honorLabels: false, the workload goes to exported_*."""
    own = {"namespace": "gpu-operator", "pod": f"nvidia-dcgm-exporter-{labels['Hostname']}x7k", "container": "exporter"}
    return {**labels, **{f"exported_{name}": labels[name] for name in _WORKLOAD}, **own}


def with_labels(**more: str) -> Relabel:
    """Labels on every device series."""
    return lambda labels: {**labels, **more}


def named_by_pod(labels: dict[str, str]) -> Labels:
    """NODE_NAME is not set in the exporter's pod."""
    return {**labels, "Hostname": f"nvidia-dcgm-exporter-{labels['Hostname']}x7k"}


def newer_host_label(labels: dict[str, str]) -> Labels:
    """dcgm-exporter 4.8.3 and newer."""
    host = labels.pop("Hostname")
    return {**labels, "hostname": host}


def split_in_two(labels: dict[str, str]) -> Labels:
    """Each physical GPU is one of two MIG instances of its node's only GPU."""
    return {**labels, "UUID": f"GPU-{labels['Hostname']}", "GPU_I_ID": labels["gpu"], "GPU_I_PROFILE": "3g.71gb"}


def split_amd_card() -> Kube:
    """One MI300X in two partitions: power on both, 0 on the second, and energy on the first alone."""
    card = {
        "serial_number": "S1",
        "gpu_id": "0",
        "card_model": "MI300X",
        "hostname": "n1",
        "namespace": "",
        "pod": "",
        "container": "",
    }
    first, second = ({**card, "gpu_partition_id": part, "gpu_compute_partition_type": "dpx"} for part in "01")
    return (
        ({"__name__": "gpu_package_power", **first}, 500),
        ({"__name__": "gpu_package_power", **second}, 0),
        ({"__name__": "gpu_energy_consumed", **first}, 7_000_000),
        ({"__name__": "gpu_used_vram", **first}, 100),
        ({"__name__": "gpu_used_vram", **second}, 100),
        ({"__name__": "gpu_clock", **card, "gpu_partition_id": "0", "clock_type": "GPU_CLOCK_TYPE_SYSTEM"}, 2100),
        ({"__name__": "memory_used", "instance": "redis:9121"}, 5),  # no GKE device plugin's: it names no accelerator
    )


FULL_CSV = (*DEFAULT_CSV, *CUSTOM_ROWS)
WHOLE = Cluster(FULL_CSV, relabel=with_labels(pod_uid="u1"), kube=kube_state())

CLUSTERS = {
    "default csv": Cluster(kube=kube_state()),
    "whole": WHOLE,
    "no labels": Cluster(FULL_CSV, relabel=without_workload, kube=kube_state(resource="nvidia_com_gpu_shared")),
    "honorLabels false": Cluster(FULL_CSV, relabel=target_labels_win, kube=kube_state()),
    "no kube-state-metrics": Cluster(FULL_CSV),
    "no profiling on n2": Cluster(
        FULL_CSV,
        on_node={"n2": tuple(name for name in FULL_CSV if name not in PROFILING)},
        models={"n2": "NVIDIA L40S"},
        kube=kube_state(),
    ),
    "no error yet": Cluster(
        tuple(name for name in FULL_CSV if name != "DCGM_FI_DEV_XID_ERRORS"), relabel=newer_host_label, kube=kube_state()
    ),
    "time slicing": Cluster(FULL_CSV, kube=kube_state(per_node=8)),
    "claims": Cluster(FULL_CSV, kube=kube_state(CLAIM)),
    "claims and virtual GPUs": Cluster(FULL_CSV, relabel=with_labels(vgpu="0"), kube=kube_state(CLAIM)),
    "silent nodes": Cluster(
        FULL_CSV, kube=kube_state({"__name__": "kube_node_labels", "node": "n4", PCI_LABEL: "true"}, nodes="n1 n2 n3")
    ),
    "host is a pod": Cluster(FULL_CSV, relabel=named_by_pod, kube=kube_state()),
    "MIG": Cluster(tuple(name for name in FULL_CSV if not name.endswith("_UTIL")), relabel=split_in_two, kube=kube_state()),
    "AMD partitions": Cluster((), kube=split_amd_card()),
    "staircase and reset": Cluster(FULL_CSV, kube=kube_state(), fresh_every=2, resets=True),
}
_FIRST = datetime(2026, 10, 1, 12, tzinfo=UTC)
INSTANTS = {name: _FIRST + number * timedelta(days=2) for number, name in enumerate(CLUSTERS)}
NOTHING_AT = _FIRST - timedelta(days=2)


def texts() -> Sequence[str]:
    """Every cluster at its instant."""
    return [cluster.text(INSTANTS[name]) for name, cluster in CLUSTERS.items()]
