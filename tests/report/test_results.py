"""Rows on their way out of the database: rounded once, in the order of their keys, by SQL and as far as somebody asks."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from math import inf, nextafter
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpureport.compute.query import Query
from gpureport.report.database import begin, finished, move
from gpureport.report.results import Result, rounded_rows, write_csv, write_parquet
from tests.report.conftest import a_header

ROWS = 5000
"""More than one vector of rows."""
START = datetime(2026, 11, 20)
QUERIES = {
    f"report.{name}": Query(f"report.{name}", Path(name), "", ("number",), (), (), "", {}, "", "") for name in ("large", "small")
}


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table of all kinds of columns, whose rows stand in no order, and a small one of the same."""
    with duckdb.connect() as con:
        con.execute("set threads = 1; create schema report; create schema facts")
        for name, count in (("large", ROWS), ("small", 3)):
            con.execute(
                f"""
                create table report.{name} as
                select
                    (i * 7919) % {count} as number, 'pod-' || number as pod, if(number % 3 = 0, null, number / 7) as ratio,
                    sum(number) over (partition by number) as joules, [number, number + 1] as codes,
                    timestamp '2026-11-20' + to_seconds(number) as seen_at, number % 2 = 0 as is_even,
                    if(number % 3 = 0, map {{'ratio': 'not_collected'}}, map {{}}) as unknown_reasons
                from (select unnest(range({count}))::integer as i)
                """
            )
        yield con


@pytest.fixture(params=[[], ["report.large"]], ids=["all moved at the end", "one moved before"])
def results(con: duckdb.DuckDBPyConnection, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Result]]:
    """The two tables in a report's file."""
    if request.param:
        begin(con, tmp_path / "begun", has_many=True)
    for table in request.param:
        move(con, True, QUERIES[table])
    with finished(con, QUERIES, a_header(), tmp_path / "gpureport.duckdb") as found:
        yield found


def test_a_file_that_was_begun_elsewhere_is_in_its_place_at_the_end(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    begin(con, tmp_path / "begun", has_many=True)
    move(con, False, QUERIES["report.small"])
    with finished(con, QUERIES, a_header(), tmp_path / "gpureport.duckdb"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["gpureport.duckdb"]
    with duckdb.connect(str(tmp_path / "gpureport.duckdb"), read_only=True) as file:
        assert file.execute("select (select count(*) from large), (select list(number) from small)").fetchall() == [
            (ROWS, [0, 1, 2])
        ]


def test_rows_are_read_as_far_as_they_are_asked_for(results: list[Result]) -> None:
    large, small = results
    assert (large.row_count, small.row_count) == (ROWS, 3)
    [first, second] = large.read(["number", "ratio", "unknown_reasons"], where="number >= $from", limit=2, **{"from": 2048})
    assert first == {"number": 2048, "ratio": 292.571429, "unknown_reasons": {}}
    assert second == {"number": 2049, "ratio": None, "unknown_reasons": {"ratio": "not_collected"}}
    [last] = large.read(["max(number) as most"], order="all")
    assert last == {"most": ROWS - 1}


def test_all_rows_are_rounded_and_in_the_order_of_their_keys(results: list[Result]) -> None:
    large, _ = results
    assert large.rows.height == ROWS
    for number in (0, 1, 2047, 2048, ROWS - 1):
        ratio = None if number % 3 == 0 else float(f"{number / 7:.9g}")
        at = START + timedelta(seconds=number)
        assert large.rows.row(number) == (number, f"pod-{number}", ratio, number, [number, number + 1], at, number % 2 == 0)
        assert large.maps["unknown_reasons"][number] == ({"ratio": "not_collected"} if ratio is None else {})


def test_a_table_with_too_many_rows_for_csv_is_in_parquet_alone(results: list[Result], tmp_path: Path) -> None:
    assert [path.name for path in write_csv(results, tmp_path / "csv", ROWS - 1)] == ["small.csv"]
    assert [path.name for path in write_parquet(results, tmp_path / "tables")] == ["large.parquet", "small.parquet"]
    rows = pl.read_parquet(tmp_path / "tables/large.parquet")
    assert (rows.height, rows["number"].is_sorted(), rows["ratio"][1]) == (ROWS, True, 0.142857143)


def test_a_cell_is_text_that_csv_and_spreadsheets_take_as_it_is(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute(
        """
        create or replace table report.small as
        from (values
            (0, '=1+1', timestamp '2026-11-20 00:00:00.25', false, [1, 2], map {'a': 'b'}),
            (1, 'a' || chr(13) || 'b', timestamp '2026-11-20', null, null, null),
            (2, chr(13) || 'x', null, true, [], map {}),
            (3, 'a,"b"' || chr(10), null, true, [3], map {}),
            (4, null, null, true, [3], map {})
        ) as cell (number, name, seen_at, is_so, codes, reasons)
        """
    )
    [path] = write_csv([Result(QUERIES["report.small"], con)], tmp_path, 5)
    assert path.read_bytes().decode() == (
        "number,name,seen_at,is_so,codes,reasons\n"
        '0,\'=1+1,2026-11-20T00:00:00.250Z,False,1 2,"{""a"":""b""}"\n'
        '1,"a\rb",2026-11-20T00:00:00Z,,,{}\n'
        '2,"\'\rx",,True,,{}\n'
        '3,"a,""b""\n",,True,3,{}\n'
        "4,,,True,3,{}\n"
    )
    with path.open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["'=1+1", "a\rb", "'\rx", 'a,"b"\n', ""]


@pytest.mark.parametrize("has_many", [False, True])
@given(
    found=st.floats(allow_nan=False, allow_infinity=False, min_value=-1e22, max_value=1e22).filter(
        lambda x: abs(x) > 1e-12 or not x
    )
)
@example(found=0.0)
@example(found=64_579_869_150_000.0)
@example(found=9_679_003_665.0)
def test_a_figure_has_nine_digits(has_many: bool, found: float) -> None:
    nine = Context(prec=9, rounding=ROUND_HALF_UP)
    once_sql = rounded_rows({"x": "DOUBLE"}, f"select {found!r}::double as x", has_many)
    twice_sql = rounded_rows({"x": "DOUBLE"}, once_sql, has_many)
    ((once,),), ((twice,),) = duckdb.sql(once_sql).fetchall(), duckdb.sql(twice_sql).fetchall()
    near = {float(nine.create_decimal(Decimal(shown))) for shown in (found, repr(found))}
    assert once == twice
    assert once in near or abs(Decimal(once) - Decimal(found)) / abs(Decimal(found)) < Decimal("5.000001e-9")


@pytest.mark.parametrize("middle", [0.1234567895, 123_456_789.5, 2.00000000500])
@pytest.mark.parametrize("has_many", [False, True])
def test_a_sum_in_another_order_is_rounded_alike(has_many: bool, middle: float) -> None:
    """Sums of the same hours lie on both sides of the middle."""
    found = [
        duckdb.sql(rounded_rows({"x": "DOUBLE"}, f"select {x!r}::double as x", has_many))
        for x in (nextafter(middle, 0), middle, nextafter(middle, inf))
    ]
    assert len({each.fetchall()[0] for each in found}) == 1


@pytest.mark.parametrize("has_many", [False, True])
def test_nothing_has_no_sign(has_many: bool) -> None:
    rows = rounded_rows(
        {"n": "BIGINT", "x": "DOUBLE", "y": "FLOAT"}, "select 1 as n, -0.0::double as x, null::float as y", has_many
    )
    assert str(duckdb.sql(rows).fetchall()) == "[(1, 0.0, None)]"


def test_facts_are_there_on_request_in_the_order_of_all_their_columns_also_where_days_repeat_a_key(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    con.execute(
        """
        create table main.told as
        from (values ('c', 'n', 'p', 'u', 'Job', 'later'), ('c', 'n', 'p', 'u', 'Job', 'earlier'), ('c', 'n', 'a', 'u', '', ''))
            as told (cluster, namespace, pod, pod_uid, workload_kind, workload);
        create view facts.pod_workload as from told;
        create table main.counted as
        from (values ('c', 'n', 'p', 'u', timestamp '2026-11-20 00:00', 1), ('c', 'n', 'a', 'u', timestamp '2026-11-20 00:00', 9),
            ('c', 'n', 'p', 'u', timestamp '2026-11-20 01:00', 5), ('c', 'n', 'p', 'u', timestamp '2026-11-19 23:00', 7))
            as counted (cluster, namespace, pod, pod_uid, hour_start_at, kepler_seconds);
        create view facts.kepler_hour as from counted;
        """
    )
    for name, has_facts in (("without", False), ("with", True)):
        with finished(con, {}, a_header(), tmp_path / name, has_facts):
            pass
    with duckdb.connect(str(tmp_path / "with"), read_only=True) as file:
        told = file.execute("select pod, workload from facts.pod_workload").fetchall()
        assert told == [("a", ""), ("p", "earlier"), ("p", "later")]
        kept = file.execute("select kepler_seconds from facts.kepler_hour").fetchall()
        assert kept == [(9,), (1,)]  # without the hours before and after the period, 00:00 to 01:00
    with duckdb.connect(str(tmp_path / "without"), read_only=True) as file:
        assert file.execute("select count(*) from duckdb_tables() where schema_name = 'facts'").fetchall() == [(0,)]
