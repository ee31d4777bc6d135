from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from query_text import parameters, tables_read

from gpureport.compute import query as queries
from gpureport.compute.period import failed_checks
from gpureport.compute.query import build, connection, load, needed, read, run_checks
from gpureport.values.errors import QueryError

PARSER = duckdb.connect()


def write_query(root: Path, table: str, sql: str, grain: str = "device_uuid", extra: str = "") -> None:
    path = root / "devices" / f"{table}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = [
        f"-- What {table} is.",
        "--",
        *([extra] if extra else []),
        f"-- grain:  {grain}",
        f"-- reads:  {', '.join(sorted(tables_read(PARSER, sql)))}",
        f"-- params: {', '.join(sorted(parameters(PARSER, sql)))}",
        "-- source: a test",
        "-- columns:",
        "--   device_uuid  the device",
        "--   held_seconds  s, how long",
    ]
    path.write_text("\n".join([*header, sql, ""]))


@pytest.fixture
def con():
    with duckdb.connect() as con:
        yield con


def test_a_header_is_read(tmp_path):
    write_query(tmp_path, "day.b", "select 'GPU-a' as device_uuid, $factor::double as held_seconds")
    query = read(tmp_path / "devices" / "day.b.sql")
    assert query.table == "day.b"
    assert (query.life, query.subject) == ("day", "devices")
    assert query.purpose == "What day.b is."
    assert query.grain == ("device_uuid",)
    assert query.params == ("factor",)
    assert query.source == "a test"
    assert query.columns == {"device_uuid": "the device", "held_seconds": "s, how long"}
    assert query.severity == ""


def test_columns_that_mean_the_same_everywhere_are_described_once(tmp_path):
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "column.csv").write_text("column,meaning\ndevice_uuid,UUID of the GPU\nheld_seconds,s\n")
    write_query(tmp_path, "day.b", "select 'GPU-a' as device_uuid, 1.0 as held_seconds")
    path = tmp_path / "devices" / "day.b.sql"
    path.write_text(
        path.read_text().replace(
            "-- columns:\n--   device_uuid  the device", "-- columns: device_uuid,\n--          held_seconds"
        )
    )
    assert read(path).columns == {"device_uuid": "UUID of the GPU", "held_seconds": "s, how long"}
    path.write_text(path.read_text().replace("held_seconds\n", "held_seconds, other\n"))
    with pytest.raises(QueryError, match=r"day\.b\.sql: no meaning of other"):
        read(path)


def test_columns_of_a_table_like_another_are_listed_there(tmp_path):
    write_query(tmp_path, "day.a", "select 'GPU-a' as device_uuid, 1.0 as held_seconds")
    write_query(tmp_path, "day.b", "select 'GPU-a' as device_uuid, 'n' as node_name from day.a")
    path = tmp_path / "devices" / "day.b.sql"
    like = "-- columns: those of day.a without held_seconds; node_name\n--   node_name  the node\n"
    header, body = path.read_text().split("-- columns:")
    path.write_text(header + like + "select " + body.split("select ", 1)[1])
    assert read(path).columns == {"device_uuid": "the device", "node_name": "the node"}
    path.write_text(path.read_text().replace("those of day.a", "those of day.z"))
    with pytest.raises(QueryError, match=r"day\.b\.sql: no query makes day\.z"):
        read(path)


def test_a_header_without_a_grain_is_refused(tmp_path):
    path = tmp_path / "b.sql"
    path.write_text("-- What b is.\n--\n-- reads:\n-- params:\n-- source: a test\n-- columns:\nselect 1\n")
    with pytest.raises(QueryError, match=r"b\.sql: the header lacks grain"):
        read(path)


def test_a_query_runs_after_those_it_reads(tmp_path):
    write_query(tmp_path, "facts.a", "select device_uuid from facts.z")
    write_query(tmp_path, "facts.z", "select device_uuid from day.m")
    write_query(tmp_path, "day.m", "select device_uuid from lake.device_sample")
    assert list(load(tmp_path)) == ["day.m", "facts.z", "facts.a"]


def test_queries_that_read_each_other_are_named(tmp_path):
    write_query(tmp_path, "facts.a", "select device_uuid from facts.b")
    write_query(tmp_path, "facts.b", "select device_uuid from facts.a")
    with pytest.raises(QueryError, match=r"in a circle: facts\.\w -> facts\.\w -> facts\.\w"):
        load(tmp_path)


def test_tables_read_are_tables_and_not_ctes_or_text():
    sql = "with clean as (select * from lake.a) select 'facts.b' as x from clean join report.c on exists (select 1 from checks.d)"
    assert tables_read(PARSER, sql) == {"lake.a", "report.c", "checks.d"}
    assert tables_read(PARSER, "select a.b from both_periods(previous.a, period.a) as a") == {"previous.a", "period.a"}


def test_what_cannot_be_parsed_has_no_tables():
    with pytest.raises(ValueError, match="cannot parse"):
        tables_read(PARSER, "select from where")


def test_only_what_leads_to_the_targets_is_needed(tmp_path):
    write_query(tmp_path, "day.m", "select device_uuid from lake.device_sample")
    write_query(tmp_path, "facts.a", "select device_uuid from day.m")
    write_query(tmp_path, "facts.b", "select device_uuid from facts.a")
    write_query(tmp_path, "facts.c", "select device_uuid from day.m")
    queries = load(tmp_path)
    assert [query.table for query in needed(queries, ["facts.b"])] == ["day.m", "facts.a", "facts.b"]
    assert [query.table for query in needed(queries, ["facts.b"], given=["facts.a"])] == ["facts.b"]


def test_what_a_target_is_made_of_comes_right_before_it(tmp_path):
    for name in ("a", "b"):
        write_query(tmp_path, f"day.{name}", "select device_uuid from lake.device_sample")
        write_query(tmp_path, f"facts.of_{name}", f"select device_uuid from day.{name}")
    plan = [query.table for query in needed(load(tmp_path), ["facts.of_a", "facts.of_b"])]
    assert plan == ["day.a", "facts.of_a", "day.b", "facts.of_b"]


def test_a_report_table_begins_with_its_keys(tmp_path, con):
    write_query(tmp_path, "report.t", "select 1.5 as ratio, 'p' as pod, 'c' as cluster", "cluster, pod")
    build(con, read(tmp_path / "devices" / "report.t.sql"), {})
    assert [name for name, *_ in con.execute("describe report.t").fetchall()] == ["cluster", "pod", "ratio"]


def test_a_table_is_built_with_its_parameters_and_no_others(tmp_path, con):
    write_query(tmp_path, "day.b", "select 'GPU-a' as device_uuid, $factor::double as held_seconds")
    build(con, read(tmp_path / "devices" / "day.b.sql"), {"factor": 3, "unused": 1})
    assert con.sql("from day.b").fetchall() == [("GPU-a", 3.0)]


def test_a_missing_parameter_is_named(tmp_path, con):
    write_query(tmp_path, "day.b", "select 'GPU-a' as device_uuid, $factor::double as held_seconds")
    with pytest.raises(QueryError, match=r"day\.b: no value was given for \$factor"):
        build(con, read(tmp_path / "devices" / "day.b.sql"), {})


def test_two_rows_of_one_key_break_the_grain(tmp_path, con):
    write_query(tmp_path, "day.b", "select unnest(['GPU-a', 'GPU-b', 'GPU-a']) as device_uuid")
    with pytest.raises(QueryError, match=r"day\.b: more than one row for device_uuid = \('GPU-a',\)"):
        build(con, read(tmp_path / "devices" / "day.b.sql"), {})


def test_a_failing_query_is_named_in_one_line(tmp_path, con):
    write_query(tmp_path, "day.b", "select device_uuid from lake.nothing")
    with pytest.raises(QueryError, match=r"day\.b \(day\.b\.sql\) failed: Catalog Error") as caught:
        build(con, read(tmp_path / "devices" / "day.b.sql"), {})
    assert "\n" not in str(caught.value)


def test_a_check_reports_what_it_found(tmp_path, con):
    sql = "select unnest(['GPU-b', 'GPU-a']) as device_uuid, 5 as held_seconds"
    write_query(tmp_path, "checks.found", sql, extra="-- severity: warn")
    write_query(tmp_path, "checks.quiet", f"{sql} where false", extra="-- severity: fail")
    (failure,) = run_checks(con, load(tmp_path).values(), {})
    assert (failure.table, failure.severity, failure.row_count) == ("checks.found", "warn", 2)
    assert str(failure) == "checks.found: What checks.found is. 2 rows, such as device_uuid=GPU-a, held_seconds=5"


def test_a_statement_without_enough_memory_is_a_sentence() -> None:
    with pytest.raises(QueryError, match="60MB of memory is not enough"), connection("60MB") as con:
        con.execute("select list(range) from range(30000000)").fetchall()


@pytest.mark.parametrize("used_by", [None, "select f0(1)"])
def test_a_function_is_made_after_those_that_it_calls(monkeypatch: pytest.MonkeyPatch, used_by: str | None) -> None:
    chain = {f"f{number}": f"create macro f{number}(x) as f{number + 1}(x)" for number in range(8)}
    monkeypatch.setattr(queries, "functions", lambda: {**chain, "f8": "create macro f8(x) as x + 8"})
    with duckdb.connect() as con:
        queries.define_functions(con, used_by)
        assert con.execute("select f0(1)").fetchall() == [(9,)]


def test_a_reports_warnings_are_made_anew_with_the_values_of_the_report() -> None:
    day = datetime(2026, 3, 1)
    with connection() as con:
        con.execute(
            """create schema facts; create schema checks; create table checks.owner_of_unseen_device as select 1 as found;
            create table facts.device_hour (cluster varchar, device_uuid varchar, hour_start_at timestamp);
            create table facts.ownership as select 'c' as cluster, 'GPU-a' as device_uuid, '' as gpu_instance_id,
                'ns' as namespace, 'p' as pod, '' as pod_uid, 'main' as container,
                timestamp '2026-03-01' as start_at, timestamp '2026-03-01 01:00' as end_at"""
        )
        found = failed_checks(con, {"since_at": day, "until_at": day + timedelta(days=1)})

    assert [(failure.table, failure.row_count) for failure in found] == [("checks.owner_of_unseen_device", 1)]
