"""Allocation from Kubernetes alone: kube-state-metrics, no exporter. Of node n's one GPU q has all, and p waits for half of it.
Node b's one is unhealthy: of a capacity of 1 nothing is allocatable.

Two hours are scraped once a minute. By hand: 2 GPU-h are allocated to q, 2 are unavailable, none is free; p waits for 0.5 GPU: 1
GPU-h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from golden_case import NOW, gpureport

from gpureport.cli import main

START = 1_767_225_600  # 2026-01-01T00:00:00Z
WINDOW = ("--since", "2026-01-01", "--until", "2026-01-01T02:00:00Z")


def series(metric: str, value: float, **labels: str) -> str:
    told = ",".join(f'{name}="{text}"' for name, text in {"job": "ksm", **labels}.items())
    lines = [f"{metric}{{{told}}} {value} {START + 60 * minute}" for minute in range(120)]
    return "\n".join([f"# TYPE {metric} gauge", *lines])


def pod(name: str, percent: int, node: str) -> dict[str, list[str]]:
    own = {"namespace": "ns", "pod": name, "uid": f"uid-{name}"}
    found = {
        "kube_pod_info": [(1, {"node": node})],
        "kube_pod_created": [(START, {})],
        "kube_pod_container_resource_requests": [
            (percent, {"node": node, "container": "main", "resource": "koordinator_sh_gpu_core"})
        ],
        "kube_pod_status_phase": [(1, {"phase": "Running" if node else "Pending"})],
        "kube_pod_status_scheduled_time" if node else "kube_pod_status_unschedulable": [(START if node else 1, {})],
    }
    return {metric: [series(metric, value, **own, **labels) for value, labels in rows] for metric, rows in found.items()}


def openmetrics() -> str:
    families: dict[str, list[str]] = {
        "kube_node_status_allocatable": [
            series("kube_node_status_allocatable", 1, node="n", resource="nvidia_com_gpu", unit="integer"),
            series("kube_node_status_allocatable", 0, node="b", resource="nvidia_com_gpu", unit="integer"),
            series("kube_node_status_allocatable", 100, node="n", resource="koordinator_sh_gpu_core", unit="integer"),
        ],
        "kube_node_status_capacity": [
            series("kube_node_status_capacity", 1, node="b", resource="nvidia_com_gpu", unit="integer")
        ],
        "kube_node_status_condition": [
            series("kube_node_status_condition", 1, node=node, condition="Ready", status="true") for node in ("n", "b")
        ],
        "kube_node_spec_unschedulable": [series("kube_node_spec_unschedulable", 0, node=node) for node in ("n", "b")],
    }
    for each in (pod("q", 100, "n"), pod("p", 50, "")):
        for metric, found in each.items():
            families.setdefault(metric, []).extend(found)
    text = "\n".join(line for found in families.values() for part in found for line in part.split("\n")[1:])
    return f"{text}\n# EOF\n"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("allocation")
    metrics, lake, out = folder / "metrics.txt", folder / "lake", folder / "out"
    metrics.write_text(openmetrics())
    gpureport("import", metrics, "--cluster", "c", "--lake", lake)
    gpureport("compute", "--date", "2026-01-01", "--lake", lake)
    gpureport("report", *WINDOW, "--only", "html,duckdb", "--lake", lake, "--out", out)
    return out


@pytest.fixture(scope="module")
def report(out: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        yield con


def rows(con: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]]:
    return con.execute(statement).fetchall()


def test_what_kubernetes_allocates_needs_no_exporter(report: duckdb.DuckDBPyConnection) -> None:
    ledger = rows(report, "select bucket, cause, namespace, pod, pod_uid, hours_method, gpu_hours from report.gpu_hour_ledger")
    assert sorted(ledger) == [
        ("allocated_unmeasured", "no_exporter", "ns", "q", "uid-q", "requests", pytest.approx(2)),
        ("unavailable", "unhealthy", "", "", "", "", pytest.approx(2)),
    ]
    fleet = rows(report, "select allocated_gpu_hours, free_gpu_hours, unavailable_gpu_hours, unknown_gpu_hours from report.fleet")
    assert fleet == [(pytest.approx(2), 0, pytest.approx(2), 0)]


def test_percent_is_a_hundredth_of_a_gpu(report: duckdb.DuckDBPyConnection) -> None:
    waited = """select round(sum(unscheduled_units_avg * demand_observed_seconds) / 3600, 6)
                from report.scheduler_pressure where resource = 'gpu'"""
    assert rows(report, waited) == [(1.0,)]
    found = "select size, reason, waiting_gpus, waiting_gpu_hours, free_gpus, free_gpu_hours from report.supply_demand"
    assert rows(report, found) == [("share", "none_free", 0.5, pytest.approx(1.0), 0, 0)]
    assert rows(report, "from report.fragmentation") == []


def test_the_page_says_so(out: Path) -> None:
    text = " ".join(re.sub("<[^>]+>", " ", (out / "report.html").read_text()).split())
    assert "Allocated, use not measured 50.0 % Unavailable 50.0 % use is not measured · 4 GPU-h of capacity" in text
    assert "1 Jan 00:00 (GPUs on average): Allocated, use not measured 1, Unavailable 1, Pending requests 0.5" in text


def test_a_period_that_cuts_an_hour_is_refused_without_an_exporter_too(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 00:30 to 01:30, p waits for half a GPU-hour: facts of the two hours have a whole one."""
    window = ["--since", "2026-01-01T00:30:00Z", "--until", "2026-01-01T01:30:00Z", "--lake", str(out.parent / "lake")]
    assert main(["report", *window, "--out", str(out.parent / "cut")], environ={}, now=NOW) == 2
    assert "Give 2026-01-01T00:00:00Z … 2026-01-01T02:00:00Z" in capsys.readouterr().err
