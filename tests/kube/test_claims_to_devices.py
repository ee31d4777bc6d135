"""The recorded cluster's claims and annotations joined to telemetry: who held which GPU by the scheduler's word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpureport.cli import main
from gpureport.lake import open_lake, views
from kube.decided import CLAIM_DEVICES
from kube.lake import NOW, RECORDING, import_state
from kube.telemetry import write_telemetry

UNTIL = datetime(2026, 11, 21, 2, 1, 21)
"""A look stands for fifteen minutes where none follows."""
RUNNING = datetime(2026, 11, 21, 1, 46, 18)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("claims")
    lake = folder / "lake"
    import_state(lake, RECORDING)
    write_telemetry(lake, folder / "metrics.txt")
    for arguments in (["import", str(folder / "metrics.txt"), "--cluster", "lab"], ["compute", "--date", "2026-11-21"]):
        assert main([*arguments, "--lake", str(lake)], environ={}, now=NOW.replace(tzinfo=UTC)) == 0
    return lake


@pytest.fixture
def facts(lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        views(con, open_lake(lake), ["device", "facts/ownership", "facts/claim_device", "facts/claim_use", "facts/ledger_hour"])
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
    assert rows(facts, statement) == [(datetime(2026, 11, 21, 1, 46, 4), UNTIL, "allocation time", "last look", 900.0)]


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
        ("embed-0", "server", "GPU-fb196fcb", "12", "dra-claim, labels", "certain", "mig"),
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
    assert rows(facts, statement) == [(half_past[0], RUNNING, "labels"), (UNTIL, half_past[1], "labels")]


def test_no_device_is_held_beyond_its_capacity(facts: duckdb.DuckDBPyConnection) -> None:
    statement = """select device_uuid, hour_start_at, sum(gpu_seconds) as seconds from facts.ledger_hour
                   group by all having seconds > 3600 + 1e-6"""
    assert rows(facts, statement) == []
    twice = """select a.device from facts.claim_device a join facts.claim_device b using (driver, pool, device)
               where a.claim_uid < b.claim_uid and not a.is_admin_access and not b.is_admin_access
               and a.start_at < b.end_at and a.end_at > b.start_at"""
    assert rows(facts, twice) == []
