"""Anonymous reports: names become salted pseudonyms, free text is removed, figures stay.

``queries/catalog/anonymous.csv`` is an allowlist: a text column shows its values only where they come from gpureport, or name a
metric or a model. A new column is therefore hidden until the list allows it. A name has the same pseudonym everywhere, and
with the same salt in every report. Without the salt the name cannot be found, not even by trying all names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import duckdb

from gpureport.compute.query import Query
from gpureport.values.runtime.resources import catalog_rows

_SCHEMAS = ("facts", "period", "previous", "report", "lake")
_KEPT_NESTED = frozenset({"unknown_reasons", "left_out", "source_metrics", "dropped", "xid_codes", "steps"})
_KNOWN_RESOURCE = r"^(gpu|(nvidia|amd|habana)\.(com|ai)/[a-z0-9.-]+)$"
"""Resources that are common to all clusters; other names may contain a company's name."""


def anonymise(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], salt: str) -> None:
    """Replace all tables and views of an open report, its facts and its sources by anonymous tables."""
    con.execute("set variable gpureport_salt = $salt", {"salt": salt})
    con.execute(
        "create or replace temp macro pseudonym(name) as "
        "if(name = '', name, 'x' || substr(sha256(getvariable('gpureport_salt') || chr(0) || name), 1, 12))"
    )
    found = con.execute(
        "select table_schema, table_name, table_type from information_schema.tables where list_contains($schemas, table_schema) "
        "order by all",
        {"schemas": list(_SCHEMAS)},
    ).fetchall()
    for schema, name, kind in found:
        query = queries.get(f"{schema}.{name}")
        _replace(con, schema, name, "view" if kind == "VIEW" else "table", frozenset(query.grain if query else ()))
    con.execute("reset variable gpureport_salt")


@cache
def _shown() -> Mapping[str, str]:
    """What each text column shows: ``value`` or ``pseudonym``; a key that is not listed shows a pseudonym."""
    return {row["column"]: row["shown"] for row in catalog_rows("anonymous.csv")}


def _replace(con: duckdb.DuckDBPyConnection, schema: str, name: str, kind: str, keys: frozenset[str]) -> None:
    columns = con.execute(
        "select column_name, data_type from information_schema.columns where table_schema = $schema and table_name = $name",
        {"schema": schema, "name": name},
    ).fetchall()
    has_dimension = any(column == "dimension" for column, _ in columns)
    hidden = {column: _hidden(column, of_type, column in keys, has_dimension) for column, of_type in columns}
    instead = ", ".join(f"{expression} as {column}" for column, expression in hidden.items() if expression)
    if not instead:
        return
    con.execute(f"create table {schema}._anonymous as select * replace ({instead}) from {schema}.{name}")
    con.execute(f"drop {kind} {schema}.{name}")
    con.execute(f"alter table {schema}._anonymous rename to {name}")


def _hidden(column: str, of_type: str, is_key: bool, has_dimension: bool) -> str:
    """SQL expression that replaces a column's values; '' where they stay."""
    if of_type == "VARCHAR":
        return _hidden_text(column, is_key, has_dimension)
    is_nested = of_type.endswith("[]") or of_type.startswith(("MAP", "STRUCT", "JSON"))
    return f"null::{of_type}" if is_nested and column not in _KEPT_NESTED else ""


def _hidden_text(column: str, is_key: bool, has_dimension: bool) -> str:
    shown = _shown().get(column)
    if shown == "value":
        return ""
    if column == "resource":
        return f"if(regexp_matches(resource, '{_KNOWN_RESOURCE}'), resource, pseudonym(resource))"
    if column == "value" and has_dimension:
        return "if(dimension in ('day', 'gpu_model') or value like '(%', value, pseudonym(value))"
    return f"pseudonym({column})" if is_key or shown == "pseudonym" else f"if({column} is null, null, '')"
