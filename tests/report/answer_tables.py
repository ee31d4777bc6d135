"""Tables of a report as answers and the overview read them, made by hand."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from gpureport.compute.query import define_functions
from gpureport.values.window import Window, parse_date

from .conftest import a_header

HEADER = replace(
    a_header(), window=Window.of_day(parse_date("2026-11-20")), device_count=4, expected_seconds=100, observed_seconds=99.5
)
LEDGER = [
    # namespace, pod, category, GPU-hours: 4 GPUs for a day are 96
    ("serving", "web-7d4b9c8f6d-x2x4z", "effective", 12.0),
    ("serving", "web-7d4b9c8f6d-x2x4z", "underutilized", 36.0),
    ("research", "hold-0", "allocated_idle", 24.0),
    ("", "", "free", 20.0),
    ("", "", "fragmented", 4.0),
]


def fill(con: duckdb.DuckDBPyConnection, ledger: list[tuple[str, str, str, float]]) -> None:
    define_functions(con)
    con.execute("create schema report; create schema facts; create schema period")
    con.execute("""
        create table report.gpu_hour_ledger (
            cluster varchar, namespace varchar, pod varchar, pod_uid varchar, gpu_model varchar, day date, bucket varchar,
            gpu_hours double
        );
        create table report.container (cluster varchar, namespace varchar, pod varchar, pod_uid varchar);
        create table report.device (
            cluster varchar, device_uuid varchar, gpu_instance_id varchar, gpu_index varchar, xid_error_count bigint default 0,
            any_throttle_ratio double default 0, thermal_violation_ratio double, power_violation_ratio double
        );
        create table report.scheduler_pressure as
            select 'lab' as cluster, 'gpu' as resource, timestamp '2026-11-20 00:00:00' as hour_start_at,
                3600e0 as observed_seconds, 0e0 as demand_observed_seconds, 0e0 as unscheduled_units_avg;
        create table period.price as select 'M' as gpu_model, date '2026-11-20' as day, 2.0 as hour_cost;
        create table report.rightsizing (
            cluster varchar, namespace varchar, workload_kind varchar, workload varchar, freed_gpu_hours double, verdict varchar
        );
        create table report.finding (
            code varchar, cluster varchar, namespace varchar, workload_kind varchar, workload varchar, pod varchar,
            pod_uid varchar, node_name varchar, device_uuid varchar,
            gpu_instance_id varchar, detail varchar, title varchar, severity varchar, confidence varchar, evidence varchar,
            gpu_hours double, at_stake_cost double, owner varchar, action varchar, suppressed_until date
        );
        create table period.workload (
            cluster varchar, namespace varchar, pod varchar, pod_uid varchar, workload_kind varchar, workload varchar,
            team varchar
        );
        create table period.pod_wait (
            cluster varchar, namespace varchar, pod varchar, pod_uid varchar, size varchar, placing_seconds double,
            waiting_seconds double, pending_gpu_hours double
        );
    """)
    for namespace, pod, bucket, hours in ledger:
        con.execute(
            "insert into report.gpu_hour_ledger values ('lab', ?, ?, '', 'M', '2026-11-20', ?, ?)",
            [namespace, pod, bucket, hours],
        )
    add_device(con, "GPU-1", "3")


def add_device(con: duckdb.DuckDBPyConnection, uuid: str, index: str) -> None:
    con.execute(
        "insert into report.device (cluster, device_uuid, gpu_instance_id, gpu_index) values ('lab', ?, '', ?)", [uuid, index]
    )


def add_finding(con: duckdb.DuckDBPyConnection, code: str, severity: str, evidence: str) -> None:
    con.execute(
        "insert into report.finding values (?, 'lab', '', '', '', '', '', 'node-1', 'GPU-1', '', '', 'Title', ?, 'high', ?,"
        " null, null, 'platform', 'Drain it.', null)",
        [code, severity, evidence],
    )
