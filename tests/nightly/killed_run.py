"""A night of two GPUs over a lake that has seen a night before, and a child process that is killed on its way through it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path

from forks import start
from prometheus.programs import filled_with

from gpureport.cli import main

LAST_NIGHT, TONIGHT = datetime(2026, 11, 20, 23, 30, tzinfo=UTC), datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
DAY_SECONDS = 86_400
PATIENCE_SECONDS = 300.0
"""A process that takes longer hangs, on however busy a machine."""
_NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
_FORMS = {"GPUREPORT_REPORT__ONLY": "html,csv,duckdb"}
"""The page, a folder, and the database."""
_METRICS = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 30_000, "DCGM_FI_DEV_GPU_UTIL": 1, "DCGM_FI_DEV_FB_USED": 2}


def samples(first: int, count: int) -> str:
    """Two GPUs of a pod, from so many seconds after noon of 2026-11-20, seen every 30 s."""
    lines = []
    for metric, step in _METRICS.items():
        lines.append(f"# TYPE {metric} gauge")
        for gpu in ("GPU-a", "GPU-b"):
            labels = f'UUID="{gpu}",Hostname="n1",namespace="ns",pod="p",container="c",job="dcgm",instance="i:9400"'
            lines += [f"{metric}{{{labels}}} {step * n} {_NOON + first + n * 30}" for n in range(count)]
    return "\n".join([*lines, "# EOF\n"])


@dataclass(frozen=True)
class Night:
    """Servers as they are tonight."""

    prometheus: str
    kubeconfig: Path
    lake: str = ""
    """Where it is; '' for one beside the report."""
    environ: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, folder: Path, *more: str) -> list[str]:
        lake, out = ["--lake", self.lake or str(folder / "lake")], ["--out", str(folder / "out")]
        servers = ["--prometheus-url", self.prometheus, "--kubeconfig", str(self.kubeconfig)]
        return ["run", *servers, "--cluster", "lab", *lake, *out, "--keep-samples", "1d", *more]

    def run(self, folder: Path, *more: str, now: datetime = TONIGHT) -> int:
        return main(self.arguments(folder, *more), environ={**_FORMS, **self.environ}, now=now)

    def start(self, folder: Path) -> BaseProcess:
        """The same as a process, with a group of its own; it writes ``cpu`` when it is done."""
        return start(self.arguments(folder), folder / "cpu", TONIGHT, {**_FORMS, **self.environ})

    def snapshot_arguments(self, folder: Path) -> list[str]:
        return ["snapshot", "--kubeconfig", str(self.kubeconfig), "--cluster", "lab", "--lake", str(folder / "lake")]

    def snapshot(self, folder: Path, now: datetime) -> int:
        """Into the same lake."""
        return main(self.snapshot_arguments(folder), environ={}, now=now)

    def start_snapshot(self, folder: Path, now: datetime) -> BaseProcess:
        """The same as a process."""
        return start(self.snapshot_arguments(folder), folder / "cpu-of-snapshot", now, {})


def ended(process: BaseProcess) -> int | None:
    """Its exit code."""
    process.join(PATIENCE_SECONDS)
    return process.exitcode


def killed_after(process: BaseProcess, cpu_seconds: float) -> bool:
    """SIGKILL to all of a process group when its first process has used so much CPU; False where it ended before."""
    assert process.pid
    clock = (~process.pid << 3) | 2  # Linux: the CPU clock of another process
    while process.exitcode is None:
        with suppress(OSError):
            if time.clock_gettime(clock) >= cpu_seconds:
                break
        time.sleep(0.002)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode == -signal.SIGKILL


def fill(night: Night, folder: Path) -> None:
    """Into ``folder``: ``before``, a lake and a report of last night; ``after``, the same when tonight's run is done."""
    before, after = folder / "before", folder / "after"
    (folder / "early").mkdir()
    with filled_with(samples(-DAY_SECONDS, 11), samples(0, 5))(folder / "early") as url:
        early = replace(night, prometheus=url)
        lake = ["--cluster", "lab", "--lake", str(before / "lake")]
        for day in ("2026-11-19", "2026-11-20"):
            exported = ["export", "--date", day, "--prometheus-url", early.prometheus, "--no-kubernetes", *lake]
            assert main(exported, environ={}, now=LAST_NIGHT) == 0
        assert early.snapshot(before, LAST_NIGHT) == 0
        days = ["--since", "2026-11-19", "--until", "2026-11-21"]  # at once in half the time of one after the other
        assert main(["compute", *days, "--lake", str(before / "lake")], environ={}, now=LAST_NIGHT) == 0
        assert early.run(before, "--date", "2026-11-20", now=LAST_NIGHT.replace(minute=45)) == 0
    shutil.copytree(before, after)
    assert ended(night.start(after)) == 0, (after / "said").read_text()
