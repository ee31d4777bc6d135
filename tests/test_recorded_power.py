"""The recording of a real H200: where its energy went, against an oracle that goes span by span."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from golden_case import Row, report_rows
from oracle import power
from report_tables import report_tables

RECORDING = Path(__file__).parent.parent / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"
# The oracle takes idle span by span, the facts over active time and the rest as wholes: noise of 0.1 W around the baseline.
NOISE = 1e-4


@pytest.fixture(scope="module")
def database(recorded: Path) -> Path:
    return recorded / "out" / "gpureport.duckdb"


@pytest.fixture(scope="module")
def rows(database: Path) -> dict[str, Row]:
    return {row["pod"]: row for row in report_rows(database, "container_power")}


@pytest.fixture(scope="module")
def device(database: Path) -> Row:
    [row] = report_rows(database, "device")
    return row


@pytest.fixture(scope="module")
def truth() -> power.Ledger:
    samples = oracle.read_openmetrics(RECORDING)
    [found] = oracle.devices(samples).values()
    return power.ledger(found, samples)


def charged_by(policy: str, lake: Path, folder: Path) -> dict[str, float]:
    """By pod what is charged to it by a policy of idle energy."""
    (folder / "gpureport.toml").write_text(f'[report]\nidle_policy = "{policy}"\n')
    with report_tables(lake, "2026-11-20", "2026-11-22", config_file=folder / "gpureport.toml") as con:
        return dict(con.rows("select pod, charged_joules from report.container_power"))


def test_each_holders_energy_is_the_oracles(rows: dict[str, Row], truth: power.Ledger) -> None:
    assert {owner[1] for owner in truth.holders} == rows.keys()
    for owner, expected in truth.holders.items():
        row = rows[owner[1]]
        assert row["active_joules"] == pytest.approx(expected.active, rel=NOISE)
        assert row["allocated_idle_joules"] == pytest.approx(expected.held, rel=NOISE)
        assert row["idle_joules"] == pytest.approx(expected.idle, rel=NOISE)
        assert row["active_joules_kepler"] == pytest.approx(expected.kepler, rel=NOISE)
        assert row["held_seconds"] == pytest.approx(expected.held_seconds)


def test_the_device_closes(rows: dict[str, Row], device: Row, truth: power.Ledger) -> None:
    attributed = sum(row["active_joules"] + row["allocated_idle_joules"] for row in rows.values())
    parts = device["idle_joules"] + attributed + device["unattributed_joules"]
    assert device["attributed_joules"] == pytest.approx(attributed, rel=1e-8)
    assert parts == pytest.approx(device["energy_joules"], rel=1e-8)
    assert device["closing_error_joules"] == 0
    assert device["energy_joules"] == pytest.approx(149_906.558, rel=1e-9)
    assert truth.measured == pytest.approx(device["energy_joules"], rel=1e-9)
    assert device["idle_joules"] == pytest.approx(truth.idle, rel=NOISE)


def test_counter_and_power_tell_the_same(device: Row) -> None:
    assert device["counter_joules"] == pytest.approx(149_906.558, rel=1e-9)
    assert abs(device["counter_difference_joules"]) < 1e-4 * device["counter_joules"]
    assert device["counter_joules"] - device["integral_joules"] == pytest.approx(device["counter_difference_joules"], abs=1e-3)


def test_it_idles_at_what_it_drew_before_anybody_came(rows: dict[str, Row], truth: power.Ledger) -> None:
    """25 s at 83 W; the 49 s after the last one left are within its minute of cooling down."""
    assert truth.idle_watts == 83
    assert {(row["idle_watts"], row["idle_source"]) for row in rows.values()} == {(83, "observed")}


def test_contexts_that_are_merely_held_are_held_energy(rows: dict[str, Row], truth: power.Ledger) -> None:
    assert truth.held_seconds == pytest.approx(97, abs=1)
    held = sum(row["allocated_idle_joules"] for row in rows.values())
    assert held / truth.held_seconds == pytest.approx(43, abs=2)


def test_who_trained_used_the_most(rows: dict[str, Row]) -> None:
    trainer = rows["train-llm-0"]
    assert trainer["active_joules"] > 0.7 * sum(row["active_joules"] for row in rows.values())
    assert trainer["method"] == "exclusive, sm_util_share"
    assert {row["scope"] for row in rows.values()} == {"pod"}
    assert {rows[pod]["method"] for pod in ("infer-0", "loader-0", "jupyter-0")} == {"sm_util_share"}


def test_a_policy_charges_idle_to_holders_or_to_the_pool(
    recorded: Path, rows: dict[str, Row], device: Row, tmp_path: Path
) -> None:
    holder, pool = (charged_by(policy, recorded / "lake", tmp_path) for policy in ("holder", "pool"))
    assert holder.keys() == rows.keys()
    for pod, charged in holder.items():
        own = rows[pod]
        assert own["charged_joules"] == pytest.approx(own["active_joules"] + own["allocated_idle_joules"], rel=1e-8)
        assert charged == pytest.approx(own["charged_joules"] + own["idle_joules"], rel=1e-8)
    # The pool is this one GPU: its idle energy, free time too, is all charged.
    assert sum(pool.values()) == pytest.approx(device["attributed_joules"] + device["idle_joules"], rel=1e-8)


def test_every_dimension_of_the_balance_is_the_whole(database: Path, device: Row) -> None:
    balance = report_rows(database, "energy_balance")
    dimensions = {row["dimension"] for row in balance}
    assert dimensions == {"cluster", "day", "node_name", "gpu_model", "team", "namespace", "workload"}
    for dimension in dimensions:
        rows = [row for row in balance if row["dimension"] == dimension]
        assert sum(row["energy_joules"] for row in rows) == pytest.approx(device["energy_joules"], rel=1e-8)
        # The GPU's 480 s less the last second, whose growth is not known, whoever held it.
        assert sum(row["measured_gpu_hours"] for row in rows) * 3600 == pytest.approx(480, abs=1.5)


def test_without_prices_and_without_kepler_nothing_of_them_is_made(recorded: Path) -> None:
    made = {path.stem for path in (recorded / "out" / "csv").iterdir()}
    assert "energy_balance" in made
    assert not made & {"cost", "kepler_pod"}
