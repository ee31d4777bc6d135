"""Changes of a lake, wherever it lies, and what a reader then finds there."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
from lake_rows import seen
from test_lake_killed import rows

from gpureport.lake import open_lake
from gpureport.store import Place
from gpureport.values.tables import DEVICE_SAMPLE, SAMPLE, SOURCE, TABLE_BY_NAME

DAY, NEXT = date(2026, 11, 20), date(2026, 11, 21)
__all__ = ["DAY", "FIRST", "NEXT", "SECOND", "THIRD", "export", "observe", "seen"]
FIRST, SECOND, THIRD = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (6, 7, 8))


def export(place: Place, count: int, day: date = DAY, cluster: str = "lab") -> None:
    with open_lake(place, create=True).change() as change:
        change.write("device_sample", cluster, day, rows(DEVICE_SAMPLE, count))
        change.write("sample", cluster, day, rows(SAMPLE, count))
        change.write("series", cluster, day, pa.table({"series_id": list(range(count))}))
        change.write("source", cluster, day, rows(SOURCE, count, kind="prometheus"))
        change.write("facts/device_hour", cluster, day, pa.table({"gpu": list(range(count))}))


def observe(place: Place, at: datetime, count: int = 1) -> None:
    tables = {name: rows(TABLE_BY_NAME[name], count, observed_at=at) for name in ("namespace", "node")}
    with open_lake(place, create=True).change() as change:
        change.observe("lab", at, tables | {"source": rows(SOURCE, count, kind="kubernetes", start_at=at)})
