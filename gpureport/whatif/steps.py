"""The recorded steps of quotas as a replay takes them, and what it finds, in their place."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.rows import TERMS, QuotaRows, Row
from gpureport.schedulers.change import NO_CHANGE, Change, Pool
from gpureport.schedulers.kueue import policy_of
from gpureport.schedulers.model import Holding, Past, Rules, Terms
from gpureport.schedulers.pods import Ask
from gpureport.schedulers.replay import POLICIES, Step, replay

_RECORDED = """
select
    moment.* exclude (start_at, end_at, created_at, waiting_native, waiting_pod_native, reported_share_native, amount_source),
    known.scope,
    epoch_ms(moment.start_at) as start_ms,
    epoch_ms(moment.end_at) as end_ms,
    epoch_ms(moment.created_at) as created_at_ms,
    if(moment.start_at < usable.end_at, usable.capacity_native, null) as capacity_native
from recorded_moment as moment
inner join day.quota_scope as known
    using (cluster, system, resource, flavor, quota)
asof left join period.quota_usable as usable
    on
        moment.cluster = usable.cluster
        and moment.system = usable.system
        and moment.resource = usable.resource
        and moment.start_at >= usable.start_at
order by moment.cluster, moment.system, moment.resource, moment.flavor, known.scope, moment.start_at, moment.quota
"""
_ASKS = """
select
    cluster,
    system,
    resource,
    flavor,
    scope,
    request_uid,
    quota,
    amount_native,
    coalesce(priority, 0) as priority,
    epoch_ms(created_at) as created_ms,
    epoch_ms(bound_at) as bound_ms,
    epoch_ms(ended_at) as ended_ms
from day.quota_request
inner join day.quota_scope
    using (cluster, system, resource, flavor, quota)
where is_own
order by all
"""
_BY_ASKS = """
select distinct cluster, system, resource, flavor
from recorded_moment
where amount_source in ('pods', 'workloads')
"""
_QUEUES = """
select cluster, name, arg_max(spec, observed_at) as spec
from lake.quota
where kind = 'clusterqueues.kueue.x-k8s.io'
group by all
"""
_PUT_BACK = """
create or replace table day.quota_amount as
select
    moment.* exclude (
        parent, guaranteed_native, cap_native, weight, deserved_native, borrowing_limit_native, lending_limit_native,
        delivered_native, waiting_native, reported_share_native
    ),
    replayed.* exclude (cluster, system, resource, flavor, quota, start_at),
    null::double as waiting_native,
    null::double as reported_share_native
from recorded_moment as moment
inner join replayed
    using (cluster, system, resource, flavor, quota, start_at)
"""
_ROWS_AT_ONCE = 20_000
MOST_ASKS = 200_000
"""Pods and workloads of one pool up to which they are replayed one by one."""
_BOUND_BY_MIN = ("nos", "scheduler-plugins", "kueue")
"""Their quotas share what all min together are, so the nodes need not be known."""
_REPLAYED = pa.schema(
    [
        *((name, pa.string()) for name in (*Pool._fields, "quota")),
        ("start_at", pa.timestamp("ms")),
        ("parent", pa.string()),
        *((name, pa.float64()) for name in (*TERMS, "delivered_native")),
    ]
)


LeftOut = dict[tuple[Pool, str], float]
"""Seconds that could not be replayed, by pool and why: ``capacity_unknown`` or ``demand_unknown``."""


@dataclass(frozen=True)
class Given:
    """What a replay knows beside the steps."""

    changes: Mapping[Pool, Change]
    rules: Rules
    asks: Mapping[Pool, Mapping[str, Sequence[Ask]]]
    """Of pools that are replayed pod by pod, by scope: quotas of one do not concern those of another."""
    policies: Mapping[str, Mapping[str, Mapping[str, str]]]
    """Of Kueue's queues, by cluster and name."""
    past: Mapping[str, Sequence[Past]]
    """KAI's use of GPUs before the window, by cluster."""


def given(con: duckdb.DuckDBPyConnection, rules: Rules, past: Mapping[str, Sequence[Past]]) -> Given:
    """What was asked for, and how the schedulers go about it; no changes yet."""
    asks: dict[Pool, dict[str, list[Ask]]] = {Pool(*key): defaultdict(list) for key in con.execute(_BY_ASKS).fetchall()}
    for *key, scope, uid, quota, amount, priority, created_ms, bound_ms, ended_ms in con.execute(_ASKS).fetchall():
        if (pool := Pool(*key)) in asks:
            asks[pool][scope].append(Ask(uid, quota, amount, priority, created_ms, bound_ms, ended_ms))
    policies: dict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
    for cluster, name, spec in con.execute(_QUEUES).fetchall():
        policies[cluster][name] = policy_of(json.loads(spec))
    few = {pool: found for pool, found in asks.items() if pool.system in POLICIES and sum(map(len, found.values())) <= MOST_ASKS}
    return Given({}, rules, few, policies, past)


def replay_steps(con: duckdb.DuckDBPyConnection, given: Given) -> LeftOut:
    """Put ``recorded_moment`` through the systems' rules with the changes made, into ``day.quota_amount``.

    ``period.quota_usable`` is what there is to share. What had to be left out is in neither.
    """
    left_out: LeftOut = defaultdict(float)
    found = _replayed(_recorded(con), given, left_out)
    batches = [_batch(rows) for rows in iter(lambda: list(islice(found, _ROWS_AT_ONCE)), [])]
    con.register("replayed", pa.Table.from_batches(batches, _REPLAYED))
    con.execute(_PUT_BACK)
    con.unregister("replayed")
    return dict(left_out)


def _recorded(con: duckdb.DuckDBPyConnection) -> Iterator[Row]:
    for batch in con.sql(_RECORDED).to_arrow_reader(_ROWS_AT_ONCE):
        rows: list[Row] = batch.to_pylist()
        yield from rows


def _batch(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, kind.type) for column, kind in zip(columns, _REPLAYED, strict=True)], _REPLAYED)


def _replayed(rows: Iterable[Row], given: Given, left_out: LeftOut) -> Iterator[tuple[object, ...]]:
    for (*named, scope), of_scope in groupby(rows, key=itemgetter(*Pool._fields, "scope")):
        pool = Pool(*named)
        quotas = QuotaRows(given.policies.get(pool.cluster) if pool.system == "kueue" else None)
        steps = _steps(pool, of_scope, quotas, left_out)
        change = given.changes.get(pool, NO_CHANGE)
        asks = given.asks[pool].get(scope, ()) if pool in given.asks else None
        past = given.past.get(pool.cluster, ()) if (pool.system, pool.resource) == ("kai", "gpu") else ()
        for step in replay(pool.system, pool.resource, steps, change, asks, given.rules, past):
            yield from _rows(pool, step)


def _steps(pool: Pool, rows: Iterable[Row], quotas: QuotaRows, left_out: LeftOut) -> Iterator[Step]:
    """The steps of one system's resource; those of which too little is known are left out and counted."""
    for _, step in groupby(rows, key=itemgetter("start_ms")):
        there = list(step)
        first = there[0]
        capacity = first["capacity_native"]
        if capacity is None and pool.system in _BOUND_BY_MIN:
            capacity = math.inf
        if why := _unknown(there, capacity):
            left_out[pool, why] += (first["end_ms"] - first["start_ms"]) / 1000
            continue
        holdings = [Holding(quotas.quota(row), row["demanded_native"], row["delivered_native"]) for row in there]
        yield Step(first["start_ms"], first["end_ms"], holdings, capacity)


def _unknown(rows: Iterable[Row], capacity: float | None) -> str:
    if any(row["demanded_native"] is None or row["delivered_native"] is None for row in rows):
        return "demand_unknown"
    return "capacity_unknown" if capacity is None else ""


def _rows(pool: Pool, step: Step) -> Iterator[tuple[object, ...]]:
    """As ``_REPLAYED`` names them."""
    for each in step.holdings:
        terms = vars(each.quota.terms.get(pool.resource, Terms())).values()
        yield *pool, each.quota.name, step.start_ms, each.quota.parent, *terms, each.delivered
