"""Courses over the hours of the window, which the page draws where a container or a GPU is opened."""

from __future__ import annotations

from typing import Any

import polars as pl

from gpureport.report.page.tables import Tables
from gpureport.values.window import Window, plain, rfc3339

POINTS_MAX = 168
"""A longer window has steps of several hours, so that a course stays as small as a week's."""
VALUES_MAX = 250_000
"""Of all courses of a kind; what does not fit has none in the page, the facts have them all."""
KEYS = {
    "container": ("cluster", "namespace", "pod", "container"),
    "device": ("cluster", "device_uuid", "gpu_instance_id"),
}
_FIGURES = ("sm", "engine", "memory")


def step_hours(window: Window) -> int:
    """Hours to a point."""
    return -(-max(1, round(window.seconds / 3600)) // POINTS_MAX)


def courses(tables: Tables, kind: str, window: Window, wanted: pl.DataFrame) -> dict[str, Any]:
    """Percent by step of the rows of a frame, the first ones first, as far as they fit; {} without the facts."""
    table, step = f"facts.{kind}_hour", step_hours(window)
    if not tables.has(table):
        return {}
    count = max(1, VALUES_MAX // (3 * max(1, round(window.seconds / 3600 / step))))
    keys = ", ".join(KEYS[kind])
    chosen = wanted.select(KEYS[kind]).head(count)
    tables.con.register("page_wanted", chosen.to_arrow())
    rows = tables.con.execute(
        f"""
        select {keys}, datediff('hour', date_trunc('hour', $since_at), hour_start_at) // {step} as step,
            round(100 * sum(sm_active_ratio_seconds) / nullif(sum(sm_active_seen_seconds), 0))::integer as sm,
            round(100 * sum(gr_engine_active_ratio_seconds) / nullif(sum(gr_engine_active_seen_seconds), 0))::integer as engine,
            round(100 * sum(memory_used_ratio_seconds) / nullif(sum(memory_seen_seconds), 0))::integer as memory
        from {table} inner join page_wanted using ({keys})
        where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
        group by all order by all
        """,
        {"since_at": plain(window.start_at), "until_at": plain(window.end_at)},
    ).fetchall()
    tables.con.unregister("page_wanted")
    return {"since": rfc3339(window.start_at), "hours": step, "figures": _FIGURES, "of": _by_key(rows, len(KEYS[kind]))}


def _by_key(rows: list[tuple[Any, ...]], width: int) -> dict[str, list[Any]]:
    """By key the first step, and from there on a list for each figure; null where nothing is known."""
    steps: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
    for row in rows:
        steps.setdefault("\n".join(row[:width]), []).append((row[width], row[width + 1 :]))
    return {key: _filled(found) for key, found in steps.items() if len(found) > 1}


def _filled(found: list[tuple[int, tuple[Any, ...]]]) -> list[Any]:
    values, first, last = dict(found), found[0][0], found[-1][0]
    whole = [values.get(step, (None,) * len(_FIGURES)) for step in range(first, last + 1)]
    return [first, *map(list, zip(*whole, strict=True))]
