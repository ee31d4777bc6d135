"""The tables and parameters of a SELECT, by DuckDB's own parser; tests compare the headers of queries with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from gpureport.compute.query import LIVES


def tables_read(con: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """Tables that a SELECT reads or gives to a function, ``<life>.<name>``, without CTEs; ValueError for invalid SQL."""
    found = con.execute("select json_serialize_sql($sql)", {"sql": sql}).fetchone()
    tree = json.loads(found[0]) if found else {}
    if tree.get("error"):
        raise ValueError(f"DuckDB cannot parse a query: {tree.get('error_message')}")
    named = [(node.get("schema_name"), node.get("table_name")) for node in _nodes(tree)]
    for call in (node["function"] for node in _nodes(tree) if node.get("type") == "TABLE_FUNCTION"):
        named += [tuple(node["column_names"]) for node in _nodes(call) if len(node.get("column_names", ())) == 2]
    return {f"{schema}.{table}" for schema, table in named if schema in ("lake", *LIVES) and table}


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for child in children:
        yield from _nodes(child)


def parameters(con: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """Named parameters that a SELECT takes."""
    return {name for statement in con.extract_statements(sql) for name in statement.named_parameters}
