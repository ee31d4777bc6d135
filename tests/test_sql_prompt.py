"""``gpureport sql``: rows as a table, JSON or CSV, one statement or a script, and DuckDB's own words where it refuses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import duckdb
import pytest

from gpureport.errors import UsageError
from gpureport.row_printing import Output
from gpureport.sql_prompt import answer, prompt

STATEMENT = """
select 'a,"b"' as name, timestamp '2026-11-20 23:51:40' as seen_at, sum(2)::hugeint as total, 0.5::decimal(9, 2) as half,
    [31, 79] as codes, map {'k': 'v'} as reasons, null as unknown, 'nan'::double as odd, true as is_so
"""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


def printed(con: duckdb.DuckDBPyConnection, statement: str, output: Output) -> str:
    out = io.StringIO()
    answer(con, statement, output, out)
    return out.getvalue()


def test_json_holds_plain_values_and_utc_instants(con: duckdb.DuckDBPyConnection) -> None:
    assert json.loads(printed(con, STATEMENT, "json")) == [
        {
            "name": 'a,"b"',
            "seen_at": "2026-11-20T23:51:40Z",
            "total": 2,
            "half": 0.5,
            "codes": [31, 79],
            "reasons": {"k": "v"},
            "unknown": None,
            "odd": None,
            "is_so": True,
        }
    ]


def test_csv_quotes_what_needs_it_and_leaves_unknown_empty(con: duckdb.DuckDBPyConnection) -> None:
    (row,) = csv.DictReader(io.StringIO(printed(con, STATEMENT, "csv")))
    assert list(row.values()) == ['a,"b"', "2026-11-20T23:51:40Z", "2", "0.5", "[31, 79]", '{"k": "v"}', "", "", "true"]


def test_a_table_shows_unknown_as_a_dash_and_brackets_as_they_are(con: duckdb.DuckDBPyConnection) -> None:
    heading, row = printed(con, "select '[red]x' as name, null as figure", "table").splitlines()
    assert (heading.split(), row.split()) == (["name", "figure"], ["[red]x", "—"])


def test_wide_rows_are_not_cut_where_the_output_is_a_file(con: duckdb.DuckDBPyConnection) -> None:
    assert "x" * 5000 in printed(con, "select repeat('x', 5000) as long", "table")


def test_a_refused_statement_is_a_usage_error_in_duckdbs_words(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UsageError, match=r"SQL: .*no_such_table"):
        answer(con, "select * from no_such_table", "table", io.StringIO())


def test_a_script_runs_statement_by_statement_over_several_lines(con: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    prompt(con, "csv", io.StringIO("create table t as\nselect 7 as n;\nselect n\nfrom t;\nselect n + 1 as m from t"), out)
    assert out.getvalue().split() == ["Count", "1", "n", "7", "m", "8"]


def test_a_script_stops_at_the_statement_that_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    with pytest.raises(UsageError):
        prompt(con, "csv", io.StringIO("select 1 as n;\nselect nonsense;\nselect 2 as n;\n"), out)
    assert out.getvalue().split() == ["n", "1"]
