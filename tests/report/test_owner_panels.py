"""An owner's second screen: its days, workloads and waits, from its own rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import duckdb
import polars as pl
import pytest

from gpureport.query import build, load
from gpureport.report.owner_panels import owner_panels
from gpureport.report.panels import Panel
from gpureport.report.results import Result
from gpureport.report.unknown import Unknown
from gpureport.report.workloads import Workload
from gpureport.window import Window, parse_instant, plain

WINDOW = Window(parse_instant("2026-03-02T00:00:00Z"), parse_instant("2026-03-05T00:00:00Z"))
HELD = {"cluster": "c", "namespace": "lab", "pod": "train-0", "pod_uid": "u", "bucket": "effective", "gpu_hours": 4.0}
WAIT_COLUMNS = (
    *("cluster varchar", "namespace varchar", "pod varchar", "pod_uid varchar", "resource varchar", "requested_units double"),
    *("created_at timestamp", "scheduled_at timestamp", "waiting_until_at timestamp", "end_at timestamp"),
    *("running_at timestamp", "gpu_model varchar", "is_refused boolean"),
)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"create schema facts; create schema period; create table facts.pod_wait ({', '.join(WAIT_COLUMNS)})")
        yield con


def ledger(*rows: Mapping[str, Any]) -> dict[str, Result]:
    whole: Sequence[Mapping[str, Any]] = [{"day": date(2026, 3, 2), **HELD, **row} for row in rows]
    return {"gpu_hour_ledger": Result(load()["report.gpu_hour_ledger"], pl.DataFrame(whole), {})}


def panel(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Result], anchor: str) -> Panel:
    known = {("c", "lab", "train-0", "u"): Workload("Job", "train"), ("c", "lab", "train-1", "v"): Workload("Job", "train")}
    return next(each for each in owner_panels(con, tables, known) if each.anchor == anchor)


def wait(con: duckdb.DuckDBPyConnection, pod: str, created: str, placed: str | None, until: str, namespace: str = "lab") -> None:
    con.execute(
        "insert into facts.pod_wait values ('c', $1, $2, $2, 'nvidia.com/gpu', 2, $3, $4, $5, coalesce($4, $5), null, '', false)",
        [namespace, pod, created, placed, until],
    )


def judge(con: duckdb.DuckDBPyConnection) -> None:
    """The waits as the window has them."""
    build(con, load()["period.pod_wait"], {"since_at": plain(WINDOW.start_at), "until_at": plain(WINDOW.end_at)})


def test_days_without_use_stand_between_those_with_it(con: duckdb.DuckDBPyConnection) -> None:
    days = panel(con, ledger({}, {"day": date(2026, 3, 4), "bucket": "allocated_idle", "gpu_hours": 6.0}), "own-days")
    assert days.key == (("", "most, 6 GPU-h, on 2026-03-04"),)
    assert "<title>2026-03-02, effective: 4 GPU-h (100.0 %)</title>" in days.chart
    assert panel(con, ledger({}), "own-days").missing == "Needs 2 days or more to show a course; there is use on 1."


def test_workloads_with_the_most_idle_hours_stand_first(con: duckdb.DuckDBPyConnection) -> None:
    idle = {"pod": "notebook", "pod_uid": "n", "bucket": "allocated_idle", "gpu_hours": 3.0}
    found = panel(con, ledger({}, {"pod": "train-1", "pod_uid": "v"}, idle), "own-workloads").listing
    assert found is not None
    assert found.rows == (
        ("notebook", "by the pods' names", "1", "3", "0", "3", "0"),
        ("train", "Job", "2", "8", "8", "0", "0"),  # two pods of 4 GPU-h
    )


def test_how_effective_a_workload_was_is_unknown_where_nothing_tells(con: duckdb.DuckDBPyConnection) -> None:
    busy = {"bucket": "allocated_busy"}
    alone = panel(con, ledger(busy), "own-workloads").listing
    partly = panel(con, ledger(busy, {}), "own-workloads").listing
    assert alone is not None and partly is not None
    assert isinstance(alone.rows[0][4], Unknown) and alone.rows[0][4].why == "SM activity is not measured"
    assert partly.rows[0][4] == "≥ 4"


def test_waits_are_of_its_own_pods_in_the_window_each_once_the_longest_first(con: duckdb.DuckDBPyConnection) -> None:
    wait(con, "quick", "2026-03-02T01:00:00", "2026-03-02T01:00:10", "2026-03-02T01:00:10")
    wait(con, "slow", "2026-03-01T22:00:00", None, "2026-03-02T00:00:00")  # as the day before told it
    wait(con, "slow", "2026-03-01T22:00:00", "2026-03-02T01:00:00", "2026-03-02T01:00:00")
    wait(con, "still", "2026-03-04T23:00:00", None, "2026-03-05T06:00:00")  # an hour until the window's end
    wait(con, "before", "2026-03-01T01:00:00", "2026-03-01T02:00:00", "2026-03-01T02:00:00")
    wait(con, "others", "2026-03-02T01:00:00", "2026-03-02T09:00:00", "2026-03-02T09:00:00", namespace="theirs")
    judge(con)
    found = panel(con, ledger({}), "own-waits")
    assert found.listing is not None
    assert found.listing.rows == (
        ("slow", "2 × nvidia.com/gpu", "3 h", "was given a place"),
        ("still", "2 × nvidia.com/gpu", "1 h", "still waits, as last seen"),
        ("quick", "2 × nvidia.com/gpu", "10 s", "was given a place"),
    )
    # Of 10 s and 10,800 s half wait at most 5,405 s, and nineteen of twenty 10 + 0.95 × 10,790 = 10,260.5 s.
    assert "2 pods were given a place, half of them within 1 h 30 min, nineteen of twenty within 2 h 51 min." in found.sentence


def test_without_waits_it_says_what_would_tell_of_them(con: duckdb.DuckDBPyConnection) -> None:
    judge(con)
    assert panel(con, ledger({}), "own-waits").listing is None
    con.execute("drop table period.pod_wait")
    assert "kube-state-metrics" in panel(con, ledger({}), "own-waits").missing
