"""From team to workload to container: what made them tells which pods are one workload, else their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import duckdb
import polars as pl
import pytest

from gpureport.figures import REASONS
from gpureport.query import load
from gpureport.report.cards import container_card
from gpureport.report.drill_down import drill_down
from gpureport.report.ground import read_ground
from gpureport.report.ledger import HOLDER
from gpureport.report.results import Result
from gpureport.report.timelines import CONTAINER
from gpureport.report.unknown import Unknown
from gpureport.report.use_strip import meanings
from gpureport.report.workloads import Workload, workload_of
from gpureport.window import Window, parse_instant


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ("web-7d9f8c6b5d-x2x9z", "web"),  # a Deployment's
        ("train-llm-0", "train-llm"),  # a StatefulSet's
        ("nightly-8kqzw", "nightly"),  # a Job's, a DaemonSet's
        ("sweep-3-8kqzw", "sweep"),  # an indexed Job's
        ("jupyter", "jupyter"),
        ("team-alpha", "team-alpha"),  # has vowels: nobody generated it
        ("-0", "-0"),
    ],
)
def test_a_workload_is_a_pods_name_without_what_its_controller_put_behind_it(pod: str, expected: str) -> None:
    assert workload_of(("c", "ns", pod, "u"), {}) == Workload("", expected)


OWN = ("workload_kind", "workload")
HOURLY = "hour_start_at timestamp" + "".join(
    f", {signal}_seconds double"
    for signal in (
        *("gr_engine_active_ratio", "gr_engine_active_seen", "sm_active_ratio", "sm_active_seen"),
        *("memory_used_ratio", "memory_seen"),
    )
)
FIGURES_OF_A_ROW = (
    *("gpu_util_ratio_avg", "gpu_usage_avg", "sm_active_avg"),
    *("memory_used_ratio_max", "any_throttle_ratio", "xid_error_count"),
)
WINDOW = Window(parse_instant("2026-03-01T00:00:00Z"), parse_instant("2026-03-02T00:00:00Z"))
KEY = {"cluster": "c", "namespace": "lab", "pod": "train-0", "pod_uid": "u", "container": "main"}
HELD = {"node_name": "n", "device_count": 1, "gpu_model": "H100", "sharing_mode": "exclusive", "observed_seconds": 60.0}
FINDING = {
    **KEY, "container": "", "code": "GR101", "title": "Held and idle", "evidence": "idle for 2 of 2 GPU-hours",
    "action": "Ask the owner.", "gpu_hours": 2.0, "suppressed_until": None,
}  # fmt: skip


def made(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Result]:
    """Report tables with these rows."""
    return {name: Result(load()[f"report.{name}"], pl.DataFrame(list(found)), {}) for name, found in rows.items()}


def test_pods_of_one_maker_are_one_workload_and_one_name_of_two_kinds_is_two() -> None:
    pods = {"train-0": "Job", "train-1": "Job", "train-7d9f8c6b5d-x2x9z": "Deployment", "train-5": "", "alone": "Pod"}
    figures = dict.fromkeys(FIGURES_OF_A_ROW)
    names = {"sharing_mode", "gpu_model", "node_name"}
    container = {name: HELD.get(name) for name in names} | {"device_count": 1, "observed_seconds": 60.0, "device_seconds": 60.0}
    rows = [{**KEY, "pod": pod, "pod_uid": pod, **container, "coverage_ratio": 1.0, **figures} for pod in pods]
    device = {"device_uuid": "GPU-1", "gpu_instance_id": ""}
    with duckdb.connect() as con:
        con.execute("create schema facts; create schema period")
        con.execute(f"create table period.workload ({', '.join(f'{name} text' for name in (*HOLDER, *OWN))})")
        con.execute(f"create table facts.container_hour ({', '.join(f'{name} text' for name in CONTAINER)}, {HOURLY})")
        for pod, kind in pods.items():
            name = pod if kind == "Pod" else "train" if kind else ""
            con.execute("insert into period.workload values ('c', 'lab', $1, $1, $2, $3)", [pod, kind, name])
        found = drill_down(con, made({"container": rows, "container_saturation": [{**row, **device} for row in rows]}), WINDOW)
    told = sorted(row.cells[:3] for row in found.teams[0].workloads)
    assert told == [
        ("alone", "Pod", "1"),
        ("train", "Deployment", "1"),
        ("train", "Job", "2"),
        ("train", "by the pods' names", "1"),
    ]


def test_a_containers_card_says_what_to_do_next_time_but_for_what_is_suppressed_or_anothers() -> None:
    alike = [{**FINDING, "code": "GR302", "gpu_hours": 1.0, "device_uuid": f"GPU-{number}"} for number in range(3)]
    others = [{**FINDING, "code": "GR301", "suppressed_until": date(2026, 4, 1)}, {**FINDING, "code": "GR302", "pod": "other"}]
    device = {"device_uuid": "GPU-1", "gpu_instance_id": "", "node_name": "n", "observed_seconds": 60.0}
    figures = dict.fromkeys(FIGURES_OF_A_ROW)
    rows = {
        "container": [{**KEY, **HELD, "device_seconds": 60.0, "coverage_ratio": 1.0}],
        "container_saturation": [{**KEY, **device, **figures}],
        "finding": [{"device_uuid": "", **each} for each in (FINDING, *others, *alike)],
    }
    tables = made(rows)
    card = container_card(read_ground(tables, {}), tuple(KEY.values()), [])
    assert card.findings == (
        ("GR101 Held and idle", "Idle for 2 of 2 GPU-hours.", "Ask the owner."),
        ("GR302 Held and idle (3 times)", "Idle for 2 of 2 GPU-hours.", "Ask the owner."),
    )
    assert [row.cells[0] for row in card.rows] == ["GPU-1"]


def test_a_containers_card_tells_its_duty_cycle_device_by_device_and_why_one_is_unknown() -> None:
    devices = [
        {**KEY, "gpu_instance_id": "", "node_name": "n", "observed_seconds": 60.0, "device_uuid": f"GPU-{n}"} for n in "12"
    ]
    held = [{**dict.fromkeys(FIGURES_OF_A_ROW), **device} for device in devices]
    cycles = [
        {**KEY, "gpu_instance_id": "", "id": f"GPU-{n}", "duty_cycle_percent": cycle} for n, cycle in (("1", 12.4), ("2", None))
    ]
    container = [{**KEY, **HELD, "device_seconds": 120.0, "coverage_ratio": 1.0, "gpu_util_ratio_avg": 0.5}]
    tables = made({"container": container, "container_saturation": held, "accelerator": cycles})
    accelerator = tables["accelerator"]
    reasons = {"unknown_reasons": ({}, {"duty_cycle_percent": "pods_not_mapped"})}
    tables["accelerator"] = Result(accelerator.query, accelerator.rows, reasons)
    card = container_card(read_ground(tables, {}), tuple(KEY.values()), [])
    known, unknown = (row.cells[3] for row in card.rows)
    assert (known, unknown) == ("12.4", "—")
    assert isinstance(unknown, Unknown) and unknown.why == REASONS["pods_not_mapped"]
    assert card.strips[0].figures[0].value == "50.0 %"
    assert {meaning.name for meaning in meanings()} > {"gpu_util_ratio_avg", "duty_cycle_percent"}
