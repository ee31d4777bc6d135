"""A day of two cards on which a pod follows the other every two hours: 48 series, four of them at any time."""

from __future__ import annotations

from datetime import date

from gpureport.values.series import METRIC_LABEL
from gpureport.values.window import Window

from .samples import text_of

DAY = date(2024, 6, 23)
_START_MS = Window.of_day(DAY).start_ms
_STEP_MS = 300_000
_STEPS_OF_A_POD = 24
METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL")
SERIES = [
    (
        {
            METRIC_LABEL: metric,
            "Hostname": "node-churn",
            "UUID": f"GPU-churn-{card}",
            "job": "dcgm",
            "pod": f"sweep-{card}-{number}",
        },
        [(_START_MS + (number * _STEPS_OF_A_POD + step) * _STEP_MS, str(step)) for step in range(_STEPS_OF_A_POD)],
    )
    for metric in METRICS
    for card in range(2)
    for number in range(12)
]
SAMPLE_COUNT = 2 * 2 * 288
TEXT = text_of(SERIES)
