"""Teams, findings and the trend of the overview, and the tables of the terminal, from tables that are made by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import duckdb
import polars as pl
import pytest

from gpureport.compute.query import load
from gpureport.report.page import ranked_teams
from gpureport.report.page.drawings import spark
from gpureport.report.page.grids import grids, trends
from gpureport.report.page.overview import overview
from gpureport.report.page.own_grids import BOUND, TOP, top
from gpureport.report.page.tables import Tables, opened_tables
from gpureport.report.page.words import Money
from gpureport.values.window import Window, parse_instant

from .answer_tables import HEADER, LEDGER, add_device, add_finding, fill

USE = ("effective_gpu_hours", "underutilized_gpu_hours", "idle_gpu_hours", "idle_cost")


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        fill(con, LEDGER)
        yield con


def test_days_that_the_window_cuts_are_no_dip_in_the_course_of_a_team(con: duckdb.DuckDBPyConnection) -> None:
    """From 18:00 to 18:00 serving has 2 GPUs all the time: 12 GPU-h in 6 hours, 36 in 18."""
    con.execute("delete from report.gpu_hour_ledger")
    con.execute("""
        insert into report.gpu_hour_ledger
        select 'lab', 'serving', 'web', '', 'M', unnest([date '2026-11-20', date '2026-11-21']), 'effective', unnest([12, 36])
    """)
    later = timedelta(hours=18)
    window = Window(HEADER.window.start_at + later, HEADER.window.end_at + later)
    with opened_tables(con, {}) as tables:
        (team,) = overview(tables, replace(HEADER, window=window), Money("$"), {}).teams
    assert (team.gpus, team.spark) == ("2.0", spark([2, 2]))


def test_a_day_whose_allocation_is_unknown_is_no_dip_in_the_course_of_a_team(con: duckdb.DuckDBPyConnection) -> None:
    """Serving has 2 GPUs on two days; on the third nothing was exported, on the fourth all GPUs are known to be free."""
    con.execute("delete from report.gpu_hour_ledger")
    con.execute("""
        insert into report.gpu_hour_ledger values
        ('lab', 'serving', 'web', '', 'M', date '2026-11-20', 'effective', 48),
        ('lab', 'serving', 'web', '', 'M', date '2026-11-21', 'effective', 48),
        ('lab', '', '', '', 'M', date '2026-11-22', 'unknown', 48),
        ('lab', '', '', '', 'M', date '2026-11-23', 'free', 48)
    """)
    window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=4))
    with opened_tables(con, {}) as tables:
        (team,) = overview(tables, replace(HEADER, window=window), Money("$"), {}).teams
    assert team.spark == spark([2, 2, 0])


def test_a_day_without_data_of_its_cluster_is_no_dip_in_the_course_of_a_team(con: duckdb.DuckDBPyConnection) -> None:
    """Serving has 2 GPUs in east, of which the third day is unknown; in lab vision has 1, and research 1 in each cluster."""
    con.execute("""
        delete from report.gpu_hour_ledger;
        insert into report.gpu_hour_ledger
        select cluster, namespace, 'p', '', 'M', day, 'effective', hours
        from (values ('east', 'serving', 48), ('east', 'research', 24), ('lab', 'research', 24), ('lab', 'vision', 24))
            as holder (cluster, namespace, hours), (values (date '2026-11-20'), ('2026-11-21'), ('2026-11-22')) as each (day)
        where cluster = 'lab' or day < '2026-11-22';
        insert into report.gpu_hour_ledger values ('east', '', '', '', 'M', date '2026-11-22', 'unknown', 72)
    """)
    window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=3))
    with opened_tables(con, {}) as tables:
        teams = overview(tables, replace(HEADER, window=window, clusters=("east", "lab")), Money("$"), {}).teams
    assert {each.name: each.spark for each in teams} == {
        "serving": spark([2, 2]), "research": spark([2, 2]), "vision": spark([1, 1, 1])
    }  # fmt: skip
    # Of 72 hours, serving had 96 / 72 = 1.3 GPUs at least; research 24 x 2 in east and 24 x 3 in lab: 120 / 72 = 1.7.
    assert {each.name: each.gpus for each in teams} == {"serving": "≥ 1.3", "research": "≥ 1.7", "vision": "1.0"}


def test_findings_of_which_one_has_no_price_cost_as_much_at_least(con: duckdb.DuckDBPyConnection) -> None:
    """Two GPUs of a node, 4 h each: one at $6, one of a model without a price."""
    add_device(con, "GPU-2", "4")
    for uuid, cost in (("GPU-1", 6), ("GPU-2", None)):
        add_finding(con, "GR302", "warning", uuid)
        con.execute(
            "update report.finding set device_uuid = ?, gpu_hours = 4, at_stake_cost = ? where evidence = ?", [uuid, cost, uuid]
        )
    with opened_tables(con, {}) as tables:
        assert [each["impact"] for each in overview(tables, HEADER, Money("$"), {}).findings] == ["8 GPU-h · ≥ $6"]
    con.execute("update report.finding set gpu_hours = null where at_stake_cost is null")  # as of a MIG instance of unknown size
    with opened_tables(con, {}) as tables:
        assert [each["impact"] for each in overview(tables, HEADER, Money("$"), {}).findings] == ["≥ 4 GPU-h · ≥ $6"]


def test_a_findings_place_is_no_code(con: duckdb.DuckDBPyConnection) -> None:
    """What concerns no node, holder or model is of the cluster, whatever its reason."""
    for code, detail in (("GR001", "no_exporter"), ("GR701", "NVIDIA H200")):
        add_finding(con, code, "warning", detail)
        con.execute("update report.finding set detail = evidence, node_name = '', device_uuid = '' where code = ?", [code])
    with opened_tables(con, {}) as tables:
        lines = overview(tables, HEADER, Money("$"), {}).findings
        add_finding(con, "GR401", "critical", "XID 48")
        con.execute("update report.finding set detail = '48' where code = 'GR401'")
    with opened_tables(con, {}) as tables:
        subjects = dict(con.execute("select code, subject from page.finding").fetchall())
    assert {each["code"]: each["where"] for each in lines} == {"GR001": "lab", "GR701": "NVIDIA H200"}
    assert subjects == {"GR001": "lab", "GR701": "NVIDIA H200", "GR401": "lab"}


def test_errors_that_ask_for_other_actions_are_lines_of_their_own(con: duckdb.DuckDBPyConnection) -> None:
    add_device(con, "GPU-2", "4")
    add_device(con, "GPU-5", "5")
    for device, severity, xid in (("GPU-1", "critical", "119"), ("GPU-5", "critical", "119"), ("GPU-2", "info", "63")):
        add_finding(con, "GR401", severity, f"XID {xid}")
        con.execute("update report.finding set device_uuid = ?, detail = ? where detail = ''", [device, xid])
    with opened_tables(con, {}) as tables:
        lines = overview(tables, HEADER, Money("$"), {}).findings
    assert [(each["severity"], each["evidence"], each["where"], each["times"]) for each in lines] == [
        ("critical", "XID 119", "node-1 · 2 GPUs", 2),
        ("info", "XID 63", "node-1 · GPU 4", 1),
    ]


def test_a_finding_of_a_team_leads_to_its_row_among_the_teams_own(con: duckdb.DuckDBPyConnection) -> None:
    """The second of three is of research; so is the third, of serving's namespace lent to it."""
    for code, namespace in (("GR101", "serving"), ("GR102", "research"), ("GR103", "lent")):
        add_finding(con, code, "warning", code)
        con.execute("update report.finding set namespace = ?, owner = 'research' where code = ?", [namespace, code])
    con.execute("insert into report.gpu_hour_ledger values ('lab', 'lent', 'l', '', 'M', '2026-11-20', 'effective', 1)")
    with opened_tables(con, {("lab", "lent"): "research"}) as tables:
        lines = {team: overview(tables, HEADER, Money("$"), {}, team).findings for team in ("", "serving", "research")}
    assert {team: [(each["code"], each["row"]) for each in found] for team, found in lines.items()} == {
        "": [("GR101", 0), ("GR102", 1), ("GR103", 2)],
        "serving": [("GR101", 0)],
        "research": [("GR102", 0), ("GR103", 1)],
    }


def test_shares_of_a_team_are_lower_bounds_where_its_use_is_not_measured(con: duckdb.DuckDBPyConnection) -> None:
    """12 of 60 hours are effective; of 12 no use is measured, or only that the GPU is active. Of research all is."""
    row = "insert into report.gpu_hour_ledger values ('lab', 'serving', 'web-7d4b9c8f6d-x2x4z', '', 'M', '2026-11-20', ?, 12)"
    for bucket, idle in (("allocated_unmeasured", "≥ 0"), ("active_unmeasured", "0")):
        con.execute(row, [bucket])
        with opened_tables(con, {}) as tables:
            teams = {each.name: (each.effective, each.idle) for each in overview(tables, HEADER, Money("$"), {}).teams}
        assert teams == {"serving": ("≥ 20.0 %", idle), "research": ("0 %", "24")}
        con.execute("delete from report.gpu_hour_ledger where bucket = ?", [bucket])


def test_a_team_page_has_the_rank_that_the_table_of_teams_has(con: duckdb.DuckDBPyConnection) -> None:
    """Serving has 48 allocated hours, research 24 and 40 reserved, claims 30 reserved alone: reserved hours are not allocated."""
    con.execute("""insert into report.gpu_hour_ledger values
        ('lab', 'research', 'hold-0', '', 'M', '2026-11-20', 'reserved_idle', 40),
        ('lab', 'claims', 'c', '', 'M', '2026-11-20', 'reserved_idle', 30)""")
    with opened_tables(con, {}) as tables:
        assert [each.name for each in overview(tables, HEADER, Money("$"), {}).teams] == ["serving", "research", "claims"]
        assert ranked_teams(tables) == ["serving", "research", "claims"]


def test_a_top_team_has_no_zero_and_no_sum_that_lacks_most_hours_or_prices(con: duckdb.DuckDBPyConnection) -> None:
    """SM activity is unknown of 40 of 64 hours, then of 24 of 48; 4 of 52 hours have no price."""
    row = "insert into report.gpu_hour_ledger values ('lab', ?, ?, '', ?, '2026-11-20', ?, ?)"
    con.execute(row, ["research", "hold-0", "M", "active_unmeasured", 40])
    con.execute(row, ["serving", "web-7d4b9c8f6d-x2x4z", "N", "effective", 4])
    sql = TOP["teams"][0]
    for hours, effective in ((40, None), (24, 0)):
        con.execute("update report.gpu_hour_ledger set gpu_hours = ? where bucket = 'active_unmeasured'", [hours])
        with opened_tables(con, {}) as tables:
            found = {row["team"]: (row["effective_gpu_hours"], row["cost"]) for row in tables.rows(sql, hours=24)}
        assert found == {"research": (effective, 2 * (24 + hours)), "serving": (16, None)}


def test_idle_hours_of_a_workload_are_unknown_where_most_use_is_not_measured(con: duckdb.DuckDBPyConnection) -> None:
    """Of web 48 h are active. With 60 h more of unknown use most is unknown, so idle hours are no 0; with 40 h more they are."""
    row = "insert into report.gpu_hour_ledger values ('lab', 'serving', 'web-7d4b9c8f6d-x2x4z', '', 'M', '2026-11-21', ?, ?)"
    con.execute(row, ["allocated_unmeasured", 60])
    for hours, idle in ((60, None), (40, 0)):
        con.execute("update report.gpu_hour_ledger set gpu_hours = ? where bucket = 'allocated_unmeasured'", [hours])
        with opened_tables(con, {}) as tables:
            found = {row["team"]: row["idle_gpu_hours"] for row in tables.rows(TOP["teams"][0], hours=48)}
        assert found == {"serving": idle, "research": 24}


def test_hours_of_use_are_lower_bounds_beside_hours_whose_use_is_not_measured(con: duckdb.DuckDBPyConnection) -> None:
    """Of web 12 h are active with unknown SM activity; of hold's 36 h no use of 12 is measured, so 24 are idle at least.

    0.1 h without data, of 24, change nothing.
    """
    con.execute("""
        insert into report.gpu_hour_ledger values
        ('lab', 'serving', 'web-7d4b9c8f6d-x2x4z', '', 'M', '2026-11-20', 'active_unmeasured', 12),
        ('lab', 'research', 'hold-0', '', 'M', '2026-11-20', 'allocated_unmeasured', 12),
        ('lab', 'data', 'etl-0', '', 'M', '2026-11-20', 'effective', 23.9),
        ('lab', 'data', 'etl-0', '', 'M', '2026-11-20', 'allocated_unmeasured', 0.1);
        create or replace table report.container as select distinct cluster, namespace, pod, pod_uid, 'main' as container,
            24e0 as device_seconds, 0.5 as sm_active_avg, 1e0 as sm_active_seen_seconds, 0.5 as gpu_usage_avg,
            1e0 as gpu_usage_seen_seconds, 0.5 as memory_used_ratio_max from report.gpu_hour_ledger where namespace != '';
        create table report.container_power as select *, 0e0 as observed_seconds, 0e0 as measured_seconds, 0e0 as energy_joules,
            0e0 as idle_watts, '' as idle_source from report.container;
        create table report.boundness as select *, '' as bound_by from report.container;
        create or replace table report.device as select *, 'node-1' as node_name, 'M' as gpu_model, 3.6e6 as energy_joules
            from report.device;
        create or replace table report.gpu_hour_ledger as select *, 'GPU-1' as device_uuid, '' as gpu_instance_id
            from report.gpu_hour_ledger;
    """)
    with opened_tables(con, {}) as tables:
        found = {each.name: each for each in grids(tables, {}, 24, Money("$"))}
    shown = {name: [each.name for each in grid.columns if not each.is_hidden] for name, grid in found.items()}
    cells = {
        name: {row[0][0]: [row[at][0] for at, column in enumerate(shown[name]) if column in USE] for row in found[name].first}
        for name in ("workload", "containers", "devices")
    }
    assert cells["workload"] == {
        "web": ["≥ 12", "≥ 36", "0", "$0"], "hold": ["≥ 0", "≥ 0", "≥ 24", "≥ $48"], "etl": ["23.9", "0", "0", "$0"]
    }  # fmt: skip
    assert cells["containers"] == {"web-7d4b9c8f6d-x2x4z": ["0"], "hold-0": ["≥ 24"], "etl-0": ["0"]}
    assert cells["devices"] == {"node-1": ["≥ 24"]}  # 24 idle, 12.1 not measured


def test_idle_hours_of_an_instance_are_a_lower_bound_where_its_board_has_unknown_hours(con: duckdb.DuckDBPyConnection) -> None:
    """A day of GPU-1 is unknown, and so is who had its instances; then 3 GPU-h of one are idle. No finding is no unknown one."""
    con.execute("""
        create or replace table report.gpu_hour_ledger as
        select 'lab' as cluster, 'GPU-1' as device_uuid, *, '' as pod_uid, 'M' as gpu_model, date '2026-11-20' as day
        from (values ('', '', '', 'unknown', 24e0), ('1', 'ml', 'p', 'allocated_idle', 3e0), ('1', 'ml', 'p', 'effective', 9e0))
            as part (gpu_instance_id, namespace, pod, bucket, gpu_hours);
        create or replace table report.device as select * replace (unnest(['', '1']) as gpu_instance_id), 'n' as node_name,
            'M' as gpu_model, 3.6e6 as energy_joules from report.device;
    """)
    with opened_tables(con, {}) as tables:
        found = {row["gpu_instance_id"]: row for row in tables.rows(TOP["gpus"][0])}
    assert (found["1"]["idle_gpu_hours"], found["1"]["least_hours"]) == (3, ["idle_gpu_hours"])
    assert {row["finding"] for row in found.values()} == {""}


def test_sums_of_teams_and_workloads_are_lower_bounds_where_some_allocation_is_unknown(con: duckdb.DuckDBPyConnection) -> None:
    """Of lab 20 of 116 GPU-h are of unknown allocation; of far, where vision has 10, none. Each at 2: web 48, hold 24, sim 10."""
    con.execute("""
        insert into report.gpu_hour_ledger values
        ('lab', '', '', '', 'M', '2026-11-20', 'unknown', 20), ('far', 'vision', 'sim-0', '', 'M', '2026-11-20', 'effective', 10);
        create or replace table report.container as select distinct cluster, namespace, pod, pod_uid, 'main' as container,
            24e0 as device_seconds, 0.5 as sm_active_avg, 1e0 as sm_active_seen_seconds, 0.5 as gpu_usage_avg,
            1e0 as gpu_usage_seen_seconds, 0.5 as memory_used_ratio_max from report.gpu_hour_ledger where namespace != '';
        create table report.container_power as select *, 60e0 as observed_seconds, 60e0 as measured_seconds,
            3.6e6 as energy_joules, 0e0 as idle_watts, '' as idle_source from report.container;
        create table report.boundness as select *, '' as bound_by from report.container;
        create or replace table report.device as select *, 'node-1' as node_name, 'M' as gpu_model, 3.6e6 as energy_joules
            from report.device;
        create or replace table report.gpu_hour_ledger as select *, 'GPU-1' as device_uuid, '' as gpu_instance_id
            from report.gpu_hour_ledger;
        create table report.team_cost as select cluster, namespace as team, namespace, 'by name' as workload_kind,
            workload_by_name(pod) as workload, sum(gpu_hours) as gpu_hours, sum(gpu_hours) as priced_gpu_hours,
            2 * sum(gpu_hours) as total_cost, 0 as unallocated_cost
        from report.gpu_hour_ledger where namespace != '' group by all;
    """)
    with opened_tables(con, {}) as tables:
        found = {each.name: each for each in grids(tables, {"report.team_cost": load()["report.team_cost"]}, 24, Money("$"))}
        teams = {each.name: (each.gpus, each.cost) for each in overview(tables, HEADER, Money("$"), {}).teams}
        lines = [each.line for each in overview(tables, HEADER, Money("$"), {}, "research").answers]
    cells = {
        name: {
            row[names.index("workload")][0]: [row[names.index(column)][0] for column in columns]
            for names in [[each.name for each in found[name].columns if not each.is_hidden]]
            for row in found[name].first
        }
        for name, columns in (
            ("workload", ("gpus", "allocated_gpu_hours", "idle_gpu_hours", "energy_kwh", "cost")),
            ("team_cost", ("gpu_hours", "total_cost", "unallocated_cost")),
        )
    }
    assert teams == {"serving": ("≥ 2.0", "≥ $96"), "research": ("≥ 1.0", "≥ $48"), "vision": ("0.4", "$20")}
    assert cells["workload"] == {
        "web": ["≥ 2", "≥ 48", "≥ 0", "≥ 1 kWh", "≥ $96"], "hold": ["≥ 1", "≥ 24", "≥ 24", "≥ 1 kWh", "≥ $48"],
        "sim": ["0.417", "10", "0", "1 kWh", "$20"],
    }  # fmt: skip
    assert cells["team_cost"] == {"web": ["≥ 48", "≥ $96", "$0"], "hold": ["≥ 24", "≥ $48", "$0"], "sim": ["10", "$20", "$0"]}
    assert lines[0].startswith("Capacity use: 0 % effective. 100.0 % idle · ≥ 1 GPU on average")
    assert " In all: ≥ 24 GPU-h idle. " in lines[1]
    assert "GPUs to return: ≥ 1. " in lines[2]
    assert "Cost: ≥ $48. " in lines[5]


def test_energy_of_a_workload_is_unknown_where_that_of_a_container_is(con: duckdb.DuckDBPyConnection) -> None:
    """Of serving 1 kWh and an hour of unknown energy, of research 1 kWh and 10 of 3610 seconds: less than half a percent.

    1 kWh of half of serving's hour is not that of the hour either.
    """
    con.execute("""
        create or replace table report.container as select 'lab' as cluster, * from (values
            ('serving', 'web-7d4b9c8f6d-x2x4z', 3600), ('research', 'hold-0', 10)
        ) as container (namespace, pod, lacking_seconds);
        alter table report.container add column pod_uid varchar default '';
        alter table report.container add column device_seconds double default 3600;
        create table report.container_power as
            select * exclude (lacking_seconds), unnest([3600, lacking_seconds]) as observed_seconds,
                unnest([3590, 0]) as measured_seconds, unnest([3.6e6, null]) as energy_joules from report.container;
    """)
    for name in ("sm_active_avg", "sm_active_seen_seconds", "gpu_usage_avg", "gpu_usage_seen_seconds", "memory_used_ratio_max"):
        con.execute(f"alter table report.container add column {name} double")
    with opened_tables(con, {}) as tables:
        found = {row["namespace"]: row["energy_kwh"] for row in tables.rows(TOP["workloads"][0], hours=24)}
        assert found == {"serving": None, "research": 1}
        con.execute("update report.container_power set measured_seconds = 1800, energy_joules = 1 where namespace = 'serving'")
        found = {row["namespace"]: row["energy_kwh"] for row in tables.rows(TOP["workloads"][0], hours=24)}
        assert found == {"serving": None, "research": 1}


def test_the_activity_of_a_workload_is_weighed_by_gpu_hours(con: duckdb.DuckDBPyConnection) -> None:
    """An hour of 0.8 on a GPU and one of 0.1 on a seventh of a GPU: (0.8 + 0.1 / 7) / (1 + 1 / 7) = 0.7125."""
    con.execute("""
        insert into report.gpu_hour_ledger values
            ('lab', 'ml', 'train-0', '', 'M', '2026-11-20', 'effective', 1),
            ('lab', 'ml', 'train-1', '', 'M', '2026-11-20', 'effective', 1 / 7);
        create or replace table report.container as select
            'lab' as cluster, 'ml' as namespace, *, '' as pod_uid, 'main' as container, 3600e0 as device_seconds,
            3600e0 as sm_active_seen_seconds, sm_active_avg as gpu_usage_avg, 3600e0 as gpu_usage_seen_seconds,
            0.5 as memory_used_ratio_max from (values ('train-0', 0.8), ('train-1', 0.1)) as pod (pod, sm_active_avg);
        create table report.container_power as select *, 0e0 as observed_seconds, 0e0 as measured_seconds, 0e0 as energy_joules
            from report.container;
    """)
    with opened_tables(con, {}) as tables:
        found = {
            row["workload"]: (row["sm_active_avg"], row["gpu_usage_avg"]) for row in tables.rows(TOP["workloads"][0], hours=24)
        }
    assert found["train"] == (pytest.approx(0.7125), pytest.approx(0.7125))


def test_limits_of_a_container_on_several_gpus_are_listed_once_each(con: duckdb.DuckDBPyConnection) -> None:
    names = "'lab' as cluster, 'research' as namespace, 'train-0' as pod, '' as pod_uid, 'main' as container"
    con.execute(f"create table report.boundness as select {names}, unnest(['power', 'compute, power', 'compute']) as bound_by")
    assert con.sql(f"select bound_by from {BOUND} from report.boundness group by all)").fetchall() == [("compute, power",)]


def test_a_team_that_is_new_for_seconds_has_no_percentage(con: duckdb.DuckDBPyConnection) -> None:
    """44 s are 0.0122222222 GPU-hours at nine digits, and their change 0.012222222: the rest is rounding, not use before."""
    con.execute("""create table report.namespace_change as select 'lab' as cluster, 'research' as namespace, 0e0 as
        previous_allocated_gpu_hours, 0.0122222222 as allocated_gpu_hours, 0.012222222 as allocated_change_gpu_hours""")
    with opened_tables(con, {}) as tables:
        assert {each.name: each.change for each in overview(tables, HEADER, Money("$"), {}).teams}["research"] == "new"


def test_the_previous_hours_of_a_team_are_of_its_namespaces_that_ended_too(con: duckdb.DuckDBPyConnection) -> None:
    """40 hours before, 30 of them in a namespace that is gone, and 24 now: 40 % less, and not 140 % more."""
    con.execute("""
        insert into period.workload values ('lab', 'research', 'hold-0', '', 'Job', 'hold', 'science');
        create schema previous;
        create table previous.workload_ledger as
            select 'lab' as cluster, unnest(['research', 'old', '']) as namespace, unnest(['', 'science', '']) as team;
        create table report.namespace_change as
            select 'lab' as cluster, unnest(['research', 'old']) as namespace,
                unnest([10e0, 30e0]) as previous_allocated_gpu_hours, unnest([24e0, 0e0]) as allocated_gpu_hours;
    """)
    with opened_tables(con, {}) as tables:
        changes = {each.name: each.change for each in overview(tables, HEADER, Money("$"), {}).teams}
        assert changes == {"science": "−40 %", "serving": ""}
        for now, change in ((39.9, "−0.3 %"), (40.001, "0 %"), (40.2, "+0.5 %"), (95.8, "+140 %"), (4940, "+12,250 %")):
            con.execute("update report.namespace_change set allocated_gpu_hours = ? where namespace = 'research'", [now])
            assert {each.name: each.change for each in overview(tables, HEADER, Money("$"), {}).teams}["science"] == change


def test_the_trend_has_active_hours_whose_sm_activity_is_not_measured(con: duckdb.DuckDBPyConnection) -> None:
    """Of four GPUs three are active in each of two hours, of one of them the SM activity is known: half of it is effective.

    That of the other two is unknown, also where the whole is mostly measured; where it is not, the other half may be too.
    """
    con.execute("""
        update report.gpu_hour_ledger set gpu_hours = 2 where bucket = 'free';
        update report.gpu_hour_ledger set gpu_hours = 22, bucket = 'unknown' where bucket = 'fragmented';
        create or replace table report.gpu_hours_over_time as select 'lab' as cluster, *, 0e0 as unnamed_gpu_hours,
            0e0 as allocated_idle_gpu_hours from (values ('M', 3e0, 2e0, 2e0, null), ('N', 1e0, 1e0, 1e0, 5e-1))
                as trend(gpu_model, usable_gpu_hours, allocated_gpu_hours, active_gpu_hours, effective_gpu_hours),
            (values (timestamp '2026-11-20 00:00:00'), (timestamp '2026-11-20 01:00:00')) as hour(hour_start_at)
    """)
    with opened_tables(con, {}) as tables:
        drawn = str(overview(tables, HEADER, Money("$"), {}).trend)
    assert drawn.count("Effective 0.5, Underutilized 0.5, Active, SM activity not measured 2, Free 1") == 2
    con.execute("update report.gpu_hour_ledger set bucket = 'active_unmeasured' where namespace = 'serving'")
    with opened_tables(con, {}) as tables:
        drawn = str(overview(tables, HEADER, Money("$"), {}).trend)
    assert drawn.count("Effective 0.5, Active, SM activity not measured 2.5, Free 1") == 2
    assert drawn.count("20 Nov 23:00 (GPUs on average): Unknown 4<") == 1
    assert drawn.count("(GPUs on average): Unknown 4<") == 22  # hours without data: 96 - 2 x 4 GPU-h


def test_the_trend_has_underutilized_hours_from_the_day_on_which_sm_activity_is_measured(con: duckdb.DuckDBPyConnection) -> None:
    """Of two GPUs, active for two days, SM activity is measured for 10 h of the second: one is effective, the other is not."""
    con.execute("""
        delete from report.gpu_hour_ledger;
        insert into report.gpu_hour_ledger values
        ('lab', 'serving', 'web', '', 'M', date '2026-11-20', 'active_unmeasured', 48),
        ('lab', 'serving', 'web', '', 'M', date '2026-11-21', 'effective', 10),
        ('lab', 'serving', 'web', '', 'M', date '2026-11-21', 'underutilized', 10);
        create or replace table report.gpu_hours_over_time as select 'lab' as cluster, 'M' as gpu_model, 2e0 as usable_gpu_hours,
            2e0 as allocated_gpu_hours, 2e0 as active_gpu_hours, 0e0 as unnamed_gpu_hours, 0e0 as allocated_idle_gpu_hours,
            if(hour_start_at < '2026-11-21', null, 1e0) as effective_gpu_hours, hour_start_at
        from (select unnest(generate_series(timestamp '2026-11-20', timestamp '2026-11-21 09:00:00', interval 1 hour))
            as hour_start_at);
    """)
    window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=2))
    with opened_tables(con, {}) as tables:
        drawn = str(overview(tables, replace(HEADER, window=window), Money("$"), {}).trend)
    assert drawn.count("Active, SM activity not measured 2") == 24
    assert drawn.count("Effective 1, Underutilized 1") == 10


def test_hours_without_data_are_unknown_up_to_the_capacity_of_the_ledgers_day(con: duckdb.DuckDBPyConnection) -> None:
    """Four GPUs are free for 10 hours with data. Of the 56 GPU-h of the other 14, the ledger's day has 14 as unavailable.

    In Abidjan, which has UTC's time, days are sums of hours: 40, 14 and 42 of 96 GPU-h, as the ledger has them.
    """
    con.execute("""
        delete from report.gpu_hour_ledger;
        delete from report.scheduler_pressure;
        insert into report.gpu_hour_ledger select 'lab', '', '', '', 'M', day, bucket, gpu_hours
            from (values ('free', 40), ('unavailable', 14), ('unknown', 42)) as each (bucket, gpu_hours),
            (select unnest(generate_series(timestamp '2026-11-20', timestamp '2026-11-23', interval 1 day))::date as day);
        create table report.gpu_hours_over_time as select 'lab' as cluster, 'M' as gpu_model, 4e0 as usable_gpu_hours,
            0e0 as allocated_gpu_hours, 0e0 as active_gpu_hours, 0e0 as effective_gpu_hours, 0e0 as unnamed_gpu_hours,
            0e0 as allocated_idle_gpu_hours, day + to_hours(unnest(range(8, 18))) as hour_start_at
                from (select distinct day from report.gpu_hour_ledger)
    """)
    drawn = {}
    for zone, days in (("UTC", 1), ("UTC", 4), ("Africa/Abidjan", 4)):
        window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=days))
        with opened_tables(con, {}) as tables:
            header = replace(HEADER, window=window, settings={"timezone": zone})
            drawn[zone, days] = re.findall(r"on average\): ([^<]+)", str(overview(tables, header, Money("$"), {}).trend))
    assert drawn["UTC", 1] == ["Unavailable 1, Unknown 3"] * 8 + ["Free 4"] * 10 + ["Unavailable 1, Unknown 3"] * 6
    assert drawn["UTC", 4] == drawn["Africa/Abidjan", 4] == ["Free 1.67, Unavailable 0.583, Unknown 1.75"] * 4


def test_the_hours_of_a_day_add_up_to_the_categories_of_the_ledger(con: duckdb.DuckDBPyConnection) -> None:
    """Of four GPUs 18 hours have data; 0.75 GPUs are unallocated in each: of 13.5 GPU-h, 9 are free, 3 fragmented, 1.5 reserved.

    Of the 24 GPU-h of the other six hours, pods are known to hold 6; 6 are unavailable.
    """
    con.execute("""
        delete from report.gpu_hour_ledger;
        delete from report.scheduler_pressure;
        insert into report.gpu_hour_ledger select 'lab', '', '', '', 'M', day, bucket, gpu_hours
            from (values ('effective', 9), ('underutilized', 27), ('allocated_idle', 9), ('allocated_unmeasured', 15),
                ('reserved_idle', 1.5), ('fragmented', 3), ('free', 9), ('unavailable', 6), ('unknown', 16.5))
                as each (bucket, gpu_hours),
            (select unnest(generate_series(timestamp '2026-11-20', timestamp '2026-11-23', interval 1 day))::date as day);
        create table report.gpu_hours_over_time as select 'lab' as cluster, 'M' as gpu_model, 4e0 as usable_gpu_hours,
            3e0 as allocated_gpu_hours, 2e0 as active_gpu_hours, 5e-1 as effective_gpu_hours, 25e-2 as unnamed_gpu_hours,
            5e-1 as allocated_idle_gpu_hours, day + to_hours(unnest(range(0, 18))) as hour_start_at
                from (select distinct day from report.gpu_hour_ledger)
    """)
    drawn = {}
    for zone, days in (("UTC", 1), ("Africa/Abidjan", 4)):
        window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=days))
        with opened_tables(con, {}) as tables:
            header = replace(HEADER, window=window, settings={"timezone": zone})
            drawn[zone] = re.findall(r"on average\): ([^<]+)", str(overview(tables, header, Money("$"), {}).trend))
    held = "Effective 0.5, Underutilized 1.5, Allocated, use not measured 0.5, Allocated, idle 0.5"
    known = f"{held}, Reserved, idle 0.0833, Fragmented (unschedulable) 0.167, Free 0.5, Unknown 0.25"
    missing = "Allocated, use not measured 1, Unavailable 1, Unknown 2"
    assert drawn["UTC"] == [known] * 18 + [missing] * 6
    held = "Effective 0.375, Underutilized 1.13, Allocated, use not measured 0.625, Allocated, idle 0.375"
    left = "Reserved, idle 0.0625, Fragmented (unschedulable) 0.125, Free 0.375, Unavailable 0.25, Unknown 0.688"
    assert drawn["Africa/Abidjan"] == [f"{held}, {left}"] * 4


def test_an_hour_that_the_window_cuts_is_no_drop_of_the_trend(con: duckdb.DuckDBPyConnection) -> None:
    """Four free GPUs from 10:30 to 12:15 are 2, 4 and 1 GPU-h: four GPUs at any time."""
    con.execute("""
        delete from report.gpu_hour_ledger;
        delete from report.scheduler_pressure;
        insert into report.gpu_hour_ledger values ('lab', '', '', '', 'M', '2026-11-20', 'free', 7);
        create table report.gpu_hours_over_time as select 'lab' as cluster, 'M' as gpu_model, usable as usable_gpu_hours,
            0e0 as allocated_gpu_hours, 0e0 as active_gpu_hours, 0e0 as effective_gpu_hours, 0e0 as unnamed_gpu_hours,
            0e0 as allocated_idle_gpu_hours, timestamp '2026-11-20' + to_hours(hour) as hour_start_at
                from (values (10, 2e0), (11, 4e0), (12, 1e0)) as each (hour, usable)
    """)
    window = Window(parse_instant("2026-11-20T10:30:00Z"), parse_instant("2026-11-20T12:15:00Z"))
    with opened_tables(con, {}) as tables:
        drawn = str(overview(tables, replace(HEADER, window=window), Money("$"), {}).trend)
    assert re.findall(r"on average\): ([^<]+)", drawn) == ["Free 4"] * 3


def test_days_without_data_are_blank_and_a_days_part_is_no_drop(con: duckdb.DuckDBPyConnection) -> None:
    """Of five days and a half two have data; research has one GPU on the whole one and on the half one."""
    con.execute("insert into report.gpu_hour_ledger select * replace (date '2026-11-21' as day, gpu_hours / 2 as gpu_hours)"
        " from report.gpu_hour_ledger")  # fmt: skip
    window = Window(parse_instant("2026-11-16T00:00:00Z"), parse_instant("2026-11-21T12:00:00Z"))
    with opened_tables(con, {}) as tables:
        found = overview(tables, replace(HEADER, window=window), Money("$"), {})
    assert str(found.trend).count("no data") == 4
    assert {each.name: "0.0,18.0 100.0,18.0" in str(each.spark) for each in found.teams} == {"serving": True, "research": True}


def test_pending_requests_of_a_day_are_the_mean_of_the_time_in_which_they_are_known(con: duckdb.DuckDBPyConnection) -> None:
    """2 GPUs in each of 12 hours and 26.5 in a quarter of an hour are 30.625 GPU-h of 12.25 h: 2.5; other hours are unknown."""
    con.execute("""
        insert into report.gpu_hour_ledger select * replace (unnest(['2026-11-21', '2026-11-22', '2026-11-23'])::date as day)
        from report.gpu_hour_ledger;
        create or replace table report.scheduler_pressure as
        select 'lab' as cluster, 'gpu' as resource, 3600e0 as observed_seconds,
            unnest(generate_series(timestamp '2026-11-20', timestamp '2026-11-21 23:00:00', interval 1 hour)) as hour_start_at,
            if(hour_start_at = '2026-11-20 12:00:00', 900e0, 3600e0) as demand_observed_seconds,
            case when hour_start_at < '2026-11-20 12:00:00' then 2e0 when demand_observed_seconds = 900 then 26.5e0 end
                as unscheduled_units_avg;
        create table report.gpu_hours_over_time as
        select '' as team, 'lab' as cluster, 'M' as gpu_model, hour_start_at, 4e0 as usable_gpu_hours, 0e0 as unnamed_gpu_hours,
            0e0 as effective_gpu_hours, 0e0 as active_gpu_hours, 0e0 as allocated_idle_gpu_hours, 0e0 as allocated_gpu_hours
        from report.scheduler_pressure;
    """)
    window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=4))
    for zone in ("UTC", "Africa/Abidjan"):
        with opened_tables(con, {}) as tables:
            header = replace(HEADER, window=window, settings={"timezone": zone})
            drawn = str(overview(tables, header, Money("$"), {}).trend)
        assert re.findall(r"(\d+ Nov) [^>]*Pending requests ([\d.]+)", drawn) == [("20 Nov", "2.5")]


def test_the_trend_judges_each_cluster_by_its_own_sm_activity(con: duckdb.DuckDBPyConnection) -> None:
    """Of lab's two active GPUs a half is effective, and the rest is underutilized; of far's four no SM activity is known."""
    con.execute("""
        update report.gpu_hour_ledger set bucket = 'free' where bucket = 'fragmented';
        insert into report.gpu_hour_ledger values ('far', 'web', 'w', '', 'M', '2026-11-20', 'active_unmeasured', 96),
            ('far', '', '', '', 'M', '2026-11-20', 'free', 24);
        create table report.gpu_hours_over_time as select *, 0e0 as unnamed_gpu_hours, 0e0 as allocated_idle_gpu_hours,
            timestamp '2026-11-20 05:00:00' as hour_start_at
            from (values ('lab', 4e0, 2e0, 2e0, 5e-1), ('far', 5e0, 4e0, 4e0, null))
                as trend(cluster, usable_gpu_hours, allocated_gpu_hours, active_gpu_hours, effective_gpu_hours)
    """)
    with opened_tables(con, {}) as tables:
        drawn = str(overview(tables, HEADER, Money("$"), {}).trend)
    assert drawn.count("Effective 0.5, Underutilized 1.5, Active, SM activity not measured 4, Free 3") == 1


def test_a_day_of_the_trend_adds_clusters_and_their_time_without_data_is_unknown(con: duckdb.DuckDBPyConnection) -> None:
    """lab has 4 free and 2 pending GPUs all day; far, known for 12 hours, 8 and 6: 8 free, 4 unknown, and 8 pending, not 5."""
    con.execute("""
        update report.gpu_hour_ledger set bucket = 'free';
        insert into report.gpu_hour_ledger select * replace (unnest(['2026-11-21', '2026-11-22', '2026-11-23'])::date as day)
        from report.gpu_hour_ledger;
        insert into report.gpu_hour_ledger select 'far', '', '', '', 'M', '2026-11-20', unnest(['free', 'unknown']), 96;
        create or replace table report.scheduler_pressure as
        select cluster, 'gpu' as resource, hour_start_at, units as unscheduled_units_avg, gpus as usable_gpu_hours,
            3600e0 as observed_seconds, 3600e0 as demand_observed_seconds
        from (values ('lab', 2, 4, 24), ('far', 6, 8, 12)) as known (cluster, units, gpus, hours), unnest(generate_series(
            timestamp '2026-11-20', timestamp '2026-11-20' + to_hours(hours - 1), interval 1 hour)) as each (hour_start_at);
        create table report.gpu_hours_over_time as
        select *, 0e0 as unnamed_gpu_hours, 0e0 as effective_gpu_hours, 0e0 as active_gpu_hours, 0e0 as allocated_gpu_hours,
            0e0 as allocated_idle_gpu_hours from report.scheduler_pressure;
    """)
    window = Window(HEADER.window.start_at, HEADER.window.start_at + timedelta(days=4))
    for zone, shown in (("UTC", "Pending requests 8<"), ("Africa/Abidjan", "Free 8, Unknown 4, Pending requests 8<")):
        with opened_tables(con, {}) as tables:
            header = replace(HEADER, window=window, settings={"timezone": zone})
            drawn = str(overview(tables, header, Money("$"), {}).trend)
        assert re.findall(rf"20 Nov [^>]*{shown}", drawn)


def test_a_finding_of_a_silent_cluster_names_it(con: duckdb.DuckDBPyConnection) -> None:
    """No device of it was seen; its node has the name of one of the other cluster."""
    con.execute("""
        insert into report.gpu_hour_ledger values ('west', '', '', '', 'M', '2026-11-20', 'unknown', 24);
        insert into report.finding (code, cluster, node_name, title, severity, namespace, device_uuid)
        values ('GR601', 'west', 'node-0', 'No data', 'warning', '', '')
    """)
    with opened_tables(con, {}) as tables:
        found = overview(tables, HEADER, Money("$"), {}).findings
    assert [each["where"] for each in found if each["title"] == "No data"] == ["west · node-0"]


def test_the_previous_period_is_named_by_days_of_the_time_zone(con: duckdb.DuckDBPyConnection) -> None:
    """From midnight to midnight in Berlin, which is an hour before midnight UTC; no days where no cluster is compared."""
    con.execute("""
        create table report.period as select 'lab' as cluster, 'before' as period, timestamp '2026-11-12 23:00:00' as since_at,
            timestamp '2026-11-19 23:00:00' as until_at;
        create table report.namespace_change (
            cluster text, namespace text, previous_allocated_gpu_hours double, allocated_gpu_hours double
        );
    """)
    with opened_tables(con, {}) as tables:
        assert overview(tables, HEADER, Money("$"), {}).compared.startswith("No comparison")
    con.execute("insert into report.namespace_change values ('lab', 'team', 1, 1)")
    with opened_tables(con, {}) as tables:
        for zone, since in (("Europe/Berlin", "2026-11-13"), ("UTC", "2026-11-12")):
            header = replace(HEADER, settings={"timezone": zone})
            assert overview(tables, header, Money("$"), {}).compared == f"Change against {since} to 2026-11-19."
    con.execute("insert into report.gpu_hour_ledger values ('far', 'web', 'w', '', 'M', '2026-11-20', 'effective', 24)")
    with opened_tables(con, {}) as tables:  # far has no data of the previous period
        compared = overview(tables, HEADER, Money("$"), {}).compared
    assert compared == "Change against 2026-11-12 to 2026-11-19. No comparison for far."


def test_idle_hours_of_a_gpu_are_unknown_where_most_use_is_not_measured(con: duckdb.DuckDBPyConnection) -> None:
    """Of 24 h, 1 h of use is measured, and active: idle hours are no 0 where the other 23 h are not measured."""
    for bucket, idle in (("allocated_unmeasured", None), ("free", 0)):
        con.execute(f"""
            create or replace table report.device as select 'lab' as cluster, 'GPU-1' as device_uuid, '' as gpu_instance_id,
                '3' as gpu_index, 0 as xid_error_count, 0e0 as any_throttle_ratio, 'node-1' as node_name, 'M' as gpu_model,
                0.5 as sm_active_avg, 3.6e6 as energy_joules;
            create or replace table report.gpu_hour_ledger as select 'lab' as cluster, 'serving' as namespace, 'web' as pod,
                '' as pod_uid, 'M' as gpu_model, date '2026-11-20' as day, 'GPU-1' as device_uuid, '' as gpu_instance_id,
                unnest(['effective', '{bucket}']) as bucket, unnest([1e0, 23e0]) as gpu_hours;
        """)
        with opened_tables(con, {}) as tables:
            assert [row["idle_gpu_hours"] for row in tables.rows(TOP["gpus"][0])] == [idle]


def test_the_largest_gpus_tell_instances_of_a_gpu_apart(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        insert into report.device (cluster, device_uuid, gpu_instance_id, gpu_index)
            values ('lab', 'GPU-1', '7', '3'), ('lab', 'GPU-1', '8', '3');
        create or replace table report.device as select *, 'node-1' as node_name, 'M' as gpu_model, 0.5 as sm_active_avg,
            3.6e6 as energy_joules from report.device;
        create or replace table report.gpu_hour_ledger as
            select *, 'GPU-1' as device_uuid, '7' as gpu_instance_id from report.gpu_hour_ledger;
    """)
    names, rows = top(con, "gpus", 24, 9)
    assert [(row[names.index("gpu_index")], row[names.index("gpu_instance_id")]) for row in rows] == [
        ("3", ""), ("3", "7"), ("3", "8")
    ]  # fmt: skip


def test_the_largest_of_one_cluster_name_it_where_there_are_several(con: duckdb.DuckDBPyConnection) -> None:
    """far has a node-1 with a GPU 3 too; of one row only lab's is shown."""
    con.execute("""
        create or replace table report.device as select *, 'node-1' as node_name, 'M' as gpu_model, 0.5 as sm_active_avg,
            3.6e6 as energy_joules from report.device;
        insert into report.device select * replace ('far' as cluster, 0 as xid_error_count) from report.device;
        update report.device set xid_error_count = 1 where cluster = 'lab';
        create or replace table report.gpu_hour_ledger as select *, 'GPU-1' as device_uuid, '' as gpu_instance_id
            from report.gpu_hour_ledger;
    """)
    assert "cluster" not in top(con, "gpus", 24, 1)[0]
    con.execute("insert into report.gpu_hour_ledger select * replace ('far' as cluster) from report.gpu_hour_ledger")
    names, rows = top(con, "gpus", 24, 1)
    assert [row[names.index("cluster")] for row in rows] == ["lab"]
    assert "cluster" not in top(con, "teams", 24, 1)[0]


def test_a_table_of_the_page_with_rows_of_one_cluster_shows_it_where_there_are_several(con: duckdb.DuckDBPyConnection) -> None:
    """The GPU of the finding is in lab; a node of far may have the same name."""
    add_finding(con, "GR401", "critical", "XID 79")
    con.execute("""
        create or replace table report.device as select *, 'node-1' as node_name, 3.6e6 as energy_joules from report.device;
        create or replace table report.gpu_hour_ledger as select *, 'GPU-1' as device_uuid, '' as gpu_instance_id
            from report.gpu_hour_ledger;
    """)
    for is_hidden in (True, False):
        with opened_tables(con, {}) as tables:
            (found,) = [each for each in grids(tables, {}, 24, Money("$")) if each.name == "findings"]
        assert [each.is_hidden for each in found.columns if each.name == "cluster"] == [is_hidden]
        con.execute("insert into report.gpu_hour_ledger select * replace ('far' as cluster) from report.gpu_hour_ledger")


def test_a_containers_trend_is_of_its_own_pod_where_several_have_its_name() -> None:
    """web-0 was made again after two hours; its uids are told apart. The page has no uid of db-0, whose name is of one pod."""
    hours = [("web-0", "old", 0, 10), ("web-0", "old", 1, 20), ("web-0", "new", 2, 30), ("web-0", "new", 3, 40)]
    hours += [("db-0", "one", 0, 50), ("db-0", "one", 1, 60)]
    with duckdb.connect() as con:
        con.execute("create schema facts")
        con.execute(f"""
            create table facts.container_hour as select 'lab' as cluster, 'ns' as namespace, pod, 'main' as container, pod_uid,
                timestamp '2026-11-18' + to_hours(hour) as hour_start_at,
                36 * percent as sm_active_ratio_seconds, 3600 as sm_active_seen_seconds, null as gr_engine_active_ratio_seconds,
                null as gr_engine_active_seen_seconds, null as memory_used_ratio_seconds, null as memory_seen_seconds
            from (values {", ".join(map(str, hours))}) as listed(pod, pod_uid, hour, percent)
        """)
        pods = [("web-0", "old"), ("web-0", "new"), ("db-0", "")]
        wanted = pl.DataFrame(
            [("lab", "ns", pod, "main", uid) for pod, uid in pods],
            schema=["cluster", "namespace", "pod", "container", "pod_uid"],
            orient="row",
        )
        found = trends(Tables(con), "container", Window(*(datetime(2026, 11, day, tzinfo=UTC) for day in (18, 19))), wanted)
    shown = {key: values[:2] for key, values in found["of"].items()}
    assert shown == {
        "lab\nns\nweb-0\nmain\nold": [0, [10, 20]],
        "lab\nns\nweb-0\nmain\nnew": [2, [30, 40]],
        "lab\nns\ndb-0\nmain\n": [0, [50, 60]],
    }
