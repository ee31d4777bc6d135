"""A small report whose tables are made by hand, with names that try to break out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from built_once import built_once

from gpureport.compute.query import Failure, Query, load
from gpureport.report import write_report
from gpureport.report.header import Absent, Header, Source, Unseen
from gpureport.values.window import Window, parse_instant

NOW = datetime(2026, 11, 21, 5, tzinfo=UTC)
SCRIPT = "<script>alert('x')</script>"
AWKWARD = 'say "a,b"\nand & more'
FORMULA = "=cmd|' /C calc'!A0"
_TEXT = [
    *("cluster", "namespace", "pod", "pod_uid", "container", "device_uuid", "gpu_instance_id", "gpu_instance_profile"),
    *("gpu_device", "gpu_index", "gpu_model", "node_name", "pci_bus_id", "driver_version", "sharing_mode"),
    *("sharing_evidence", "scope", "throttle_scope", "memory_scope", "signal", "reason", "kind"),
    "evidence",
    *("id", "make", "model", "memory_total_scope", "duty_cycle_scope"),
    *("memory_total_source_metric", "memory_used_source_metric", "duty_cycle_source_metric"),
]
_TYPES = {
    "xid_codes": "integer[]",
    "xid_error_count": "bigint",
    "device_count": "bigint",
    "expected_device_count": "bigint",
    "observed_device_count": "bigint",
    "expected_series_count": "bigint",
    "observed_series_count": "bigint",
    "dropped": "map(varchar, bigint)",
    "day": "date",
    "memory_used_bytes": "bigint",
    "memory_used_bytes_max": "bigint",
    "unknown_reasons": "map(varchar, varchar)",
}
NOT_FIGURES = {*_TEXT, "unknown_reasons", "source_metrics"}

KEYS = {"cluster": "lab", "device_uuid": "GPU-11111111-2222", "gpu_instance_id": ""}
WHO = {"namespace": SCRIPT, "pod": AWKWARD, "pod_uid": "u-1", "container": FORMULA}
BUSY = {
    **KEYS, **WHO, "observed_seconds": 3600.0, "coverage_ratio": 1.0, "gpu_usage_avg": 1 / 3, "power_violation_ratio": 0.25,
    "sw_power_cap_ratio": 0.0, "memory_used_ratio_avg": 0.5, "xid_error_count": 2, "xid_codes": [31, 79],
    "pcie_tx_bytes_per_second_avg": 123_456_789.123456, "gpu_device": "nvidia0", "gpu_model": "NVIDIA <H200>",
    "node_name": "node-0", "sharing_mode": "exclusive", "sharing_evidence": "one owner", "scope": "device",
    "throttle_scope": "device", "memory_scope": "device",
}  # fmt: skip
PLAIN = {**BUSY, "namespace": "team", "pod": "plain", "container": "main", "pod_uid": "u-2"}
DEVICE = {
    **KEYS, "kind": "gpu", "observed_seconds": 3600.0, "unallocated_seconds": 0.0, "memory_total_bytes": 1000.0,
    "node_name": "node-0",
}  # fmt: skip
ACCELERATOR = {
    **{name: PLAIN[name] for name in ("cluster", "namespace", "pod", "pod_uid", "container", "gpu_device", "node_name")},
    "id": "GPU-deadbeef-1234-5678-90ab-feedfacecafe", "make": "nvidia", "model": "tesla-p100",
    "memory_total_bytes": 20_304_050_607, "memory_used_bytes": 2_030_405_060, "duty_cycle_percent": 12.4,
    "memory_total_scope": "device", "memory_scope": "pod", "duty_cycle_scope": "device", "sharing_mode": "time-sliced",
    "observed_seconds": 3600.0,
}  # fmt: skip
INSTANCE = {
    **ACCELERATOR, "id": "GPU-m", "gpu_instance_id": "3", "make": "", "memory_total_bytes": None, "memory_used_bytes": None,
    "duty_cycle_percent": None, "memory_total_scope": "instance", "memory_scope": "instance", "duty_cycle_scope": "instance",
}  # fmt: skip
COVERAGE = {
    "cluster": "lab", "signal": "dram_active_ratio", "node_name": "node-0", "day": "2026-11-20", "coverage_ratio": 0.0,
    "reason": "not_collected", "evidence": "devices: 1", "source_metrics": "", "expected_device_count": 1,
    "observed_device_count": 0, "expected_series_count": 1, "observed_series_count": 0, "expected_device_seconds": 3600.0,
    "observed_device_seconds": 0.0, "unknown_device_seconds": 3600.0, "dropped": {"blank": 3},
}  # fmt: skip


def with_reasons(query: Query, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with '' for the text and one reason for each figure that it does not give."""
    row = {**{name: "" for name in query.columns if name in _TEXT}, **row}
    if "unknown_reasons" not in query.columns:
        return row
    if "source_metrics" in query.columns:
        row = {"source_metrics": {"power_watts": "DCGM_FI_DEV_POWER_USAGE"}, **row}
    absent = [
        name for name in query.columns if row.get(name) is None and name not in NOT_FIGURES and not name.endswith("_seconds")
    ]
    return {**row, "unknown_reasons": dict.fromkeys(absent, "not_collected")}


def _type(query: Query, column: str) -> str:
    if query.table == "report.accelerator" and column == "memory_total_bytes":
        return "bigint"
    if column == "source_metrics":
        return "varchar" if query.table == "report.coverage" else "map(varchar, varchar)"
    return _TYPES.get(column, "varchar" if column in _TEXT else "double")


def fill(con: duckdb.DuckDBPyConnection, query: Query, rows: Sequence[Mapping[str, Any]]) -> None:
    """The query's table with these rows; a column that a row does not give is null."""
    columns = ", ".join(f"{name} {_type(query, name)}" for name in query.columns)
    con.execute(f"create table {query.table} ({columns})")
    for row in rows:
        full = with_reasons(query, row)
        names, marks = ", ".join(full), ", ".join("?" for _ in full)
        con.execute(f"insert into {query.table} ({names}) values ({marks})", list(full.values()))


def a_header(generated_at: datetime = NOW) -> Header:
    """A header that has something to complain about."""
    return Header(
        window=Window(parse_instant("2026-11-20T00:00:00Z"), parse_instant("2026-11-20T01:00:00Z")),
        generated_at=generated_at,
        clusters=("lab",),
        device_count=1,
        expected_seconds=3600.0,
        observed_seconds=3240.0,
        config_hash="abc",
        sources=(Source("lab", "2026-11-20", "prometheus 2.53", "remote-read", 40, 9, 1234, ("one store is missing <b>",)),),
        failures=(Failure("checks.overlap", "warn", "Two rows at once.", 3, {"device_uuid": SCRIPT}),),
        settings={"memory_threshold_ratio": 0.9},
        catalog_versions=("c1",),
        unseen=(Unseen("exporter_down", 360.0, 1),),
        absent=(Absent("not_collected", ("dram_active_ratio",)),),
        signal_count=31,
    )


@contextmanager
def small_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of the small report."""
    every = small_queries()
    with duckdb.connect() as con:
        con.execute("create schema report; create schema facts; create schema period")
        keys = "'lab' as cluster, 'GPU-1' as device_uuid, '' as gpu_instance_id, timestamp '2026-11-20' as hour_start_at"
        con.execute(f"create table facts.device_hour as select {keys}, 1 as observed_seconds")
        fill(con, every["report.accelerator"], [ACCELERATOR, INSTANCE])
        fill(con, every["report.container_saturation"], [PLAIN, BUSY])
        fill(con, every["report.device"], [DEVICE])
        fill(con, every["report.coverage"], [COVERAGE])
        yield con


def small_queries() -> dict[str, Query]:
    """The four tables that the small report has."""
    every = load()
    chosen = ("report.accelerator", "report.container_saturation", "report.device", "report.coverage")
    return {name: every[name] for name in chosen}


@pytest.fixture
def queries() -> dict[str, Query]:
    """The tables that the small report has."""
    return small_queries()


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables of the small report."""
    with small_database() as con:
        yield con


@pytest.fixture(scope="session")
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the small report was written; to read only."""

    def build(folder: Path) -> None:
        with small_database() as con:
            write_report(con, small_queries(), a_header(), folder / "out")

    return built_once("small-report", build, request, tmp_path_factory) / "out"
