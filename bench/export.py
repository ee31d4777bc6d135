"""Export against curl and prometheus-api-client, from the same server, in turns.

GPUS (1000), POD_LIFE_FACTOR (8: on most GPUs one pod stays for the day; 1: three or four come and go, which makes more
than twice as many series) and ROUNDS (3) set the size; CLIENT=0 leaves out the client, which takes two minutes a round.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import duckdb

from bench.measure import CACHE, Measured, machine, measure, median, print_table
from bench.server import filled_folder, prometheus, prometheus_binary, version
from gpureport.collect.export import load_loops
from gpureport.simulate import SimulationPlan
from gpureport.values.catalog import load_catalog

DAY = date(2026, 11, 20)
END_SECOND = 1_795_219_200
METRICS = (
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
)
GPUS = int(os.environ.get("GPUS", "1000").split(",", maxsplit=1)[0])
POD_LIFE_FACTOR = float(os.environ.get("POD_LIFE_FACTOR", "8"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
WITH_CLIENT = os.environ.get("CLIENT", "1") != "0"
LAKE = CACHE / "lake-of-export"
CLIENT_GPUS = 1000
"""The client is measured up to here: one metric of 10,000 GPUs, in its lists and the server's reply, was too much for 23 GB."""


def main() -> None:
    """Measure in turns and print."""
    print(f"{machine()}, Prometheus {version(prometheus_binary())}")
    runs, samples = measured(GPUS)
    print(f"{GPUS:,} GPUs x 12 metrics x 24 h at 30 s = {samples:,} samples")
    _print(runs, samples, LAKE)


def measured(gpus: int) -> tuple[dict[str, list[Measured]], int]:
    """Each of what is compared, in turns; and how many samples there are. The export's lake is left in LAKE."""
    # No copies: 12 series a GPU at a time, so that every sample downloaded is one that the lake keeps.
    alone = {"mig_share": 0, "sharing_share": 0, "dra_share": 0, "kube_state_step_seconds": 0}
    plan = SimulationPlan(gpus, 1, DAY, signals=METRICS, pod_life_factor=POD_LIFE_FACTOR, **alone)
    folder = filled_folder(plan, f"prometheus-{gpus}-gpus-12-metrics")
    load_loops(load_catalog())  # compiled once an installation, and not every night
    with_client = WITH_CLIENT and gpus <= CLIENT_GPUS
    names = ("curl 1", "curl 4", *(["client"] if with_client else []), "export")
    runs: dict[str, list[Measured]] = {name: [] for name in names}
    with prometheus(folder) as url:
        for _ in range(ROUNDS):
            runs["curl 1"].append(measure(_curl(url, parallel=1)))
            runs["curl 4"].append(measure(_curl(url, parallel=4)))
            shutil.rmtree(LAKE, ignore_errors=True)
            runs["export"].append(measure(_export(url, LAKE)))
            if with_client:
                runs["client"].append(measure([sys.executable, "-m", "bench.export", "client", url]))
    return runs, int((folder / "filled").read_text())


def client_seconds(runs: Sequence[Measured]) -> float:
    """Of all twelve metrics: one was asked, and importing the client is left out."""
    return 12 * median([float(run.stdout) for run in runs])


def _curl(url: str, parallel: int) -> list[str]:
    """Every metric's raw samples of the day as JSON to /dev/null; curl keeps its connections."""
    command = ["curl", "--silent", "--fail", "--globoff"]
    if parallel > 1:
        command += ["--parallel", "--parallel-max", str(parallel)]
    for metric in METRICS:
        command += ["--output", "/dev/null", f"{url}/api/v1/query?query={metric}[1d]&time={END_SECOND}"]
    return command


def _export(url: str, lake: Path) -> list[str | Path]:
    arguments = ["export", "--date", DAY.isoformat(), "--prometheus-url", url, "--no-kubernetes", "--cluster", "bench"]
    return [sys.executable, "-m", "gpureport", *arguments, "--lake", lake]


def client(url: str) -> None:
    """One metric's day by prometheus-api-client's range call; prints its seconds."""
    from datetime import datetime

    from prometheus_api_client import PrometheusConnect

    connection = PrometheusConnect(url=url)
    start, end = datetime.fromtimestamp(END_SECOND - 86_400), datetime.fromtimestamp(END_SECOND)
    begun = time.perf_counter()
    connection.get_metric_range_data(METRICS[0], start_time=start, end_time=end)
    print(time.perf_counter() - begun)


def _print(runs: dict[str, list[Measured]], samples: int, lake: Path) -> None:
    wall = {name: median([run.wall_seconds for run in found]) for name, found in runs.items()}
    if "client" in runs:
        wall["client"] = client_seconds(runs["client"])
    names = {
        "curl 1": "curl, raw JSON to /dev/null, one connection",
        "curl 4": "curl, the same, four connections",
        "client": "prometheus-api-client get_metric_range_data (one metric measured, x 12)",
        "export": "gpureport export to finished Parquet",
    }
    rows = []
    for name, text in names.items():
        if name not in runs:
            continue
        cpu = median([run.cpu_seconds for run in runs[name]])
        peak = max(runs[name], key=lambda run: run.tree_mb)
        rows.append([text, wall[name], wall["export"] / wall[name], cpu, peak.process_mb, peak.tree_mb])
    print_table(
        f"Export, median of {ROUNDS}",
        ["what", "wall s", "export / this", "own CPU s", "peak MB, largest process", "peak MB, all processes"],
        rows,
    )
    sizes = {path: path.stat().st_size for path in lake.rglob("*.parquet")}
    lake_bytes, sample_bytes = sum(sizes.values()), sum(n for path, n in sizes.items() if "device_sample" in str(path))
    values = _values(lake)
    bounds = [("curl 1", 0.5), ("curl 4", 1.0), ("client", 0.08)]
    export_mb = max(run.tree_mb for run in runs["export"])
    print_table(
        "Bounds",
        ["what", "measured", "bound", "kept"],
        [
            *(
                [f"export / {name}", wall["export"] / wall[name], b, _kept(wall["export"] / wall[name], b)]
                for name, b in bounds
                if name in runs
            ),
            ["peak MB of export, all processes", export_mb, 600, _kept(export_mb, 600)],
            ["bytes per sample in the lake", lake_bytes / samples, 2.0, _kept(lake_bytes / samples, 2.0)],
        ],
    )
    print(f"\nlake {lake_bytes:,} bytes, of it device_sample {sample_bytes:,} with {values:,} sampled values")


def _values(lake: Path) -> int:
    """How many sampled values the lake holds of the twelve signals."""
    columns = [load_catalog().metrics[metric][0].signal for metric in METRICS]
    counted = " + ".join(f"count({column})" for column in columns)
    files = [str(path) for path in (lake / "device_sample").rglob("*.parquet")]
    row = duckdb.execute(f"select {counted} from read_parquet(?) where not is_carried", [files]).fetchone()
    return int(row[0]) if row else 0


def _kept(measured: float, bound: float) -> str:
    return "yes" if measured <= bound else "NO"


if __name__ == "__main__":
    client(sys.argv[2]) if sys.argv[1:2] == ["client"] else main()
