"""Kueue's queues: ``day.quota_weighted_share`` per snapshot, and ``day.quota_lending`` of cohorts per step.

Weighted shares of ClusterQueues and cohorts; past use of LocalQueues, decayed with a half-life.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.scene import STEP, QuotaRows, Row, step_of
from gpureport.schedulers.kueue import MAX_WEIGHTED_SHARE, Cohorts, Lending, Node, cohorts, consumed
from gpureport.schedulers.model import Holding, Rules, Terms
from gpureport.values.quantity import amounts
from gpureport.values.tables.rules import QUOTA_LENDING, QUOTA_WEIGHTED_SHARE
from gpureport.values.window import HOUR_MS

_OBJECTS = """
select
    term.cluster,
    term.quota,
    greatest(snapshot.observed_at, {since}) as start_at,
    least(snapshot.stands_until_at, {until}) as end_at,
    term.* similar to '^(parent|is_parent|weight|resource|flavor|guaranteed|borrowing_limit|lending_limit|delivered)$',
    try_cast(object.status ->> '$.fairSharing.weightedShare' as double) as reported
from lake.quota_term as term
inner join lake.quota as object
    using (cluster, kind, name, observed_at)
inner join day.state_snapshot as snapshot
    using (cluster, kind, observed_at)
where term.system = 'kueue' and snapshot.observed_at < {until} and snapshot.stands_until_at > {since}
qualify bool_or(reported is not null) over (partition by term.cluster, snapshot.observed_at)
order by term.cluster, snapshot.observed_at, term.quota
"""
_SNAPSHOTS = """
select
    cluster,
    namespace || '/' || name as quota,
    epoch_ms(observed_at) as at_ms,
    greatest(observed_at, {since}) as start_at,
    least(snapshot.stands_until_at, {until}) as end_at,
    status -> '$.fairSharing.admissionFairSharingStatus.consumedResources' as consumed_resources
from lake.quota
inner join day.state_snapshot as snapshot
    using (cluster, kind, observed_at)
where kind = 'localqueues.kueue.x-k8s.io' and consumed_resources is not null
order by cluster, quota, at_ms
"""
_RUNS = """
select
    run.cluster,
    run.namespace || '/' || run.local_queue,
    run.part.resource,
    epoch_ms(coalesce(admitted_at, reserved_at)) as start_ms,
    coalesce(epoch_ms(ended_at), 1e999) as end_ms,
    run.part.amount
from (select *, unnest(requests) as part from day.workload_run where reserved_at is not null) as run
inner join day.quota_unit as unit
    on unit.system = 'kueue' and run.part.resource = unit.resource
order by all
"""


def quota_weighted_share_table(con: duckdb.DuckDBPyConnection, limits: Mapping[str, str], rules: Rules) -> pa.Table:
    """Return one row per reported queue or cohort, within ``limits`` (SQL literals); weight 0 with borrowing is omitted."""
    rows = con.sql(_OBJECTS.format(**limits)).to_arrow_table().to_pylist()
    snapshots = groupby(rows, itemgetter("cluster", "start_at"))
    found = [each for _, snapshot in snapshots for each in _shares(list(snapshot))]
    if rules.usage_half_life_hours:
        found += _past_use(con, limits, rules.usage_half_life_hours * HOUR_MS)
    return pa.Table.from_pylist(found, QUOTA_WEIGHTED_SHARE.schema)


def _past_use(con: duckdb.DuckDBPyConnection, limits: Mapping[str, str], half_life_ms: float) -> Iterator[Row]:
    """Yield reported and recomputed past use; the recomputation starts with the first snapshot's value, up to a day earlier."""
    runs: dict[tuple[str, str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for cluster, quota, resource, *run in con.execute(_RUNS).fetchall():
        runs[cluster, quota, resource].append((run[0], run[1], run[2]))
    counted: dict[tuple[str, str, str], tuple[float, float]] = {}
    for snapshot in con.sql(_SNAPSHOTS.format(**limits)).to_arrow_table().to_pylist():
        for resource, reported in amounts(json.loads(snapshot["consumed_resources"])).items():
            key = snapshot["cluster"], snapshot["quota"], resource
            before, since_ms = counted.get(key, (reported, snapshot["at_ms"]))
            if key in runs and before is not None:
                now = consumed(before, since_ms, snapshot["at_ms"], runs[key], half_life_ms)
                counted[key] = now, snapshot["at_ms"]
                same = {name: snapshot[name] for name in ("cluster", "quota", "start_at", "end_at")}
                if snapshot["start_at"] < snapshot["end_at"]:
                    usage = {"measure": "past use", "resource": resource, "reported_native": reported, "recomputed_native": now}
                    yield {**same, **usage}


def _shares(rows: Sequence[Row]) -> Iterator[Row]:
    by_quota = {quota: list(each) for quota, each in groupby(rows, itemgetter("quota"))}
    trees = Cohorts(_node(quota, each) for quota, each in by_quota.items())
    is_known = all(row["delivered"] is not None or row["is_parent"] for row in rows)
    for quota, (first, *_) in by_quota.items():
        if first["reported"] is not None and first["reported"] < MAX_WEIGHTED_SHARE and quota in trees.nodes:
            share = trees.weighted_share(quota).as_status if is_known else None
            yield {
                **first,
                "measure": "weighted share",
                "resource": "",
                "reported_native": first["reported"],
                "recomputed_native": share,
            }


def _node(quota: str, rows: Sequence[Row]) -> Node:
    named = {(row["flavor"], row["resource"]): row for row in rows if row["resource"]}
    terms = {
        key: Terms(row["guaranteed"], None, None, None, row["borrowing_limit"], row["lending_limit"])
        for key, row in named.items()
    }
    usage = {key: row["delivered"] or 0.0 for key, row in named.items() if not row["is_parent"]}
    return Node(quota, rows[0]["parent"], terms, 1.0 if rows[0]["weight"] is None else rows[0]["weight"], usage)


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


def quota_lending_table(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return what each queue lends and can reclaim in each step of ``day.quota_amount``; no rows for clusters without Cohorts."""
    places = con.sql(_PLACES).to_arrow_table().to_pylist()
    rows = con.sql(_STEPS).to_arrow_table().to_pylist()
    quotas = QuotaRows()
    answers: dict[tuple[Any, ...], Mapping[str, Lending]] = {}
    found = [row for _, step in groupby(rows, step_of) for row in _lent(list(step), places, quotas, answers)]
    return pa.Table.from_pylist(found, QUOTA_LENDING.schema)


def _lent(
    rows: Sequence[Row], places: Sequence[Row], quotas: QuotaRows, answers: dict[tuple[Any, ...], Mapping[str, Lending]]
) -> Iterator[Row]:
    """Yield a row for each queue and cohort of one step; equal steps share one computation."""
    holdings = [Holding(quotas.quota(row), row["delivered_native"], row["delivered_native"]) for row in rows]
    parents = _parents(rows[0], places)
    key = (rows[0]["resource"], parents, *((id(each.quota), each.delivered) for each in holdings))
    if key not in answers:
        nodes = [Node(name, parent) for name, parent in parents]
        answers[key] = cohorts(rows[0]["resource"], holdings, nodes).lending(("", rows[0]["resource"]))
    for row in rows:
        if lending := answers[key].get(row["quota"]):
            same = {name: row[name] for name in (*STEP, "quota", "end_at")}
            borrowed = {"borrowed_native": lending.borrowed, "others_borrowed_native": lending.others_borrowed}
            yield {**same, **borrowed, "lent_native": lending.lent, "borrowers": sorted(lending.borrowers.items())}


def _parents(step: Row, places: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Return each cohort with its parent at the start of the step."""
    return tuple(
        (each["quota"], each["parent"])
        for each in places
        if each["cluster"] == step["cluster"] and each["start_at"] <= step["start_at"] < each["end_at"]
    )
