"""``queries/README.md``: what each query makes, from the headers of the SQL files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpureport.figures import REASONS
from gpureport.query import Query
from gpureport.resources import QUERIES

_FLOORS = {
    "clean": "One lake table each: names, types, duplicates. Nothing is joined.",
    "facts": "What happened: spans, joins, hours; sums that add up. `window_*` exist only while a report is made.",
    "report": "One file per table that the reader sees.",
    "checks": "Rows that must not exist. `fail` stops the run, `warn` is shown.",
}
_HEAD = """# The queries

Generated from the headers of the SQL files; do not edit. The path is the table: `facts/device_hour.sql` makes
`facts.device_hour`. Data goes one way: lake → clean → facts → report, and checks beside them.

Words: a device is *seen* in the seconds in which a sample of it is in force, *observed* is the sum of them, *held* is the time in
which a workload is named on it. Unknown is null, never 0.
"""


def render_index(queries: Mapping[str, Query]) -> str:
    """The page's Markdown: every query by floor, then the reasons for null figures."""
    parts = [_HEAD]
    for floor, what in _FLOORS.items():
        chosen = sorted((query for query in queries.values() if query.layer == floor), key=lambda query: query.table)
        parts += [f"## {floor}\n\n{what}\n", *_entries(chosen)]
    parts.append("## Why a figure is null\n\n| reason | meaning |\n|---|---|")
    parts += [f"| `{reason}` | {meaning} |" for reason, meaning in REASONS.items()]
    return "\n".join(parts) + "\n"


def _entries(queries: Iterable[Query]) -> list[str]:
    return [_entry(query) for query in queries]


def _entry(query: Query) -> str:
    severity = f" ({query.severity})" if query.severity else ""
    lines = [f"### `{query.table}`{severity}\n", query.purpose, ""]
    lines += [f"- one row per {', '.join(query.grain)}", f"- reads {', '.join(query.reads)}", f"- source: {query.source}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page: ``python -m gpureport.documents.queries``."""
    from gpureport.query import load

    (QUERIES / "README.md").write_text(render_index(load()))


if __name__ == "__main__":
    main()
