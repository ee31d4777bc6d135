"""``day.quota_lending``: what passes between the queues of Kueue's trees of cohorts, over the steps that SQL has put together.

A cohort has quotas for some flavors, or for none; its place in the tree holds for all (``day.quota_terms`` without a resource).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.rows import QuotaRows, Row
from gpureport.schedulers.kueue import Lending, Node, cohorts
from gpureport.schedulers.model import Holding
from gpureport.values.tables.rules import QUOTA_LENDING

_STEPS = """
select
    *,
    epoch_ms(created_at) as created_at_ms
from day.quota_amount
where system = 'kueue' and cluster in (select cluster from day.quota_terms where system = 'kueue' and is_parent)
order by cluster, resource, flavor, start_at, quota
"""
_PLACES = """
select cluster, quota, parent, start_at, end_at
from day.quota_terms
where system = 'kueue' and is_parent and resource = ''
order by all
"""
_STEP = ("cluster", "system", "resource", "flavor", "start_at")


def quota_lending_table(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Amounts that each queue lends and can reclaim in each step of ``day.quota_amount``; no row where no Cohort is known."""
    places = con.sql(_PLACES).to_arrow_table().to_pylist()
    rows = con.sql(_STEPS).to_arrow_table().to_pylist()
    quotas = QuotaRows()
    answers: dict[tuple[Any, ...], Mapping[str, Lending]] = {}
    found = [row for _, step in groupby(rows, _step) for row in _lent(list(step), places, quotas, answers)]
    return pa.Table.from_pylist(found, QUOTA_LENDING.schema)


def _step(row: Row) -> list[Any]:
    return [row[name] for name in _STEP]


def _lent(
    rows: Sequence[Row], places: Sequence[Row], quotas: QuotaRows, answers: dict[tuple[Any, ...], Mapping[str, Lending]]
) -> Iterator[Row]:
    """A row for every queue and cohort of one step; answers recur."""
    holdings = [Holding(quotas.quota(row), row["delivered_native"], row["delivered_native"]) for row in rows]
    above = _above(rows[0], places)
    key = (rows[0]["resource"], above, *((id(each.quota), each.delivered) for each in holdings))
    if key not in answers:
        nodes = [Node(name, parent) for name, parent in above]
        answers[key] = cohorts(rows[0]["resource"], holdings, nodes).lending(("", rows[0]["resource"]))
    for row in rows:
        if lending := answers[key].get(row["quota"]):
            same = {name: row[name] for name in (*_STEP, "quota", "end_at")}
            amounts = {"lent_native": lending.lent, "others_borrowed_native": lending.others_borrowed}
            yield {**same, **amounts, "borrowers": sorted(lending.borrowers.items())}


def _above(step: Row, places: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Each cohort, and its parent at that time."""
    return tuple(
        (each["quota"], each["parent"])
        for each in places
        if each["cluster"] == step["cluster"] and each["start_at"] <= step["start_at"] < each["end_at"]
    )
