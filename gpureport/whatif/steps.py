"""The recorded steps of quotas as a replay takes them, and what it finds, in their place."""

from __future__ import annotations

import json
import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.rows import TERMS, QuotaRows, Row
from gpureport.schedulers.change import NO_CHANGE, Change, Pool, changed
from gpureport.schedulers.kueue import policy_of
from gpureport.schedulers.model import Holding, Past, Quota, Rules, Terms
from gpureport.schedulers.pods import Ask
from gpureport.schedulers.replay import POLICIES, Step, replay

_QUOTA = "cluster, system, resource, flavor, quota, parent, is_parent, namespaces, tree, priority, may_lend, created_at, uid"
_SAID = f"hash({_QUOTA}, {', '.join(TERMS)})"
_QUOTAS = f"""
select distinct on (said)
    {_SAID} as said,
    epoch_ms(created_at) as created_at_ms,
    *
from recorded_moment
"""
_SCOPES = """
create or replace temp table replayed_scope as
select
    *,
    dense_rank() over (order by cluster, system, resource, flavor, scope)::integer as number
from day.quota_scope
"""
_RECORDED = f"""
select
    moment.rowid,
    scope.number,
    epoch_ms(start_at) as start_ms,
    epoch_ms(end_at) as end_ms,
    {_SAID} as said,
    demanded_native,
    delivered_native
from recorded_moment as moment
inner join replayed_scope as scope
    using (cluster, system, resource, flavor, quota)
order by scope.number, moment.start_at, moment.quota
"""
_CAPACITY = """
select
    cluster,
    system,
    resource,
    epoch_ms(start_at),
    epoch_ms(least(end_at, timestamp '9999-01-01')),
    capacity_native
from period.quota_usable
order by all
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
_PUT_BACK = f"""
create or replace view replayed_moment as
select
    moment.* exclude (
        row_id, said, parent, guaranteed_native, cap_native, weight, deserved_native, borrowing_limit_native,
        lending_limit_native, delivered_native, waiting_native, reported_share_native
    ),
    replayed_quota.* exclude (said),
    replayed.delivered_native,
    null::double as waiting_native,
    null::double as reported_share_native
from (select rowid as row_id, {_SAID} as said, * from recorded_moment) as moment
inner join replayed
    using (row_id)
inner join replayed_quota
    using (said)
"""
_TERMS = pa.schema([("said", pa.uint64()), ("parent", pa.string()), *((name, pa.float64()) for name in TERMS)])
_ROWS_AT_ONCE = 20_000
MOST_ASKS = 200_000
"""Pods and workloads of one pool up to which they are replayed one by one."""
_BOUND_BY_MIN = ("nos", "scheduler-plugins", "kueue")
"""Their quotas share what all min together are, so the nodes need not be known."""
LeftOut = dict[tuple[Pool, str], float]
"""Seconds that could not be replayed, by pool and why: ``capacity_unknown`` or ``demand_unknown``."""


@dataclass(frozen=True)
class Given:
    """Inputs of a replay beside the steps."""

    changes: Mapping[Pool, Change]
    rules: Rules
    asks: Mapping[Pool, Mapping[str, Sequence[Ask]]]
    """Of pools that are replayed pod by pod, by scope: quotas of one do not concern those of another."""
    policies: Mapping[str, Mapping[str, Mapping[str, str]]]
    """Of Kueue's queues, by cluster and name."""
    past: Mapping[str, Sequence[Past]]
    """KAI's use of GPUs before the window, by cluster."""


def given(con: duckdb.DuckDBPyConnection, rules: Rules, past: Mapping[str, Sequence[Past]]) -> Given:
    """Recorded demand, and the schedulers' policies; no changes yet."""
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
    """Put ``recorded_moment`` through the systems' rules with the changes made, into ``replayed_moment``.

    ``period.quota_usable`` is what there is to share. What had to be left out is in neither.
    """
    con.execute(_SCOPES)
    found = Replayed(con, given)
    for number, rows in groupby(_recorded(con), key=itemgetter(1)):
        found.replay(*found.scopes[number], rows)
    for name, table in (("replayed", pa.table(found.held)), ("replayed_quota", found.terms())):
        con.register("_made", table)
        con.execute(f"create or replace table {name} as from _made")
        con.unregister("_made")
    con.execute(_PUT_BACK)
    return dict(found.left_out)


_Recorded = tuple[int, int, int, int, int, float, float]
"""A row of ``_RECORDED``; NaN where an amount is unknown."""


def _recorded(con: duckdb.DuckDBPyConnection) -> Iterator[_Recorded]:
    for batch in con.sql(_RECORDED).to_arrow_reader(_ROWS_AT_ONCE):
        yield from zip(*(column.to_numpy(zero_copy_only=False).tolist() for column in batch.columns), strict=True)


class Replayed:
    """Rows of ``recorded_moment`` in the replay: many numbers, and few quotas."""

    def __init__(self, con: duckdb.DuckDBPyConnection, given: Given) -> None:
        self._given = given
        self.left_out: LeftOut = defaultdict(float)
        named = con.execute("select distinct number, cluster, system, resource, flavor, scope from replayed_scope").fetchall()
        self.scopes = {number: (Pool(*pool), str(scope)) for number, *pool, scope in named}
        self._rows = con.sql(_QUOTAS).to_arrow_table().to_pylist()
        self._quotas = {row["said"]: self._quota(row) for row in self._rows}
        self._capacities: dict[tuple[str, ...], list[tuple[int, int, float]]] = defaultdict(list)
        for *key, start_ms, end_ms, amount in con.execute(_CAPACITY).fetchall():
            self._capacities[tuple(key)].append((start_ms, end_ms, amount))
        self.held: dict[str, array[Any]] = {"row_id": array("q"), "delivered_native": array("d")}

    def replay(self, pool: Pool, scope: str, rows: Iterable[_Recorded]) -> None:
        """Those of one scope, in order of time."""
        given = self._given
        asks = given.asks[pool].get(scope, ()) if pool in given.asks else None
        past = given.past.get(pool.cluster, ()) if (pool.system, pool.resource) == ("kai", "gpu") else ()
        change = given.changes.get(pool, NO_CHANGE)
        for step in replay(pool.system, pool.resource, self._steps(pool, rows), change, asks, given.rules, past):
            self.held["delivered_native"].extend([each.delivered for each in step.holdings])

    def _quota(self, row: Row) -> Quota:
        policies = self._given.policies.get(row["cluster"]) if row["system"] == "kueue" else None
        return QuotaRows(policies).quota(row)

    def _steps(self, pool: Pool, rows: Iterable[_Recorded]) -> Iterator[Step]:
        """The steps of one system's resource; those of which too little is known are left out and counted."""
        known = self._capacities[pool[:3]]
        for start_ms, step in groupby(rows, key=itemgetter(2)):
            there = list(step)
            end_ms = there[0][3]
            place = bisect_right(known, (start_ms, math.inf)) - 1
            capacity = known[place][2] if place >= 0 and start_ms < known[place][1] else None
            if capacity is None and pool.system in _BOUND_BY_MIN:
                capacity = math.inf
            holdings = [Holding(self._quotas[said], demanded, held) for _, _, _, _, said, demanded, held in there]
            is_known = not math.isnan(sum([each.demanded + each.delivered for each in holdings]))
            if capacity is None or not is_known:
                why = "capacity_unknown" if is_known else "demand_unknown"
                self.left_out[pool, why] += (end_ms - start_ms) / 1000
                continue
            self.held["row_id"].extend([row[0] for row in there])
            yield Step(start_ms, end_ms, holdings, capacity)

    def terms(self) -> pa.Table:
        """Position of each quota in the tree, and its terms, as changed."""
        found = []
        for row in self._rows:
            pool = Pool(*(row[name] for name in Pool._fields))
            quota = changed(self._quotas[row["said"]], pool.resource, self._given.changes.get(pool, NO_CHANGE))
            terms = vars(quota.terms.get(pool.resource, Terms())).values()
            found.append(dict(zip(_TERMS.names, (row["said"], quota.parent, *terms), strict=True)))
        return pa.Table.from_pylist(found, _TERMS)
