"""A night without its export, held against a pod of two cores and 2 GiB: facts and report of a simulated day.

The day has what a night has: 14 signals of each GPU every 30 s, kube-state-metrics every minute, 3.7 pods a GPU, and the objects
of Kubernetes as one look at the day's end lists them.

The process may run on two cores, and in a control group of 2 GiB where one can be made: what needs more is killed. Its memory
and its children's is measured ten times a second and told. (The limits of a process, RLIMIT_AS and RLIMIT_DATA, would not do:
they count what is only reserved, of which the library that draws the charts reserves gigabytes that it never touches.)
GPUS ("1000,10000") and ROUNDS (3).
"""

from __future__ import annotations

import os
import shutil
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.facts import CLUSTER, DAY, ROUNDS, SIZES, told
from bench.measure import CACHE, Measured, fingerprint, machine, measure, median, print_table
from bench.pod import enter, memory_group
from gpureport.cli import main as gpureport
from gpureport.simulate import SimulationPlan, fill_lake, write_kubernetes

CORES = 2
POD_BYTES = 2 << 30
POD_MB = POD_BYTES / 1e6
STAGES = ("compute", "report")
DATA = "3.7 pods a GPU and Kubernetes' objects"


def main() -> None:
    """Measure and print."""
    print(f"{machine()}; on {CORES} of them")
    rows = []
    for gpus in SIZES:
        for stage, runs in measured(gpus).items():
            wall, cpu = (median([float(run.stdout.split()[number]) for run in runs]) for number in (-2, -1))
            peak = max(run.tree_mb for run in runs)
            rows.append([gpus, stage, wall, cpu, max(run.process_mb for run in runs), peak, "yes" if peak < POD_MB else "NO"])
    columns = ["GPUs", "stage", "s", "CPU s", "peak MB, largest process", "peak MB, all processes", "within 2 GiB"]
    print_table(f"A night in a pod, with {DATA}, median of {ROUNDS}", columns, rows)


def measured(gpus: int) -> dict[str, list[Measured]]:
    """Both stages, in turns; the last two words that each prints are its seconds and CPU seconds."""
    lake, runs = night_lake(gpus), dict[str, list[Measured]]()
    with memory_group(POD_BYTES) as group:
        for _, stage in product(range(ROUNDS), STAGES):
            runs.setdefault(stage, []).append(measure([sys.executable, "-m", "bench.night", stage, lake, group or ""]))
    shutil.rmtree(lake / "facts")
    return runs


def night_lake(gpus: int) -> Path:
    """A simulated day of so many GPUs with their pods and objects, made once."""
    plan = SimulationPlan(gpus, 1, DAY)
    path = CACHE / f"night-{gpus}-gpus-{fingerprint(plan, ('simulate', 'collect/shape', 'collect/state', 'lake'))}"
    if not (path / "filled").exists():
        print(f"filling {path} (once) …", flush=True)
        fill_lake(plan, path, CLUSTER)
        with TemporaryDirectory() as state:
            write_kubernetes(plan, Path(state))
            _succeed(["import", "--kubernetes", state, "--cluster", CLUSTER, "--lake", str(path)])
        (path / "filled").touch()
    return path


def run(stage: str, lake: Path, group: str) -> None:
    """One stage as the command line runs it, on as many cores as the pod has and within its memory."""
    if group:
        enter(Path(group))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    flags = {
        "compute": ["--date", DAY.isoformat()],
        "report": ["--since", DAY.isoformat(), "--out", str(CACHE / "report-of-night")],
    }
    with told():
        _succeed([stage, *flags[stage], "--lake", str(lake)])


def _succeed(command: list[str]) -> None:
    if code := gpureport(command):
        raise SystemExit(code)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), sys.argv[3]) if len(sys.argv) == 4 else main()
