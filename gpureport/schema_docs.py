"""docs/schema.md and docs/figures.md, written from tables.py, definitions.py, the catalogue and the headers of the SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpureport import formats
from gpureport.catalog import Catalog
from gpureport.definitions import FIGURES, REASONS, Figure
from gpureport.query import Query
from gpureport.tables import SCHEMA_VERSION, TABLES, Column, Table

_SCHEMA_INTRO = f"""# Schema

Generated from `gpureport/tables.py` and the headers of `queries/`; `gpureport schema` prints it. Schema version {SCHEMA_VERSION}.

Lake tables lie at `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`, facts at `<lake>/facts/<table>/…` alike. `cluster` (text)
and `date` (UTC day) are columns of every lake table, read from the path. Instants are UTC without a zone. Null means unknown.
"""
_FIGURES_INTRO = """# Figures

Generated from `gpureport/definitions.py`, the catalogue `queries/catalog/signal.csv` and the headers of `queries/report`: for
each figure of the report its formula, its unit, the metrics it is made from, and when it is absent.

A ratio is over the time in which its own signal was seen, and that time stands beside it as `…_seconds`. An average is weighted
by time. Over several devices of a container the roll-up is that of `report.container`, below. Absent is null, with an entry in
`unknown_reasons`; any figure is also absent where its signal was seen for less than `--figure-min-coverage` of the time, and the
saturation figures where `saturation.enabled` is false.

## Why a figure is absent

"""


def render_schema(queries: Mapping[str, Query]) -> str:
    """docs/schema.md."""
    parts = [_SCHEMA_INTRO, "## Lake\n", *map(_lake_table, TABLES), "## Facts\n", *_query_tables(queries, "facts")]
    return "\n".join([*parts, "## Report\n", *_query_tables(queries, "report")])


def render_figures(queries: Mapping[str, Query], catalog: Catalog) -> str:
    """docs/figures.md."""
    reasons = _markdown(("reason", "meaning"), REASONS.items())
    figures = [_figure(name, figure, queries, catalog) for name, figure in FIGURES.items()]
    table = _markdown(("figure", "unit", "formula", "metrics", "absent", "tables"), figures)
    parts = [_FIGURES_INTRO + reasons, "## Formula, unit, metrics\n", table, "## By table\n"]
    return "\n".join([*parts, *_query_tables(queries, "report", with_source=True)])


def _figure(name: str, figure: Figure, queries: Mapping[str, Query], catalog: Catalog) -> tuple[str, ...]:
    metrics = [f"`{meaning.metric}`" for meaning in catalog.rows if meaning.is_device and meaning.signal in figure.signals]
    tables = [table.removeprefix("report.") for table in sorted(queries) if name in queries[table].columns and _is_report(table)]
    unit = "0..1" if formats.unit(name) == "%" else formats.unit(name)
    absent = figure.absent or ("no sample of its signals" if figure.signals else "never")
    return name, unit, figure.formula, ", ".join(metrics), absent, ", ".join(tables)


def _is_report(table: str) -> bool:
    return table.startswith("report.")


def _type(column: Column) -> str:
    return str(column.type) if column.decimals is None else f"{column.type}, in files decimal(18, {column.decimals})"


def _lake_table(table: Table) -> str:
    rows = [(column.name, _type(column), "yes" if column.nullable else "", column.doc) for column in table.columns]
    grain = ", ".join(f"`{name}`" for name in table.grain)
    head = f"### lake.{table.name}\n\n{table.doc}\nOne row per {grain}.\n\n"
    return head + _markdown(("column", "type", "null", "meaning"), rows)


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
