"""``day.quota_native`` and ``day.quota_unit``: requests and offers in the words and units of each quota system."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from gpureport.schedulers.model import Rules
from gpureport.schedulers.units import gpu_units, is_device, native_requests, native_unit
from gpureport.values.tables.rules import QUOTA_NATIVE, QUOTA_UNIT

_REQUESTS = """
with asked as (
    select cluster, requests as amounts
    from day.quota_pod
    union
    select
        cluster,
        map([resource], [allocatable_native]) as amounts
    from day.quota_node
),

system as (
    select distinct
        cluster, system
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
    """What requests of ``day.quota_pod`` and offers of ``day.quota_node`` count for, by system; '' is Kubernetes itself."""
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
