"""Scheduler pressure from kube-state-metrics alone, beside OpenCost's own gauges: the fixture of its unit test, for an hour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_case import NOON, NOW
from report_tables import Report, report_tables

from gpureport.cli import main

HOUR = "2026-11-20 12:00"
SCRAPE = 'job="ksm",instance="k:8080"'
MINUTES = range(60)


def series(metric: str, labels: str, values: Iterator[float] | list[float], minutes: range = MINUTES) -> list[str]:
    """One sample a minute."""
    pairs = zip(minutes, values, strict=True)
    return [f"{metric}{{{labels}}} {value} {NOON + 60 * minute}" for minute, value in pairs]


def pod(name: str, units: int, pending_minutes: int, bound_after: int = 60) -> dict[str, list[str]]:
    """A pod that asks for GPUs, is pending for so long, and runs from then on; bound after so many minutes."""
    own = f'{SCRAPE},namespace="team",pod="{name}",uid="u-{name}"'
    pending = [1.0 if minute < pending_minutes else 0.0 for minute in MINUTES]
    before, after = range(bound_after), range(bound_after, 60)
    return {
        "kube_pod_status_phase": [
            *series("kube_pod_status_phase", f'{own},phase="Pending"', pending),
            *series("kube_pod_status_phase", f'{own},phase="Running"', [1 - value for value in pending]),
        ],
        "kube_pod_info": [
            *series("kube_pod_info", f'{own},node=""', [1] * len(before), before),
            *series("kube_pod_info", f'{own},node="n1"', [1] * len(after), after),
        ],
        "kube_pod_created": series("kube_pod_created", own, [NOON - 30] * 60),
        "kube_pod_container_resource_requests": series(
            "kube_pod_container_resource_requests",
            f'{own},container="main",resource="nvidia_com_gpu",unit="integer"',
            [units] * 60,
        ),
    }


def node(name: str, cordoned_from: int = 60) -> dict[str, list[str]]:
    """A node of four GPUs."""
    own = f'{SCRAPE},node="{name}"'
    return {
        "kube_node_status_allocatable": series(
            "kube_node_status_allocatable", f'{own},resource="nvidia_com_gpu",unit="integer"', [4] * 60
        ),
        "kube_node_status_condition": series("kube_node_status_condition", f'{own},condition="Ready",status="true"', [1] * 60),
        "kube_node_spec_unschedulable": series(
            "kube_node_spec_unschedulable", own, [float(minute >= cordoned_from) for minute in MINUTES]
        ),
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    families: dict[str, list[str]] = {
        "DCGM_FI_DEV_GPU_UTIL": [
            *series("DCGM_FI_DEV_GPU_UTIL", 'Hostname="n1",UUID="GPU-1",modelName="H100"', [50] * 60),
            *series("DCGM_FI_DEV_GPU_UTIL", 'Hostname="n2",UUID="GPU-2",modelName="H100"', [0] * 60),
        ],
        "kube_pod_status_unschedulable": series(
            "kube_pod_status_unschedulable", f'{SCRAPE},namespace="team",pod="a",uid="u-a"', [1] * 60
        ),
        "cluster_gpu_pending_pod_count": series("cluster_gpu_pending_pod_count", 'resource="nvidia.com/gpu"', [2] * 60),
        "cluster_gpu_pending_request_total": series("cluster_gpu_pending_request_total", 'resource="nvidia.com/gpu"', [3] * 60),
        "cluster_gpu_requested_allocatable_ratio": series(
            "cluster_gpu_requested_allocatable_ratio", 'resource="nvidia.com/gpu"', [0.875] * 60
        ),
    }
    for part in (pod("a", 2, 60), pod("b", 1, 60, bound_after=45), pod("c", 4, 0, bound_after=0), node("n1"), node("n2", 30)):
        for metric, lines in part.items():
            families.setdefault(metric, []).extend(lines)
    folder = tmp_path_factory.mktemp("series")
    text = "\n".join([line for metric, lines in families.items() for line in (f"# TYPE {metric} unknown", *lines)] + ["# EOF\n"])
    (folder / "metrics.txt").write_text(text)
    lake = str(folder / "lake")
    for arguments in (
        ["import", str(folder / "metrics.txt"), "--cluster", "lab", "--lake", lake],
        ["compute", "--date", "2026-11-20", "--lake", lake],
    ):
        assert main(arguments, environ={}, now=NOW) == 0
    with report_tables(Path(lake), "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z") as found:
        yield found


def test_ours_agree_with_opencosts_own_gauges(report: Report) -> None:
    statement = """select resource, source, pending_pod_count_avg, opencost_pending_pod_count_avg,
                          pending_request_units_avg, opencost_pending_request_units_avg,
                          requested_allocatable_ratio_avg, opencost_requested_allocatable_ratio_avg
                   from report.scheduler_pressure order by resource"""
    assert report.execute(statement).fetchall() == [
        ("gpu", "kube-state-metrics", 2, None, 3, None, 0.875, None),  # the one name there is, of whole GPUs
        ("nvidia.com/gpu", "kube-state-metrics", 2, 2, 3, 3, 0.875, 0.875),
    ]


def test_kubernetes_sense_tells_what_opencosts_does_not(report: Report) -> None:
    statement = """select demand_source, unscheduled_units_avg, unscheduled_units_max, bound_pending_units_avg,
                          allocated_units_avg, schedulable_units_avg, cordoned_units_avg, demand_schedulable_ratio_max
                   from report.scheduler_pressure"""
    # b has a place for the last 15 of 60 minutes: 2 + 0.75 wait, 0.25 and 4.25 have one. n2 takes nothing for half the hour.
    # In GPUs under any name it is the same.
    assert report.execute(statement).fetchall() == [("kube-state-metrics", 2.75, 3, 0.25, 4.25, 6, 2, 1.75)] * 2


def test_waits_are_told_from_series(report: Report) -> None:
    statement = """select size, placed_pod_count, placing_seconds_max, waiting_pod_count, waiting_seconds_max
                   from report.pod_wait order by all"""
    # a waits at the end, 60 min 30 s after its creation; b was first seen with a place after 45 min 30 s; c had one before.
    assert report.execute(statement).fetchall() == [("1", 1, 2730, 0, None), ("2-4", 0, None, 1, 3630)]


def test_free_gpus_that_nobody_who_waits_can_have_are_stranded(report: Report) -> None:
    statement = "select bucket, cause, gpu_hours from report.gpu_hour_ledger where device_uuid = 'GPU-2' order by all"
    # The scheduler finds no place for a, though n2 has four GPUs left: it does not say why here. From 12:30 on n2 is cordoned.
    assert report.execute(statement).fetchall() == [("fragmented", "refused", 0.5), ("unavailable", "cordoned", 0.5)]


def test_what_is_free_does_not_fit_the_requests(report: Report) -> None:
    statement = """select reason, free_gpu_hours, free_ratio, largest_request_gpus, request_count from report.fragmentation"""
    # c has all of n1 (with b more than all); n2's four are free for half an hour. a's request of 2 and b's of 1 fit there.
    assert report.execute(statement).fetchall() == [("fits", 2, 1, 4, 2)]
