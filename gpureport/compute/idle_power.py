"""Idle power of each GPU of a day: from its own free time of four weeks, or from others of its model.

A part of the lake is not enough to tell: the others of a model stand in all parts, so this comes before any part is attributed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta

import duckdb
import pyarrow as pa

from gpureport.compute.query import Query, build
from gpureport.lake import Lake, Partition, views
from gpureport.values.runtime.resources import catalog_rows

BASELINE = "day.idle_baseline"
_DAYS_BEFORE = 27


def later_days_without(lake: Lake, cluster: str, day: date) -> list[date]:
    """The days with facts whose baselines would have read this one, had it facts when they were made; none where it has."""
    days = sorted(each.date for each in lake.partitions("facts/idle_power_hour") if each.cluster == cluster)
    return [] if day in days else [each for each in days if timedelta() < each - day <= timedelta(_DAYS_BEFORE)]


def idle_baseline(
    con: duckdb.DuckDBPyConnection, lake: Lake, partition: Partition, query: Query, idle_watts: Mapping[str, float]
) -> pa.Table:
    """``day.idle_baseline`` of a day, from the day's own ``facts.idle_power_hour``, and those of the days before.

    Days after it are never read: computing a day again must not depend on what came later.
    """
    con.execute("alter table facts.idle_power_hour rename to idle_power_today")
    days = (partition.date - timedelta(days=back) for back in range(1, _DAYS_BEFORE + 1))
    before = [day for day in days if lake.partition("facts/idle_power_hour", partition.cluster, day)]
    sources = ["from facts.idle_power_today"]
    if before:
        views(con, lake, ["facts/idle_power_hour"], [partition.cluster], before)
        con.execute("alter view facts.idle_power_hour rename to idle_power_before")
        sources.append("select * exclude (date) from facts.idle_power_before")
    con.execute(f"create view facts.idle_power_hour as {' union all by name '.join(sources)}")
    models = {"gpu_models": json.dumps(catalog_rows("gpu_model.csv"))}
    build(con, query, {"idle_watts": json.dumps(idle_watts, sort_keys=True), **models})
    return con.table(query.table).to_arrow_table()
