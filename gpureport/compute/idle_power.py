"""Idle power of each GPU of a day: from its own free time of four weeks, or from other GPUs of its model.

The GPUs of a model are in all parts of the lake, so idle power is computed before the power of any part is attributed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta

import duckdb
import pyarrow as pa

from gpureport.compute.fact_views import Batch
from gpureport.compute.query import Query, build
from gpureport.lake import Lake
from gpureport.values.runtime.resources import catalog_rows

BASELINE = "day.idle_baseline"
_DAYS_BEFORE = 27


def later_days_without(lake: Lake, cluster: str, day: date) -> list[date]:
    """Days whose idle power was computed without this day, because it had no facts; empty where it has facts."""
    days = sorted(each.date for each in lake.partitions("facts/idle_power_hour") if each.cluster == cluster)
    return [] if day in days else [each for each in days if _is_read(day, each)]


def _is_read(before: date, day: date) -> bool:
    return timedelta() < day - before <= timedelta(_DAYS_BEFORE)


def idle_baseline(
    con: duckdb.DuckDBPyConnection, lake: Lake, batch: Batch, query: Query, idle_watts: Mapping[str, float]
) -> pa.Table:
    """``day.idle_baseline`` of days, each from its own ``facts.idle_power_hour`` and that of the 27 days before it.

    Later days are never read: a day that is computed again must not depend on them.
    """
    con.execute("alter table facts.idle_power_hour rename to idle_power_today")
    known = {(each.cluster, each.date) for each in lake.partitions("facts/idle_power_hour")} - {*batch.days}
    before = {
        (cluster, day): {each for other, each in known if other == cluster and _is_read(each, day)} for cluster, day in batch.days
    }
    pairs = [
        (own, other)
        for own in batch.days
        for other in batch.days
        if other == own or (other[0] == own[0] and _is_read(other[1], own[1]))
    ]
    names = [[batch.name(each) for each in column] for column in zip(*pairs, strict=True)]
    con.execute("create table reads as select unnest(?) as name, unnest(?) as other", names)
    sources = ["select own.* replace (name as cluster) from facts.idle_power_today as own inner join reads on cluster = other"]
    if any(before.values()):
        batch.views(con, lake, ["facts/idle_power_hour"], before)
        con.execute("alter view facts.idle_power_hour rename to idle_power_before")
        sources.append("select * exclude (date) from facts.idle_power_before")
    con.execute(f"create view facts.idle_power_hour as {' union all by name '.join(sources)}")
    models = {"gpu_models": json.dumps(catalog_rows("gpu_model.csv"))}
    build(con, query, {"idle_watts": json.dumps(idle_watts, sort_keys=True), **models})
    return con.table(query.table).to_arrow_table()
