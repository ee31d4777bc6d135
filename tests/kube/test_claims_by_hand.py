"""What no recording has: groups as consumers, claims without consumers, two lives of a name, claims that only telemetry names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from report_tables import Report, report_tables

from kube.by_hand import build, uuid


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    with report_tables(build(tmp_path_factory.mktemp("by_hand")), "2026-03-01") as found:
        yield found


def rows(con: Report, statement: str) -> list[tuple[Any, ...]]:
    return con.execute(statement).fetchall()


def test_a_group_reserves_a_claim_and_is_no_pod(report: Report) -> None:
    statement = """select use, consumers, pod_count, podgroup_count, container_count,
                          allocated_seconds, reserved_seconds, used_seconds
                   from report.dra_claim where claim = 'gang-claim'"""
    # The last snapshot, at 00:50, stands for 15 minutes; the group was gone at 00:30.
    assert rows(report, statement) == [("no container", "podgroups/gang", 0, 1, 0, 3900, 1800, 0)]


def test_a_claim_that_nobody_reserves_is_told_apart(report: Report) -> None:
    statement = """select use, reserved_seconds, allocated_gpu_hours, reserved_idle_gpu_hours
                   from report.dra_claim where claim = 'parked'"""
    assert rows(report, statement) == [("no consumer", 0, pytest.approx(65 / 60), pytest.approx(65 / 60))]


def test_what_is_reserved_and_idle_is_a_bucket_of_the_ledger(report: Report) -> None:
    statement = """select device_uuid, sum(gpu_hours) from report.gpu_hour_ledger
                   where bucket = 'reserved_idle' group by all order by all"""
    assert rows(report, statement) == [(uuid(0), pytest.approx(1)), (uuid(1), pytest.approx(1))]


def test_two_lives_of_one_name_are_two_pods(report: Report) -> None:
    statement = """select pod_uid, device_uuid, claims, allocated_seconds
                   from report.device_allocation where pod = 'sts-0' order by all"""
    # The first was gone at the snapshot at 00:20; the second ran from 00:18:30 and is known until 01:05.
    assert rows(report, statement) == [("first", uuid(2), "sts-0-x1", 1200), ("second", uuid(3), "sts-0-x2", 2790)]


def test_an_extended_resource_of_which_the_scheduler_made_a_claim_is_one_gpu(report: Report) -> None:
    statement = """select request_source, requested, claims, granted_by, device_uuid, allocated_seconds
                   from report.device_allocation where pod = 'ext-0'"""
    found = rows(report, statement)
    assert found == [("extended resource", "nvidia.com/gpu=1", "ext-0-claim", "dra-claim", uuid(4), 3600)]
    claims = rows(report, "select is_extended_resource, use, device from report.dra_claim where claim = 'ext-0-claim'")
    assert claims == [(True, "used", "gpu-4")]


def test_claims_that_were_never_looked_at_are_known_by_the_exporters_labels_or_kube_state_metrics(report: Report) -> None:
    statement = """select claim, claim_uid, device, device_uuid, use, consumers, allocated_seconds, used_seconds, start_source
                   from report.dra_claim where matched_by = 'labels' order by claim"""
    assert rows(report, statement) == [
        ("ghost-claim", "", "gpu-6", uuid(6), "used", "ghost-0", 3600, 3600, "labels"),
        ("kube-claim", "", uuid(7), uuid(7), "used", "kube-0", 3600, 3600, "labels"),
    ]


def test_a_gpu_that_a_claim_and_the_kubelet_gave_out_is_a_finding_and_counts_once(report: Report) -> None:
    statement = "select device_uuid, gpu_hours, evidence from report.finding where code = 'GR108'"
    # Both surely had it until the last snapshot at 00:50.
    evidence = "allocated up to 2.00 times, for 0.8 h: claim ns/twice, kubelet-checkpoint ns/plug-0"
    assert rows(report, statement) == [(uuid(5), pytest.approx(50 / 60), evidence)]
    hours = rows(
        report, f"select sum(gpu_hours) from report.gpu_hour_ledger where device_uuid = '{uuid(5)}' and bucket != 'unknown'"
    )
    assert hours == [(pytest.approx(1),)]


def test_a_gpu_that_claims_have_parts_of_is_theirs_by_these_parts(report: Report) -> None:
    # 20 and 60 of 80 GiB for the hour that was seen: a quarter and three of a GPU-hour, in the ledger as in what each was given.
    quarters = [("large-0", pytest.approx(0.75), "granted_share"), ("small-0", pytest.approx(0.25), "granted_share")]
    ledger = f"""select pod, gpu_hours, hours_method from report.gpu_hour_ledger
                 where device_uuid = '{uuid(8)}' and bucket = 'active_unmeasured' order by pod"""
    given = f"""select pod, allocated_gpu_hours, hours_method from report.device_allocation
                where device_uuid = '{uuid(8)}' order by pod"""
    assert rows(report, ledger) == rows(report, given) == quarters
    claims = "select claim, share_ratio, allocated_seconds from report.dra_claim where share_id != '' order by claim"
    assert rows(report, claims) == [("large", 0.75, 3900), ("small", 0.25, 3900)]


def test_gpus_that_only_their_drivers_slices_tell_of_are_there_and_unknown(report: Report) -> None:
    # Two GPUs, whatever could be made of them, from the first snapshot of the day to its end.
    ledger = "select bucket, cause, gpu_hours from report.gpu_hour_ledger where node_name = 'quiet'"
    assert rows(report, ledger) == [("unknown", "no_exporter", 48)]
    coverage = "select reason, evidence from report.coverage where node_name = 'quiet' and signal = 'any'"
    assert rows(report, coverage) == [("no_exporter", "2 gpu.nvidia.com by resource slices, no device series")]
