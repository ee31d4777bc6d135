"""Evidence from a day of a lake: its series, their dropped values, and the holders that labels name."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from duckdb import DuckDBPyConnection

from gpureport.doctor import evidence
from gpureport.doctor.workloads import POD_SERIES, chosen_hosts, leading_metrics, named_pods
from gpureport.lake import Lake, views
from gpureport.values.catalog import Catalog
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.series import METRIC_LABEL, Labels

TABLES = ("source", "series", "sample", "device_sample", "device_signal", "owner_label")
_NODE = "coalesce(nullif(s.labels['exported_node'], ''), s.labels['node'], '')"
_CARRIED = """
select
    s.signal, s.metric, s.node_name, coalesce(s.labels['node'], ''), coalesce(s.labels['GPU_I_ID'], '') != '' as is_mig,
    coalesce(
        nullif(s.labels['modelName'], ''), nullif(s.labels['model_name'], ''), nullif(s.labels['card_model'], ''), ''
    ) as model,
    count(distinct s.device_uuid)
from lake.series as s
left join lake.device_signal as d using (device_uuid, gpu_instance_id, signal)
where s.scope in ('board', 'instance') and s.device_uuid != '' and s.sample_count > 0 and coalesce(d.sample_count, 1) > 0
group by all
order by all
"""
_DEVICES = """
select node_name, device_uuid from lake.series
where scope in ('board', 'instance') and device_uuid != '' and sample_count > 0
"""
_LEFT_OUT = """
with entry as (select signal, unnest(map_entries(dropped)) as drops from lake.device_signal where sample_count = 0)
select signal, drops.key, sum(drops.value)::bigint from entry group by all having sum(drops.value) > 0 order by all
"""
# Gaps of at most five minutes: pods of one name that come back later in the day show nothing.
_ALTERNATING = """
with run as (
    select
        device_uuid, gpu_instance_id, (namespace, pod) as holder, start_at, end_at,
        lag((namespace, pod)) over by_time as before, lag(end_at) over by_time as before_end_at,
        lead((namespace, pod)) over by_time as after, lead(start_at) over by_time as after_start_at
    from lake.owner_label
    window by_time as (partition by device_uuid, gpu_instance_id order by start_at, namespace, pod)
)
select count(distinct (device_uuid, gpu_instance_id)) from run
where before = after and before != holder
    and start_at - before_end_at between interval 0 second and interval 5 minute
    and after_start_at - end_at between interval 0 second and interval 5 minute
"""
_KUBE_SERIES = "select metric, count(*) from lake.series where scope = 'cluster' group by metric order by metric"
_LARGEST = f"""
select {_NODE} as node, s.labels['resource'], max(v.value)::bigint
from lake.series as s join lake.sample as v using (series_id)
where s.metric = ? and v.value > 0 group by all order by all
"""
_REQUESTS = """
select labels['resource'], count(*) from lake.series
where metric = 'kube_pod_container_resource_requests' group by all order by all
"""
_NODE_NAMES = f"select distinct {_NODE} from lake.series as s where metric = 'kube_node_info'"
_RELABELLED = "select count(*) from lake.series where metric = 'kube_pod_info' and labels['exported_pod'] != ''"
_NODE_LABELS = "select labels::json from lake.series where metric = 'kube_node_labels'"
_LABEL_SETS = """
select metric, labels::json from lake.series
where metric in (select unnest(?)) and node_name in (select unnest(?)) and scope in ('board', 'instance')
order by series_id
"""
_PODS = "select labels::json from lake.series where metric in (select unnest(?)) and pod in (select unnest(?)) order by series_id"
_RHYTHM = """
with device as (select min(device_uuid) as device_uuid from lake.device_sample where not is_carried),
step as (
    select
        epoch_ms(seen_at) - lag(epoch_ms(seen_at)) over by_time as step_ms,
        power_watts != lag(power_watts) over by_time as is_fresh,
        energy_joules < lag(energy_joules) over by_time as is_reset
    from lake.device_sample
    where gpu_instance_id = '' and not is_carried and device_uuid in (select device_uuid from device)
    window by_time as (order by seen_at)
)
select median(step_ms) / 1000, avg(is_fresh::int), count(*) filter (where is_reset) from step
"""
_SERVER = """
select server, max(read_path), list(warnings) from lake.source
where kind <> 'kubernetes' group by server order by count(*) desc, server limit 1
"""


def examine_lake(con: DuckDBPyConnection, lake: Lake, cluster: str | None, day: date, catalog: Catalog) -> evidence.Evidence:
    """Return evidence on a cluster's day in the lake. LakeError where there is none, UsageError if ``cluster`` is needed."""
    chosen, next_day = _cluster(lake, cluster, day), day + timedelta(days=1)  # its first snapshot also shows the day's pods
    views(con, lake, ["series"], clusters=[chosen], dates=[day - timedelta(days=1)])
    before = {device: node for node, device in con.execute(_DEVICES).fetchall()}
    views(con, lake, TABLES, clusters=[chosen], dates=[day])
    now = {device for _, device in con.execute(_DEVICES).fetchall()}
    carried = _carried(con, catalog)
    server, labels = con.execute(_SERVER).fetchone(), _label_sets(con, carried)
    pods = con.execute(_PODS, [POD_SERIES, named_pods(labels)]).fetchall()
    return evidence.Evidence(
        subject=f"{lake}, cluster {chosen}, {day}",
        carried=carried,
        labels=labels,
        pods=tuple(json.loads(text) for (text,) in pods),
        kube=_kube(con, any(each.cluster == chosen and each.date in (day, next_day) for each in lake.partitions("pod"))),
        rhythm=_rhythm(con),
        server=evidence.ServerSeen(server[0], server[1]) if server else None,
        left_out=_left_out(con),
        alternating_devices=_count(con, _ALTERNATING),
        lost=Counter(node for device, node in before.items() if device not in now),
        warnings=tuple(dict.fromkeys(text for texts in server[2] for text in texts)) if server else (),
    )


def _cluster(lake: Lake, cluster: str | None, day: date) -> str:
    held = sorted({each.cluster for each in lake.partitions("source") if each.date == day})
    if not held or (cluster and cluster not in held):
        raise LakeError(f"the lake at {lake} has no data{f' of {cluster}' if cluster else ''} for {day}; give another --date")
    if not cluster and len(held) > 1:
        raise UsageError(f"the lake at {lake} has several clusters for {day}: {', '.join(held)}; choose one with --cluster")
    return cluster or held[0]


def _carried(con: DuckDBPyConnection, catalog: Catalog) -> tuple[evidence.Carried, ...]:
    exporters = {row.metric: row.exporter for row in reversed(catalog.rows)}
    return tuple(
        evidence.Carried(signal, metric, exporters.get(metric, ""), host, node, model, is_mig, count)
        for signal, metric, host, node, is_mig, model, count in con.execute(_CARRIED).fetchall()
    )


def _label_sets(con: DuckDBPyConnection, carried: Sequence[evidence.Carried]) -> tuple[Labels, ...]:
    metrics = leading_metrics(carried)
    hosts = sorted({host for metric in metrics for _, host in chosen_hosts(each for each in carried if each.metric == metric)})
    rows = con.execute(_LABEL_SETS, [metrics, hosts]).fetchall()
    return tuple({METRIC_LABEL: metric, **json.loads(labels)} for metric, labels in rows)


def _kube(con: DuckDBPyConnection, has_snapshots: bool) -> evidence.KubeState:
    allocatable, capacity = (_by_node(con, f"kube_node_status_{what}") for what in ("allocatable", "capacity"))
    by_slot = evidence.vendors(json.loads(text) for (text,) in con.execute(_NODE_LABELS).fetchall())
    hardware = {node: evidence.resource_vendor(min(resources)) for node, resources in capacity.items()} | by_slot
    requests = {name: count for name, count in con.execute(_REQUESTS).fetchall() if name and evidence.is_accelerator(name)}
    series = dict(con.execute(_KUBE_SERIES).fetchall())
    nodes = frozenset([*allocatable, *hardware, *(name for (name,) in con.execute(_NODE_NAMES).fetchall())])
    return evidence.KubeState(series, allocatable, hardware, requests, nodes, _count(con, _RELABELLED) > 0, has_snapshots)


def _by_node(con: DuckDBPyConnection, metric: str) -> dict[str, dict[str, int]]:
    """Return node → accelerator resource → largest count of the day, if above 0."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for node, resource, count in con.execute(_LARGEST, [metric]).fetchall():
        if node and resource and evidence.is_accelerator(resource):
            found[node][resource] = count
    return dict(found)


def _left_out(con: DuckDBPyConnection) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for signal, reason, count in con.execute(_LEFT_OUT).fetchall():
        found[signal][reason] = count
    return dict(found)


def _rhythm(con: DuckDBPyConnection) -> evidence.Rhythm:
    step_seconds, fresh_ratio, resets = _row(con, _RHYTHM)
    return evidence.Rhythm(step_seconds, fresh_ratio, resets)


def _count(con: DuckDBPyConnection, query: str) -> int:
    return int(_row(con, query)[0])


def _row(con: DuckDBPyConnection, query: str) -> Any:
    return con.execute(query).fetchone()
