"""``queries/README.md``: what each query makes, from the headers of the SQL files."""

from __future__ import annotations

from collections.abc import Mapping

from gpureport import formats
from gpureport.documents.markdown import anchor
from gpureport.query import Query
from gpureport.resources import QUERIES

_FLOORS = {
    "clean": "One lake table each: names, types, duplicates. Nothing is joined.",
    "facts": "What happened: spans, joins, hours; sums that add up. `window_*` exist only while a report is made.",
    "report": "One file for each table that the reader sees.",
    "checks": "Rows that must not exist. `fail` stops the run, `warn` is shown.",
}
_HEAD = """# The queries

Every SQL file with its purpose, its grain, what it reads and where its data comes from. Generated from the headers of the
files; do not edit. The path is the table: `facts/device_hour.sql` makes `facts.device_hour`. Data goes one way: lake → clean →
facts → report, with checks beside them. Columns and units are in [docs/schema.md](../docs/schema.md).

Words: a device is *seen* while a sample of it is in force, *observed* seconds add that time up, and a device is *held* while a
workload is named on it. Unknown is null, never 0.
"""


_REASONS = """## Why a figure is null

`unknown_reasons` has a code for each figure that is null. [docs/figures.md](../docs/figures.md#why-a-figure-is-absent) says
what each means.
"""


def render_index(queries: Mapping[str, Query]) -> str:
    """The page's Markdown: every query by floor, and where reasons for null figures are."""
    parts = [_HEAD, *(f"- [{floor}](#{floor}): {_count(queries, floor)}. {what}" for floor, what in _FLOORS.items()), ""]
    for floor, what in _FLOORS.items():
        chosen = _of_floor(queries, floor)
        names = " · ".join(f"[{query.path.stem}](#{anchor(_heading(query))})" for query in chosen)
        parts += [f"## {floor}\n\n{what}\n\n{names}\n", *map(_entry, chosen)]
    return "\n".join([*parts, _REASONS])


def _of_floor(queries: Mapping[str, Query], floor: str) -> list[Query]:
    return sorted((query for query in queries.values() if query.layer == floor), key=lambda query: query.table)


def _count(queries: Mapping[str, Query], floor: str) -> str:
    return formats.counted(len(_of_floor(queries, floor)), "file")


def _heading(query: Query) -> str:
    return f"`{query.table}`" + (f" ({query.severity})" if query.severity else "")


def _entry(query: Query) -> str:
    lines = [f"### {_heading(query)}\n", query.purpose, ""]
    lines += [f"- one row per {', '.join(query.grain)}", f"- reads {', '.join(query.reads)}", f"- source: {query.source}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page: ``python -m gpureport.documents.queries``."""
    from gpureport.query import load

    (QUERIES / "README.md").write_text(render_index(load()), encoding="utf-8")


if __name__ == "__main__":
    main()
