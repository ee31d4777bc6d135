"""What adds up: the report of two days is, amount by amount, the sum of the reports of each."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from test_revisions import digests

from gpureport.collect.snapshot import import_folder
from gpureport.commands.work.settings import facts_made_with, report_settings
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.fact_views import ROLLED_UP, Facts
from gpureport.compute.period import WindowTables, report_tables
from gpureport.compute.query import connection
from gpureport.config import Config
from gpureport.lake import Partition, open_lake
from gpureport.report.results import Maps, Result
from gpureport.simulate import demo_plan, fill_lake, write_states
from gpureport.values.window import Window, parse_instant

AMOUNT = re.compile(r"(_seconds|_joules|_kwh|gpu_hours|xid_error_count)$")
KEYS = {
    "device": "device_uuid, gpu_instance_id",
    "container": "namespace, pod, pod_uid, container",
    "container_saturation": "namespace, pod, pod_uid, container, device_uuid, gpu_instance_id",
    "container_power": "namespace, pod, pod_uid, container, device_uuid, gpu_instance_id",
    "device_allocation": "namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, device",
    "dra_claim": "namespace, claim, claim_uid, device, share_id, request",
    "gpu_hour_ledger": "device_uuid, gpu_instance_id, bucket, cause, namespace, pod, pod_uid",
    "gpu_hour_balance": "dimension, value",
    "energy_balance": "dimension, value",
    "fleet": "cluster",
    "coverage": "signal, node_name",
}
"""What a row of each table is of, days aside."""
NOT_ADDED = {"end_uncertainty_seconds"}
Amounts = dict[tuple[object, ...], float]


@contextmanager
def tables_of(lake: Path, window: Window) -> Iterator[WindowTables]:
    config = Config()
    with connection() as con:
        yield WindowTables(con, open_lake(lake), window, report_settings(config), facts_made_with(config))


def amounts(tables: WindowTables) -> Amounts:
    """Every amount of the window's tables that is known, by table, key and column."""
    tables.build([f"report.{name}" for name in KEYS])

    def of(table: str, key: str) -> Iterator[tuple[tuple[object, ...], float]]:
        names = tables.con.table(f"report.{table}").columns
        for name in (each for each in names if AMOUNT.search(each) and each not in NOT_ADDED):
            statement = f"select {key}, sum({name}) from report.{table} group by all having count({name}) > 0"
            for *row, amount in tables.con.execute(statement).fetchall():
                yield (table, name, *row), float(amount)

    return dict(found for table, key in KEYS.items() for found in of(table, key))


def rows(tables: WindowTables) -> dict[str, tuple[list[tuple[Any, ...]], Maps]]:
    """Every row of every report table, as it leaves the database."""
    results = [Result(query, tables.con) for query in report_tables(tables).values()]
    return {result.name: (result.rows.rows(), result.maps) for result in results}


FIRST = Window(parse_instant("2026-11-18T10:20:00Z"), parse_instant("2026-11-19T00:00:00Z"))
SECOND = Window.of_day(date(2026, 11, 19))
BOTH = Window(FIRST.start_at, SECOND.end_at)


def test_the_amounts_of_two_days_are_those_of_each_and_every_table_is_the_same_from_days_as_from_hours(
    simulated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a day that is cut, and of a whole one."""
    with tables_of(simulated, FIRST) as first, tables_of(simulated, SECOND) as second, tables_of(simulated, BOTH) as tables:
        one, other, both, from_days = amounts(first), amounts(second), amounts(tables), rows(tables)
    assert both.keys() == one.keys() | other.keys()
    # Each table rounds to nine digits.
    assert both == {key: pytest.approx(one.get(key, 0) + other.get(key, 0), rel=1e-8, abs=1e-6) for key in both}
    assert {table for table, *_ in both} >= KEYS.keys() - {"dra_claim"}

    def of_hours(facts: Facts, table: str) -> dict[date, list[Partition]]:
        """As a lake tells that was computed before there were roll-ups."""
        return {} if table in ROLLED_UP else by_day(facts, table)

    by_day = Facts._by_day
    monkeypatch.setattr(Facts, "_by_day", of_hours)
    with tables_of(simulated, BOTH) as tables:
        from_hours = rows(tables)
    assert from_days.keys() == from_hours.keys()
    assert [name for name in from_days if from_days[name] != from_hours[name]] == []
    assert sum(len(found) for found, _ in from_days.values()) > 1000


def test_days_computed_at_once_have_the_facts_of_each_alone(tmp_path: Path) -> None:
    """With MIG, shared GPUs, claims and quotas: the same rows, their numbers to nine digits, and what each is made from.

    Beside it a cluster whose nodes, pods and devices have the same names, on one of the days.
    """
    plan = replace(demo_plan(10, 2, date(2026, 3, 1)), scenario="mixed", mig_share=0.25, sharing_share=0.25, dra_share=0.2)
    alone, at_once = tmp_path / "alone", tmp_path / "at-once"
    first, second = plan.dates  # what is known of a device, and its idle power, goes on from the first
    fill_lake(plan, alone, "sim", workers=1)
    fill_lake(replace(plan, days=1, start_date=second), alone, "twin", workers=1)
    for observed_at, folder in write_states(plan, tmp_path / "states"):
        for cluster in ("sim", "twin"):
            import_folder(alone, folder, cluster, observed_at, datetime(2026, 4, 1, tzinfo=UTC))
    shutil.copytree(alone, at_once)
    due = [("sim", first), ("sim", second), ("twin", second)]
    compute_days(open_lake(alone), [due[0], due[2]], ComputeSettings())  # no other cluster has facts of the twin's day
    compute_days(open_lake(alone), [due[1]], ComputeSettings())
    compute_days(open_lake(at_once), due, ComputeSettings())
    assert digests(alone) == digests(at_once)
    for each in due:
        one, other = (dict(open_lake(place).note(*each)) for place in (alone, at_once))
        assert one.pop("change") != other.pop("change")
        assert one == other != {}
    with tables_of(at_once, Window.of_day(second)) as tables:
        tables.build(["facts.ownership", "facts.claim_device"])
        kinds = "select list_sort(list_distinct(list(sharing_mode))), bool_or(gpu_instance_id != '') from facts.ownership"
        assert tables.con.execute(kinds).fetchall() == [(["exclusive", "mig", "time-sliced"], True)]
        assert tables.con.execute("select count(*) > 0 from facts.claim_device").fetchall() == [(True,)]
