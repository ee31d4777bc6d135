"""docs/schema.md and docs/figures.md, written from tables.py and from the headers of the SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpureport.query import Query
from gpureport.report.figures import REASONS
from gpureport.tables import TABLES, Table

_SCHEMA_INTRO = """# Schema

Generated from `gpureport/tables.py` and the headers of `queries/`; `gpureport schema` prints it.

Lake tables lie at `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`, facts at `<lake>/facts/<table>/…` alike. `cluster` (text) and `date` (UTC day) are
columns of every lake table, read from the path. Instants are UTC without a zone. Null means unknown.
"""
_FIGURES_INTRO = """# Figures

Generated from the headers of `queries/report`: what each figure of the report is, its unit, its source, and when it is absent.

A ratio is over the time that was seen, which stands beside it as `…_seconds`. An average is weighted by time. A figure that is null has an entry in
`unknown_reasons`:

"""


def render_schema(queries: Mapping[str, Query]) -> str:
    """docs/schema.md."""
    parts = [_SCHEMA_INTRO, "## Lake\n", *map(_lake_table, TABLES), "## Facts\n", *_query_tables(queries, "facts")]
    return "\n".join([*parts, "## Report\n", *_query_tables(queries, "report")])


def render_figures(queries: Mapping[str, Query]) -> str:
    """docs/figures.md."""
    reasons = "".join(f"| `{code}` | {sentence} |\n" for code, sentence in REASONS.items())
    return "\n".join([_FIGURES_INTRO + "| reason | meaning |\n|---|---|\n" + reasons, *_query_tables(queries, "report", True)])


def _lake_table(table: Table) -> str:
    rows = [(column.name, str(column.type), "yes" if column.nullable else "", column.doc) for column in table.columns]
    grain = ", ".join(f"`{name}`" for name in table.grain)
    return f"### lake.{table.name}\n\n{table.doc}\nOne row per {grain}.\n\n" + _markdown(
        ("column", "type", "null", "meaning"), rows
    )


def _query_tables(queries: Mapping[str, Query], layer: str, with_source: bool = False) -> Iterable[str]:
    for name in sorted(queries):
        query = queries[name]
        if query.layer != layer:
            continue
        grain = ", ".join(f"`{column}`" for column in query.grain)
        source = f"\nSource: {query.source}.\n" if with_source and query.source else ""
        rows = list(query.columns.items())
        purpose = " ".join(query.purpose.split())
        yield f"### {name}\n\n{purpose}\nOne row per {grain}.\n{source}\n" + _markdown(("column", "meaning and unit"), rows)


def _markdown(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    head = f"| {' | '.join(names)} |\n|{'---|' * len(tuple(names))}\n"
    return head + "".join("| " + " | ".join(_cell(number, found) for number, found in enumerate(row)) + " |\n" for row in rows)


def _cell(number: int, found: Any) -> str:
    text = str(found).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if number == 0 else text
