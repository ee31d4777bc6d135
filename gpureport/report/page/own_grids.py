"""The page's own tables: findings, teams, workloads, containers and GPUs. Each joins several report tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from gpureport.report.page.tables import UNMEASURED, opened_tables

ROWS_MAX = 100_000
"""Rows of a table at most; of more containers, the largest."""
_FINDINGS = "select *, at_stake_cost as cost from page.finding order by number"
_SUMS = f"""
            sum(if(bucket like '%unmeasured', -gpu_hours, gpu_hours)) filter (where bucket != 'reserved_idle') as measured,
            if(measured >= 0, 0, null) as known,
            if(sum(if(bucket = 'allocated_unmeasured', -gpu_hours, gpu_hours)) >= 0, 0, null) as known_idle,
            coalesce(sum(gpu_hours) filter (where bucket != 'reserved_idle'), 0) as allocated_gpu_hours,
            coalesce(sum(gpu_hours) filter (where bucket = 'effective'), known) as effective_gpu_hours,
            coalesce(sum(gpu_hours) filter (where bucket = 'underutilized'), known) as underutilized_gpu_hours,
            coalesce(sum(gpu_hours) filter (where bucket in ('allocated_idle', 'reserved_idle')), known_idle) as idle_gpu_hours,
            bool_or(is_unknown) as is_part,
            if(is_part, ['gpus', 'pod_count', 'allocated_gpu_hours', 'gpu_hours', 'energy_kwh', 'cost', 'total_cost',
                'month_cost', 'unmeasured_cost'], [])
            || if(is_part or sum(gpu_hours) filter (bucket = 'allocated_unmeasured') > {UNMEASURED} * allocated_gpu_hours,
                ['idle_gpu_hours', 'allocated_idle_gpu_hours', 'idle_cost', 'active_cost'], [])
            || if(is_part or sum(gpu_hours) filter (bucket like '%unmeasured') > {UNMEASURED} * allocated_gpu_hours,
                ['effective_gpu_hours', 'underutilized_gpu_hours'], []) as least_hours,
            if(bool_and(cost is not null), sum(cost), null) as cost
"""
"""GPU-hours by use; unknown, not 0, where most use is not measured; lower bounds where some is not: ``least_hours`` names these.
A cost is unknown where some hours have no price."""
LEAST = f"""
    (select $keys, least_hours from (
        select $keys, {_SUMS} from (select *, kind as workload_kind from page.use) where namespace != '' group by $keys
    ))
"""
"""Sums of holders that are lower bounds, for report tables with the same keys."""
TEAMS = f"""
    select team, {_SUMS}, allocated_gpu_hours / $hours as gpus
    from page.use where team != '' group by team order by allocated_gpu_hours desc nulls last, team
"""
_ENERGY = f"""
            if(sum(if(measured_seconds >= 0.95 * observed_seconds, 0, observed_seconds - measured_seconds))
                <= {UNMEASURED} * sum(observed_seconds), sum(energy_joules), null) / 3.6e6 as energy_kwh
"""
"""Energy of containers; unknown where some time is not measured: a part is not a sum. A GPU's last sample measures no time."""
_WORKLOADS = f"""
    with hours as (
        select
            cluster, team, namespace, workload, kind, count(distinct (pod, pod_uid)) filter (where pod != '') as pod_count,
            string_agg(distinct gpu_model, ', ' order by gpu_model) as gpu_model,
            {_SUMS},
            if(bool_or(cost is null and bucket like '%idle') or count(cost) = 0, null,
                coalesce(sum(cost) filter (where bucket like '%idle'), known_idle)) as idle_cost
        from page.use where namespace != '' group by all
    ),
    figures as (
        select
            cluster, namespace, workload, kind,
            sum(sm_active_avg * sm_active_seen_seconds * gpus)
                / sum(sm_active_seen_seconds * gpus) filter (where sm_active_avg is not null) as sm_active_avg,
            sum(gpu_usage_avg * gpu_usage_seen_seconds * gpus)
                / sum(gpu_usage_seen_seconds * gpus) filter (where gpu_usage_avg is not null) as gpu_usage_avg,
            max(memory_used_ratio_max) as memory_used_ratio_max
        from (
            select *, gpu_hours / nullif(device_seconds, 0) as gpus -- a MIG instance and a share are parts of a GPU
            from report.container inner join page.pod using (cluster, namespace, pod, pod_uid)
            inner join (
                select cluster, namespace, pod, pod_uid, sum(gpu_hours) as gpu_hours from page.use group by all
            ) using (cluster, namespace, pod, pod_uid)
        ) group by all
    ),
    energy as (
        select cluster, namespace, workload, kind, {_ENERGY}
        from report.container_power inner join page.pod using (cluster, namespace, pod, pod_uid) group by all
    ),
    found as (
        select cluster, namespace, workload, workload_kind as kind, count(*) as finding_count,
            arg_min(title, number) as finding
        from page.finding where workload != '' group by all
    )
    select hours.*, allocated_gpu_hours / $hours as gpus, figures.* exclude (cluster, namespace, workload, kind),
        energy_kwh, finding_count, coalesce(finding, '') as finding
    from hours
    left join figures using (cluster, namespace, workload, kind)
    left join energy using (cluster, namespace, workload, kind)
    left join found using (cluster, namespace, workload, kind)
    order by coalesce(idle_gpu_hours, 0) + 0.5 * coalesce(underutilized_gpu_hours, 0) desc, allocated_gpu_hours desc, cluster,
        namespace, workload, kind
"""
BOUND = """(select cluster, namespace, pod, pod_uid, container,
        array_to_string(list_sort(list_distinct(flatten(list(string_split(bound_by, ', '))))), ', ') as bound_by"""
_LARGEST = """
    hours.allocated_gpu_hours desc nulls last, container.device_seconds desc nulls last, namespace, pod, container.container,
    cluster, pod_uid
"""
_CONTAINERS = f"""
    with hours as (
        select cluster, namespace, pod, pod_uid, {_SUMS}
        from page.use where namespace != '' group by all
    ),
    chosen as (
        select container.cluster, namespace, pod, pod_uid, container.container
        from report.container as container left join hours using (cluster, namespace, pod, pod_uid)
        order by {_LARGEST} limit {ROWS_MAX}
    ),
    weight as (
        select cluster, namespace, pod, pod_uid, sum(device_seconds) as device_seconds
        from report.container semi join chosen using (cluster, namespace, pod, pod_uid) group by all
    ),
    energy as (
        select cluster, namespace, pod, pod_uid, container,
            {_ENERGY}, avg(idle_watts) as idle_watts,
            string_agg(distinct idle_source, ', ' order by idle_source) as idle_source
        from report.container_power semi join chosen using (cluster, namespace, pod, pod_uid, container) group by all
    ),
    found as (
        select cluster, namespace, pod, pod_uid, arg_min(title, number) as finding
        from page.finding where pod != '' group by all
    )
    select container.* replace (if(count(*) over name > 1, pod_uid, '') as pod_uid),
        page.pod.team, page.pod.workload, page.pod.kind,
        hours.allocated_gpu_hours * container.device_seconds / weight.device_seconds as allocated_gpu_hours,
        hours.idle_gpu_hours * container.device_seconds / weight.device_seconds as idle_gpu_hours,
        hours.effective_gpu_hours * container.device_seconds / weight.device_seconds as effective_gpu_hours,
        hours.cost * container.device_seconds / weight.device_seconds as cost,
        energy_kwh, idle_watts, idle_source, bound_by, coalesce(finding, '') as finding, least_hours
    from report.container as container
    inner join chosen using (cluster, namespace, pod, pod_uid, container)
    left join page.pod using (cluster, namespace, pod, pod_uid)
    left join hours using (cluster, namespace, pod, pod_uid)
    left join weight using (cluster, namespace, pod, pod_uid)
    left join energy using (cluster, namespace, pod, pod_uid, container)
    left join found using (cluster, namespace, pod, pod_uid)
    left join {BOUND} from report.boundness group by all) using (cluster, namespace, pod, pod_uid, container)
    window name as (partition by container.cluster, namespace, pod, container.container)
    order by {_LARGEST}
"""
_DEVICES = f"""
    with hours as (
        select cluster, device_uuid, gpu_instance_id, sum(gpu_hours) as hours,
            sum(gpu_hours) filter (where bucket != 'unknown') as known,
            coalesce(sum(gpu_hours) filter (where namespace != '' and bucket != 'reserved_idle'), 0) as allocated,
            sum(if(bucket in ('allocated_unmeasured', 'unknown'), -gpu_hours, gpu_hours))
                filter (where bucket not in ('free', 'fragmented', 'unavailable')) >= 0 as is_measured,
            coalesce(sum(gpu_hours) filter (where bucket in ('allocated_idle', 'reserved_idle')), 0) as idle,
            if(idle > 0 or coalesce(is_measured, true), idle, null) as idle_gpu_hours,
            sum(gpu_hours) filter (bucket in ('allocated_unmeasured', 'unknown')) as unknown,
            string_agg(distinct nullif(namespace, ''), ', ' order by nullif(namespace, '')) as namespaces
        from report.gpu_hour_ledger group by all
    ),
    whole as (
        select cluster, device_uuid, sum(allocated) / nullif(sum(known), 0) as allocated_ratio, sum(hours) as hours,
            sum(unknown) filter (gpu_instance_id = '') as unknown, count(*) > 1 as has_instances from hours group by all
    ),
    found as (
        select cluster, device_uuid, gpu_instance_id, min(gravity) as gravity, arg_min(title, number) as finding
        from page.finding where device_uuid != '' group by all
    )
    select device.*, namespaces,
        if(device.gpu_instance_id = '', whole.allocated_ratio, allocated / nullif(known, 0)) as allocated_ratio,
        if(device.gpu_instance_id = '', whole.hours, hours.hours) as gpu_hours,
        if(device.gpu_instance_id = '' and has_instances, null, idle_gpu_hours) as idle_gpu_hours,
        energy_joules / 3.6e6 as energy_kwh, coalesce(finding, '') as finding,
        if(hours.unknown > {UNMEASURED} * hours.hours or whole.unknown > {UNMEASURED} * whole.hours, ['idle_gpu_hours'], null)
            as least_hours
    from report.device as device
    left join hours using (cluster, device_uuid, gpu_instance_id)
    left join whole using (cluster, device_uuid)
    left join found using (cluster, device_uuid, gpu_instance_id)
    order by gravity nulls last, xid_error_count desc nulls last, any_throttle_ratio desc nulls last, cluster, node_name,
        try_cast(gpu_index as integer), gpu_index, gpu_instance_id, device_uuid
"""
_VALUES = ("avg", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "max")
_DISTRIBUTIONS = f"""
    select
        signal_words.words as signal, scope, team,
        case scope when 'cluster' then cluster when 'model' then coalesce(nullif(gpu_model, ''), 'Unknown model')
            when 'team' then team else namespace || '/' || workload
        end || if(scope != 'cluster' and is_one_of, ' (' || cluster || ')', '') as name,
        known_gpu_hours, if(factor = 100, weighted_gpu_hours, null) as weighted_gpu_hours, zero_ratio,
        {", ".join(f"value_units_{each} * signal_words.factor as value_{each}" for each in _VALUES)}
    from (select *, min(cluster) over () != max(cluster) over () as is_one_of from report.distribution) inner join (
        values (1, 'gpu_util_ratio', 'GPU utilization, %', 100), (2, 'sm_active_ratio', 'SM activity, %', 100),
            (3, 'tensor_active_ratio', 'Tensor activity, %', 100), (4, 'dram_active_ratio', 'DRAM activity, %', 100),
            (5, 'memory_used_ratio', 'Memory used, %', 100), (6, 'power_watts', 'Power, W', 1),
            (7, 'gpu_temp_celsius', 'Temperature, °C', 1)
    ) as signal_words (number, signal, words, factor) using (signal)
    qualify row_number() over (partition by scope, signal order by known_gpu_hours desc, name) <= 100
    order by list_position(['cluster', 'model', 'team', 'workload'], scope), signal_words.number, known_gpu_hours desc, name
"""
OWN: Mapping[str, str] = {
    "findings": _FINDINGS,
    "workload": _WORKLOADS,
    "containers": _CONTAINERS,
    "devices": _DEVICES,
    "distributions": _DISTRIBUTIONS,
}
"""Statement of each table."""

TOP: Mapping[str, tuple[str, str]] = {
    "teams": (TEAMS, "team gpus allocated_gpu_hours effective_gpu_hours underutilized_gpu_hours idle_gpu_hours cost"),
    "workloads": (
        _WORKLOADS,
        "workload team gpus allocated_gpu_hours underutilized_gpu_hours idle_gpu_hours sm_active_avg finding",
    ),
    "gpus": (
        _DEVICES,
        "node_name gpu_index gpu_instance_id gpu_model allocated_ratio sm_active_avg xid_error_count finding device_uuid",
    ),
}
"""Tables of ``gpureport top``: the statement and its columns."""
TOP_TABLES = tuple(f"report.{name}" for name in ("gpu_hour_ledger", "container", "container_power", "device", "finding"))
"""Report tables that ``TOP`` reads; one of them is built from ``period.workload``."""


def top(con: duckdb.DuckDBPyConnection, what: str, hours: float, count: int) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Return columns and rows of a table of ``TOP``, with the cluster if there are several. The database must have its tables."""
    with opened_tables(con, {}) as tables:
        sql, named = TOP[what]
        columns = named.split()
        rows = tables.rows(f"select * from ({sql}) limit {count:d}", **({"hours": hours} if what != "gpus" else {}))
        clusters = tables.row("select count(distinct cluster) as count from report.gpu_hour_ledger")
    if clusters["count"] > 1 and what != "teams":
        columns = ["cluster", *columns]
    cells = [[row[name] for name in columns] for row in rows]
    return columns, [[float(f"{each:.4g}") if isinstance(each, float) else each for each in found] for found in cells]
