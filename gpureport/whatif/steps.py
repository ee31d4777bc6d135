"""Recorded steps of quotas as input of a replay, and replacement of their amounts by its results."""

from __future__ import annotations

import json
import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.scene import QuotaRows, Row
from gpureport.schedulers import kueue, volcano
from gpureport.schedulers.change import NO_CHANGE, Change, Pool
from gpureport.schedulers.model import Holding, Past, Quota, Rules
from gpureport.schedulers.pods import Request
from gpureport.schedulers.replay import POLICIES, Step, replay

QUOTAS = "select *, epoch_ms(created_at) as created_at_ms from day.quota_terms"
_SCOPES = """
create or replace temp table replayed_scope as
select
    *,
    dense_rank() over (order by cluster, system, resource, flavor, scope)::integer as number
from day.quota_scope
inner join day.quota_terms
    using (cluster, system, resource, flavor, quota)
semi join day.recorded_demand
    using (terms_id)
"""
_NUMBERS = """
select number, cluster, system, resource, flavor, scope, list(distinct quota order by quota)
from replayed_scope
group by all
order by number
"""
_RECORDED = """
select
    demand.rowid, scope.number, epoch_ms(demand.start_at) as start_ms, epoch_ms(demand.end_at) as end_ms,
    demand.terms_id, demanded_native, delivered_native
from day.recorded_demand as demand
inner join replayed_scope as scope
    using (terms_id)
where list_contains($numbers, scope.number)
order by scope.number, demand.start_at, scope.quota
"""
_CAPACITY = """
select cluster, system, resource, epoch_ms(start_at), epoch_ms(least(end_at, timestamp '9999-01-01')), capacity_native
from period.quota_usable
order by all
"""
_REQUESTS = """
select
    cluster, system, resource, flavor, scope, request_uid, quota, amount_native,
    coalesce(priority, 0) as priority, epoch_ms(created_at), epoch_ms(bound_at), epoch_ms(ended_at)
from day.quota_request
inner join day.quota_scope
    using (cluster, system, resource, flavor, quota)
where is_own
order by all
"""
_BY_REQUESTS = """
select distinct cluster, system, resource, flavor
from day.quota_terms
semi join (from day.recorded_demand where amount_source in ('pods', 'workloads'))
    using (terms_id)
"""
_QUEUES = """
select
    if(kind = 'clusterqueues.kueue.x-k8s.io', 'kueue', 'volcano'), cluster, name,
    arg_max(spec, observed_at), arg_max(status ->> '$.fairSharing' is not null, observed_at)
from lake.quota
where kind in ('clusterqueues.kueue.x-k8s.io', 'queues.scheduling.volcano.sh')
group by all
"""
_PUT_BACK = """
create or replace table replayed_demand as
select
    demand.* replace (
        replayed.delivered_native as delivered_native,
        null::double as waiting_native,
        null::double as reported_share_native
    ),
    demand.delivered_native as recorded_native
from day.recorded_demand as demand
inner join replayed
    on demand.rowid = replayed.row_id
"""
_ROWS_AT_ONCE = 20_000
MOST_PODS = 200_000
"""Maximum number of pods and workloads of a pool for a replay pod by pod."""
_BOUND_BY_MIN = ("nos", "scheduler-plugins", "kueue")
"""Systems whose quotas share the sum of all min, so the capacity of nodes is not required."""
LeftOut = dict[tuple[Pool, str], float]
"""Seconds that could not be replayed, by pool and reason: ``capacity_unknown`` or ``demand_unknown``."""


Scopes = Mapping[int, tuple[Pool, str, Collection[str]]]
"""By number: pool, scope name and quotas; quotas of different scopes do not affect each other."""


@dataclass(frozen=True)
class Inputs:
    """Inputs of a replay, without the steps."""

    scopes: Scopes
    changes: Mapping[Pool, Change]
    rules: Rules
    requests: Mapping[Pool, Mapping[str, Sequence[Request]]]
    """By pool and scope, for pools that are replayed pod by pod."""
    policies: Mapping[tuple[str, str], Mapping[str, Mapping[str, str]]]
    """Policies of Kueue's and Volcano's queues, by system and cluster, then by name."""
    past: Mapping[str, Sequence[Past]]
    """Use of GPUs before the window, for KAI, by cluster."""


def read_inputs(con: duckdb.DuckDBPyConnection, rules: Rules, past: Mapping[str, Sequence[Past]]) -> Inputs:
    """Return the recorded demand and the schedulers' policies, without changes."""
    known: dict[Pool, dict[str, list[Request]]] = {Pool(*key): defaultdict(list) for key in con.execute(_BY_REQUESTS).fetchall()}
    for *key, scope, uid, quota, amount, priority, created_ms, bound_ms, ended_ms in con.execute(_REQUESTS).fetchall():
        if (pool := Pool(*key)) in known:
            known[pool][scope].append(Request(uid, quota, amount, priority, created_ms, bound_ms, ended_ms))
    policies: dict[tuple[str, str], dict[str, Mapping[str, str]]] = defaultdict(dict)
    for system, cluster, name, spec, is_fair in con.execute(_QUEUES).fetchall():
        own = json.loads(spec)
        policies[system, cluster][name] = kueue.policy_of(own, is_fair) if system == "kueue" else volcano.policy_of(own)
    few = {pool: found for pool, found in known.items() if pool.system in POLICIES and sum(map(len, found.values())) <= MOST_PODS}
    con.execute(_SCOPES)
    scopes = {number: (Pool(*pool), str(scope), quotas) for number, *pool, scope, quotas in con.execute(_NUMBERS).fetchall()}
    return Inputs(scopes, {}, rules, few, policies, past)


def replay_steps(con: duckdb.DuckDBPyConnection, inputs: Inputs, numbers: Collection[int]) -> LeftOut:
    """Replay these scopes of ``day.recorded_demand`` with the changes, into the table ``replayed_demand``.

    ``period.quota_usable`` has the amounts to share. Returns the seconds that could not be replayed; their rows are left out.
    """
    found = Replayed(con, inputs)
    for number, rows in groupby(_recorded(con, numbers), key=itemgetter(1)):
        found.replay(number, rows)
    con.register("replayed", pa.table(found.held))
    con.execute(_PUT_BACK)
    con.unregister("replayed")
    return dict(found.left_out)


_Recorded = tuple[int, int, int, int, int, float, float]
"""A row of ``_RECORDED``; NaN where an amount is unknown."""


def _recorded(con: duckdb.DuckDBPyConnection, numbers: Collection[int]) -> Iterator[_Recorded]:
    for batch in con.sql(_RECORDED, params={"numbers": list(numbers)}).to_arrow_reader(_ROWS_AT_ONCE):
        yield from zip(*(column.to_numpy(zero_copy_only=False).tolist() for column in batch.columns), strict=True)


class Replayed:
    """Replay of ``day.recorded_demand``; arrays hold the numbers, because rows are many and quotas few."""

    def __init__(self, con: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
        self._inputs = inputs
        self.left_out: LeftOut = defaultdict(float)
        self._quotas = {row["terms_id"]: self._quota(row) for row in con.sql(QUOTAS).to_arrow_table().to_pylist()}
        self._capacities: dict[tuple[str, ...], list[tuple[int, int, float]]] = defaultdict(list)
        for *key, start_ms, end_ms, amount in con.execute(_CAPACITY).fetchall():
            self._capacities[tuple(key)].append((start_ms, end_ms, amount))
        self.held: dict[str, array[Any]] = {"row_id": array("q"), "delivered_native": array("d")}

    def replay(self, number: int, rows: Iterable[_Recorded]) -> None:
        """Replay the rows of one scope, in order of time."""
        inputs = self._inputs
        pool, scope, _ = inputs.scopes[number]
        requests = inputs.requests[pool].get(scope, ()) if pool in inputs.requests else None
        past = inputs.past.get(pool.cluster, ()) if (pool.system, pool.resource) == ("kai", "gpu") else ()
        change = inputs.changes.get(pool, NO_CHANGE)
        for step in replay(pool.system, pool.resource, self._steps(pool, rows), change, requests, inputs.rules, past):
            self.held["delivered_native"].extend([each.delivered for each in step.holdings])

    def _quota(self, row: Row) -> Quota:
        return QuotaRows(self._inputs.policies.get((row["system"], row["cluster"]))).quota(row)

    def _steps(self, pool: Pool, rows: Iterable[_Recorded]) -> Iterator[Step]:
        """Yield the steps of one pool; steps with unknown capacity or demand are left out, and their seconds counted."""
        known = self._capacities[pool[:3]]
        for start_ms, step in groupby(rows, key=itemgetter(2)):
            there = list(step)
            end_ms = there[0][3]
            place = bisect_right(known, (start_ms, math.inf)) - 1
            capacity = known[place][2] if place >= 0 and start_ms < known[place][1] else None
            if capacity is None and pool.system in _BOUND_BY_MIN:
                capacity = math.inf
            holdings = [Holding(self._quotas[terms_id], demanded, held) for _, _, _, _, terms_id, demanded, held in there]
            is_known = not math.isnan(sum([each.demanded + each.delivered for each in holdings]))
            if capacity is None or not is_known:
                why = "capacity_unknown" if is_known else "demand_unknown"
                self.left_out[pool, why] += (end_ms - start_ms) / 1000
                continue
            self.held["row_id"].extend([row[0] for row in there])
            yield Step(start_ms, end_ms, holdings, capacity)
