"""``day.quota_share``: schedulers' rules applied to the steps of ``day.quota_amount``; also requests in units of GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.scene import STEP, QuotaRows, Row, step_of
from gpureport.schedulers import kai
from gpureport.schedulers.allocation import SHARING, fair_shares
from gpureport.schedulers.model import Holding, Rules, Share
from gpureport.schedulers.nos import GPU_MEMORY, with_gpu_memory
from gpureport.values.tables.rules import QUOTA_NATIVE, QUOTA_SHARE, QUOTA_UNIT

FRACTION = "gpu-fraction"
"""GPUs that a pod requests with KAI's annotations."""
KAI_GPU = "gpu"

_OF_REQUESTS = "requests."
_DEVICES = re.compile(r"[^/]*gpu[^/]*\.deviceclass\.resource\.k8s\.io/devices")
_MIG = re.compile(r"nvidia\.com/mig-(?:(\d+)c\.)?(\d+)g\.(\d+)gb.*")
_WHOLE = re.compile(
    r"(nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai|aliyun\.com|intel\.com)/(gpu(\.shared)?|gaudi|i915|xe)"
    r"|google\.com/tpu|huawei\.com/Ascend(310|910)|volcano\.sh/vgpu-number"
)
_AMD = re.compile(r"amd\.com/([sdtqc])px_nps\d+")
_AMD_PARTS = {"s": 1, "d": 2, "t": 3, "q": 4, "c": 8}
_PERCENT = re.compile(r"(?:koordinator\.sh|kubernetes\.io|scheduling\.koordinator\.sh)/gpu(?:-core|-memory-ratio)?")
_NO_DEVICES = frozenset({"", "cpu", "memory", "pods", "storage", "ephemeral-storage"})
_STORAGE = ".storageclass.storage.k8s.io/"


def native_requests(system: str, requests: Mapping[str, float | None], gb_per_gpu: float) -> dict[str, float]:
    """Return a request in base units, with the resource names that the system's quotas use.

    nos adds gpu-memory in GB. A ResourceQuota prefixes names with ``requests.`` or ``limits.``. KAI has gpu, cpu in
    thousandths and memory in 10^6 bytes.
    """
    known = {name: amount for name, amount in requests.items() if amount is not None}
    if system == "nos":
        return {GPU_MEMORY: 0.0, **with_gpu_memory(known, int(gb_per_gpu))}  # known to be 0 GB, not unknown
    if system == "kubernetes":
        return {**known, **{f"{kind}{name}": amount for name, amount in known.items() for kind in (_OF_REQUESTS, "limits.")}}
    if system == "kai":
        return {KAI_GPU: kai.gpus(known) or 0.0, "cpu": known.get("cpu", 0.0) * 1e3, "memory": known.get("memory", 0.0) * 1e-6}
    return known


def gpu_units(resource: str, gb_per_gpu: float) -> float | None:
    """Return GPUs per unit of a quota's resource; None for other resources, or where the fraction of a GPU is unknown.

    A replica of a shared GPU counts as one GPU, as in allocatable: its fraction of a GPU is not reported.
    """
    name = resource.removeprefix(_OF_REQUESTS)
    if name == GPU_MEMORY:
        return 1 / gb_per_gpu
    if name in (KAI_GPU, FRACTION) or _DEVICES.fullmatch(name):
        return 1.0
    if _PERCENT.fullmatch(name):
        return 0.01
    if found := _MIG.fullmatch(name):
        return int(found[1] or found[2]) / _slices(int(found[2]), int(found[3]))
    if found := _AMD.fullmatch(name):
        return 1 / _AMD_PARTS[found[1]]
    return 1.0 if _WHOLE.fullmatch(name) else None


def is_device(system: str, resource: str) -> bool:
    """Return whether the resource is a device: not cpu, memory or another resource of every node, no object, no storage.

    Kueue's administrators choose resource names freely, so for Kueue a name without a domain is also a device.
    """
    name = resource.removeprefix(_OF_REQUESTS).removeprefix("limits.")
    if name in _NO_DEVICES or name.startswith(("count/", "hugepages-", "attachable-volumes-")) or _STORAGE in name:
        return False
    return "/" in name or name == KAI_GPU or system == "kueue"


def _slices(slices: int, gb: int) -> int:
    """Return the compute slices of a whole GPU: 4 for A30 (1g.6gb, …) or RTX PRO 6000 (2g.48gb, 4g.96gb), else 7."""
    return 4 if gb == 6 * slices or (gb == 24 * slices and slices > 1) else 7


def native_unit(resource: str) -> str:
    """Return the resource's unit in words."""
    name = resource.removeprefix(_OF_REQUESTS)
    if name == GPU_MEMORY:
        return "GB"
    if _PERCENT.fullmatch(name):
        return "% of a GPU"
    if _MIG.fullmatch(name):
        return "MIG instance"
    return "device" if gpu_units(resource, 1) else "unit"


_REQUESTS = """
with requested as (
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
from requested
inner join system
    using (cluster)
union
select distinct
    '' as system,
    amounts::text as requests,
    amounts
from requested
order by all
"""


def quota_native_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """Return native and GPU amounts of requests in ``day.quota_pod`` and units in ``day.quota_node``; system '' is Kubernetes."""
    rows: list[tuple[object, ...]] = []
    for system, requests, amounts in con.execute(_REQUESTS).fetchall():
        for resource, amount in sorted(native_requests(system, amounts, rules.gb_per_gpu).items()):
            each = gpu_units(resource, rules.gb_per_gpu)
            gpus = None if each is None else amount * each
            rows.append((system, requests, resource, float(amount), gpus))
    return _table(rows, QUOTA_NATIVE.schema)


def quota_unit_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """Return the units of each device resource in ``day.quota_terms``."""
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
    amount.*,
    epoch_ms(amount.created_at) as created_at_ms,
    if(amount.start_at < capacity.end_at, capacity.capacity_native, null) as capacity_native
from day.quota_amount as amount
asof left join day.quota_capacity as capacity
    on
        amount.cluster = capacity.cluster
        and amount.system = capacity.system
        and amount.resource = capacity.resource
        and amount.start_at >= capacity.start_at
where list_contains($systems, amount.system)
order by amount.cluster, amount.system, amount.resource, amount.flavor, amount.start_at, amount.quota
"""
_ROWS_AT_ONCE = 20_000
BY_DEMAND = ("koordinator", "volcano", "kai")
"""Systems whose shares depend on requests."""


def quota_share_table(con: duckdb.DuckDBPyConnection, rules: Rules) -> pa.Table:
    """Return the share of each quota in each step of ``day.quota_amount``, given ``day.quota_capacity``."""
    calculator = _Calculator(rules)
    reader = con.sql(_STEPS, params={"systems": list(SHARING)}).to_arrow_reader(_ROWS_AT_ONCE)
    rows: Iterator[Row] = chain.from_iterable(batch.to_pylist() for batch in reader)
    found = [share for _, step in groupby(rows, key=step_of) for share in calculator.step(list(step))]
    return pa.Table.from_pylist(found, QUOTA_SHARE.schema)


def _demanded(row: Row) -> float:
    return float(row["delivered_native"] if row["demanded_native"] is None else row["demanded_native"])


class _Calculator:
    """Caches quotas, which change rarely, and shares, which recur."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._quotas = QuotaRows()
        self._answers: dict[tuple[Any, ...], dict[str, Share]] = {}

    def step(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield a row with the share of each quota of one step."""
        shares = self._shares(rows)
        for row in rows:
            share = shares.get(row["quota"], Share(None, "no_such_notion"))
            same = {name: row[name] for name in (*STEP, "quota", "end_at")}
            yield {**same, "fair_share_native": share.fair_share, "reason": share.reason}

    def _shares(self, rows: Sequence[Row]) -> dict[str, Share]:
        """Return shares by quota, None where required demand is unknown; nos and configured deserved amounts do not need it."""
        first = rows[0]
        is_configured = any(row["deserved_native"] is not None and not row["is_parent"] for row in rows)
        shares_out = first["system"] in BY_DEMAND and not is_configured
        unknown = {row["tree"] for row in rows if shares_out and row["demanded_native"] is None}
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
        return {**self._answers[key], **{row["quota"]: Share(None, "demand_unknown") for row in rows if row["tree"] in unknown}}
