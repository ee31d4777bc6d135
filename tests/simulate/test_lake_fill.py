from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from lake_rows import seen

from gpureport.lake import open_lake, views
from gpureport.simulate import SimulationPlan, fill_lake
from gpureport.values.errors import LakeError
from tests.simulate.conftest import Cluster, ms


@pytest.fixture
def con(simulated: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    views(connection, open_lake(simulated), ["device_sample", "owner_label", "sample", "series", "source"])
    return connection


def test_energy_of_the_lake_is_the_growth_of_the_simulated_counters(
    con: duckdb.DuckDBPyConnection, cluster: Cluster, truth: dict
) -> None:
    rows = con.execute(
        "select device_uuid, sum(coalesce(energy_joules_increase, 0) + coalesce(energy_joules_gap_increase, 0)) "
        "from lake.device_sample where gpu_instance_id = '' group by all"
    ).fetchall()
    resets = {(uuid, ms(reset["at"])) for reset in truth["resets"] for uuid in reset["device_uuids"]}
    assert len(rows) == 24
    for uuid, joules in rows:
        instance = next(d["gpu_instance_id"] for d in truth["devices"] if d["device_uuid"] == uuid)
        points = list(cluster.device("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", uuid, instance).items())
        grown = sum(high if (uuid, at) in resets else high - low for (_, low), (at, high) in pairwise(points))
        assert joules == pytest.approx(grown / 1000, rel=1e-9)


def test_every_second_but_the_long_gaps_is_held_over_midnight_too(
    con: duckdb.DuckDBPyConnection, plan: SimulationPlan, truth: dict
) -> None:
    uuid = next(d["device_uuid"] for d in truth["devices"] if d["node"] == "gpu-node-2")
    assert not [gap for gap in truth["gaps"] if gap["node"] == "gpu-node-2"]
    held, first = con.execute(
        "select sum(held_seconds), min(seen_at) from lake.device_sample where device_uuid = ?", [uuid]
    ).fetchone()
    # The last sample holds one step, so only the milliseconds before the first scrape are unseen.
    unseen = (first - plan.window.start_at.replace(tzinfo=None)).total_seconds()
    assert held == pytest.approx(2 * 86_400 - unseen, abs=1e-6)


def test_workers_change_no_byte(plan: SimulationPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groups, each of a node."""
    monkeypatch.setattr("gpureport.simulate.exporter.NODES_PER_GROUP", 1)
    several = replace(plan, days=1, step_seconds=1800, kube_state_step_seconds=3600, signals=plan.signals[:3])
    counts = {fill_lake(several, tmp_path / str(workers), "sim", workers) for workers in (1, 2)}
    assert len(counts) == 1
    one, two = (seen(tmp_path / name) for name in ("1", "2"))
    assert one == two
    assert len([name for name in one if name.endswith("/0001")]) >= 5


def test_owners_in_the_lake_are_the_holders_told(con: duckdb.DuckDBPyConnection, truth: dict) -> None:
    rows = con.execute("select distinct namespace, pod, device_uuid, gpu_instance_id from lake.owner_label").fetchall()
    known = {
        (holder["namespace"], holder["pod"], device["device_uuid"], device["gpu_instance_id"])
        for holder in truth["holders"]
        for device in holder["devices"]
    }
    assert set(rows) <= known
    assert len(known - set(rows)) < 5  # a pod that lived only between two scrapes or in a gap is never seen


def test_xid_events_in_the_lake_are_those_planted(con: duckdb.DuckDBPyConnection, truth: dict) -> None:
    rows = con.execute(
        "select distinct device_uuid, xid_event_code, epoch_ms(seen_at) from lake.device_sample where xid_event_code is not null"
    ).fetchall()
    assert set(rows) == {(xid["device_uuid"], xid["code"], ms(xid["at"])) for xid in truth["xids"]}


def test_the_source_table_says_simulation(con: duckdb.DuckDBPyConnection) -> None:
    kinds = con.execute("select distinct kind, server from lake.source").fetchall()
    assert kinds == [("simulation", "seed 7")]


def test_a_lake_that_is_a_file_is_refused(plan: SimulationPlan, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    with pytest.raises(LakeError, match="is a file"):
        fill_lake(plan, tmp_path / "lake", "sim")
