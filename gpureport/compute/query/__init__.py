"""Find, order and run the queries of ``queries/``, and check the grain of each result.

The file system is the registry. ``queries/<subject>/<life>.<table>.sql`` makes ``<life>.<table>``; the life is how long the table
exists (``LIVES``). The header lists the tables that a query reads; tests compare it with DuckDB's own parser. graphlib orders.
A subject reads subjects before it (``SUBJECTS``). Shared rules are SQL functions: ``queries/functions/<name>.sql``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import duckdb

from gpureport.compute.query.parts import Parts, narrowed
from gpureport.values.errors import LakeError, QueryError, first_line
from gpureport.values.runtime import resources
from gpureport.values.runtime.spill import spill_folder
from gpureport.values.text.safe import quoted


@contextmanager
def connection(memory_limit: str = "1GB", threads: int = 1, has_functions: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory DuckDB in UTC with a spill folder of its own, deleted at the end; QueryError where memory runs out.

    It has all shared functions; without ``has_functions``, only those that its queries call.
    """
    with spill_folder() as spill, duckdb.connect() as con:
        left_out = f"select string_agg(name) from duckdb_optimizers() where regexp_full_match(name, '{_LEFT_OUT}')"
        con.execute(f"set threads = {threads:d}; set disabled_optimizers = '{con.execute(left_out).fetchall()[0][0]}'")
        con.execute("set TimeZone = 'UTC'; set parquet_metadata_cache = true; set asof_loop_join_threshold = 0")
        try:
            con.execute("set memory_limit = $limit", {"limit": memory_limit})
        except duckdb.Error as error:
            raise LakeError(f"compute.memory_limit {memory_limit!r} is not a size; write it like 1GB") from error
        con.execute("set temp_directory = $spill", {"spill": str(spill)})
        if has_functions:
            define_functions(con)
        try:
            yield con
        except duckdb.OutOfMemoryException as error:
            raise QueryError(f"{memory_limit} of memory is not enough; raise compute.memory_limit") from error


LIVES = ("day", "facts", "period", "previous", "report", "checks")
"""Lives of tables: while a day is computed; stored in the lake; while a report is made, of its period and of the previous one;
shown to people; empty unless something is wrong. (``window`` and ``check`` would need quotes in SQL.)"""
SUBJECTS = (
    *("devices", "cluster", "claims", "koordinator", "demand", "ownership", "saturation", "energy", "coverage", "ledger"),
    *("quota", "forecast", "inventory", "findings", "comparison"),
)
"""The folders of ``queries/``; a subject reads only itself and the subjects before it."""
_FIELD = re.compile(r"--\s+?(severity|revision|grain|reads|params|source|parts|columns):\s*(.*)")
_LIKE = re.compile(r"those of (\S+)(?: without ([^;]+))?(?:;|$)")
_COLUMN = re.compile(r"--   (\w+) +(\S.*)")
_CONTINUATION = re.compile(r"\n-- {10}(?=\S)")
_PARAMETER = re.compile(r"\$(\w+)")
_LEFT_OUT = "common_subplan|projection_.+|window_.+|.+_elimination|distinct_aggregate_.+|duplicate_groups|grouping_sets"
"""DuckDB's optimizers that gain nothing here. Without the last three a report of a month takes a quarter less memory."""
_LARGE = 100_000
"""Row count from which a table is compressed, to a fifth, while it waits in memory for the tables that read it."""
_PARSED: dict[str, duckdb.Statement] = {}
_DEFINED: WeakKeyDictionary[duckdb.DuckDBPyConnection, set[str]] = WeakKeyDictionary()
"""Functions and schemas that a connection has; to create one again takes half a millisecond."""


Make = Callable[["Query", str, Mapping[str, Any], bool], int]
"""Makes a query's table elsewhere, or adds rows to it, from SQL and the values of its parameters; returns the row count."""


@dataclass(frozen=True)
class Query:
    """One SQL file: a single SELECT, and the header's description of its result."""

    table: str
    path: Path
    purpose: str
    grain: tuple[str, ...]
    reads: tuple[str, ...]
    params: tuple[str, ...]
    source: str
    columns: Mapping[str, str]
    """Meaning and unit by column, in the result's order; of tables that are not kept, only columns with a special meaning."""
    severity: str
    """``fail`` or ``warn`` for a check; '' for other queries."""
    sql: str
    revision: int = 1
    """Raised when the meaning of a figure changes; only for kept facts."""
    parts: Parts | None = None
    """The parts in which the table is made; None where it is made at once."""

    @property
    def life(self) -> str:
        """One of ``LIVES``; also the table's schema."""
        return self.table.partition(".")[0]

    @property
    def subject(self) -> str:
        """One of ``SUBJECTS``."""
        return self.path.parent.name


def load(root: Path = resources.QUERIES) -> dict[str, Query]:
    """Every query by table, in runnable order; QueryError for an invalid header or a cycle."""
    return dict(_load(root))


@cache  # a night of several clusters loads them dozens of times, and reading takes a tenth of a second
def _load(root: Path) -> dict[str, Query]:
    paths = [path for subject in SUBJECTS for path in sorted((root / subject).glob("*.sql"))]
    queries = {query.table: query for query in map(read, paths)}
    queries |= {query.table: query for query in _previous(queries)}
    graph = {query.table: [table for table in query.reads if table in queries] for query in queries.values()}
    try:
        return {table: queries[table] for table in TopologicalSorter(graph).static_order()}
    except CycleError as error:
        raise QueryError(f"queries read each other in a circle: {' -> '.join(error.args[1])}") from error


def _previous(queries: Mapping[str, Query]) -> list[Query]:
    """A query for each ``previous.x`` that is read: ``period.x``, built with the times of the previous period."""
    read_ones = sorted({read for query in queries.values() for read in query.reads if read.startswith("previous.")})
    made_from = {table: f"period.{table.removeprefix('previous.')}" for table in read_ones}
    return [
        replace(queries[of], table=table, reads=(of,), params=(), sql=f"select * from {of}") for table, of in made_from.items()
    ]


def read(path: Path) -> Query:
    """Read one query file; QueryError where its header lacks a line."""
    sql = path.read_text(encoding="utf-8")
    header = _CONTINUATION.sub(" ", "\n".join(takewhile(lambda line: line.startswith("--"), sql.splitlines()))).splitlines()
    fields = {match[1]: match[2].strip() for line in header if (match := _FIELD.match(line))}
    missing = {"grain", "reads"} - set(fields)
    if missing:
        raise QueryError(f"{path}: the header lacks {', '.join(sorted(missing))}")
    return Query(
        table=path.stem,
        path=path,
        purpose=_purpose(header),
        grain=_names(fields["grain"]),
        reads=_names(fields["reads"]),
        params=_names(fields.get("params", "")),
        source=fields.get("source", fields["reads"]),
        columns=_columns(path, header, fields.get("columns", "")),
        severity=fields.get("severity", ""),
        sql=sql,
        revision=int(fields.get("revision", "1")),
        parts=Parts.of(fields["parts"]) if "parts" in fields else None,
    )


def _columns(path: Path, header: list[str], listed: str) -> dict[str, str]:
    """Meaning by column: the header's own, else that of the table it refers to, else that of ``catalog/column.csv``."""
    own = {match[1]: match[2] for line in header if (match := _COLUMN.fullmatch(line))}
    base = dict[str, str]()
    if like := _LIKE.match(listed):
        other = next(path.parent.parent.glob(f"*/{like[1]}.sql"), None)
        if other is None:
            raise QueryError(f"{path}: no query makes {like[1]}")
        base = {name: meaning for name, meaning in read(other).columns.items() if name not in _names(like[2] or "")}
        listed = listed[like.end() :]
    names = (*base, *_names(listed))
    known = {**dictionary(path.parent.parent), **base, **own}
    if unknown := [name for name in names if name not in known]:
        raise QueryError(f"{path}: no meaning of {', '.join(unknown)}; write it below, or into catalog/column.csv")
    return {name: known[name] for name in names or own}


@cache
def dictionary(root: Path = resources.QUERIES) -> Mapping[str, str]:
    """Meanings of columns that several tables have, by name (``catalog/column.csv``)."""
    path = root / "catalog" / "column.csv"
    return {row["column"]: row["meaning"] for row in resources.csv_rows(path)} if path.exists() else {}


def _purpose(header: list[str]) -> str:
    """The header's prose: everything above the first field."""
    prose = []
    for line in header:
        if _FIELD.match(line):
            break
        prose.append(line.removeprefix("--").strip())
    return "\n".join(prose).strip()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def with_values(query: Query, params: Mapping[str, Any]) -> Query:
    """The query as people run it: each parameter is replaced by its value."""
    return replace(query, sql=_PARAMETER.sub(lambda found: _literal(params.get(found[1])), query.sql), params=())


def _literal(value: Any) -> str:
    """A value as an SQL literal."""
    if value is None or isinstance(value, bool | int | float):
        return "null" if value is None else str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp '{value}'"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return quoted(value)


def build(con: duckdb.DuckDBPyConnection, query: Query, params: Mapping[str, Any], make: Make | None = None) -> None:
    """Make the query's table, or let ``make`` do it, and check its grain; QueryError where either fails."""
    missing = [name for name in query.params if name not in params]
    if missing:
        raise QueryError(f"{query.table}: no value was given for ${missing[0]}")
    define_functions(con, query.sql)
    if query.life not in _DEFINED[con]:
        con.execute(f"create schema if not exists {query.life}")
        _DEFINED[con].add(query.life)
    keys = ", ".join(query.grain)
    # Tables for people begin with their keys. The view that opens a kept table may have this name.
    rows = f"select {keys}, * exclude ({keys}) from (\n{query.sql}\n)" if query.life == "report" else query.sql
    values = {name: params[name] for name in query.params}
    try:
        count = sum(_made(con, query, rows, values, make))
    except duckdb.OutOfMemoryException as error:
        raise QueryError(f"{query.table} ran out of memory; raise compute.memory_limit") from error
    except duckdb.Error as error:
        if make and isinstance(error, duckdb.IOException | duckdb.FatalException | duckdb.TransactionException):
            raise  # a disk error, which the caller of ``make`` handles
        raise QueryError(f"{query.table} ({query.path.name}) failed: {first_line(error)}") from error
    if count > _LARGE and query.life in ("period", "previous"):
        con.execute("checkpoint memory")
    if count > 1:  # many tables of a small lake are empty
        check_grain(con, query)


def _made(con: duckdb.DuckDBPyConnection, query: Query, rows: str, values: Mapping[str, Any], make: Make | None) -> Iterator[int]:
    """Make a query's table, or let ``make`` do it, part by part; yield the row count of each part."""
    for number, condition in enumerate(query.parts.ranges(con) if query.parts else [""]):
        part = f"from ({rows}) where {condition}" if condition else rows
        making = f"insert into memory.{query.table}" if number else f"create or replace table memory.{query.table} as"
        with narrowed(con, query.reads, query.parts.keys, condition) if query.parts and condition else nullcontext():
            if make:
                yield make(query, part, values, number > 0)
            else:
                yield con.execute(_parsed(con, f"{making} {part}"), values).fetchall()[0][0]


def build_view(con: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Create the query as a view: for a large result that a single query reads."""
    define_functions(con, query.sql)
    con.execute(f"create or replace view {query.table} as {query.sql}")


def build_empty(con: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Create the query's table without rows, where none of its input exists."""
    define_functions(con, query.sql)
    con.execute(_parsed(con, f"create or replace table {query.table} as select * from ({query.sql}) limit 0"))


def _parsed(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The parsed statement, parsed once a process. Parsing takes a third of a small statement's time, and all days share it."""
    if sql not in _PARSED:
        _PARSED[sql] = con.extract_statements(sql)[0]
    return _PARSED[sql]


def check_grain(con: duckdb.DuckDBPyConnection, query: Query) -> None:
    """QueryError where the query's table has two rows with the same key."""
    keys = ", ".join(query.grain)
    hashes = f"select count(*) = count(distinct hash({keys})) from {query.table}"
    if con.execute(_parsed(con, hashes)).fetchall() == [(True,)]:  # takes a third of the time of the query below
        return
    twice = con.execute(_parsed(con, f"select {keys} from {query.table} group by all having count(*) > 1 limit 1")).fetchone()
    if twice:
        raise QueryError(f"{query.table}: more than one row for {keys} = {twice}")


@cache
def functions(root: Path = resources.QUERIES) -> Mapping[str, str]:
    """The shared SQL functions: ``create macro`` statements by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "functions").glob("*.sql"))}


def define_functions(con: duckdb.DuckDBPyConnection, used_by: str | None = None, schema: str = "main") -> None:
    """Create the shared functions in a schema: those that a query uses, or all of them."""
    there = _DEFINED.setdefault(con, set()) if schema == "main" else set[str]()
    statements = "".join(functions().values()) if used_by is None else used_by
    for name in [each for each in _functions_in(statements) if each not in there]:
        statement = functions()[name].replace("create macro ", f"create macro if not exists {schema}.", 1)
        con.execute(_parsed(con, statement))
        there.add(name)


@cache
def _functions_in(sql: str) -> Collection[str]:
    """The functions that a statement calls, each after the functions that it calls itself."""
    called = [name for name in functions() if f"{name}(" in sql]
    return dict.fromkeys(each for name in called for each in (*_functions_in(functions()[name].replace(f"{name}(", "")), name))


def of_life(queries: Mapping[str, Query], life: str) -> tuple[str, ...]:
    """The tables of one of ``LIVES``, in runnable order."""
    return tuple(table for table, query in queries.items() if query.life == life)


class Node(Protocol):
    """A step that makes a table from other tables."""

    @property
    def table(self) -> str:
        """The table; the first one of several."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables that the step reads."""


N = TypeVar("N", bound=Node)


def needed(queries: Mapping[str, N], targets: Iterable[str], given: Iterable[str] = ()) -> list[N]:
    """The queries that the targets need, in runnable order; tables in ``given`` exist already and are not made.

    A target follows directly after the tables that it reads, so that few tables wait in memory at a time.
    """
    entered, plan = {*given}, list[N]()

    def enter(table: str) -> None:
        node = queries.get(table)
        if node and node.table not in entered:
            entered.add(node.table)
            for read in node.reads:
                enter(read)
            plan.append(node)

    for table in targets:
        enter(table)
    return plan


def ordered(plan: Sequence[Query]) -> Iterator[tuple[Query, list[str]]]:
    """Each query in order, with the tables that no later query reads; its own table may be among them."""
    last = {table: number for number, query in enumerate(plan) for table in (query.table, *query.reads)}
    for number, query in enumerate(plan):
        yield query, [table for table in dict.fromkeys((query.table, *query.reads)) if last[table] == number]


@dataclass(frozen=True)
class Failure:
    """A check that found rows which must not exist."""

    table: str
    severity: str
    purpose: str
    row_count: int
    example: Mapping[str, Any]

    def of_cluster(self, cluster: str) -> Failure:
        """The same failure under the cluster's own name, which had a temporary one in the tables."""
        return replace(self, example={**self.example, "cluster": cluster})

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.example.items())
        rows = f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"
        return f"{self.table}: {self.purpose.partition(chr(10))[0]} {rows}, such as {shown}"


def run_checks(con: duckdb.DuckDBPyConnection, checks: Iterable[Query], params: Mapping[str, Any]) -> list[Failure]:
    """Run checks over existing tables; return those that found rows."""
    failures = list[Failure]()
    for check in checks:
        build(con, check, params)
        failures += failures_of(con, check)
    return failures


def failures_of(con: duckdb.DuckDBPyConnection, check: Query, cluster: str = "") -> list[Failure]:
    """The failure that a check's table shows, for all clusters or one; an empty list where it has no rows."""
    rows = con.sql(
        f"select * from {check.table} {f'where cluster = {quoted(cluster)}' if cluster else ''} order by all"
    ).to_arrow_table()
    if not rows.num_rows:
        return []
    return [Failure(check.table, check.severity, check.purpose, rows.num_rows, rows.slice(0, 1).to_pylist()[0])]


def require_checks(
    con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], built: Collection[str], params: Mapping[str, object]
) -> list[Failure]:
    """Run the checks whose tables exist; QueryError for the first one of severity fail that finds rows."""
    checks = [query for query in queries.values() if query.life == "checks" and set(query.reads) <= set(built)]
    failures = run_checks(con, checks, params)
    fatal = [failure for failure in failures if failure.severity == "fail"]
    if fatal:
        raise QueryError(f"{fatal[0]}; please report this as a defect of gpureport")
    return failures
