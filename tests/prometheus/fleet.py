"""A day of several nodes with a GPU each, and the command line that exports it in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from gpureport.values.series import METRIC_LABEL
from gpureport.values.window import Window

from .samples import text_of

DAY = date(2024, 5, 1)
NODE_COUNT = 8
_METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
_START_MS = Window.of_day(DAY).start_ms + 6 * 3_600_000

TEXT = text_of(
    [
        (
            {METRIC_LABEL: metric, "Hostname": f"node-{node}", "UUID": f"GPU-{node}", "gpu": "0", "modelName": "NVIDIA H200"},
            [(_START_MS + step * 30_000, str((step + node) % 100)) for step in range(60)],
        )
        for metric in _METRICS
        for node in range(NODE_COUNT)
    ]
)


def environment(**settings: str) -> Mapping[str, str]:
    """This process's environment without settings of its user's."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GPUREPORT_")}
    return {**own, **settings}


def export_command(url: str, lake: Path, *more: str, day: str = DAY.isoformat()) -> Sequence[str]:
    flags = ["--date", day, "--prometheus-url", url, "--lake", str(lake), "--cluster", "lab", *more]
    return [sys.executable, "-m", "gpureport", "export", *flags]


def run_export(url: str, lake: Path, *more: str, day: str = DAY.isoformat(), **settings: str) -> subprocess.CompletedProcess[str]:
    """The export's outcome; it runs in the folder that holds the lake."""
    command = export_command(url, lake, *more, day=day)
    return subprocess.run(
        command, env=environment(**settings), cwd=lake.parent, capture_output=True, text=True, timeout=120, check=False
    )
