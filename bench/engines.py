"""The engines side by side with two workers each: what a task costs that does nothing, and the facts of a day.

GPUS (1000) and ROUNDS (3) set the size; the lake is made once and kept.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.facts import CLUSTER, DAY, MEMORY_LIMIT, simulated_lake
from bench.measure import Measured, machine, measure, median, print_table
from gpureport.compute import ComputeSettings, compute_day
from gpureport.engines import Engine, Processes, RayCluster, Threads
from gpureport.lake import Change, open_lake

GPUS = int(os.environ.get("GPUS", "1000").split(",", maxsplit=1)[0])
ROUNDS = int(os.environ.get("ROUNDS", "3"))
WORKERS = 2
TASKS = 200
WARM = 10 * WORKERS
"""Tasks after which every worker has loaded what it needs."""
ENGINES: dict[str, Engine] = {"threads": Threads(WORKERS), "processes": Processes(WORKERS), "ray": RayCluster(workers=WORKERS)}


class Nothing:
    """Work that is none."""

    def reads(self, _task: int, _lake_path: Path) -> Sequence[Path]:
        return ()

    def do(self, task: int, _change: Change) -> int:
        return task


def main() -> None:
    """Measure in turns and print."""
    print(machine())
    lake = simulated_lake(GPUS)
    idle = {name: _runs("tasks", name) for name in ENGINES}
    facts: dict[str, list[Measured]] = {"threads": [], "ray": []}
    for _ in range(ROUNDS):
        for name, found in facts.items():
            found.append(_run("facts", name, lake))
    rows = [(name, *_medians(found), max(each.tree_mb for each in found)) for name, found in idle.items()]
    print_table(
        f"{TASKS} tasks that do nothing, {WORKERS} workers, median of {ROUNDS}",
        ["engine", "start s", "ms a task", "CPU ms a task", "peak MB, all processes"],
        rows,
    )
    local = _medians(facts["threads"])
    rows = [
        (name, *told[:2], told[1] / local[1], told[2], told[2] / local[2], max(each.tree_mb for each in found))
        for name, found in facts.items()
        if (told := _medians(found))
    ]
    print_table(
        f"Facts of a day of {GPUS:,} GPUs, {WORKERS} workers, median of {ROUNDS}",
        ["engine", "start s", "s", "/ local", "CPU s", "/ local", "peak MB, all processes"],
        rows,
    )


def _runs(*what: str) -> list[Measured]:
    return [_run(*what) for _ in range(ROUNDS)]


def _run(*what: str | Path) -> Measured:
    return measure([sys.executable, "-m", "bench.engines", *what])


def _medians(runs: Sequence[Measured]) -> list[float]:
    """Of each of the numbers that a run printed."""
    return [median(each) for each in zip(*([float(text) for text in run.stdout.split()] for run in runs), strict=True)]


def tasks(name: str) -> None:
    """Seconds until workers are ready, then what one more costs: milliseconds, and those of CPU of all processes."""
    with TemporaryDirectory() as folder:
        change = Change(Path(folder), Path(folder))
        begun = time.perf_counter()
        ENGINES[name].each(Nothing(), range(WARM), change)
        first, cpu, ready = time.perf_counter() - begun, _cpu_seconds(), time.perf_counter()
        ENGINES[name].each(Nothing(), range(TASKS), change)
        print(first, (time.perf_counter() - ready) / TASKS * 1000, (_cpu_seconds() - cpu) / TASKS * 1000)


def facts(name: str, lake: Path) -> None:
    """Seconds until workers are ready, then those of the facts, wall and CPU of all processes."""
    settings = ComputeSettings(memory_limit=MEMORY_LIMIT, threads=WORKERS)
    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        ENGINES[name].each(Nothing(), range(WARM), Change(Path(folder), Path(folder)))
        ready, cpu = time.perf_counter(), _cpu_seconds()
        compute_day(open_lake(lake), CLUSTER, DAY, settings, engine=ENGINES[name])
        print(ready - begun, time.perf_counter() - ready, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """Of this process and all below it, those that have ended too."""
    return sum(_ticks(pid) for pid in _tree(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> list[int]:
    try:
        children = [
            int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [pid, *(each for child in children for each in _tree(child))]


def _ticks(pid: int) -> int:
    """utime, stime and those of its ended children: fields 14 to 17 of proc_pid_stat(5)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        {"tasks": tasks, "facts": facts}[sys.argv[1]](sys.argv[2], *map(Path, sys.argv[3:]))
    else:
        main()
