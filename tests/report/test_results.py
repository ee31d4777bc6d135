"""Rows on their way out of the database: large tables through files, the same as in memory; facts in the order of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gpureport.query import Query
from gpureport.report.csv_files import write_csv
from gpureport.report.database import write_database
from gpureport.report.json_file import write_json
from gpureport.report.results import opened_results, read_results
from tests.report.conftest import a_header

ROWS = 5000
"""Two batches and a half."""
START = datetime(2026, 11, 20)
QUERIES = {
    f"report.{name}": Query(f"report.{name}", Path(name), "", ("number",), (), (), "", {}, "", "") for name in ("large", "small")
}


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table of all kinds of columns, whose rows stand in no order, and a small one of the same."""
    with duckdb.connect() as con:
        con.execute("create schema report; create schema facts")
        for name, count in (("large", ROWS), ("small", 3)):
            con.execute(
                f"""
                create table report.{name} as
                select
                    (i * 7919) % {count} as number, 'pod-' || number as pod, if(number % 3 = 0, null, number / 7) as ratio,
                    sum(number) over (partition by number) as joules, [number, number + 1] as codes,
                    timestamp '2026-11-20' + to_seconds(number) as at, number % 2 = 0 as is_even,
                    if(number % 3 = 0, map {{'ratio': 'not_collected'}}, map {{}}) as unknown_reasons
                from (select unnest(range({count}))::integer as i)
                """
            )
        yield con


def test_a_large_tables_rows_lie_in_a_file_and_are_the_ones_that_the_database_has(con: duckdb.DuckDBPyConnection) -> None:
    with opened_results(con, QUERIES) as (large, small):
        assert isinstance(large.kept, Path) and isinstance(small.kept, pl.DataFrame)
        assert large.rows.height == ROWS and small.rows.height == 3
        for number in (0, 1, 2047, 2048, ROWS - 1):
            ratio = None if number % 3 == 0 else float(f"{number / 7:.9g}")
            at = START + timedelta(seconds=number)
            row = (number, f"pod-{number}", ratio, number, [number, number + 1], at, number % 2 == 0)
            assert large.rows.row(number) == row
            assert large.reason(number, "ratio") == ("not_collected" if ratio is None else "")


def test_a_file_gives_what_memory_gives(con: duckdb.DuckDBPyConnection) -> None:
    with opened_results(con, QUERIES) as opened:
        for one, other in zip(opened, read_results(con, QUERIES), strict=True):
            assert_frame_equal(one.rows, other.rows)
            assert one.maps == other.maps


def test_the_files_of_both_are_the_same_bytes(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "file").mkdir()
    in_memory = read_results(con, QUERIES)
    with opened_results(con, QUERIES) as opened:
        for folder, results in (("memory", in_memory), ("file", opened)):
            write_csv(results, tmp_path / folder)
            write_json(results, a_header(), tmp_path / folder / "report.json")
    for name in ("large.csv", "small.csv", "report.json"):
        assert (tmp_path / "file" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes()


def test_nothing_is_in_memory_of_a_table_taken_anew_and_its_file_ends_with_the_block(con: duckdb.DuckDBPyConnection) -> None:
    with opened_results(con, QUERIES) as (large, _):
        assert large.rows is large.rows
        assert "rows" not in vars(large.anew())
        assert isinstance(large.kept, Path) and large.kept.exists()
    assert not large.kept.exists()


def test_facts_are_in_the_order_of_all_their_columns_also_where_days_repeat_a_key(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    con.execute(
        """
        create table main.told as
        from (values ('c', 'n', 'p', 'u', 'Job', 'later'), ('c', 'n', 'p', 'u', 'Job', 'earlier'), ('c', 'n', 'a', 'u', '', ''))
            as told (cluster, namespace, pod, pod_uid, workload_kind, workload);
        create view facts.pod_workload as from told;
        create table main.counted as
        from (values ('c', 'n', 'p', 'u', timestamp '2026-11-20 01:00', 1), ('c', 'n', 'p', 'u', timestamp '2026-11-20 00:00', 9))
            as counted (cluster, namespace, pod, pod_uid, hour_start_at, kepler_seconds);
        create view facts.kepler_hour as from counted;
        """
    )
    path = write_database(con, [], a_header(), tmp_path / "gpureport.duckdb")
    with duckdb.connect(str(path), read_only=True) as file:
        assert file.execute("select pod, workload from facts.pod_workload").fetchall() == [
            ("a", ""),
            ("p", "earlier"),
            ("p", "later"),
        ]
        assert file.execute("select kepler_seconds from facts.kepler_hour").fetchall() == [(9,), (1,)]
