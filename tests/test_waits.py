"""Waits, free GPUs and fragmentation by kube-state-metrics alone: two nodes with eight GPUs each, four pods, two hours.

By hand: one has all of a's GPUs for an hour, from midnight on, the second of its creation. quick (1 GPU) is created and placed
between two scrapes, 15 s apart, and listed from 00:11 on. later (2 GPUs) waits from 00:20 to 00:50, and runs 6 s after that.
waits (8 GPUs) was created at 00:30 and never placed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_case import gpureport
from report_tables import Report, report_tables

START, MINUTES = 1_767_225_600, 120  # 2026-01-01T00:00:00Z
WINDOW = ("2026-01-01", "2026-01-01T02:00:00Z")


class Text:
    """Series by family."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, metric: str, value: float, since: int = 0, until: int = MINUTES, **told: str) -> None:
        labels = ",".join(f'{name}="{text}"' for name, text in {"job": "ksm", **told}.items())
        self._lines.setdefault(metric, [f"# TYPE {metric} gauge"]).extend(
            f"{metric}{{{labels}}} {value} {START + 60 * minute}" for minute in range(since, until)
        )

    def node(self, name: str, model: str, cores: int = 0) -> None:
        if cores:
            self.add("kube_node_status_allocatable", cores, node=name, resource="cpu", unit="core")
        for metric in ("kube_node_status_allocatable", "kube_node_status_capacity"):
            self.add(metric, 8, node=name, resource="nvidia_com_gpu", unit="integer")
        self.add("kube_node_status_condition", 1, node=name, condition="Ready", status="true")
        self.add("kube_node_spec_unschedulable", 0, node=name)
        self.add("kube_node_info", 1, node=name)
        self.add("kube_node_labels", 1, node=name, label_nvidia_com_gpu_product=model, label_nvidia_com_gpu_count="8")

    def pod(
        self,
        name: str,
        gpus: int,
        created: float,
        placed: float | None = None,
        node: str = "",
        end: int = MINUTES,
        cores: int = 0,
    ) -> None:
        own = {"namespace": "ns", "pod": name, "uid": f"uid-{name}"}
        first, bound = -int(-created // 1), end if placed is None else -int(-placed // 1)
        self.add("kube_pod_created", START + 60 * created, first, end, **own)
        for resource, amount in {"nvidia_com_gpu": gpus, "cpu": cores}.items():
            if amount:
                requested = {"container": "main", "resource": resource, "node": node}
                self.add("kube_pod_container_resource_requests", amount, first, end, **requested, **own)
        self.add("kube_pod_status_phase", 1, first, bound, phase="Pending", **own)
        self.add("kube_pod_info", 1, first, bound, node="", **own)
        if placed is not None:
            self.add("kube_pod_status_phase", 1, bound, end, phase="Running", **own)
            self.add("kube_pod_info", 1, bound, end, node=node, **own)
            self.add("kube_pod_status_scheduled_time", START + 60 * placed, bound, end, **own)

    def __str__(self) -> str:
        return "\n".join(line for found in self._lines.values() for line in found) + "\n# EOF\n"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two nodes as the cluster ``c``, and beside it ``cores``.

    There eight of 32 cores are a daemon's and 22 those of a pod with four GPUs: two cores beside four free GPUs. A pod of one GPU
    and eight cores waits from 00:30 on.
    """
    folder, text, cores = tmp_path_factory.mktemp("waits"), Text(), Text()
    cores.node("a", "Tesla-T4", cores=32)
    cores.pod("daemon", 0, -60, -60, "a", cores=8)
    cores.pod("big", 4, 0, 0, "a", cores=22)
    cores.pod("small", 1, 30, cores=8)
    text.node("a", "Tesla-T4")
    text.node("b", "NVIDIA-A10")
    text.pod("one", 8, 0, 0, "a", end=60)
    text.pod("quick", 1, 10.5, 10.75, "b")
    text.pod("later", 2, 20, 50, "b")
    text.add(
        "kube_pod_container_state_started", START + 60 * 50.1, 51, namespace="ns", pod="later", uid="uid-later", container="main"
    )
    text.pod("waits", 8, 30)
    for cluster, told in {"c": text, "cores": cores}.items():
        (folder / cluster).write_text(str(told))
        gpureport("import", folder / cluster, "--cluster", cluster, "--lake", folder / "lake")
    gpureport("compute", "--date", "2026-01-01", "--lake", folder / "lake")
    return folder / "lake"


@pytest.fixture(scope="module")
def report(lake: Path) -> Iterator[Report]:
    with report_tables(lake, *WINDOW, cluster="c") as found:
        yield found


def rows(con: Report, statement: str) -> list[tuple[Any, ...]]:
    return con.execute(statement).fetchall()


def test_waits_are_from_creation_to_placement_by_size(report: Report) -> None:
    named = "size, placed_pod_count, waiting_pod_count, placing_seconds_p95, starting_seconds_p95"
    assert rows(report, f"select {named} from report.pod_wait order by size") == [
        ("1", 1, 0, 15, None),
        ("2-4", 1, 0, 1800, 6),
        ("5-8", 1, 1, 0.95 * 5400, None),
    ]


def test_hours_of_waiting_count_pods_that_no_scrape_saw_waiting(report: Report) -> None:
    waited = "select unscheduled_units_avg from report.scheduler_pressure where resource = 'gpu' order by hour_start_at"
    assert rows(report, waited) == [(pytest.approx(15 / 3600 + 2 * 0.5 + 8 * 0.5),), (pytest.approx(8),)]


def test_allocation_by_model_needs_no_exporter(report: Report) -> None:
    found = "select gpu_model, bucket, sum(gpu_hours) from report.gpu_hour_ledger group by all order by all"
    had = (109 + 2 * 70) / 60
    assert rows(report, found) == [
        ("NVIDIA-A10", "allocated_unmeasured", pytest.approx(had)),
        ("NVIDIA-A10", "free", pytest.approx(16 - had)),
        ("Tesla-T4", "allocated_unmeasured", pytest.approx(8)),
        ("Tesla-T4", "free", pytest.approx(8)),
    ]


def test_half_of_the_mix_does_not_fit_less_than_eight(report: Report) -> None:
    found = "select gpu_model, reason, free_gpu_hours, request_count from report.fragmentation order by all"
    less = (7 * 39 + 5 * 70) / 60
    assert rows(report, found) == [
        ("NVIDIA-A10", "fits", pytest.approx(8 * 11 / 60 + less / 2), 4),
        ("NVIDIA-A10", "size", pytest.approx(less / 2), 4),
        ("Tesla-T4", "fits", pytest.approx(8), 4),
    ]


def test_cpu_is_why_free_gpus_do_not_fit(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node more is what it takes, with 24 cores for pods with GPUs."""
    with report_tables(lake, *WINDOW, cluster="cores") as con:
        named = "size, reason, waiting_gpus, free_gpus, waiting_gpu_hours, free_gpu_hours"
        assert rows(con, f"select {named} from report.supply_demand") == [("1", "cpu", 1, 4, 1.5, 2 * 4)]
    capsys.readouterr()
    since, until = WINDOW
    window = ("--since", since, "--until", until, "--lake", lake, "--cluster", "cores")
    gpureport("whatif", "--nodes", "0..+1", *window, "-o", "json")
    found = [(0, 1, 5400), (1, 0, 0)]
    changed = [row for row in json.loads(capsys.readouterr().out) if row["variant"] == "changed"]
    assert [(row["node_count"], row["waiting_pod_count"], row["wait_seconds_p95"]) for row in changed] == found
