"""Rows of a lake as a test writes them: a day of the cluster c, seconds counted from its midnight; and facts read back."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from gpureport.compute import connection
from gpureport.lake import Lake, views
from gpureport.tables import Table

DAY = date(2026, 3, 1)
MIDNIGHT = datetime(2026, 3, 1)


def at(seconds: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=seconds)


def sample(device: str, start: float, held: float, **signals: Any) -> dict[str, Any]:
    row = {"device_uuid": device, "gpu_instance_id": "", "seen_at": at(start), "held_seconds": held}
    return {**row, "is_carried": False, "is_step_guessed": False, "joined_count": 0, **signals}


def owner(device: str, pod: str, start: float, end: float) -> dict[str, Any]:
    names = {"namespace": "ns", "pod": pod, "pod_uid": "", "container": "main"}
    return {"device_uuid": device, "gpu_instance_id": "", **names, "start_at": at(start), "end_at": at(end)}


def arrow(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in table.schema.names} for row in rows], schema=table.schema)


def facts(lake: Lake, table: str, columns: str) -> list[tuple[Any, ...]]:
    with connection() as con:
        views(con, lake, [f"facts/{table}"])
        return con.sql(f"select {columns} from facts.{table} order by all").fetchall()
