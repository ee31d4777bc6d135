"""Every SQL file: its header tells the truth, its names carry units, and golden cases worked out by hand.

A case is a folder ``tests/queries/<schema>/<table>/<case>/``: one ``<schema>.<table>.csv`` per input and ``expect.csv``, whose
first line says why and shows the arithmetic. Tables that are not given are built from those that are, or are empty;
columns that are not given have the value in DEFAULTS, or null; columns that ``expect.csv`` leaves out are not compared.
``params.csv`` (name,value) overrides PARAMS. Cases with the same parameters are built at once, each as two clusters with the same
names: what one is given and another builds is given once it is built.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from built_once import built_once
from documents import queries as query_docs
from query_text import parameters, tables_read
from rebuilding import empty_rule_tables, touched

from gpureport import lake
from gpureport.compute.fact_views import limits
from gpureport.compute.intervals import INTERVALS
from gpureport.compute.query import SUBJECTS, Query, build, dictionary, functions, load, of_life
from gpureport.compute.quotas import RULES, Arguments, Rule, quota_graph
from gpureport.config import findings
from gpureport.schedulers.model import Rules
from gpureport.values.runtime import resources
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.tables.table import kind_of_fact

HERE = Path(__file__).parent / "queries"
QUERIES = load()
FILES = [query for query in QUERIES.values() if query.life != "previous"]
CASES = sorted(path.parent for path in HERE.rglob("expect.csv"))
AT_MOST = 100
"""Cases of one build."""
ALONE = {"cluster", "dimension", "reasons_code", "terms_id", "sql"}
"""Columns that name clusters, or have numbers that count over all of them in no order."""
COUNTED = {"holder_number", "interval_number", "line_number"}
"""Numbers that count over all clusters, one after the other: compared as if the first of the cluster had that of its case."""
KEYS = {query.table: query.grain for query in FILES} | {table.name: table.schema.names for rule in RULES for table in rule.makes}
PARAMS: dict[str, Any] = {
    "memory_threshold_ratio": 0.9,
    "since_at": datetime(2026, 3, 1),
    "until_at": datetime(2026, 3, 1, 2),
    "previous_since_at": datetime(2026, 2, 28, 22),
    "previous_until_at": datetime(2026, 3, 1),
    "window_ratio": 1.0,
    "restated_days": "[]",
    "figure_min_coverage_ratio": 0.5,
    "saturation_enabled": True,
    "links": "{}",
    "idle_watts": "{}",
    "idle_policy": "separate",
    "prices": "{}",
    "currency": "EUR",
    "budgets": "{}",
    "carbon": "{}",
    "team_label": "team",
    "timezone": "UTC",
    "expected_before": "[]",
    "retired": "[]",
    "added_gpus": 0.0,
    **findings.parameters(findings.Thresholds(), []),
}
DEFAULTS = {
    "gpu_instance_id": "",
    "namespace": "ns",
    "pod_uid": "",
    "container": "main",
    "is_carried": "false",
    "node_name": "node-a",
    "gpu_index": "",
    "gpu_device": "",
    "gpu_model": "",
    "gpu_instance_profile": "",
    "pci_bus_id": "",
    "driver_version": "",
    "make": "",
    "sharing_mode": "exclusive",
    "sharing_evidence": "",
    "certainty": "certain",
    "stranding": "",
    "flavor": "",
    "parent": "",
    "tree": "",
    "watched": "pods",
    "placement": "",
    "owner_kind": "",
}
UNITS = re.compile(
    r".*_(seconds|ratio|percent|bytes|byte_seconds|watts|joules|joules_kepler|joules_unweighted|celsius|hertz|count|code|codes|bytes_per_second|hours|cost|kwh|grams|native|gpus|cores|units"
    r"|\w+_ratio_seconds)(_avg|_max|_min|_p[0-9][0-9])?"
)
NAMED_BY_CONTRACT = re.compile(
    r"(gpu_usage|dram_active|sm_active|sm_occupancy|tensor_active)_(avg|max)|weight|priority|minor|socket_id|series_id|numa_node"
    r"|line_number|value_max"
    r"|[A-Z][A-Za-z]+"  # FOCUS
)


@pytest.fixture(scope="module")
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Every table, built over an empty lake: empty, with the types of the real thing."""

    def build_all(folder: Path) -> None:
        with duckdb.connect() as con:
            con.execute("set TimeZone = 'UTC'; set threads = 1")
            lake.views(con, lake.open_lake(folder / "lake", create=True), TABLE_BY_NAME)
            empty_rule_tables(con)
            for query in QUERIES.values():
                build(con, query, PARAMS)
            con.execute(f"attach '{folder}/graph.duckdb' as kept; copy from database memory to kept")

    kept = built_once("graph", build_all, request, tmp_path_factory) / "graph.duckdb"
    with duckdb.connect() as con:
        con.execute(f"attach '{kept}' as kept (read_only); copy from database kept to memory; detach kept")
        con.execute("set TimeZone = 'UTC'; set threads = 1")
        yield con


@pytest.fixture
def empty(graph: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The graph on an empty lake; whatever a test does to it is undone."""
    graph.begin()
    yield graph
    graph.rollback()


def header(path: Path) -> list[str]:
    return next(csv.reader(line for line in path.read_text().splitlines() if not line.startswith("#")))


def insert_csv(con: duckdb.DuckDBPyConnection, table: str, path: Path, cluster: str = "c") -> list[str]:
    """Insert a case's rows by name; the columns that the file gives."""
    given, there = header(path), con.table(table).columns
    unknown = set(given) - set(there)
    assert not unknown, f"{path}: {table} has no column {unknown}"
    usual = {"cluster": cluster, **DEFAULTS}
    defaults = "".join(f", '{value}' as {name}" for name, value in usual.items() if name in there and name not in given)
    con.execute(
        f"insert into {table} by name select *{defaults} from read_csv('{path}', all_varchar = true, header = true, delim = ',', "
        "quote = '\"', escape = '\"', comment = '#', allow_quoted_nulls = false, auto_detect = false, "
        f"columns = {{{', '.join(f'{name!r}: {chr(39)}varchar{chr(39)}' for name in given)}}})"
    )
    return given


def read_params(case: Path) -> dict[str, Any]:
    path = case / "params.csv"
    if not path.exists():
        return PARAMS
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {**PARAMS, **{row["name"]: parse(row["value"]) for row in csv.DictReader(lines)}}


def parse(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if re.match(r"[{[a-zA-Z]", text):
        return text
    return datetime.fromisoformat(text) if "T" in text else float(text)


def case_name(case: Path) -> str:
    return str(case.relative_to(HERE))


def behind(tables: Collection[str], inputs: Collection[str], params: Mapping[str, Any]) -> Iterator[Query]:
    """The queries, and those behind them, whose tables may be others than the empty graph's."""
    changed = [name for name, value in params.items() if PARAMS.get(name) != value]
    yield from touched(QUERIES, tables, inputs, changed)


class Case(NamedTuple):
    """A case, and what a build with others must not mix up."""

    path: Path
    table: str
    inputs: Collection[str]
    params: dict[str, Any]
    anew: Collection[str]
    """The tables that are built of those that are given."""
    is_alone: bool
    """Whether it names clusters itself, or a table of it has none: then it does not stand twice."""

    @classmethod
    def of(cls, path: Path) -> Case:
        table, inputs, params = path.parts[-2], {each.stem for each in path.glob("*.*.csv")}, read_params(path)
        anew = {each.table for each in behind([table], inputs, params)}
        names = {name for file in path.glob("*.csv") for name in header(file)}
        is_of_clusters = all("cluster" in KEYS.get(each, "cluster") for each in (table, *inputs))
        is_alone = not is_of_clusters or not ALONE.isdisjoint(names) or '"cluster"' in str(params)
        return cls(path, table, inputs, params, anew, is_alone)

    def can_stand_with(self, other: Case) -> bool:
        """Whether one build makes both."""
        return self.params == other.params and not (self.is_alone or other.is_alone)


def at_once(paths: Iterable[Path]) -> list[dict[str, Case]]:
    """By cluster: cases that one build makes, each with those that need most of the same tables."""
    found: list[list[Case]] = []
    for case in sorted(map(Case.of, paths), key=lambda case: -len(case.anew)):
        fitting = [group for group in found if len(group) < AT_MOST and all(map(case.can_stand_with, group))]
        if not fitting:
            fitting = [[]]
            found += fitting
        min(fitting, key=lambda group: len(case.anew.difference(*(each.anew for each in group)))).append(case)
    return [
        {
            (case_name(case.path) if len(group) > 1 else "c") + again: case
            for case in group
            for again in ([""] if case.is_alone else ["", " again"])
        }
        for group in found
    ]


def case_names(cases: dict[str, Case]) -> str:
    return "; ".join(dict.fromkeys(case_name(case.path) for case in cases.values()))


def expected(table: str) -> str:
    return f"expected_{table.replace('.', '_')}"


def fill(con: duckdb.DuckDBPyConnection, cases: dict[str, Case]) -> Iterator[Query]:
    """Insert the rows of the cases, those that they expect into tables of their own; the queries to build, one by one."""
    given: dict[str, dict[str, Path]] = {}
    for cluster, case in cases.items():
        con.execute(f"create temp table if not exists {expected(case.table)} as from {case.table} limit 0")
        insert_csv(con, expected(case.table), case.path / "expect.csv", cluster)
        for table in case.inputs:
            given.setdefault(table, {})[cluster] = case.path / f"{table}.csv"
    anew = {table for case in cases.values() for table in case.anew}
    for table in given.keys() - anew:
        give(con, table, given[table])
    for query in [query for query in QUERIES.values() if query.table in anew]:
        yield query
        give(con, query.table, given.get(query.table, {}))


def give(con: duckdb.DuckDBPyConnection, table: str, files: Mapping[str, Path]) -> None:
    """Rows of files in place of what the table has of their clusters."""
    for cluster, file in files.items():
        if "cluster" in con.table(table).columns:
            con.execute(f"delete from {table} where cluster = '{cluster}'")
        insert_csv(con, table, file, cluster)


def params_of(cases: dict[str, Case]) -> dict[str, Any]:
    return next(iter(cases.values())).params


def assert_is_expected(con: duckdb.DuckDBPyConnection, cases: dict[str, Case]) -> None:
    for table in {case.table for case in cases.values()} if len(cases) > 1 else ():
        assert {cluster for (cluster,) in con.sql(f"select distinct cluster from {table}").fetchall()} <= cases.keys()
    for cluster, case in cases.items():
        query = QUERIES[case.table]
        columns = list(dict.fromkeys([*query.grain, *header(case.path / "expect.csv")]))
        where = f"where cluster = '{cluster}'" if len(cases) > 1 else ""
        assert rows(con, query, query.table, columns, where) == rows(con, query, expected(query.table), columns, where)


@pytest.mark.parametrize("cases", at_once(CASES), ids=case_names)
def test_cases(cases: dict[str, Case], empty: duckdb.DuckDBPyConnection) -> None:
    for each in fill(empty, cases):
        build(empty, each, params_of(cases))
    assert_is_expected(empty, cases)


@pytest.mark.parametrize(
    "cases", [group for query in FILES if query.parts for group in at_once(HERE.glob(f"*/{query.table}/*"))], ids=case_names
)
def test_cases_in_the_smallest_parts(cases: dict[str, Case], graph: duckdb.DuckDBPyConnection) -> None:
    """Parts are views of a database beside, which a transaction cannot write too."""
    made = []
    try:
        for each in fill(graph, cases):
            made.append(each)
            build(graph, replace(each, parts=each.parts and replace(each.parts, row_count=1)), params_of(cases))
        assert_is_expected(graph, cases)
    finally:
        for case in cases.values():
            graph.execute(f"drop table if exists {expected(case.table)}")
        for table in {*(each for case in cases.values() for each in case.inputs), *(each.table for each in made)}:
            graph.execute(f"delete from {table}")


def rows(con: duckdb.DuckDBPyConnection, query: Query, table: str, columns: list[str], where: str) -> list[dict[str, Any]]:
    chosen = [f"{name} - min({name}) over ()" if name in COUNTED and where else name for name in columns]
    found = con.execute(f"select {', '.join(chosen)} from {table} {where} order by {', '.join(query.grain)}").fetchall()
    return [dict(zip(columns, map(comparable, row), strict=True)) for row in found]


def comparable(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


KINDS = {
    "lowest": "varchar",
    "highest": "varchar",
    "signal": "varchar",
    "kind": "varchar",
    "pod_workload": "varchar",
    "name": "varchar",
    "noun": "varchar",
    "rule": 'struct("key" varchar, operator varchar, "values" varchar[])',
    "labels": "map(varchar, varchar)",
    "scopes": "varchar",
    "priority_class": "varchar",
    "pod_scopes": "varchar[]",
    "message": "varchar",
    "method": "varchar",
    "metric": "varchar",
    "zone": "varchar",
    "wanted_model": "varchar",
    "resources": "varchar",
    "is_selective": "boolean",
    "resource": "varchar",
    "pod": "varchar",
    "profile": "varchar",
    "gpu_model": "varchar",
    "seen_at": "timestamp",
    "counts": "map(varchar, bigint)[]",
    "numbers": "integer[]",
    "elsewhere": "varchar",
    "left_out": "varchar",
    "reasons": "struct(figure varchar, reason varchar)[]",
}


TABLE_CALLS = {
    "agreement": (
        "agreement(beside)",
        {
            "beside": "cluster varchar, compared varchar, object varchar, resource varchar, observed_at timestamp, "
            "reported_units double, counted_units double"
        },
    ),
    "between_edges": ("between_edges(given, '^key$')", {"given": "key varchar, start_at timestamp, end_at timestamp"}),
    "both_capacities": (
        "both_capacities(earlier, later)",
        dict.fromkeys(("earlier", "later"), "cluster varchar, node_name varchar, device_uuid varchar"),
    ),
    "both_periods": (
        "both_periods(earlier, later)",
        {"earlier": "cluster varchar, size varchar", "later": "cluster varchar, size varchar"},
    ),
    "merged_runs": (
        "merged_runs(given, '^(key|part)$')",
        {"given": "key varchar, part varchar, start_at timestamp, end_at timestamp, size double"},
    ),
    "numbered_runs": ("numbered_runs(given, (key))", {"given": "key varchar, start_at timestamp, end_at timestamp"}),
    "running_amounts": (
        "running_amounts(held, (node))",
        {"held": "node varchar, start_at timestamp, end_at timestamp, amount double"},
    ),
    "snapshot_intervals": (
        "snapshot_intervals(state, snapshot)",
        {
            "state": "cluster varchar, kind varchar, pod varchar, run_number bigint, snapshot_numbers bigint[]",
            "snapshot": "cluster varchar, kind varchar, snapshot_number bigint, observed_at timestamp, previous_at timestamp, "
            "stands_until_at timestamp, is_followed boolean",
        },
    ),
}
"""Of each table function a call, and the columns of the tables that it reads."""


@pytest.mark.parametrize("name", sorted(functions().keys() - TABLE_CALLS))
def test_function(name: str, empty: duckdb.DuckDBPyConnection) -> None:
    """Each line of ``functions/<name>.csv``: the parameters, and the result as text; nothing is null, '' is no text."""
    lines = [line for line in (HERE / "functions" / f"{name}.csv").read_text().splitlines() if not line.startswith("#")]
    for line in csv.DictReader(lines):
        row = {key: {"": None, "''": ""}.get(value, value) for key, value in line.items()}
        expected = row.pop("result")
        kinds = {key: KINDS.get(key, "timestamp" if key.endswith("_at") else "double") for key in row}
        given = ", ".join(f"${key}::{kinds[key]}" for key in row)
        told = empty.sql(f"select {name}({given}) as result", params=row)
        is_same = f"select result is not distinct from cast($expected as {told.types[0]}) from told"
        assert empty.execute(is_same, {"expected": expected}).fetchall() == [(True,)], (row, told.fetchall())


@pytest.mark.parametrize("name", TABLE_CALLS)
def test_table_function(name: str, empty: duckdb.DuckDBPyConnection) -> None:
    """``functions/<name>/``: the rows of the tables that it reads make those of ``result.csv``."""
    case, (call, tables) = HERE / "functions" / name, TABLE_CALLS[name]
    for table, columns in tables.items():
        empty.execute(f"create temp table {table} ({columns})")
        insert_csv(empty, table, case / f"{table}.csv")
    found = empty.sql(f"from {call}")
    empty.execute("create temp table expected as from found limit 0")
    names = ", ".join(insert_csv(empty, "expected", case / "result.csv"))

    assert found.select(names).order(names).fetchall() == empty.sql(f"select {names} from expected order by all").fetchall()


def test_equal_intervals_are_of_one_run(empty: duckdb.DuckDBPyConnection) -> None:
    """Thirty GPUs, each held by the same three pods from 00:00, 00:10 and 00:20, for five minutes: 90 runs of five minutes."""
    empty.execute(
        "create temp table given as select gpu as key, begun as start_at, begun + interval 5 minutes as end_at "
        "from range(30) gpus(gpu), range(3) pods(pod), "
        "generate_series(timestamp '2026-03-01', timestamp '2026-03-01 00:20', interval 10 minutes) times(begun)"
    )
    runs = "select max(end_at) - min(start_at) as lasted from numbered_runs(given, (key)) group by key, run_number"
    assert empty.sql(f"select lasted, count(*) from ({runs}) group by lasted").fetchall() == [(timedelta(minutes=5), 90)]


class Listening:
    """A connection that keeps the statements which it runs."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.statements: list[str] = []
        self._con = con

    def __getattr__(self, name: str) -> Any:
        """The connection's own; of what runs a statement, one that keeps it first."""
        own = getattr(self._con, name)
        if name not in ("sql", "execute"):
            return own

        def run(sql: str, *given: Any, **params: Any) -> Any:
            self.statements.append(sql)
            return own(sql, *given, **params)

        return run


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.table)
def test_rule_reads_what_it_says(rule: Rule, empty: duckdb.DuckDBPyConnection) -> None:
    """Rules stand in the graph of queries by what they read: what their statements name, and no more."""
    con = Listening(empty)
    args = Arguments(Rules(usage_half_life_hours=1.0), limits(None))
    found = [*rule.make(con, args)]  # type: ignore[arg-type]

    assert [rows.schema for rows in found] == [table.schema for table in rule.makes]
    assert {table for sql in con.statements for table in tables_read(empty, sql)} == {*rule.reads}


def test_every_query_has_a_case() -> None:
    assert {case.parts[-2] for case in CASES} == {table for table, query in QUERIES.items() if query.life != "previous"}


def test_every_case_says_why() -> None:
    assert [case_name(case) for case in CASES if not (case / "expect.csv").read_text().startswith("# ")] == []


def test_the_whole_graph_runs_on_an_empty_lake(empty: duckdb.DuckDBPyConnection) -> None:
    assert {table: len(empty.table(table)) for table in QUERIES} == dict.fromkeys(QUERIES, 0)


def test_headers_tell_the_truth(empty: duckdb.DuckDBPyConnection) -> None:
    wrong = [
        f"{query.table}: {what}"
        for query in FILES
        for what, said, found in (
            ("reads", set(query.reads), tables_read(empty, query.sql)),
            ("params", set(query.params), parameters(empty, query.sql)),
            ("columns", *columns_said(query, empty.table(query.table).columns)),
            ("grain", set(query.grain) - set(empty.table(query.table).columns), set()),
            ("purpose and source", bool(query.purpose and query.source), True),
            ("severity", query.severity in (("fail", "warn") if query.life == "checks" else ("",)), True),
        )
        if said != found
    ]
    assert wrong == []


def columns_said(query: Query, there: list[str]) -> tuple[list[str], list[str]]:
    """The columns as a header has them, and as they are; a table that passes says what the dictionary does not."""
    if query.table == INTERVALS:
        return list(query.columns), there
    if query.life not in ("day", "period"):
        return sorted(query.columns), sorted(there)
    return sorted(query.columns.keys() | (set(there) & dictionary().keys())), sorted(there)


def test_subjects_read_only_subjects_before_them() -> None:
    order = {name: number for number, name in enumerate(SUBJECTS)}
    subjects = {table: getattr(node, "subject", "quota") for table, node in quota_graph().items()}  # rules are of quotas
    wrong = [
        f"{node.table} ({subjects[node.table]}) reads {table} ({subjects[table]})"
        for node in (*FILES, *RULES)
        for table in node.reads
        if table in subjects and order[subjects[table]] > order[subjects[node.table]]
    ]
    assert wrong == []
    assert {table for node in (*FILES, *RULES) for table in node.reads if not table.startswith("lake.")} <= subjects.keys()


def test_numeric_columns_end_in_a_unit(empty: duckdb.DuckDBPyConnection) -> None:
    numeric = [
        (query.table, name)
        for query in FILES
        for name, kind in zip(empty.table(query.table).columns, empty.table(query.table).types, strict=True)
        if str(kind) in ("DOUBLE", "BIGINT", "INTEGER", "HUGEINT")
    ]
    assert [each for each in numeric if not UNITS.fullmatch(each[1]) and not NAMED_BY_CONTRACT.fullmatch(each[1])] == []


def test_no_column_of_a_file_is_an_integer_of_128_bits(empty: duckdb.DuckDBPyConnection) -> None:
    """Parquet has none: DuckDB writes them as doubles."""
    written = [query.table for query in FILES if query.table.startswith(("facts.", "report."))]
    described = {table: zip(empty.table(table).columns, empty.table(table).types, strict=True) for table in written}
    assert [(table, name) for table, columns in described.items() for name, kind in columns if "HUGEINT" in str(kind)] == []


def test_every_cte_is_read() -> None:
    """As sqlfluff's ST03, which does not see the name of a CTE that is given to a function."""
    ctes = [(query, name) for query in FILES for name in re.findall(r"^(?:with )?(\w+) as (?:[a-z ]+ )?\($", query.sql, re.M)]
    assert len(ctes) > 500
    assert [
        f"{query.table}: {name}"
        for query, name in ctes
        if not re.search(rf"(\b(from|join) |(runs|intervals|edges|agreement|amounts)\((\w+, )?){name}\b", query.sql)
    ] == []


def test_every_file_is_one_select_without_templates() -> None:
    kinds = {query.table: [statement.type for statement in duckdb.extract_statements(query.sql)] for query in FILES}
    assert [table for table, found in kinds.items() if found != [duckdb.StatementType.SELECT]] == []
    assert [query.table for query in FILES if "{{" in query.sql] == []


def test_patterns_of_columns_match_whole_names() -> None:
    """DuckDB 2.0.0 finds a pattern of ``* similar to`` anywhere in a name, 2.0.1 holds the whole name against it."""
    texts = {name: query.sql for name, query in QUERIES.items()}
    assert [name for name, text in texts.items() if re.search(r"\* similar to '(?!\.\*|\^)", text)] == []


def test_the_index_of_queries_is_current() -> None:
    assert (resources.QUERIES / "README.md").read_text() == query_docs.render_index(QUERIES)


def test_a_column_that_facts_of_older_versions_lack_has_the_type_of_those_of_today(empty: duckdb.DuckDBPyConnection) -> None:
    def family(kind: str) -> str:
        return re.sub(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|DECIMAL[(].*[)]", "number", kind.upper())

    facts = [
        (table, name, kind) for table in of_life(QUERIES, "facts") for name, kind, *_ in empty.sql(f"describe {table}").fetchall()
    ]
    assert len(facts) > 500
    assert [each for each in facts if each[1] != "date" and family(kind_of_fact(each[1])) != family(each[2])] == []
