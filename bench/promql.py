"""The fourteen saturation signals as OpenCost asks them in PromQL, against export and compute, from one server.

The expressions follow the definitions of OpenCost's querier (branch feature/kubemodel, 2026). GPUS (1000) and ROUNDS (3)
set the size. Beside the times stand both answers for containers in which the simulation planted something.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import requests

from bench.measure import CACHE, Measured, machine, measure, median, print_table
from bench.server import filled_folder, prometheus, prometheus_binary, version
from gpureport.simulate import SimulationPlan, write_truth

DAY = date(2026, 11, 20)
DAY_SECONDS = 86_400
END_SECOND = 1_795_219_200
GPUS = int(os.environ.get("GPUS", "1000").split(",", maxsplit=1)[0])
ROUNDS = int(os.environ.get("ROUNDS", "3"))
LAKE = CACHE / "lake-of-promql"
_BY = "by (container, pod, namespace, device, modelName, UUID, GPU_I_PROFILE, GPU_I_ID, uid, cluster_id)"
METRICS = (
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
)
"""What the fourteen expressions read."""
_VIOLATIONS = ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT")
_LOST = "sum(coalesce(power_violation_seconds, 0) + coalesce(power_violation_gap_seconds, 0))"
_REASON_BITS = (0x4, 0x8, 0x10, 0x20, 0x40, 0x80)


def _of(metric: str) -> str:
    return f'{metric}{{container!=""}}'


def _labelled(branches: list[tuple[str, str]]) -> str:
    return " or ".join(f'label_replace({query}, "reason", "{name}", "", "")' for name, query in branches)


def _violation(name: str) -> str:
    return f"avg(increase({_of(f'DCGM_FI_DEV_{name}_VIOLATION')}[1d])) {_BY} / ({DAY_SECONDS} * 1e6)"


def _reason(bit: int) -> str:
    mask = f"({_of('DCGM_FI_DEV_CLOCK_THROTTLE_REASONS')} or {_of('DCGM_FI_DEV_CLOCKS_EVENT_REASONS')})"
    return f"avg(avg_over_time((floor({mask} / {bit}) % 2)[1d:5m])) {_BY}"


def _average(metric: str) -> str:
    return f"avg(avg_over_time({_of(metric)}[1d])) {_BY}"


def queries() -> dict[str, str]:
    """The fourteen expressions by signal."""
    used, free = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
    total = f"({_average(used)} + {_average(free)})"
    ratio = f"({_of(used)} / ({_of(used)} + {_of(free)}))"
    asked = {
        "violation": _labelled([(name.lower(), _violation(name)) for name in _VIOLATIONS]),
        "reason": _labelled([(f"bit {bit:#x}", _reason(bit)) for bit in _REASON_BITS]),
        "memory average": f"{_average(used)} / {total}",
        "memory maximum": f"max(max_over_time({_of(used)}[1d])) {_BY} / {total}",
        "memory pressure": f"avg(avg_over_time(({ratio} >= bool 0.9)[1d:5m])) {_BY}",
        "xid": f"sum(changes({_of('DCGM_FI_DEV_XID_ERRORS')}[1d])) {_BY}",
        "dram average": _average("DCGM_FI_PROF_DRAM_ACTIVE"),
        "dram maximum": f"max(max_over_time({_of('DCGM_FI_PROF_DRAM_ACTIVE')}[1d])) {_BY}",
        "sm active": _average("DCGM_FI_PROF_SM_ACTIVE"),
        "sm occupancy": _average("DCGM_FI_PROF_SM_OCCUPANCY"),
    }
    for link in ("PCIE", "NVLINK"):
        for way in ("TX", "RX"):
            metric = _of(f"DCGM_FI_PROF_{link}_{way}_BYTES")
            asked[f"{link} {way}".lower()] = f"avg(rate({metric}[1d])) {_BY}"
    return asked


def main() -> None:
    """Measure in turns and print."""
    folder = _folder(GPUS)
    samples = int((folder / "filled").read_text())
    truth = json.loads(write_truth(_plan(GPUS), folder).read_text())
    print(f"{machine()}, Prometheus {version(prometheus_binary())}; {GPUS:,} GPUs x {len(METRICS)} metrics, {samples:,} samples")
    runs = measured(GPUS)
    with prometheus(folder) as url:
        answers = _ask_all(url)
        means = _by_pod(_ask(url, _average("DCGM_FI_PROF_PCIE_RX_BYTES")))
    _print_times(runs)
    _print_answers(truth, answers, means)


def measured(gpus: int) -> dict[str, list[Measured]]:
    """The expressions, and export and compute of the same day, in turns."""
    runs: dict[str, list[Measured]] = {"PromQL": [], "export": [], "compute": []}
    with prometheus(_folder(gpus)) as url:
        for _ in range(ROUNDS):
            shutil.rmtree(LAKE, ignore_errors=True)
            runs["PromQL"].append(measure([sys.executable, "-m", "bench.promql", "ask", url]))
            runs["export"].append(measure(_gpureport("export", "--prometheus-url", url, "--cluster", "bench")))
            runs["compute"].append(measure(_gpureport("compute")))
    return runs


def _plan(gpus: int) -> SimulationPlan:
    return SimulationPlan(gpus, 1, DAY, signals=METRICS, mig_share=0, sharing_share=0, kube_state_step_seconds=0)


def _folder(gpus: int) -> Path:
    return filled_folder(_plan(gpus), f"prometheus-{gpus}-gpus-saturation")


def _gpureport(command: str, *arguments: str) -> list[str | Path]:
    extra = ["--no-kubernetes"] if command == "export" else []
    return [sys.executable, "-m", "gpureport", command, "--date", DAY.isoformat(), "--lake", LAKE, *arguments, *extra]


def _ask(url: str, query: str) -> list[dict[str, Any]]:
    reply = requests.post(f"{url}/api/v1/query", data={"query": query, "time": END_SECOND}, timeout=600)
    if not reply.ok:
        raise SystemExit(f"{query[:120]} …: {reply.text[:300]}")
    found: list[dict[str, Any]] = reply.json()["data"]["result"]
    return found


def _ask_all(url: str) -> dict[str, list[dict[str, Any]]]:
    return {signal: _ask(url, query) for signal, query in queries().items()}


def _by_pod(found: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """By pod and device."""
    return {(each["metric"]["pod"], each["metric"]["UUID"]): float(each["value"][1]) for each in found}


def _print_times(runs: dict[str, list[Measured]]) -> None:
    wall = {name: median([run.wall_seconds for run in found]) for name, found in runs.items()}
    ours = wall["export"] + wall["compute"]
    print_table(
        f"Fourteen signals of {GPUS:,} GPUs and a day, median of {ROUNDS}",
        ["what", "wall s", "PromQL / this"],
        [
            ["OpenCost's 14 PromQL queries, one after the other", wall["PromQL"], 1.0],
            ["gpureport export", wall["export"], wall["PromQL"] / wall["export"]],
            ["gpureport compute", wall["compute"], wall["PromQL"] / wall["compute"]],
            ["export and compute together", ours, wall["PromQL"] / ours],
        ],
    )


def _print_answers(truth: dict[str, Any], answers: dict[str, list[dict[str, Any]]], means: dict[tuple[str, str], float]) -> None:
    rows = [*_violation_rows(truth, answers), *_xid_rows(truth, answers), *_pcie_rows(truth, answers, means)]
    columns = ["container of", "figure", "planted", "OpenCost's PromQL", "gpureport"]
    print_table("Answers for containers in which something was planted", columns, rows)


def _ours(pod: str, device: str, figure: str) -> float | None:
    files = [str(path) for path in (LAKE / "facts/container_hour").rglob("*.parquet")]
    row = duckdb.execute(
        f"select {figure} from read_parquet(?) where pod = ? and device_uuid = ?", [files, pod, device]
    ).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def _violation_rows(truth: dict[str, Any], answers: dict[str, list[dict[str, Any]]]) -> list[list[object]]:
    power = [each for each in answers["violation"] if each["metric"]["reason"] == "power"]
    asked = _by_pod(power)
    rows: list[list[object]] = []
    phases = {each["pod"]: each for each in truth["throttled"] if each["reason"] == "power"}
    for phase in list(phases.values())[:3]:
        key = (phase["pod"], phase["device_uuid"])
        theirs = asked.get(key, float("nan")) * DAY_SECONDS
        ours = _ours(*key, _LOST)
        rows.append([phase["pod"], "seconds lost to the power limit", phase["lost_seconds"], theirs, ours])
    return rows


def _xid_rows(truth: dict[str, Any], answers: dict[str, list[dict[str, Any]]]) -> list[list[object]]:
    asked = _by_pod(answers["xid"])
    rows: list[list[object]] = []
    for xid in truth["xids"]:
        if holder := _holder(truth, lambda h, xid=xid: _holds(h, xid["device_uuid"], xid["at"])):
            key = (holder["pod"], xid["device_uuid"])
            rows.append([key[0], f"XID errors (code {xid['code']})", 1, asked.get(key), _ours(*key, "sum(xid_event_count)")])
    return rows[:3]


def _pcie_rows(
    truth: dict[str, Any], answers: dict[str, list[dict[str, Any]]], means: dict[tuple[str, str], float]
) -> list[list[object]]:
    asked = _by_pod(answers["pcie rx"])
    holder = _holder(truth, lambda h: h["kind"] == "train-llm" and (h["pod"], h["devices"][0]["device_uuid"]) in asked)
    if holder is None:
        return []
    key = (holder["pod"], holder["devices"][0]["device_uuid"])
    ours = _ours(*key, "sum(pcie_rx_bytes) / sum(pcie_rx_seen_seconds)")
    return [[key[0], "PCIe receive, bytes/s (planted: mean of the samples)", means[key], asked[key], ours]]


def _holder(truth: dict[str, Any], is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    return next((holder for holder in truth["holders"] if is_meant(holder)), None)


def _holds(holder: dict[str, Any], device: str, at: str) -> bool:
    """Whether the pod held the device at an instant, with ten minutes on both sides so that changes() could see it."""
    is_there = any(each["device_uuid"] == device for each in holder["devices"])
    return is_there and holder["start_at"][:15] < at[:15] and (holder["end_at"] is None or at[:15] < holder["end_at"][:15])


if __name__ == "__main__":
    _ask_all(sys.argv[2]) if sys.argv[1:2] == ["ask"] else main()
