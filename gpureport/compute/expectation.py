"""What a cluster is expected to have on a day: what the last day with facts before it knew, until that is known to be gone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import duckdb

from gpureport.lake import Lake, Partition, views

EXPECTED = "facts.expected_device"
_FOLDER = "facts/expected_device"


def last_known_days(lake: Lake, day: date) -> set[date]:
    """For each cluster the last day with expected devices, up to this one."""
    latest: dict[str, date] = {}
    for each in _up_to(lake, day):
        latest[each.cluster] = max(each.date, latest.get(each.cluster, each.date))
    return set(latest.values())


def expected_before(lake: Lake, cluster: str, day: date) -> str:
    """The devices that are expected when a day begins: JSON for ``facts.expected_device``."""
    days = [each.date for each in _up_to(lake, day) if each.cluster == cluster and each.date < day]
    if not days:
        return "[]"
    with duckdb.connect() as con:
        views(con, lake, [_FOLDER], [cluster], [max(days)])
        devices = f"select * exclude (date, day, silent_hours) from {EXPECTED} where not is_gone order by all"
        [found] = con.execute(f"select coalesce(to_json(list(device)), '[]')::varchar from ({devices}) as device").fetchall()[0]
    return str(found)


def _up_to(lake: Lake, day: date) -> Iterable[Partition]:
    return (each for each in lake.partitions(_FOLDER) if each.date <= day)
