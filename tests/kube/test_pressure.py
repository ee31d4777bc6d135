"""What the recorded cluster had requests for and had, and how long its pods waited, by one snapshot of its state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

CLASS = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
MIG_CLASS = "mig.nvidia.com.deviceclass.resource.k8s.io/devices"


@pytest.fixture(scope="module")
def report(recorded_cluster: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(recorded_cluster / "out" / "gpureport.duckdb"), read_only=True) as con:
        yield con


def rows(con: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]]:
    return con.execute(statement).fetchall()


def test_each_resource_is_asked_for_and_there_as_its_objects_say(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select resource, is_opencosts, pending_pod_count_max, pending_request_units_max, requested_units_avg,
                          allocatable_units_avg, round(requested_allocatable_ratio_avg, 6)
                   from report.scheduler_pressure where hour_start_at = '2026-11-21 01:00' order by resource"""
    # In GPUs: nine of the class, gpu-node-0's one in four replicas, and gpu-node-3's two whole ones, 7 x 1/7 and 2 x 3/7; not
    # Koordinator's 3 of the same GPUs besides. What is requested is unknown: three claimed MIG slices on gpu-node-2 have no size.
    gpus = 9 + 1 + 2 + 1 + 6 / 7
    assert rows(report, statement) == [
        ("gpu", False, 2, None, None, pytest.approx(gpus), None),
        # monster-0 waits for 16; eight and one GPUs are there, seven of them allocated: finetune 2 + 2, pair, parked, sweep.
        (CLASS, False, 1, 16, 16 + 7, 9, round(23 / 9, 6)),
        ("koordinator.sh/fpga", False, 0, 0, 0, 100, 0),
        ("koordinator.sh/gpu-core", False, 0, 0, 250, 300, round(250 / 300, 6)),
        ("koordinator.sh/gpu-memory", False, 0, 0, 0, 128_849_019_000, 0),
        ("koordinator.sh/gpu-memory-ratio", False, 0, 0, 250, 300, round(250 / 300, 6)),
        ("koordinator.sh/rdma", False, 0, 0, 0, 100, 0),
        (MIG_CLASS, False, 0, 0, 3, None, None),
        # wants-3-0 waits for 3; train-llm-0, infer-0, jupyter-0, loader-0 and wants-1-0 have one each of 4 + 2.
        ("nvidia.com/gpu", True, 1, 3, 8, 6, round(8 / 6, 6)),
        ("nvidia.com/mig-1g.5gb", True, 0, 0, 1, 7, round(1 / 7, 6)),
        ("nvidia.com/mig-3g.20gb", True, 0, 0, 1, 2, 0.5),
    ]


def test_a_look_stands_for_fifteen_minutes_of_two_hours(report: duckdb.DuckDBPyConnection) -> None:
    statement = f"select observed_seconds from report.scheduler_pressure where resource = '{CLASS}' order by hour_start_at"
    assert rows(report, statement) == [(13 * 60 + 39,), (81,)]  # from 01:46:21 to 02:01:21


def test_what_waits_is_told_apart_from_what_has_a_place(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select resource, demand_source, unscheduled_pod_count_max, unscheduled_units_max, bound_pending_pod_count_max,
                          allocated_units_avg, schedulable_units_avg, cordoned_units_avg
                   from report.scheduler_pressure where hour_start_at = '2026-11-21 01:00' and unscheduled_pod_count_max > 0
                   order by resource"""
    gpus = pytest.approx(9 + 1 + 2 + 1 + 6 / 7)
    assert rows(report, statement) == [
        ("gpu", "snapshot", 2, 16 + 3, 0, None, gpus, 0),  # three claimed MIG slices have no size
        (CLASS, "snapshot", 1, 16, 0, 7, 9, 0),
        ("nvidia.com/gpu", "snapshot", 1, 3, 0, 5, 6, 0),
    ]


def test_what_is_not_known_says_why(report: duckdb.DuckDBPyConnection) -> None:
    statement = f"""select unknown_reasons['requested_allocatable_ratio_avg'], unknown_reasons['opencost_pending_pod_count_avg']
                    from report.scheduler_pressure where resource = '{MIG_CLASS}'"""
    assert set(rows(report, statement)) == {("not_collected", "not_collected")}


def test_pods_waited_as_long_as_their_times_say(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select size, placed_pod_count, placing_seconds_max, starting_seconds_max, waiting_pod_count,
                          waiting_seconds_max
                   from report.pod_wait order by size"""
    assert rows(report, statement) == [
        # pair-0, pair-1 and holder-0 at 01:46:03 to 04, running at 01:46:18; one more claim, and one nvidia.com/gpu.
        ("1", 5, 0, 16, 0, None),
        # finetune-0 and -1 at 01:46:01, koord-two-0; wants-3-0 waits since its creation.
        ("2-4", 3, 0, 17, 1, 15 * 60 + 14),
        ("more", 0, None, None, 1, 15 * 60 + 16),  # monster-0
        # Four replicas of a GPU shared by four, koord-half-0, and two MIG instances by resource.
        ("share", 7, 0, 19, 0, None),
        ("unknown", 3, 0, 16, 0, None),  # MIG instances by claim
    ]


def test_what_is_left_fits_no_pod_that_waits(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select wanted_model, waiting_gpus, reason, free_gpus from report.supply_demand
                   where reason != 'none_free' order by wanted_model"""
    # gpu-6 and gpu-7 of gpu-node-1 are free. gpu-node-0's four replicas are allocated; of gpu-node-3's four devices
    # none is whole by its Device object: one is broken, of one koord-half-0 has half, koord-two-0 has two.
    # wants-3-0 may use gpu-node-3 alone, whose GPUs have another name than gpu-node-1's.
    assert rows(report, statement) == [("H100", 3, "model", 2), ("any", 16, "size", 2)]


def test_koordinators_devices_say_what_is_free_of_them(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select minor, is_healthy, health_reason, numa_node, pcie_id, allocated_core_percent, free_core_percent,
                          free_memory_bytes, pod_count
                   from report.device_free where device_type = 'gpu' order by minor"""
    assert rows(report, statement) == [
        (0, False, "Xid79", 0, "0000:00", 0, 0, 0, 0),
        (1, True, "", 0, "0000:01", 50, 50, 21_474_836_500, 1),  # half of 40Gi, to nine digits
        (2, True, "", 1, "0000:02", 100, 0, 0, 1),
        (3, True, "", 1, "0000:03", 100, 0, 0, 1),
    ]


def test_koordinators_node_says_what_would_still_fit(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select device_type, device_count, healthy_device_count, core_percent, memory_ratio_percent, free_core_percent,
                          largest_percent, largest_minors
                   from report.node_free order by device_type"""
    # Its node offers 300 of gpu-core: the fit ones. koord-half-0 left the other half of device 1.
    assert rows(report, statement) == [
        ("fpga", 1, 1, 100, None, 100, 100, "0"),
        ("gpu", 4, 3, 300, 300, 50, 50, "1"),
        ("rdma", 1, 1, 100, None, 100, 100, "0"),
    ]


def test_what_was_asked_for_of_each_device_stands_beside_what_it_did(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select pod, left(device_uuid, 8), requested_as, requested_by, requested_core_percent, used_core_percent,
                          unknown_reasons['used_core_percent'], problem
                   from report.requested_use order by all"""
    # The exporter of the test publishes no SM activity. Pods with claims ask by the piece.
    half, both = "koordinator.sh/gpu-core: 50, koordinator.sh/gpu-memory-ratio: 50", "koordinator.sh/gpu-core: 200"
    assert rows(report, statement) == [
        ("koord-half-0", "GPU-c0d9", half, "container", 50, None, "not_collected", ""),
        ("koord-two-0", "GPU-6d68", f"{both}, koordinator.sh/gpu-memory-ratio: 200", "container", 100, None, "not_collected", ""),
        ("koord-two-0", "GPU-6fff", f"{both}, koordinator.sh/gpu-memory-ratio: 200", "container", 100, None, "not_collected", ""),
    ]


def test_a_real_api_server_counts_as_is_counted_here(report: duckdb.DuckDBPyConnection, recorded_cluster: Path) -> None:
    """By the recording's own status.used (5 and 1 devices by name), its claims' devices, and what its scheduler refused."""
    statement = """select compared, object, snapshot_count, differing_snapshot_count
                   from report.api_agreement order by all"""
    assert rows(report, statement) == [
        ("all", "", 1, 0),
        ("allocated devices", "", 1, 0),
        ("quota use", "", 1, 0),
        ("refused pods", "", 1, 0),
    ]
    assert "lab agrees with its API server in 1 of 1 snapshots." in (recorded_cluster / "out" / "summary.md").read_text()
