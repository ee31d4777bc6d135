"""Run a command and tell how long it took and how much memory it held, by the kernel's accounting."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import gpureport
from gpureport.simulate import SimulationPlan

CACHE = Path(".cache/bench")
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Measured:
    """``process_mb``: the largest process' high-water mark; ``tree_mb``: all of them at once, shared pages once."""

    wall_seconds: float
    cpu_seconds: float
    process_mb: float
    tree_mb: float
    stdout: str


def measure(command: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end; CalledProcessError where it fails."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True, env={**os.environ, **(environ or {})}
    )
    watcher = _TreeWatcher(process.pid)
    watcher.start()
    assert process.stdout
    stdout = process.stdout.read()
    status = process.wait()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    watcher.is_ended.set()
    watcher.join()
    if status:
        raise subprocess.CalledProcessError(status, list(map(str, command)), stdout)
    return Measured(wall, cpu, watcher.process_mb, watcher.tree_mb, stdout)


class _TreeWatcher(threading.Thread):
    """Reads the memory of a process and its children ten times a second.

    Not ru_maxrss: that of a child begins at its parent's, which is this interpreter's.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.is_ended = threading.Event()
        self.process_mb = 0.0
        self.tree_mb = 0.0

    def run(self) -> None:
        while not self.is_ended.wait(_SAMPLE_SECONDS):
            pids = _tree(self._pid)
            self.process_mb = max(self.process_mb, *(_kilobytes(pid, "status", "VmHWM:") / 1000 for pid in pids), 0.0)
            self.tree_mb = max(self.tree_mb, sum(_kilobytes(pid, "smaps_rollup", "Pss:") for pid in pids) / 1000)


def _tree(pid: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(each for child in children for each in _tree(child))]


def _kilobytes(pid: int, file: str, name: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(name)) * 1.024


def fingerprint(plan: SimulationPlan, parts: Sequence[str] = ("simulate", "collect/shape", "lake")) -> str:
    """Changes with the plan and with the code that makes data of it, so that what is kept is what would be made."""
    package = Path(gpureport.__file__).parent
    told = (*parts, "values/tables") if "lake" in parts else parts
    sources = [path for part in told for path in (package / part).glob("*.py")]
    told = repr(plan).encode() + b"".join(path.read_bytes() for path in sorted(sources))
    return hashlib.sha256(told).hexdigest()[:8]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, so that it can stand in docs/benchmarks.md as it is."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(_text(value) for value in row) + " |")
    sys.stdout.flush()


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> str:
    """Cores, memory, what else was running, and versions, for the head of a run's output."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = f"Python {platform.python_version()}, DuckDB {duckdb.__version__}, pyarrow {pa.__version__}"
    load = f"load average {os.getloadavg()[0]:.1f} before the run"
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB, {load}; {versions}, numpy {np.__version__}"
