"""``gpureport sql``: rows as a table, JSON or CSV, one statement or a script, and DuckDB's own words where it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from golden_case import NOW

from gpureport.cli import main
from gpureport.commands.work.querying import Session
from gpureport.compute.query import Query, build
from gpureport.values.errors import QueryError, UsageError
from gpureport.values.text.rows import Output

STATEMENT = """
select 'a,"b"' as name, timestamp '2026-11-20 23:51:40' as seen_at, sum(2)::hugeint as total, 0.5::decimal(9, 2) as half,
    [31, 79] as codes, map {'k': 'v'} as reasons, null as unknown, 'nan'::double as odd, true as is_so
"""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


def session(
    con: duckdb.DuckDBPyConnection, output: Output = "csv", rows_at_most: int | None = None
) -> tuple[Session, io.StringIO]:
    out = io.StringIO()
    return Session(con, lambda _: None, output, out, rows_at_most), out


def printed(con: duckdb.DuckDBPyConnection, statement: str, output: Output, rows_at_most: int | None = None) -> str:
    asked, out = session(con, output, rows_at_most)
    asked.answer(statement)
    return out.getvalue()


class Terminal(io.StringIO):
    """Lines that somebody types."""

    def isatty(self) -> bool:
        return True


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


def test_a_table_on_a_terminal_has_the_columns_that_fit_and_says_so(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = Session(con, lambda _: None, "table", out := Terminal())
    asked.answer(
        "select 'serving' as team, 1234.5 as allocated_idle_gpu_hours, repeat('x', 90) as long, repeat('y', 40) as other"
    )
    assert out.getvalue().splitlines() == [
        "         allocated",
        "          idle_gpu",
        "team         hours  long",
        f"serving     1234.5  {'x' * 47}…",
    ]
    assert "3 of 4 columns fit" in capsys.readouterr().err


def test_wide_rows_are_not_cut_where_the_output_is_a_file(con: duckdb.DuckDBPyConnection) -> None:
    assert "x" * 5000 in printed(con, "select repeat('x', 5000) as long", "table")


def test_a_refused_statement_is_a_usage_error_in_one_line_of_duckdbs_words(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UsageError, match=r"^SQL: [^\n]*no_such_table[^\n]*$"):
        printed(con, "select * from no_such_table", "table")


@pytest.mark.parametrize(("output", "shown"), [("table", 1000), ("csv", 2500), ("json", 2500)])
def test_a_table_ends_after_a_thousand_rows_and_says_so(
    output: Output, shown: int, con: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(con, "select range as n from range(2500)", output)
    rows = len(json.loads(text)) if output == "json" else len(text.splitlines()) - 1
    assert rows == shown
    assert ("only the first 1,000 rows" in capsys.readouterr().err) == (output == "table")
    assert printed(con, "select range as n from range(2500)", "csv", rows_at_most=2).split() == ["n", "0", "1"]
    assert "only the first 2 rows" in capsys.readouterr().err


def test_json_of_no_rows_is_an_empty_list(con: duckdb.DuckDBPyConnection) -> None:
    assert json.loads(printed(con, "select 1 as n where false", "json")) == []


def test_a_script_runs_statement_by_statement_over_several_lines(con: duckdb.DuckDBPyConnection) -> None:
    asked, out = session(con)
    asked.prompt(io.StringIO("create table t as\nselect 7 as n;\nselect n\nfrom t;\nselect n + 1 as m from t"))
    assert out.getvalue().split() == ["Count", "1", "n", "7", "m", "8"]


def test_each_of_several_statements_is_answered_and_none_where_one_is_no_sql(con: duckdb.DuckDBPyConnection) -> None:
    assert printed(con, "select 1 as n; select ';' as m; -- the end", "csv").split() == ["n", "1", "m", ";"]
    asked, out = session(con)
    with pytest.raises(UsageError):
        asked.answer("select 1 as n; selec 2")
    assert out.getvalue() == ""


def test_a_script_stops_at_the_statement_that_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    asked, out = session(con)
    with pytest.raises(UsageError):
        asked.prompt(io.StringIO("select 1 as n;\nselect nonsense;\nselect 2 as n;\n"))
    assert out.getvalue().split() == ["n", "1"]


def test_at_a_terminal_the_prompt_goes_on_after_any_error_of_a_statement(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["select nonsense;", "from report.fleet;", "select 2 as n;"])

    def refuse(statement: str) -> None:
        if "report." in statement:
            raise QueryError("report.fleet ran out of memory; raise compute.memory_limit")

    def line(_: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", line)
    out = io.StringIO()
    Session(con, refuse, "csv", out).prompt(Terminal())
    assert out.getvalue().split() == ["n", "2"]
    told = capsys.readouterr().err.splitlines()[1:]
    assert len(told) == 2 and told[0].startswith("SQL: ") and told[1].startswith("report.fleet ran out of memory")


@pytest.mark.parametrize(
    "statement",
    [
        "from read_text('/etc/hostname')",
        "copy (select 1) to '{lake}/mine.csv'",
        "attach '{lake}/mine.db'",
        "explain /* é */ analyze copy (select 1) to '{lake}/mine.csv'",
        "prepare p as copy (select 1) to '{lake}/mine.csv'; execute p",
        "with x as (copy (select 1) to '{lake}/mine.csv') from x",
        "from json_execute_serialized_sql(json_serialize_sql('with x as (copy (select 1) to ''{lake}/mine.csv'') from x'))",
        "set log_query_path = '{lake}/mine.log'; select 1",
        "call enable_logging(storage = 'file', storage_config = {{'path': '{lake}/mine'}})",
    ],
)
def test_only_the_lake_is_read_and_nothing_is_written_unless_files_are_allowed(
    statement: str, demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = shutil.copytree(demo / "lake", tmp_path / "lake")
    command = ["sql", statement.format(lake=lake), "--lake", str(lake)]
    assert main(command, environ={}, now=NOW) == 2
    assert "SQL: " in capsys.readouterr().err
    assert not list(lake.glob("mine*"))
    assert main(["sql", "select count(*) from lake.source", "--lake", str(lake)], environ={}, now=NOW) == 0
    assert main([*command, "--allow-files"], environ={}, now=NOW) == 0


@pytest.mark.parametrize(
    "statement",
    [
        "drop table lake.node",
        "DROP VIEW IF EXISTS lake.source",
        "drop schema lake cascade",
        "select 1; /* all */ delete from facts.device_hour where true",
        "update report.fleet set device_count = 9",
        'insert into "lake".node from lake.node',
        "insert or ignore into lake.node from lake.node",
        "truncate lake.node",
        "alter table facts.device_hour rename to mine",
        "create or replace temp view lake.node as select 1",
    ],
)
def test_no_table_of_the_lake_seems_to_change(con: duckdb.DuckDBPyConnection, statement: str) -> None:
    asked, out = session(con)
    for may_write in (False, True):
        with pytest.raises(UsageError, match=r"only reads lake\.\*"):
            replace(asked, may_write=may_write).answer(statement)
    asked.answer("create table own as select 'drop table lake.node' as n; delete from own where n = 'b'; drop table own")
    assert out.getvalue().startswith("Count\n1\n")


def test_a_statement_that_only_speaks_of_writing_reads(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statement = "with query as (select 'copy' as n /* export */) select n, 1 as copied from query -- attach"
    assert main(["sql", statement, "--lake", str(demo / "lake"), "-o", "csv"], environ={}, now=NOW) == 0
    assert capsys.readouterr().out.splitlines() == ["n,copied", "copy,1"]


def test_nothing_is_built_for_a_statement_that_names_no_table(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lake's facts cannot be read: whoever opens one fails."""
    lake = ["--lake", str(demo / "lake"), "-o", "csv"]
    for statement, first in (("select 1 as n", "n"), ("show tables", "table,holds"), ("select 'report.device' as n", "n")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gpureport.commands.work.querying.views", lambda *_, **__: pytest.fail("opened a table"))
            patch.setattr("gpureport.commands.work.querying.WindowTables", lambda *_, **__: pytest.fail("built a table"))
            assert main(["sql", statement, *lake], environ={}) == 0
        assert capsys.readouterr().out.splitlines()[0] == first


@pytest.mark.parametrize(
    ("statement", "printed"),
    [
        ("select device_count from report.fleet", "1"),
        ("select count(*) from report.fleet join facts.device_hour using (cluster)", "1"),
        ("describe report.fleet", "cluster,VARCHAR,cluster name"),
        ("create table own as from report.fleet; select count(*) from own", "1"),
        ("select count(*) from period.capacity", "1"),
        ("select since_at::date from (select min(hour_start_at) as since_at from facts.device_hour)", "2026-11-20"),
    ],
)
def test_a_named_table_is_built_with_what_it_reads_alone(
    statement: str, printed: str, demo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def note(con: duckdb.DuckDBPyConnection, query: Query, params: Mapping[str, Any]) -> None:
        built.append(query.table)
        build(con, query, params)

    monkeypatch.setattr("gpureport.compute.period.build", note)
    window = ["--since", "2026-11-20", "--until", "2026-11-21"]
    assert main(["sql", statement, *window, "--lake", str(demo / "lake"), "-o", "csv"], environ={}) == 0
    assert capsys.readouterr().out.splitlines()[1] == printed
    assert not {"report.container", "report.finding", "report.period"}.intersection(built)


def test_a_described_table_says_what_its_columns_mean(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for statement, line in (
        ("DESCRIBE report.container_power;", "energy_joules,DOUBLE,"),
        ("desc lake.device_sample", "held_seconds,DOUBLE,"),
        ('describe "facts"."device_hour"', "observed_seconds,DOUBLE,"),
    ):
        assert main(["sql", statement, "--lake", str(demo / "lake"), "-o", "csv"], environ={}) == 0
        header, *rows = capsys.readouterr().out.splitlines()
        assert header == "column,type,meaning"
        [found] = [row for row in rows if row.startswith(line)]
        assert re.search(r"\b(J|s|seconds)\b", found.removeprefix(line))
        assert not [row for row in rows if row.endswith(",")]
    assert main(["sql", "describe report.nothing", "--lake", str(demo / "lake")], environ={}) == 2
    assert "there is no table report.nothing; " in capsys.readouterr().err


def test_a_misspelt_table_gets_the_close_ones_named(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "from report.flet", "--lake", str(demo / "lake")], environ={}) == 2
    assert "no table report.flet; did you mean report.fleet" in capsys.readouterr().err


def test_a_table_of_costs_says_which_settings_it_lacks(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(statement: str, **environ: str) -> tuple[int, str, str]:
        code = main(["sql", statement, "--lake", str(demo / "lake"), "-o", "csv"], environ=environ)
        printed = capsys.readouterr()
        return code, printed.out.splitlines()[1], printed.err

    said = " has no cost of GPU-hours: configure gpu_hour and currency under [prices]\n"
    assert asked("select count(*) from report.focus") == (0, "0", f"report.focus{said}")
    assert asked("select count(allocated_cost) from report.cost") == (0, "0", f"report.cost{said}")
    assert asked("select count(*) from report.fleet") == (0, "1", "")
    code, count, errors = asked("select count(*) from report.focus", GPUREPORT_PRICES__GPU_HOUR='{"all": 2}')
    assert (code, int(count) > 0, errors) == (0, True, "")


def test_report_tables_are_of_the_sessions_window(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = ["--lake", str(demo / "lake")]
    assert main(["sql", "from report.fleet", "--since", "2026-11-19", *lake], environ={}) == 1
    assert "has no data for 2026-11-19" in capsys.readouterr().err
    assert main(["sql", "from report.period", *lake], environ={}) == 1
    assert "no comparison: the lake lacks data of 2026-11-19" in capsys.readouterr().err
    assert main(["sql", "select 1", "--until", "2026-11-19", *lake], environ={}) == 2
