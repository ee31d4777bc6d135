"""Every table, column and unit as Markdown, from the lake's tables and the SQL's headers: docs/schema.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gpureport.catalog.figures import GROUPS
from gpureport.query import Query
from gpureport.tables import DROP_REASONS, SCHEMA_VERSION, TABLES
from gpureport.tables.table import Column

_INTRO = f"""# Schema

Every table that can be read, with its columns and units. Generated from `gpureport/tables/` and the headers of `queries/`;
`gpureport schema` prints it. Schema version {SCHEMA_VERSION}.

- `lake.*` is exported data: `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`. `cluster` (text) and `date` (UTC day) are
  columns of every lake table, read from the path.
- `facts.*` are hourly and daily facts that add up: `<lake>/facts/<table>/cluster=<c>/date=<D>/*.parquet`.
- `report.*` are the report's tables: `csv/<table>.csv`, `tables/<table>.parquet`, `gpureport.duckdb`.

Times are UTC without a zone. Null means unknown, never zero. [figures.md](figures.md) has each figure's formula.
A column that several tables have is described once: [of the lake](#shared-columns-of-the-lake),
[of facts and report](#shared-columns-of-facts-and-report). A table lists such columns by name only, and figures too. How a table
is made is in the header of its SQL, `queries/<subject>/<table>.sql`.
"""
_FLOORS = {"lake": "Lake", "facts": "Facts", "report": "Report"}
_FIGURES = {name for group in GROUPS.values() for name in group}
_LAKE_HEAD = ("column", "type", "null", "meaning")
_HEAD = ("column", "meaning and unit")


Columns = Mapping[str, tuple[str, ...]]
"""Of each column the cells of its line, without the name."""


def render_schema(queries: Mapping[str, Query]) -> str:
    """docs/schema.md."""
    lake = {f"lake.{table.name}": {column.name: _cells(column) for column in table.columns} for table in TABLES}
    read = {name: query for name, query in sorted(queries.items()) if query.life in _FLOORS}
    others = {name: {column: (meaning,) for column, meaning in query.columns.items()} for name, query in read.items()}
    in_lake, in_others = _shared(lake.values()), _shared(others.values())
    texts = {f"lake.{table.name}": _text(table.doc, table.grain) for table in TABLES}
    texts |= {name: _text(_purpose(query), query.grain) for name, query in read.items()}
    grains = {f"lake.{table.name}": table.grain for table in TABLES} | {name: query.grain for name, query in read.items()}
    parts = [_INTRO, "## Reasons in device_signal.dropped\n", markdown_table(("reason", "meaning"), DROP_REASONS.items())]
    parts += ["## Shared columns of the lake\n", _lines(_LAKE_HEAD, in_lake)]
    parts += ["## Shared columns of facts and report\n", _lines(_HEAD, in_others)]
    for floor, title in _FLOORS.items():
        parts += [f"## {title}\n"]
        for name, columns in (lake | others).items():
            if name.startswith(f"{floor}."):
                head, shared = (_LAKE_HEAD, in_lake) if floor == "lake" else (_HEAD, in_others)
                figures = _FIGURES if floor == "report" else set()
                parts += [f"### {name}\n\n{texts[name]}", *_own(head, columns, shared, grains[name], figures)]
    return "\n".join(parts)


def markdown_table(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """Head, rule and a line per row, the first cell of each as code."""
    head = f"| {' | '.join(names)} |\n|{'---|' * len(tuple(names))}\n"
    return head + "".join("| " + " | ".join(_cell(number, found) for number, found in enumerate(row)) + " |\n" for row in rows)


def _cell(number: int, found: Any) -> str:
    text = str(found).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if number == 0 else text


def _shared(tables: Iterable[Columns]) -> Columns:
    """Columns that several tables describe alike, with the description that most of them have."""
    found: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for columns in tables:
        for name, cells in columns.items():
            found[name][cells] += 1
    most = {name: counts.most_common(1)[0] for name, counts in found.items()}
    return {name: most[name][0] for name in sorted(most) if most[name][1] > 1}


def _own(
    head: tuple[str, ...], columns: Columns, shared: Columns, grain: tuple[str, ...], figures: Collection[str]
) -> Iterable[str]:
    """Figures and shared columns by name, but for those of the grain, then a line for each other column."""
    by_name = [name for name, cells in columns.items() if name not in figures and name not in grain and shared.get(name) == cells]
    own = {name: cells for name, cells in columns.items() if name not in figures and shared.get(name) != cells}
    for title, named in (("Shared columns", by_name), ("Figures", [name for name in columns if name in figures])):
        if named:
            yield f"{title}: `{', '.join(named)}`.\n"
    if own:
        yield _lines(head, own)


def _lines(head: tuple[str, ...], columns: Columns) -> str:
    return markdown_table(head, [(name, *cells) for name, cells in columns.items()])


def _purpose(query: Query) -> str:
    """All of it of a report's table, of facts what they are: the rest is for those who read their SQL."""
    return query.purpose if query.life == "report" else query.purpose.partition("\n\n")[0]


def _text(doc: str, grain: tuple[str, ...]) -> str:
    """A table's purpose and grain."""
    return f"{' '.join(doc.split())}\nOne row per `{', '.join(grain)}`.\n"


def _cells(column: Column) -> tuple[str, ...]:
    kind = str(column.type) if column.decimals is None else f"{column.type}, in files decimal(18, {column.decimals})"
    return kind, "yes" if column.nullable else "", column.doc
