"""The recorded cluster's claims and annotations joined to telemetry: who held which GPU by the scheduler's word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.lake import open_lake, views
from kube.decided import CLAIM_DEVICES, CONSUMERS

UNTIL = datetime(2026, 11, 21, 2, 1, 21)
"""A snapshot counts for fifteen minutes where none follows."""
RUNNING = datetime(2026, 11, 21, 1, 46, 18)


@pytest.fixture
def facts(recorded_cluster: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        views(
            con,
            open_lake(recorded_cluster / "lake"),
            ["device", "facts/ownership", "facts/claim_device", "facts/claim_use", "facts/ledger_hour"],
        )
        yield con


@pytest.fixture(scope="module")
def report(recorded_cluster: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(recorded_cluster / "out" / "gpureport.duckdb"), read_only=True) as con:
        yield con


def rows(con: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]]:
    return con.execute(statement).fetchall()


def test_claims_hold_what_the_scheduler_gave_them(facts: duckdb.DuckDBPyConnection) -> None:
    found = rows(
        facts,
        """select claim, any_value(pool), list(device order by device), any_value(subrequest), bool_and(is_admin_access)
           from facts.claim_device group by claim""",
    )
    assert {claim: tuple(rest) for claim, *rest in found} == CLAIM_DEVICES


def test_an_allocation_begins_when_the_server_says_and_stands_for_fifteen_minutes(facts: duckdb.DuckDBPyConnection) -> None:
    statement = """select start_at, end_at, start_source, end_source, end_uncertainty_seconds
                   from facts.claim_device where claim = 'parked'"""
    assert rows(facts, statement) == [(datetime(2026, 11, 21, 1, 46, 4), UNTIL, "allocation time", "last snapshot", 900.0)]


def test_whole_gpus_are_found_by_uuid_and_instances_by_parent_and_profile(facts: duckdb.DuckDBPyConnection) -> None:
    statement = """select device, gpu_instance_id, matched_by from facts.claim_device
                   where pool = 'gpu-node-2' order by device"""
    assert rows(facts, statement) == [
        ("gpu-0-mig-1g10gb-19-4", "12", "instance with labels of the pod"),
        ("gpu-0-mig-1g10gb-19-5", "11", "order of instances"),
        ("gpu-0-mig-3g40gb-9-0", "3", "only instance of the profile"),
        ("gpu-1", "", "uuid"),
    ]
    assert rows(facts, "select distinct matched_by from facts.claim_device where pool = 'gpu-node-1'") == [("uuid",)]


def test_containers_own_the_devices_of_their_claims_and_of_koordinators_annotation(facts: duckdb.DuckDBPyConnection) -> None:
    found = rows(
        facts,
        """select pod, container, left(device_uuid, 12), gpu_instance_id, source, certainty, sharing_mode
           from facts.ownership where start_at <= '2026-11-21 01:50' and end_at > '2026-11-21 01:50' order by all""",
    )
    claim = ("dra-claim", "certain")
    assert found == [
        ("chat-0", "server", "GPU-fb196fcb", "3", *claim, "mig"),
        ("embed-0", "server", "GPU-fb196fcb", "12", "dra-claim, labels+snapshot", "certain", "mig"),
        ("embed-1", "server", "GPU-fb196fcb", "11", "dra-claim", "ambiguous", "mig"),
        ("finetune-0", "trainer", "GPU-7a663281", "", *claim, "exclusive"),
        ("finetune-0", "trainer", "GPU-b29ae985", "", *claim, "exclusive"),
        ("finetune-1", "trainer", "GPU-e025c556", "", *claim, "exclusive"),
        ("finetune-1", "trainer", "GPU-f87eb6e1", "", *claim, "exclusive"),
        ("holder-0", "main", "GPU-e2a53065", "", *claim, "exclusive"),
        ("koord-half-0", "worker", "GPU-c0d9ebaf", "", "koordinator", "certain", "exclusive"),
        ("koord-two-0", "worker", "GPU-6d68008a", "", "koordinator", "certain", "exclusive"),
        ("koord-two-0", "worker", "GPU-6fff65fb", "", "koordinator", "certain", "exclusive"),
        ("pair-0", "notebook", "GPU-39f8b1f4", "", *claim, "shared-claim"),
        ("pair-1", "notebook", "GPU-39f8b1f4", "", *claim, "shared-claim"),
        ("sweep-0", "worker", "GPU-d31fdc7f", "", *claim, "exclusive"),
    ]


def test_a_container_owns_from_its_start_until_the_look_stands_no_longer(facts: duckdb.DuckDBPyConnection) -> None:
    statement = "select start_at, end_at from facts.ownership where pod = 'sweep-0'"
    assert rows(facts, statement) == [(RUNNING, UNTIL)]


def test_nobody_owns_a_device_by_watching_it_or_by_a_container_without_the_claim(facts: duckdb.DuckDBPyConnection) -> None:
    assert rows(facts, "select * from facts.ownership where pod = 'monitor-0' or container = 'sidecar'") == []


def test_labels_of_a_pod_stand_only_while_its_claim_is_not_known(facts: duckdb.DuckDBPyConnection) -> None:
    statement = """select start_at, end_at, source from facts.ownership
                   where pod = 'finetune-0' and device_uuid like 'GPU-5d7ac654%' order by start_at"""
    half_past = datetime(2026, 11, 21, 1, 30), datetime(2026, 11, 21, 2, 30)
    # The pod was created at 01:46:01, and clocks may differ by a minute: who was named before is not known.
    created = datetime(2026, 11, 21, 1, 45, 1)
    assert rows(facts, statement) == [
        (half_past[0], created, "labels"),
        (created, RUNNING, "labels+snapshot"),
        (UNTIL, half_past[1], "labels+snapshot"),
    ]


def test_no_device_is_held_beyond_its_capacity(facts: duckdb.DuckDBPyConnection) -> None:
    statement = """select device_uuid, hour_start_at, sum(gpu_seconds) as seconds from facts.ledger_hour
                   group by all having seconds > 3600 + 1e-6"""
    assert rows(facts, statement) == []
    twice = """select a.device from facts.claim_device a join facts.claim_device b using (driver, pool, device)
               where a.claim_uid < b.claim_uid and not a.is_admin_access and not b.is_admin_access
               and a.start_at < b.end_at and a.end_at > b.start_at"""
    assert rows(facts, twice) == []


def test_each_claim_in_the_report_says_who_reserved_and_who_used_it(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select claim, count(*), any_value(use), any_value(consumers), sum(container_count), bool_or(is_shared)
                   from report.dra_claim group by claim"""
    used = {
        claim: (len(devices), "watching" if watches else "used", ", ".join(CONSUMERS[claim]))
        for claim, (_, devices, _, watches) in CLAIM_DEVICES.items()
    }
    found = rows(report, statement)
    assert {claim: (count, use, consumers) for claim, count, use, consumers, *_ in found} == used
    assert {claim: containers for claim, count, _, _, containers, _ in found if containers != count} == {"shared-gpu": 2}
    assert [claim for claim, *_, is_shared in found if is_shared] == ["shared-gpu"]


def test_seconds_of_a_claim_are_those_between_its_allocation_its_container_and_the_end_of_what_is_known(
    report: duckdb.DuckDBPyConnection,
) -> None:
    statement = """select allocated_seconds, reserved_seconds, used_seconds, allocated_gpu_hours, reserved_idle_gpu_hours
                   from report.dra_claim where claim = $claim"""
    # Allocated 01:46:04, running from 01:46:18, known until 02:01:21; the instance is 3 slices of 7.
    parked = report.execute(statement, {"claim": "parked"}).fetchall()
    assert parked == [(917, 917, 903, pytest.approx(917 / 3600), pytest.approx(14 / 3600))]
    # Allocated 01:46:02.
    chat = report.execute(statement, {"claim": "chat-0-mig-dxmtp"}).fetchall()
    assert chat == [(919, 919, 903, pytest.approx(919 * 3 / 7 / 3600), pytest.approx(16 * 3 / 7 / 3600))]


def test_each_container_says_how_it_asked_and_by_whose_word_it_has_what(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select pod, container, any_value(request_source), any_value(requested),
                          count(*) filter (where device_uuid != '')
                   from report.device_allocation where granted_by != '' and granted_by not like 'labels%' or device_uuid = ''
                   group by all order by all"""
    plugin = {"loader-0", "jupyter-0", "train-llm-0", "wants-1-0", "infer-0"}
    expected = {
        **dict.fromkeys(plugin, ("device plugin", "nvidia.com/gpu=1", 0)),
        "mig-slice-0": ("MIG resource", "nvidia.com/mig-1g.5gb=1", 0),
        "mig-slice-1": ("MIG resource", "nvidia.com/mig-3g.20gb=1", 0),
        "koord-half-0": ("Koordinator", "koordinator.sh/gpu-core=50, koordinator.sh/gpu-memory-ratio=50", 1),
        "koord-two-0": ("Koordinator", "koordinator.sh/gpu-core=200, koordinator.sh/gpu-memory-ratio=200", 2),
        **dict.fromkeys(("finetune-0", "finetune-1"), ("DRA", "", 2)),
        **dict.fromkeys(("pair-0", "pair-1", "holder-0", "sweep-0", "chat-0", "embed-0", "embed-1"), ("DRA", "", 1)),
        "monitor-0": ("DRA", "", 8),
    }
    assert {pod: tuple(rest) for pod, _, *rest in rows(report, statement)} == expected


def test_what_is_not_found_in_the_telemetry_has_no_use_and_a_reason(report: duckdb.DuckDBPyConnection) -> None:
    statement = """select distinct allocated_gpu_hours, used_gpu_hours, gpu_usage_avg from report.device_allocation
                   where device_uuid = ''"""
    assert rows(report, statement) == [(None, None, None)]
