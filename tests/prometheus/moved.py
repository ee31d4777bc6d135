"""A day on which a card changed nodes: one metric shows it at the old one alone, another at both; and another exporter's card."""

from __future__ import annotations

from datetime import date

from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.window import Window

from .samples import text_of

DAY = date(2024, 6, 20)
_START_MS = Window.of_day(DAY).start_ms + 9 * 3_600_000
_HOUR_STEPS = 120


def _series(labels: Labels, first_step: int = 0, steps: int = _HOUR_STEPS) -> tuple[Labels, list[tuple[int, str]]]:
    return labels, [(_START_MS + step * 30_000, str(step % 90)) for step in range(first_step, first_step + steps)]


def _dcgm(metric: str, host: str, uuid: str, **more: str) -> Labels:
    return {METRIC_LABEL: metric, "Hostname": host, "UUID": uuid, "gpu": "0", "job": "dcgm", **more}


BARE = "1b3c9d70-6f0e-4b55-a1c2-93de4fa0c6b8"
FIRST, OTHER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL"
SERIES = [
    # GPU-moved: the first metric is seen at the old node alone, the other at both.
    _series(_dcgm(FIRST, "node-a", "GPU-moved")),
    _series(_dcgm(OTHER, "node-a", "GPU-moved")),
    _series(_dcgm(OTHER, "node-z", "GPU-moved"), _HOUR_STEPS),
    _series(_dcgm(FIRST, "node-z", f"GPU-{BARE}")),
    _series(_dcgm(OTHER, "node-z", f"GPU-{BARE}", exported_pod="train-0", exported_namespace="ml", pod="dcgm-exporter-x")),
    # A node of which only one metric is known, and a card named by another exporter in its own way.
    _series(_dcgm(OTHER, "node-lone", "GPU-lone")),
    _series({METRIC_LABEL: "nvidia_smi_utilization_gpu_ratio", "instance": "10.0.0.9:9835", "uuid": BARE, "job": "smi"}),
    _series({METRIC_LABEL: "kube_pod_info", "namespace": "ml", "pod": "train-0", "node": "node-z", "job": "ksm"}),
]
TEXT = text_of(SERIES)
