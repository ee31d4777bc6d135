"""docs/schema.md, written from the lake's tables and the SQL's headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpureport.documents.markdown import anchor, markdown_table
from gpureport.query import Query
from gpureport.tables import DROP_REASONS, SCHEMA_VERSION, TABLES
from gpureport.tables.table import Column, Table

_INTRO = f"""# Schema

Every table that can be read, with its columns and units. Generated from `gpureport/tables/` and the headers of `queries/`;
`gpureport schema` prints it. Schema version {SCHEMA_VERSION}.

- `lake.*` is what was exported: `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`.
- `facts.*` are hourly facts that add up: `<lake>/facts/<table>/cluster=<c>/date=<D>/*.parquet`.
- `report.*` is what the reader sees: `csv/<table>.csv`, `tables/<table>.parquet`, `gpureport.duckdb`.

`cluster` (text) and `date` (UTC day) are columns of every lake table, read from the path. Instants are UTC without a zone.
Null means unknown, never zero. What each figure means, and when it is absent, is in [figures.md](figures.md).

## Contents
"""
_FLOORS = {"lake": "Lake", "facts": "Facts", "report": "Report"}


def render_schema(queries: Mapping[str, Query]) -> str:
    """docs/schema.md."""
    dropped = markdown_table(("reason", "meaning"), DROP_REASONS.items())
    lake = ["## Lake\n", *map(_lake_table, TABLES), "### Reasons in device_signal.dropped\n", dropped]
    parts = [_INTRO, *_contents(queries), *lake, "## Facts\n", *_query_tables(queries, "facts")]
    return "\n".join([*parts, "## Report\n", *_query_tables(queries, "report")])


def _contents(queries: Mapping[str, Query]) -> Iterable[str]:
    """A table for each floor: every table with a link to it and its first sentence."""
    purposes = {f"lake.{table.name}": table.doc for table in TABLES}
    purposes |= {name: queries[name].purpose for name in sorted(queries)}
    for floor, title in _FLOORS.items():
        rows = [f"| {_link(name)} | {_first_sentence(text)} |" for name, text in purposes.items() if name.startswith(f"{floor}.")]
        yield "\n".join([f"**[{title}](#{floor})**\n", "| table | holds |", "|---|---|", *rows, ""])


def _link(table: str) -> str:
    return f"[{table}](#{anchor(table)})"


def _first_sentence(text: str) -> str:
    return f"{' '.join(text.split()).partition('. ')[0].removesuffix('.')}".replace("|", "\\|")


def _type(column: Column) -> str:
    return str(column.type) if column.decimals is None else f"{column.type}, in files decimal(18, {column.decimals})"


def _lake_table(table: Table) -> str:
    rows = [(column.name, _type(column), "yes" if column.nullable else "", column.doc) for column in table.columns]
    grain = ", ".join(f"`{name}`" for name in table.grain)
    head = f"### lake.{table.name}\n\n{table.doc}\nOne row per {grain}.\n\n"
    return head + markdown_table(("column", "type", "null", "meaning"), rows)


def _query_tables(queries: Mapping[str, Query], life: str) -> Iterable[str]:
    for name, query in sorted(queries.items()):
        if query.life != life:
            continue
        grain = ", ".join(f"`{column}`" for column in query.grain)
        source = f"\nSource: {query.source}.\n" if query.source else ""
        rows = list(query.columns.items())
        purpose = " ".join(query.purpose.split())
        yield f"### {name}\n\n{purpose}\nOne row per {grain}.\n{source}\n" + markdown_table(("column", "meaning and unit"), rows)
