"""Tables and columns as Markdown (docs/schema.md), from the lake's tables and the headers of the SQL."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from gpureport.compute.query import Query
from gpureport.values.catalog import GROUPS
from gpureport.values.tables import SCHEMA_VERSION, TABLES

_INTRO = f"""# Schema

The tables that can be read, and what their columns mean. Generated from `queries/` (`catalog/`, headers of the SQL);
`gpureport schema` prints it. Schema version {SCHEMA_VERSION}.
`gpureport sql "describe report.cost"` lists a table's columns and types.

- `lake.*` is exported data: `<lake>/<table>/cluster=<c>/date=<D>/*.parquet`. `cluster` and `date` (UTC day) are columns too.
- `facts.*` are hourly and daily facts that add up: `<lake>/facts/<table>/cluster=<c>/…`.
- `report.*` are the report's tables: `csv/<table>.csv`, `tables/<table>.parquet`, `gpureport.duckdb`.

Times are UTC without a zone. Null means unknown or none, never zero; in a text column that is ''. A report's row about several
nodes, models or methods lists them. `cluster` is part of each key of facts and report, `observed_at` of the cluster's state.

A column is described once: in its table where it means something particular there; else in [figures](figures.md) if it is a
figure; else under [shared columns](#shared-columns); not where its name says all. Comments in `gpureport.duckdb` say more, and
when a column is null. How a table is made is in its SQL, `queries/<subject>/<table>.sql`. The reasons in `dropped` are
[those of figures](figures.md#why-a-figure-is-absent).
"""
_FLOORS = {"lake": "Lake", "facts": "Facts", "report": "Report"}
_FIGURES = {name for group in GROUPS.values() for name in group}
_UNITS = re.compile(
    r"^UTC, |^0\.\.1, |; several are listed"
    r"|[;,] '' (?:where|while)[^;]*$|; null (?:where|while)[^;]*(?:not|no|none|un\w+)\b[^;]*$"
)
"""Phrases that the introduction states for all columns."""
_SMALL = ("at", "by", "for", "in", "its", "it", "name", "names", "of", "on", "pods", "the", "that", "was", "when", "workload")
"""Words that add nothing to a column's name."""

Columns = Mapping[str, str]
"""Meaning of each column."""


def render_schema(queries: Mapping[str, Query]) -> str:
    """Return the text of docs/schema.md."""
    read = {name: query for name, query in sorted(queries.items()) if query.life in _FLOORS}
    lake = {f"lake.{table.name}": {column.name: column.doc for column in table.columns} for table in TABLES}
    columns: dict[str, Columns] = lake | {name: query.columns for name, query in read.items()}
    texts = {f"lake.{table.name}": _text(table.doc, table.grain) for table in TABLES}
    texts |= {name: _text(_purpose(query), query.grain) for name, query in read.items()}
    shared = _shared(columns.values())
    parts = [_INTRO]
    for floor, title in _FLOORS.items():
        parts += [f"## {title}\n"]
        parts += [f"### {name}\n{texts[name]}{_own(name, columns, shared)}" for name in texts if name.startswith(f"{floor}.")]
    rest = {name: text for name, text in shared.items() if name not in _FIGURES}
    return "\n".join([*parts, "## Shared columns\n", _lines(rest)])


def _shared(tables: Iterable[Columns]) -> Columns:
    """Return columns that several tables describe alike, with their most common description."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for columns in tables:
        for name, text in columns.items():
            found[name][text] += 1
    most = {name: counts.most_common(1)[0] for name, counts in found.items()}
    return {name: most[name][0] for name in sorted(most) if most[name][1] > 1}


def _own(table: str, columns: Mapping[str, Columns], shared: Columns) -> str:
    """Return lines on columns with a particular meaning in this table; a daily table does not repeat its hourly one."""
    figures = _FIGURES if table.startswith("report.") else set()
    known = {**shared, **columns.get(f"{table.removesuffix('_day')}_hour", {})}
    return _lines({name: text for name, text in columns[table].items() if name not in figures and known.get(name) != text})


def _lines(columns: Columns) -> str:
    """Return a line per meaning, with its columns; a column whose name says the meaning is left out."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, meaning in columns.items():
        text = _UNITS.sub("", meaning)
        if not {*re.findall(r"[a-z]{2,}", text.lower())} <= {*name.split("_"), *_SMALL}:
            names[text].append(name)
    return "".join(f"- {_listed(found)}: {text}\n" for text, found in names.items())


def _listed(names: list[str]) -> str:
    """Return names as code; a common ending of several is written once."""
    if len(names) > 3 and (alike := re.fullmatch(r"\w+?(_\w+)(?: \w+?\1)*", " ".join(names))):
        return f"`…{alike[1]}` of {', '.join(name.removesuffix(alike[1]) for name in names)}"
    return ", ".join(f"`{name}`" for name in names)


def _purpose(query: Query) -> str:
    """Return the whole purpose of a report table, but only the first paragraph for facts; the SQL has the rest."""
    return query.purpose if query.life == "report" else query.purpose.partition("\n\n")[0]


def _text(doc: str, grain: tuple[str, ...]) -> str:
    """Return a table's purpose and key, without columns that are part of every key."""
    key = [name for name in grain if name not in ("cluster", "observed_at")]
    return f"{' '.join(doc.split())}\nKey: `{', '.join(key) or 'cluster'}`.\n"
