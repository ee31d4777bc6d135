"""The GPU-hour ledger: its conditions over every state there is, and the recording's seconds against an oracle."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import pairwise, product
from pathlib import Path

import duckdb
import oracle
import pytest
from golden_case import report_rows

from gpureport.compute.query import build, load

QUERIES = load()
WINDOW = {"since_at": datetime(2026, 3, 1), "until_at": datetime(2026, 3, 2)}
ACTIVE = ("effective", "ineffective", "busy")
ACTIVITIES = (*ACTIVE, "inactive", "unreported", "unseen")
RECORDING = Path(__file__).parent.parent / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"

State = tuple[str, bool, bool, str, str, bool, str]
"""outage, is_reserved, is_unsliced, stranding, activity, is_allocated, label_cause"""

STATES: list[State] = [
    state
    for state in product(
        ("", "cordoned"), (False, True), (False, True), ("", "fragmented"), ACTIVITIES, (False, True), ("", "no_pod_labels")
    )
    if not (state[1] and state[5])  # who holds it has taken it up: it is no longer merely reserved
]


def bucket_of(state: State) -> str:
    """The first that holds, in the order in which they are defined."""
    outage, is_reserved, is_unsliced, stranding, activity, is_allocated, label_cause = state
    is_named = is_allocated or (activity not in ACTIVE and (is_reserved or not label_cause))
    steps = [
        ("unavailable", outage != "" and not is_allocated and not is_reserved and activity not in ACTIVE),
        ("unknown", not is_allocated and (activity == "unseen" or not is_named)),
        ("allocated_unmeasured", is_allocated and activity in ("unseen", "unreported")),
        ("allocated_idle", is_allocated and activity == "inactive"),
        ("effective", activity == "effective"),
        ("underutilized", activity == "ineffective"),
        ("active_unmeasured", activity == "busy"),
        ("reserved_idle", is_reserved),
        ("fragmented", is_unsliced or stranding != ""),
        ("free", True),
    ]
    return next(name for name, holds in steps if holds)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    """Every state for an hour, each on an instance of its own; the ledger over them."""
    with duckdb.connect() as con:
        con.execute(
            "create schema facts; create schema period; create schema report; "
            "create table facts.ledger_hour (cluster varchar, device_uuid varchar, gpu_instance_id varchar, "
            "hour_start_at timestamp, outage varchar, is_reserved boolean, is_unsliced boolean, stranding varchar, "
            "activity varchar, namespace varchar, pod varchar, pod_uid varchar, hours_method varchar, gpu_seconds double)"
        )
        con.execute(
            "create table period.capacity (cluster varchar, node_name varchar, device_uuid varchar, day date, "
            "gpu_model varchar, device_count bigint, capacity_seconds double, unseen_seconds double, unseen_cause varchar)"
        )
        con.execute(
            "create table period.unseen_allocation (cluster varchar, node_name varchar, day date, state varchar, "
            "namespace varchar, pod varchar, pod_uid varchar, unseen_ratio double, covers_unnamed boolean)"
        )
        con.execute("create table period.holder_day (cluster varchar, device_uuid varchar, day date, cause varchar)")
        for number, (outage, is_reserved, is_unsliced, stranding, activity, is_allocated, label_cause) in enumerate(STATES):
            pod = "p" if is_allocated or is_reserved else ""
            con.execute(
                "insert into facts.ledger_hour "
                "values ('c', $1, '1', '2026-03-01 05:00', $2, $3, $4, $5, $6, $7, $7, '', 'exclusive', 3600)",
                [str(number), outage, is_reserved, is_unsliced, stranding, activity, pod],
            )
            con.execute(
                "insert into period.capacity values ('c', 'n', $1, '2026-03-01', 'm', 1, 3600, 0, 'unseen')", [str(number)]
            )
            con.execute("insert into period.holder_day values ('c', $1, '2026-03-01', $2)", [str(number), label_cause])
        build(con, QUERIES["facts.ledger_day"], WINDOW)
        build(con, QUERIES["period.ledger"], WINDOW)
        yield con


def test_every_state_is_in_exactly_one_bucket_and_in_the_right_one(con: duckdb.DuckDBPyConnection) -> None:
    found: dict[int, list[str]] = defaultdict(list)
    for device_uuid, bucket in con.execute("select device_uuid, bucket from period.ledger").fetchall():
        found[int(device_uuid)].append(bucket)
    assert {STATES[number]: buckets for number, buckets in found.items()} == {state: [bucket_of(state)] for state in STATES}


def test_all_ten_buckets_occur(con: duckdb.DuckDBPyConnection) -> None:
    assert {bucket_of(state) for state in STATES} == {
        row[0] for row in con.execute("select distinct bucket from period.ledger").fetchall()
    }
    assert len({bucket_of(state) for state in STATES}) == 10


def test_the_ledger_closes_and_a_lost_span_is_found(con: duckdb.DuckDBPyConnection) -> None:
    check = QUERIES["checks.ledger_does_not_close"]
    build(con, check, {})
    assert con.table(check.table).fetchall() == []
    con.execute("begin; delete from period.ledger where device_uuid = '7'")
    build(con, check, {})
    assert [row[2] for row in con.table(check.table).fetchall()] == ["7"]
    con.execute("rollback")


def expected_seconds(device: oracle.Device) -> dict[tuple[str, str], float]:
    """Seconds by bucket and pod: the time between any two changes, looked at one after the other."""
    spans = device.signals
    ends = {edge for found in spans.values() for span in found for edge in (span.start_ms, span.end_ms)}
    ends |= {edge for runs in device.owners.values() for run in runs for edge in (run.start_ms, run.end_ms)}
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for start, end in pairwise(sorted(ends)):
        values = {name: value for name in spans if (value := value_at(spans[name], start)) is not None}
        if not values:
            continue
        holders = [owner[1] for owner, runs in device.owners.items() if any(run.start_ms <= start < run.end_ms for run in runs)]
        for pod in holders or [""]:
            seconds[bucket_at(values, pod), pod] += (end - start) / 1000 / max(1, len(holders))
    return seconds


def value_at(spans: list[oracle.Span], instant: int) -> float | None:
    return next((span.value for span in spans if span.start_ms <= instant < span.end_ms), None)


def bucket_at(values: dict[str, float], pod: str) -> str:
    is_active = (
        values.get("gpu_util", 0) > 0
        or values.get("gr_engine_active", 0) >= 0.001
        or values.get("sm_active", 0) >= 0.001
        or values.get("pcie_tx", 0) >= 1e8
        or values.get("pcie_rx", 0) >= 1e8
    )
    if not pod:
        return "unknown" if is_active else "free"
    if not is_active:
        return "allocated_idle"
    if "sm_active" not in values:
        return "active_unmeasured"
    return "effective" if values["sm_active"] >= 0.5 else "underutilized"


def test_the_recordings_480_seconds_are_where_an_oracle_puts_them(demo: Path) -> None:
    [device] = oracle.devices(oracle.read_openmetrics(RECORDING)).values()

    rows = report_rows(demo / "gpureport.duckdb", "gpu_hour_ledger")

    found = {(row["bucket"], row["pod"]): row["gpu_hours"] * 3600 for row in rows}
    assert found == pytest.approx(expected_seconds(device), abs=1e-5)
    assert sum(found.values()) == pytest.approx(480, abs=1e-5)
    [total] = [row for row in report_rows(demo / "gpureport.duckdb", "gpu_hour_balance") if row["dimension"] == "cluster"]
    assert total["capacity_gpu_hours"] * 3600 == pytest.approx(480)
    assert total["difference_gpu_hours"] == 0

    [hour] = report_rows(demo / "gpureport.duckdb", "gpu_hours_over_time")
    assert hour["usable_gpu_hours"] * 3600 == pytest.approx(480)
    for bucket in ("effective", "allocated_idle"):
        held = sum(seconds for (name, _), seconds in found.items() if name == bucket)
        assert hour[f"{bucket}_gpu_hours"] * 3600 == pytest.approx(held, abs=1e-5)
