"""CSV, Parquet and DuckDB hold the same rows, rounded once; the same lake gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from page_data import payloads

from gpureport.cli import main
from gpureport.compute.query import Query, load
from gpureport.report import Forms, write_report
from gpureport.report.database import finished
from gpureport.report.json_file import escaped, write_json
from gpureport.report.page import Written
from tests.golden_case import report_rows

from .conftest import AWKWARD, FORMULA, NOW, SCRIPT, a_header, small_database, small_queries

WINDOW = ["--since", "2026-11-20T23:51:40Z", "--until", "2026-11-20T23:59:40Z"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_text(found: object) -> str:
    """A value as CSV should hold it."""
    if found is None:
        return ""
    if isinstance(found, list):
        return " ".join(map(str, found))
    if isinstance(found, dict):
        return json.dumps(found, separators=(",", ":"), sort_keys=True)
    if isinstance(found, datetime):
        return f"{found.isoformat()}Z"
    return f"'{found}" if str(found)[:1] in tuple("=+@") else str(found)


@pytest.fixture(params=["small", "demo"])
def folder(request: pytest.FixtureRequest) -> Path:
    chosen: Path = request.getfixturevalue("out" if request.param == "small" else "demo")
    return chosen


def test_csv_keeps_awkward_names_and_sqls_column_names(out: Path, queries: dict[str, Query]) -> None:
    first, second = rows_of(out / "csv/container_saturation.csv")
    assert list(first) == list(queries["report.container_saturation"].columns)
    assert (first["namespace"], first["pod"], first["container"]) == (SCRIPT, AWKWARD, f"'{FORMULA}")
    assert second["pod"] == "plain"  # ordered by the keys
    assert (first["gpu_usage_avg"], first["thermal_violation_ratio"], first["sw_power_cap_ratio"]) == ("0.333333333", "", "0.0")
    assert json.loads(first["unknown_reasons"])["thermal_violation_ratio"] == "not_collected"


def tables_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table of gpureport.duckdb."""
    with duckdb.connect(str(folder / "gpureport.duckdb"), read_only=True) as con:
        names = con.execute("select table_name from duckdb_tables() where schema_name = 'report' order by 1").fetchall()
        return {name: report_rows(folder / "gpureport.duckdb", name) for (name,) in names}


def test_every_null_figure_has_a_reason_and_no_other_has(folder: Path) -> None:
    for rows in tables_of(folder).values():
        for row in rows:
            reasons = row.get("unknown_reasons", {}).keys()
            null = {name for name, found in row.items() if found is None and (not name.endswith("_seconds") or name in reasons)}
            assert null == reasons


def test_csv_parquet_and_the_database_hold_the_same_rows(folder: Path) -> None:
    tables = tables_of(folder)
    assert [path.stem for path in sorted((folder / "tables").iterdir())] == list(tables)
    assert [path.stem for path in sorted((folder / "csv").iterdir())] == list(tables)
    for name, rows in tables.items():
        parquet = duckdb.sql(f"from '{folder / 'tables' / name}.parquet'")
        assert [dict(zip(parquet.columns, row, strict=True)) for row in parquet.fetchall()] == rows
        expected = [{column: as_text(found) for column, found in row.items()} for row in rows]
        told = [{column: as_text(json.loads(text)) if text[:1] == "{" else text for column, text in row.items()}
                for row in rows_of(folder / "csv" / f"{name}.csv")]  # fmt: skip
        assert told == expected


def test_only_the_forms_that_are_asked_for_are_written_and_none_of_an_earlier_report_stays(tmp_path: Path) -> None:
    for only in ((), ("html", "parquet")):
        with small_database() as con:
            written = write_report(con, small_queries(), a_header(), tmp_path, forms=Forms(only=only))
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*") if path.is_file()}
    assert found == {str(path.relative_to(tmp_path)) for path in written.files}
    assert {Path(name).suffix for name in found} == {".html", ".md", ".json", ".parquet"}  # JSON: of the series of reports
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize(
    ("only", "csv_rows", "said"),
    [
        ((), 100_000, " All rows are in csv/, tables/, gpureport.duckdb."),
        ((), 1, " All rows are in tables/, gpureport.duckdb."),
        (("csv", "json"), 100_000, " All rows are in csv/."),
        (("html",), 100_000, ""),
    ],
)
def test_the_summary_names_the_files_that_have_all_rows_and_no_others(
    only: tuple[str, ...], csv_rows: int, said: str, tmp_path: Path
) -> None:
    """Two tables have two rows: with one row at most they have no CSV."""
    with small_database() as con:
        write_report(con, small_queries(), a_header(), tmp_path, forms=Forms(csv_rows, only=only))
    assert (tmp_path / "summary.md").read_text().endswith(f", settings abc.{said}\n")


def test_the_totals_of_every_cluster_have_room_before_nodes(tmp_path: Path) -> None:
    """A cluster of 4,000 nodes comes first; rows of 500 bytes fill the list after about 1,000."""
    query = load()["report.gpu_hour_balance"]
    keys = {"cluster": "'a'", "dimension": "'node_name'", "value": "'node-' || number"}
    columns = ", ".join(f"{keys.get(name, '1e0')} as {name}" for name in query.columns)
    with small_database() as con:
        con.execute(f"create table {query.table} as select {columns} from range(4000) as node (number)")
        con.execute(f"insert into {query.table} by name select 'b' as cluster, 'cluster' as dimension, 'b' as value")
        with finished(con, {query.table: query}, a_header(), tmp_path / "gpureport.duckdb") as results:
            document = json.loads(write_json(results, a_header(), Written([], (), []), [], tmp_path / "report.json").read_bytes())
    assert [row["value"] for row in document["ledger"]][:2] == ["b", "node-0"]


def test_the_database_documents_itself(out: Path) -> None:
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        ((window,),) = con.execute("select value from meta where name = 'window'").fetchall()
        assert json.loads(window) == {"start_at": "2026-11-20T00:00:00Z", "end_at": "2026-11-20T01:00:00Z"}
        for what in ("duckdb_tables", "duckdb_columns"):
            of_tables = (
                f"from {what}() where (schema_name, table_name) in (select (schema_name, table_name) from duckdb_tables())"
            )
            comments = con.execute(f"select schema_name, comment {of_tables}").fetchall()
            assert {"report", "main"} <= {schema for schema, _ in comments} and all(text for _, text in comments), what
        views = "select view_name, comment <> '' from duckdb_views() where schema_name = 'main' and not internal"
        tables = "select table_name, true from duckdb_tables() where schema_name = 'report'"
        assert sorted(con.execute(views).fetchall()) == sorted(con.execute(tables).fetchall())
        rows = con.execute("from report.container_saturation").fetchall()
        assert con.execute("from container_saturation").fetchall() == rows
    with duckdb.connect() as con:
        con.execute(f"attach '{out / 'gpureport.duckdb'}' as kept (read_only)")
        assert con.execute("from kept.container_saturation").fetchall() == rows


def test_allocations_have_opencosts_shape_and_leave_out_what_is_unknown(out: Path) -> None:
    document = json.loads((out / "report.json").read_bytes())
    allocation = next(each for each in document["allocations"] if each["pod"] == "plain")
    assert allocation["gpuAllocation"] == {
        "gpuDevice": "nvidia0",
        "gpuModel": "NVIDIA <H200>",
        "gpuUUID": "GPU-11111111-2222",
        "gpuUsageAverage": 0.333333333,
        "saturation": {
            "throttleViolationRatios": {"power": 0.25},
            "throttleReasonRatios": {"sw_power_cap": 0.0},
            "memoryUsedRatioAvg": 0.5,
            "xidErrorCount": 2,
            "pcieTxBytesAvg": 123456789.0,
        },
    }
    assert allocation["coverage"]["sm_active_avg"] == "not_collected"
    assert document["schema_version"] == 2
    assert document["versions"]["catalog"] == ["c1"]
    assert document["coverage"]["unknown_ratio"] == pytest.approx(0.1)


def test_answers_and_teams_are_those_of_the_summary_and_of_the_costs(simulated_demo: Path) -> None:
    document = json.loads((simulated_demo / "report.json").read_bytes())
    lines = [line for line in (simulated_demo / "summary.md").read_text().splitlines() if line.startswith("- **")]
    shown = [f"- **{each['title']}**: {escaped(each['headline'] + '. ' + each['detail'])}" for each in document["answers"]]
    assert len(shown) == 6
    assert [line.startswith(text) for line, text in zip(lines, shown, strict=False)] == [True] * 6
    costs: dict[str, list[float]] = {}
    for row in report_rows(simulated_demo / "gpureport.duckdb", "team_cost"):
        if row["namespace"]:
            costs.setdefault(row["team"], []).append(row["total_cost"])
    uses = ("effective_gpu_hours", "underutilized_gpu_hours", "idle_gpu_hours")
    assert {each["team"]: each["cost"] for each in document["teams"]} == {
        team: pytest.approx(sum(found), abs=1e-5) for team, found in costs.items()
    }
    assert len(costs) > 3
    assert all(sum(each[name] for name in uses) >= each["allocated_gpu_hours"] - 1e-5 for each in document["teams"])


def test_each_container_has_cadvisors_accelerators_as_integers(out: Path) -> None:
    (container,) = json.loads((out / "report.json").read_bytes())["containers"]
    assert container == {
        "cluster": "lab",
        "namespace": "team",
        "pod": "plain",
        "pod_uid": "u-2",
        "container": "main",
        "accelerators": [
            {
                "make": "nvidia",
                "model": "tesla-p100",
                "id": "GPU-deadbeef-1234-5678-90ab-feedfacecafe",
                "memory_total": 20_304_050_607,
                "memory_used": 2_030_405_060,
                "duty_cycle": 12,
                "memory_total_scope": "device",
                "memory_scope": "pod",
                "duty_cycle_scope": "device",
            },
            {
                "model": "tesla-p100",
                "id": "GPU-m",
                "gpu_instance_id": "3",
                "memory_total_scope": "instance",
                "memory_scope": "instance",
                "duty_cycle_scope": "instance",
            },
        ],
    }


def test_the_same_lake_gives_the_same_bytes_but_for_one_line(demo: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    later = NOW + timedelta(days=3)
    assert main(["report", *WINDOW, "--lake", str(demo / "lake"), "--out", str(again)], environ={}, now=later) == 0
    for path in [again / "report.json", *sorted((again / "csv").iterdir())]:
        assert path.read_bytes() == (demo / path.relative_to(again)).read_bytes(), path.name
    before, after = ((folder / "report.html").read_text().splitlines() for folder in (demo, again))
    assert len(before) == len(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("<p>Generated at 2026-11-21T05:00:00Z</p>", "<p>Generated at 2026-11-24T05:00:00Z</p>")]


def test_a_second_report_replaces_the_first_and_leaves_nothing_aside(queries: dict[str, Query], tmp_path: Path) -> None:
    for _ in range(2):
        with small_database() as con:
            written = write_report(con, queries, a_header(), tmp_path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written.files)


def test_the_summary_says_which_files_have_all_rows(folder: Path) -> None:
    tables = json.loads((folder / "report.json").read_bytes())["tables"]
    assert {name: told["row_count"] for name, told in tables.items()} == {
        name: len(rows) for name, rows in tables_of(folder).items()
    }
    for name, told in tables.items():
        assert told["files"] == [f"csv/{name}.csv", f"tables/{name}.parquet"]
        assert all((folder / file).is_file() for file in told["files"])


def test_a_summary_of_very_many_stays_small(tmp_path: Path) -> None:
    """30,000 findings, containers and sources of a long window."""
    queries = load()
    chosen = {name: queries[name] for name in ("report.container_saturation", "report.finding", "report.gpu_hour_ledger")}
    own = {"gpu_hours": "1e0", "severity": "'info'", "evidence": "repeat('e', 99)"}
    with small_database() as con:
        for table in ("report.finding", "report.gpu_hour_ledger"):
            columns = ", ".join(f"{own.get(name, repr(name))} as {name}" for name in queries[table].columns)
            con.execute(f"create table {table} as select {columns}")
        for table in chosen:
            renamed = "* replace (pod || number as pod, namespace || number as namespace)"
            con.execute(f"create or replace table {table} as select {renamed} from {table}, range(30000) as copy (number)")
        header = replace(a_header(), sources=a_header().sources * 30_000)
        with finished(con, chosen, header, tmp_path / "gpureport.duckdb") as results:
            teams = [{"team": f"team-{number}"} for number in range(30_000)]
            path = write_json(results, header, Written([], (), teams), [], tmp_path / "report.json")
    assert path.stat().st_size < 5_000_000
    document = json.loads(path.read_bytes())
    assert [len(document[name]) > 500 for name in ("sources", "teams", "findings", "namespaces", "allocations")] == [True] * 5
    assert document["tables"]["finding"] == {"row_count": 30_000, "files": []}
    assert document["entry_counts"] == {
        "sources": 30_000,
        "teams": 30_000,
        "namespaces": 30_000,
        "signals": 0,
    }  # in no table with these rows


def test_csv_is_read_back_by_polars_as_it_was_written(folder: Path) -> None:
    for path in sorted((folder / "csv").iterdir()):
        text = path.read_text(encoding="utf-8")
        assert pl.read_csv(io.StringIO(text), infer_schema=False).height == len(rows_of(path))


def test_idle_power_is_the_same_on_the_page_and_in_both_files(recorded: Path) -> None:
    """Of containers on one GPU each: their energy, what the GPU draws at idle, and how that is known."""
    in_json = {row["pod"]: energy_of(row) for row in json.loads((recorded / "out" / "report.json").read_bytes())["power"]}
    in_csv = {row["pod"]: energy_of(row) for row in rows_of(recorded / "out" / "csv" / "container_power.csv")}
    grid = payloads((recorded / "out" / "report.html").read_text())["containers"]
    columns = {
        each["name"]: [each["words"][number] if "words" in each else number for number in each["values"]]
        for each in grid["columns"]
    }
    shown = zip(*(columns[name] for name in ("pod", "energy_kwh", "idle_watts", "idle_source")), strict=True)
    assert len(in_json) == 4
    assert in_csv == in_json
    assert {
        pod: (pytest.approx(energy, 1e-3), pytest.approx(watts, 1e-3), source) for pod, energy, watts, source in shown
    } == in_csv


def energy_of(row: Mapping[str, Any]) -> tuple[float, float, str]:
    return float(row["energy_joules"]) / 3.6e6, float(row["idle_watts"]), row["idle_source"]
