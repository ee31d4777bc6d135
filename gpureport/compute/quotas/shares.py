"""``day.quota_share``: the schedulers' own rules over the steps that SQL has put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.scene import QuotaRows, Row
from gpureport.schedulers.allocation import SHARING, fair_shares
from gpureport.schedulers.model import Holding, Rules, Share
from gpureport.schedulers.units import gpu_units, is_device, native_requests, native_unit
from gpureport.values.tables.rules import QUOTA_NATIVE, QUOTA_SHARE, QUOTA_UNIT

_REQUESTS = """
with asked as (
    select
        cluster,
        requests as amounts
    from day.quota_pod
    union
    select
        cluster,
        map([resource], [allocatable_native]) as amounts
    from day.quota_node
),

system as (
    select distinct
        cluster,
        system
    from day.quota_terms
)

select distinct
    system,
    amounts::text as requests,
    amounts
from asked
inner join system
    using (cluster)
union
select distinct
    '' as system,
    amounts::text as requests,
    amounts
from asked
order by all
"""


def quota_native_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """Amounts of requests of ``day.quota_pod`` and units of ``day.quota_node``, by system; '' is Kubernetes."""
    rows: list[tuple[object, ...]] = []
    for system, requests, amounts in con.execute(_REQUESTS).fetchall():
        for resource, amount in sorted(native_requests(system, amounts, rules.gb_per_gpu).items()):
            each = gpu_units(resource, rules.gb_per_gpu)
            gpus = None if each is None else amount * each
            rows.append((system, requests, resource, float(amount), gpus))
    return _table(rows, QUOTA_NATIVE.schema)


def quota_unit_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """The units of every resource of devices of ``day.quota_terms``."""
    named = con.execute("select distinct system, resource from day.quota_terms order by all").fetchall()
    rows: list[tuple[object, ...]] = [
        (system, resource, gpu_units(resource, rules.gb_per_gpu), native_unit(resource))
        for system, resource in named
        if is_device(system, resource)
    ]
    return _table(rows, QUOTA_UNIT.schema)


def _table(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


_STEPS = """
select
    moment.*,
    epoch_ms(moment.created_at) as created_at_ms,
    if(moment.start_at < capacity.end_at, capacity.capacity_native, null) as capacity_native
from day.quota_amount as moment
asof left join day.quota_capacity as capacity
    on
        moment.cluster = capacity.cluster
        and moment.system = capacity.system
        and moment.resource = capacity.resource
        and moment.start_at >= capacity.start_at
where list_contains($systems, moment.system)
order by moment.cluster, moment.system, moment.resource, moment.flavor, moment.start_at, moment.quota
"""
_STEP = ("cluster", "system", "resource", "flavor", "start_at")
_ROWS_AT_ONCE = 20_000
BY_DEMAND = ("koordinator", "volcano", "kai")
"""Systems whose rules share out by requests."""


def quota_share_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """Share of each quota in each step of ``day.quota_amount``, of ``day.quota_capacity``."""
    reckoner = _Reckoner(rules)
    reader = con.sql(_STEPS, params={"systems": list(SHARING)}).to_arrow_reader(_ROWS_AT_ONCE)
    rows: Iterator[Row] = chain.from_iterable(batch.to_pylist() for batch in reader)
    found = [share for _, step in groupby(rows, key=_step) for share in reckoner.step(list(step))]
    return pa.Table.from_pylist(found, QUOTA_SHARE.schema)


def _demanded(row: Row) -> float:
    return float(row["delivered_native"] if row["demanded_native"] is None else row["demanded_native"])


def _step(row: Row) -> list[Any]:
    return [row[name] for name in _STEP]


class _Reckoner:
    """Remembers quotas, which change rarely, and answers, which recur."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._quotas = QuotaRows()
        self._answers: dict[tuple[Any, ...], dict[str, Share]] = {}

    def step(self, rows: Sequence[Row]) -> Iterator[Row]:
        """A row of shares for every quota of one step."""
        shares = self._shares(rows)
        for row in rows:
            share = shares.get(row["quota"], Share(None, "no_such_notion"))
            same = {name: row[name] for name in ("cluster", "system", "resource", "flavor", "quota", "start_at", "end_at")}
            yield {**same, "fair_share_native": share.fair_share, "reason": share.reason}

    def _shares(self, rows: Sequence[Row]) -> dict[str, Share]:
        """Shares without known demand: allocated amounts are the least demand, enough for rules that do not use demand."""
        first = rows[0]
        if first["system"] in BY_DEMAND and any(row["demanded_native"] is None for row in rows):
            return {row["quota"]: Share(None, "demand_unknown") for row in rows}
        holdings = [Holding(self._quotas.quota(row), _demanded(row), row["delivered_native"]) for row in rows]
        key = (
            first["system"],
            first["resource"],
            first["capacity_native"],
            *((id(h.quota), h.demanded, h.delivered) for h in holdings),
        )
        if key not in self._answers:
            capacity = first["capacity_native"]
            self._answers[key] = fair_shares(first["system"], first["resource"], holdings, capacity, self._rules)
        return self._answers[key]
