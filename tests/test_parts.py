"""Tables that are made in parts have the rows of the whole, in the order of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.compute.period import ReportSettings, WindowTables
from gpureport.compute.query import Query, build, connection, load
from gpureport.compute.query.parts import Parts
from gpureport.lake import open_lake
from gpureport.report.database import begin, move
from gpureport.values.window import Window, day_start

IN_PARTS = [query for query in load().values() if query.parts and len(query.parts.keys) > 1 and query.life != "facts"]
"""The others are made by clusters, of which the lake has one."""
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


@given(rows=st.lists(st.tuples(names, names), max_size=30), row_count=st.integers(1, 10))
def test_each_row_is_in_one_part_and_parts_are_in_order(
    con: duckdb.DuckDBPyConnection, rows: list[tuple[str, str]], row_count: int
) -> None:
    con.execute(
        "create or replace table held as select unnest($1::varchar[]) as namespace, unnest($2::varchar[]) as pod",
        [[namespace for namespace, _ in rows], [pod for _, pod in rows]],
    )
    ranges = Parts(row_count, "held", ("namespace", "pod")).ranges(con)
    found = [con.execute(f"from held where {each or 'true'} order by all").fetchall() for each in ranges]
    assert [row for part in found for row in part] == sorted(rows)
    assert len(ranges) <= 1 + 2 * len(rows) // row_count
    compared = [condition.split(" ", 2)[1] for each in ranges if each for condition in each.split(" and ")]
    assert {*compared} <= {"<", "=", ">", ">="}, "a condition on one key and a constant, with which a scan skips rows"


def test_a_header_names_a_table_that_is_read_and_keys_of_both() -> None:
    queries = load()
    wrong = [
        query.table
        for query in queries.values()
        if query.parts
        and not (
            query.parts.table in query.reads
            and {*query.parts.keys} <= {*query.grain}
            and {*query.parts.keys} <= {*queries[query.parts.table].grain}
        )
    ]
    assert not wrong


@pytest.fixture(scope="module")
def tables(simulated_demo: Path) -> Iterator[WindowTables]:
    """What they read, of the simulated demo."""
    lake = open_lake(simulated_demo / "lake")
    days = sorted(each.date for each in lake.computed_days())
    window = Window(day_start(days[0]), day_start(days[-1] + timedelta(days=1)))
    with connection() as con:
        found = WindowTables(con, lake, window, ReportSettings())
        found.build({table for query in IN_PARTS for table in query.reads})
        yield found


@pytest.mark.parametrize("query", IN_PARTS, ids=lambda query: query.table)
def test_small_parts_have_the_rows_of_the_whole(query: Query, tables: WindowTables, tmp_path: Path) -> None:
    """Pods of several devices, MIG, shared GPUs, claims, labels without a uid; in the report's file, whose order is the keys'."""
    parts, con, found = query.parts, tables.con, []
    assert parts
    for row_count in (10**6, 20):
        small = replace(query, parts=replace(parts, row_count=row_count))
        found.append(len(small.parts.ranges(con)))
        begin(con, tmp_path / str(row_count), has_many=False)
        build(con, small, tables.params, partial(move, con, False) if query.life == "report" else None)
        found.append(con.execute(f"from {query.table} {'' if query.life == 'report' else 'order by all'}").fetchall())
        if query.life == "report":
            con.execute(f"drop view {query.table}")
        con.execute("detach file")
    assert found[0] == 1
    assert found[2] > 3
    assert [pair for pair in zip(found[1], found[3], strict=True) if pair[0] != pair[1]] == []
