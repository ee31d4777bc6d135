"""CSV, JSON and DuckDB hold the same rows, rounded once, and are the same bytes for the same lake."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.cli import main
from gpureport.query import Query
from gpureport.report import write_report
from gpureport.report.results import rounded

from .conftest import AWKWARD, FORMULA, NOW, SCRIPT, a_header

WINDOW = ["--since", "2026-11-20T23:51:40Z", "--until", "2026-11-20T23:59:40Z"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_text(found: object) -> str:
    """A value of report.json as CSV should hold it."""
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


def test_every_null_figure_has_a_reason_and_no_other_has(folder: Path) -> None:
    for rows in json.loads((folder / "report.json").read_bytes())["tables"].values():
        for row in rows:
            null = {name for name, found in row.items() if found is None and not name.endswith("_seconds")}
            assert null == row.get("unknown_reasons", {}).keys()


def test_json_and_csv_hold_the_same_rows(folder: Path) -> None:
    tables = json.loads((folder / "report.json").read_bytes())["tables"]
    assert sorted(path.stem for path in (folder / "csv").iterdir()) == sorted(tables)
    for name, rows in tables.items():
        expected = [{column: as_text(found) for column, found in row.items()} for row in rows]
        assert rows_of(folder / "csv" / f"{name}.csv") == expected


def test_the_database_holds_the_rows_of_the_csv(folder: Path) -> None:
    with duckdb.connect(str(folder / "gpureport.duckdb"), read_only=True) as con:
        for path in sorted((folder / "csv").iterdir()):
            table = con.sql(f"select * from report.{path.stem}")
            found = [dict(zip(table.columns, map(as_text, row), strict=True)) for row in table.fetchall()]
            for row in found:
                if "unknown_reasons" in row:
                    row["unknown_reasons"] = as_text(json.loads(row["unknown_reasons"]))
            assert found == rows_of(path)


def test_the_database_documents_itself(out: Path) -> None:
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        ((window,),) = con.execute("select value from meta where name = 'window'").fetchall()
        assert json.loads(window) == {"start_at": "2026-11-20T00:00:00Z", "end_at": "2026-11-20T01:00:00Z"}
        undocumented = con.execute("select column_name from duckdb_columns() where schema_name = 'report' and comment is null")
        assert undocumented.fetchall() == []
        assert con.execute("select observed_seconds from facts.device_hour").fetchall() == [(1,)]


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
    assert document["schema_version"] == 1
    assert document["versions"]["catalog"] == ["c1"]
    assert document["coverage"]["unknown_ratio"] == pytest.approx(0.1)


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


def test_a_second_report_replaces_the_first_and_leaves_nothing_aside(
    con: duckdb.DuckDBPyConnection, queries: dict[str, Query], out: Path
) -> None:
    written = write_report(con, queries, a_header(), out)
    assert sorted(path for path in out.rglob("*") if path.is_file()) == sorted(written)


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_rounding_keeps_nine_digits_and_does_nothing_twice(found: float) -> None:
    once = rounded(pl.DataFrame({"figure": [found]}))
    assert rounded(once).equals(once)
    assert once["figure"][0] == pytest.approx(found, rel=5.1e-9, abs=1e-300)


def test_csv_is_read_back_by_polars_as_it_was_written(folder: Path) -> None:
    for path in sorted((folder / "csv").iterdir()):
        text = path.read_text(encoding="utf-8")
        assert pl.read_csv(io.StringIO(text), infer_schema=False).height == len(rows_of(path))
