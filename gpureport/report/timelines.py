"""Courses over the window's hours, read from the facts of an open report database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb

from gpureport.window import Window, plain

POINTS_MAX = 168
"""A longer window has steps of several hours, so that a line stays as small as a week's."""
Key = tuple[str, ...]
CONTAINER = ("cluster", "namespace", "pod", "pod_uid", "container")
DEVICE = ("cluster", "device_uuid", "gpu_instance_id")


def step_hours(window: Window) -> int:
    """Hours to a point."""
    hours = max(1, round(window.seconds / 3600))
    return -(-hours // POINTS_MAX)


def courses(
    con: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str], wanted: Sequence[Key], window: Window
) -> dict[Key, list[dict[str, Any]]]:
    """By key (columns ``keys`` of ``facts.<table>``), points from the first hour to the last in which it was seen.

    A point has ``at`` and, in percent, None where unknown: ``usage`` (engine active), ``sm`` and ``memory``. Keys seen in
    one step only, and those of which no point is known, have no course and are left out.
    """
    if not wanted:
        return {}
    step = step_hours(window)
    found: dict[Key, dict[datetime, tuple[float | None, ...]]] = {}
    for row in _shares(con, table, keys, wanted, window, step):
        found.setdefault(tuple(row[: len(keys)]), {})[row[len(keys)]] = row[len(keys) + 1 :]
    drawn = {key: by_time for key, by_time in found.items() if len(by_time) > 1 and any(map(_is_known, by_time.values()))}
    return {key: _points(by_time, timedelta(hours=step)) for key, by_time in drawn.items()}


def _is_known(shares: tuple[float | None, ...]) -> bool:
    return any(share is not None for share in shares)


def _shares(
    con: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str], wanted: Sequence[Key], window: Window, step: int
) -> list[tuple[Any, ...]]:
    """Rows of the keys, the start of a step of so many hours, and the three shares of its time in percent."""
    con.execute(f"create or replace temp table wanted ({', '.join(f'{key} varchar' for key in keys)})")
    con.executemany(f"insert into wanted values ({', '.join('?' for _ in keys)})", [list(key) for key in wanted])
    rows = con.execute(
        f"""
        select {", ".join(keys)},
            time_bucket(interval '{step} hours', hour_start_at, date_trunc('day', $since_at)) as at,
            100 * sum(gr_engine_active_ratio_seconds) / nullif(sum(gr_engine_active_seen_seconds), 0),
            100 * sum(sm_active_ratio_seconds) / nullif(sum(sm_active_seen_seconds), 0),
            100 * sum(memory_used_ratio_seconds) / nullif(sum(memory_seen_seconds), 0)
        from facts.{table} inner join wanted using ({", ".join(keys)})
        where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
        group by all
        order by all
        """,
        {"since_at": plain(window.start_at), "until_at": plain(window.end_at)},
    ).fetchall()
    con.execute("drop table wanted")
    return rows


def _points(by_time: dict[datetime, tuple[float | None, ...]], step: timedelta) -> list[dict[str, Any]]:
    at, points = min(by_time), []
    while at <= max(by_time):
        usage, sm, memory = (None if each is None else round(each, 1) for each in by_time.get(at, (None, None, None)))
        points.append({"at": f"{at.isoformat()}Z", "usage": usage, "sm": sm, "memory": memory})
        at += step
    return points
