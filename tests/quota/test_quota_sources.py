"""Quotas through the whole program: the recorded objects of six systems, and schedulers' series alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from quota.kueue_scene import FROM, MIDNIGHT, Found, scene
from quota.kueue_scene import rows as rows_of

NOON = MIDNIGHT + 60 * FROM
MEMORY = "nos.nebuly.com/gpu-memory"

Series = dict[str, list[tuple[int, int, float]]]
"""Value of each series from one minute after noon to another."""


def rows(out: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        return con.execute(f"select {columns} from report.{table} order by all").fetchall()


@pytest.fixture
def recorded(recorded_cluster: Path) -> Path:
    """The report of the recorded cluster: one snapshot, valid for 15 minutes."""
    return recorded_cluster / "out"


def test_every_recorded_quota_is_told_in_its_own_unit(recorded: Path) -> None:
    """Over a quarter of an hour: four times the hours are the amounts of the objects, and what running pods request."""
    columns = ", ".join(f"round(4 * {name}_native_hours, 9)" for name in ("guaranteed", "cap", "delivered", "borrowed"))
    assert rows(recorded, "quota_fair_share", f"scheduler, quota, resource, flavor, {columns}, amount_source") == [
        ("kai", "kai-team-a", "gpu", "", 2, None, 3, 1, "status"),
        ("kai", "kai-team-b", "gpu", "", 2, None, 8, 6, "status"),
        ("koordinator", "team-data", "koordinator.sh/gpu-core", "", 200, 400, 250, 50, "status"),
        ("kubernetes", "research/gpu", "gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "", None, 6, 6, None, "pods"),
        ("kubernetes", "research/gpu", "requests.nvidia.com/gpu", "", None, 24, 2, None, "pods"),
        ("kubernetes", "serving/gpu", "gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "", None, 6, 2, None, "pods"),
        ("kubernetes", "serving/gpu", "requests.nvidia.com/gpu", "", None, 8, 1, None, "pods"),
        ("kueue", "cq-research", "nvidia.com/gpu", "h100", 5, None, 7, 2, "status"),
        ("kueue", "cq-serving", "nvidia.com/gpu", "h100", 5, None, 1, 0, "status"),
        ("nos", "data/quota-c", MEMORY, "", 30, 70, 64, 34, "pods"),
        ("nos", "research/quota-a", MEMORY, "", 40, None, 64, 24, "pods"),
        ("nos", "serving/quota-b", MEMORY, "", 10, None, 57, 47, "pods"),
        ("volcano", "vol-a", "nvidia.com/gpu", "", 2, 8, 4, 2, "status"),
    ]


def test_claims_request_devices_of_their_class_of_a_resource_quota(recorded: Path) -> None:
    """As the API server counts: of research's claims 2, 2, 1 and 1; in serving the whole GPU is an alternative of two."""
    named = "resource, quota, round(4 * demanded_native_hours, 9)"
    devices = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    found = [row for row in rows(recorded, "quota_fair_share", named) if row[0] == devices]
    assert found == [(devices, "research/gpu", 6), (devices, "serving/gpu", 2)]


def test_the_recorded_labels_are_those_of_nos_rules(recorded: Path) -> None:
    """nos' operator labelled four pods. A quota of 40 GB has the first of 32 in quota; those of 30 and 10 GB have none."""
    found = rows(
        recorded, "quota_pod", "pod, in_quota_seconds, over_quota_seconds, observed_in_quota_seconds, label_differs_seconds"
    )
    labelled = {pod: row for pod, *row in found if row[2] is not None}
    assert labelled == {
        "train-llm-0": [900, 0, 900, 0],
        "infer-0": [0, 900, 0, 0],
        "loader-0": [0, 900, 0, 0],
        "jupyter-0": [0, 900, 0, 0],
    }


def test_what_a_system_does_not_have_says_so(recorded: Path) -> None:
    reasons = {
        (scheduler, quota, resource): unknown
        for scheduler, quota, resource, unknown in rows(
            recorded, "quota_fair_share", "scheduler, quota, resource, unknown_reasons"
        )
    }
    assert reasons["kubernetes", "serving/gpu", "requests.nvidia.com/gpu"]["guaranteed_gpu_hours"] == "no_such_notion"
    assert reasons["kueue", "cq-research", "nvidia.com/gpu"]["fair_share_gpu_hours"] == "no_such_notion"
    assert reasons["kueue", "cq-research", "nvidia.com/gpu"]["unmet_gpu_hours"] == "demand_unknown"
    assert reasons["volcano", "vol-a", "nvidia.com/gpu"]["demanded_gpu_hours"] == "demand_unknown"
    assert reasons["nos", "serving/quota-b", MEMORY]["cap_gpu_hours"] == "no_limit"


@pytest.mark.parametrize("table", ["quota_fair_share", "quota_pod"])
def test_every_null_has_its_reason_and_no_other_has_one(recorded: Path, table: str) -> None:
    with duckdb.connect(str(recorded / "gpureport.duckdb"), read_only=True) as con:
        found = con.sql(f"from report.{table}").to_arrow_table().to_pylist()
    assert found
    for row in found:
        assert {name for name, _ in row["unknown_reasons"]} == {name for name, value in row.items() if value is None}


def openmetrics(series: Series) -> str:
    """Series as name{labels} and their values from one minute after noon to another."""
    lines: dict[str, list[str]] = {}
    for name, parts in series.items():
        family = name.partition("{")[0]
        lines.setdefault(family, [])
        for first, last, value in parts:
            lines[family] += [f"{name} {value} {NOON + 60 * minute}" for minute in range(first, last)]
    texts: Iterable[str] = (f"# TYPE {family} gauge\n" + "\n".join(found) for family, found in lines.items())
    return "\n".join([*texts, ""])


def schedulers() -> Series:
    """Kueue's two queues, Volcano's and KAI's, by the schedulers' own series."""
    kueue = 'cohort="all",flavor="h100",resource="nvidia.com/gpu"'
    return {
        f'kueue_cluster_queue_nominal_quota{{cluster_queue="a",{kueue}}}': [(0, 60, 5)],
        f'kueue_cluster_queue_nominal_quota{{cluster_queue="b",{kueue}}}': [(0, 60, 5)],
        f'kueue_cluster_queue_resource_reservation{{cluster_queue="a",{kueue}}}': [(0, 60, 7)],
        f'kueue_cluster_queue_resource_reservation{{cluster_queue="b",{kueue}}}': [(0, 30, 2), (30, 60, 5)],
        f'kueue_cluster_queue_resource_pending{{cluster_queue="b",{kueue}}}': [(0, 30, 4), (30, 60, 0)],
        'volcano_queue_allocated_scalar_resources{queue_name="v",resource="nvidia.com/gpu"}': [(0, 60, 8000)],
        'volcano_queue_deserved_scalar_resources{queue_name="v",resource="nvidia.com/gpu"}': [(0, 60, 6000)],
        'volcano_queue_capacity_scalar_resources{queue_name="v",resource="nvidia.com/gpu"}': [(0, 60, 8000)],
        'kai_queue_deserved_gpus{queue_name="k"}': [(0, 60, -1)],
        'kai_queue_allocated_gpus{queue_name="k"}': [(0, 60, 3)],
        'kai_queue_fair_share_gpu{queue_name="k"}': [(0, 60, 4)],
    }


def pods() -> Series:
    """Two quotas of nos, a node and four pods, by kube-state-metrics."""

    def pod(name: str, namespace: str, gpus: int, created: int, bound: int | None, end: int) -> Series:
        who = f'namespace="{namespace}",pod="{name}",uid="u-{name}"'
        running = [(created, bound, 0.0), (bound, end, 1.0)] if bound is not None else [(created, end, 0.0)]
        scheduled = {} if bound is None else {f"kube_pod_status_scheduled_time{{{who}}}": [(bound, end, NOON + 60.0 * bound)]}
        node = 'node="n1"' if bound is not None else 'node=""'
        return {
            f"kube_pod_info{{{who},{node}}}": [(created, end, 1)],
            f"kube_pod_created{{{who}}}": [(created, end, NOON + 60.0 * created)],
            f'kube_pod_status_phase{{{who},phase="Running"}}': [part for part in running if part[0] < part[1]],
            f'kube_pod_container_resource_requests{{{who},container="m",resource="nvidia_com_gpu",unit="integer"}}': [
                (created, end, gpus)
            ],
            **scheduled,
        }

    def quota(name: str, gigabytes: int) -> Series:
        who = f'system="nos",quota="{name}/q",resource="{MEMORY}"'
        return {f'kube_customresource_quota{{{who},field="guaranteed"}}': [(0, 60, gigabytes)]}

    return {
        'kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu",unit="integer"}': [(0, 60, 4)],
        **quota("a", 64),
        **quota("b", 32),
        **pod("a1", "a", 1, 0, 0, 60),
        **pod("b1", "b", 2, 0, 0, 60),
        **pod("b2", "b", 1, 0, 0, 50),
        **pod("a2", "a", 1, 20, 50, 60),
    }


@scene(lambda minute: {}, minutes=(), metrics=openmetrics(schedulers()))
def test_schedulers_series_alone_tell_of_quotas(found: Found) -> None:
    """Kueue: b reserves 2 and waits for 4 of its 5 for half an hour, then has 5; a borrows 2.

    Whether free GPUs could have covered the third that b lacked is not known: no node was seen. Volcano counts thousandths, KAI's
    -1 is no number.
    """
    columns = "guaranteed_gpu_hours, demanded_gpu_hours, delivered_gpu_hours, borrowed_gpu_hours, lent_gpu_hours"
    shares = f"scheduler, quota, {columns}, unmet_gpu_hours, violated_gpu_hours, fair_share_gpu_hours"
    assert rows_of(found, f"select {shares} from report.quota_fair_share order by all") == [
        ("kai", "k", None, None, 3, 0, 0, None, None, 4),
        ("kueue", "a", 5, None, 7, 2, 0, None, None, None),
        ("kueue", "b", 5, 5.5, 3.5, 0, 1, 1.5, None, None),
        ("volcano", "v", None, None, 8, 2, 0, None, None, 6),
    ]


@scene(lambda minute: {}, minutes=(), metrics=openmetrics(pods()))
def test_pods_and_quotas_by_kube_state_metrics_alone(found: Found) -> None:
    """Four GPUs: b has 96 GB of its 32, a waits for 64 of its 64 with 32 held from 12:20 on, until b ends a pod at 12:50."""

    columns = "guaranteed_gpu_hours, demanded_gpu_hours, delivered_gpu_hours, borrowed_gpu_hours, lent_gpu_hours"
    shares = f"quota, {columns}, unmet_gpu_hours, violated_gpu_hours, longest_starvation_seconds"
    # a: requests 1 GPU for 20 minutes and 2 for 40, has 1 for 50 and 2 for 10; short of 1 for half an hour, borrowed by b,
    # which has 2 over for 50 minutes and 1 for 10. a leaves 1 of its 2 unused until 12:50, and what it leaves is borrowed.
    assert rows_of(found, f"select {shares} from report.quota_fair_share order by all") == [
        ("a/q", pytest.approx(2), pytest.approx(5 / 3), pytest.approx(7 / 6), 0, pytest.approx(5 / 6), 0.5, 0.5, 1800),
        ("b/q", pytest.approx(1), pytest.approx(17 / 6), pytest.approx(17 / 6), pytest.approx(11 / 6), 0, 0, 0, 0),
    ]
    contested = "select quota, borrower, contested_gpu_hours, together_seconds from report.quota_pair"
    assert rows_of(found, contested) == [("a/q", "b/q", 0.5, 1800)]
    exposed = "select pod, in_quota_seconds, over_quota_seconds, exposed_seconds, exposed_by from report.quota_pod order by all"
    # b's pods were made at the same time: the smaller, b2, is counted first and fits into 32 GB.
    assert rows_of(found, exposed) == [
        ("a1", 3600, 0, 0, []),
        ("a2", 600, 0, 0, []),
        ("b1", 0, 3600, 1800, ["a/q"]),
        ("b2", 3000, 0, 0, []),
    ]
