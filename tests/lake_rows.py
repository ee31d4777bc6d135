"""Rows of a lake for tests: a day of the cluster c, with seconds from its midnight; and facts read back."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpureport.compute.query import connection
from gpureport.lake import Lake, open_lake, views
from gpureport.store import Place
from gpureport.values.tables import Table

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


def files(place: Place, table: str) -> list[Path]:
    """The files of a table that a reader finds when it opens the lake now."""
    return [file for partition in open_lake(place).partitions(table) for file in partition.files]


def seen(place: Place) -> dict[str, bytes]:
    """Every file that a reader finds, by table, cluster and day, and by part number or times of snapshots."""
    return contents(open_lake(place))


def contents(lake: Lake) -> dict[str, bytes]:
    found = {}
    for table in lake.tables():
        for each in lake.partitions(table):
            for stored, file in zip(each.stored, each.files, strict=True):
                part = f"{stored.first_ms}-{stored.last_ms}" if stored.is_observed else f"{stored.number:04d}"
                found[f"{table}/{each.cluster}/{each.date}/{part}"] = file.read_bytes()
    return found
