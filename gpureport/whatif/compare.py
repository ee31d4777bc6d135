"""Three outcomes of each quota by the same SQL: recorded, replayed without changes, replayed with changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType

import duckdb
import pyarrow as pa

from gpureport.compute.query import build, build_view, define_functions, load, needed
from gpureport.compute.quotas import build_quota_facts, quota_graph
from gpureport.compute.quotas.scene import TERMS, QuotaRows, Row
from gpureport.lake import Lake, views
from gpureport.lake.views import drop_if_exists
from gpureport.schedulers.change import NO_CHANGE, Change, Pool, changed, doubts, resolved
from gpureport.schedulers.model import Past, Rules
from gpureport.schedulers.nos import ORDER, uncounted
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.tables.rules import QUOTA_EXPOSURE, QUOTA_POD_LABEL
from gpureport.values.window import Window, plain
from gpureport.whatif.question import Question
from gpureport.whatif.steps import QUOTAS, LeftOut, Scopes, read_inputs, replay_steps

_FACTS = ("facts.quota_hour", "facts.node_allocation")
_HOURS = """
with hour as (
    select
        cluster,
        hour_start_at,
        map_from_entries(list((quota, delivered_native_hours))) as used
    from facts.quota_hour
    where system = 'kai' and resource = 'gpu' and hour_start_at < $until and hour_start_at >= $since
    group by all
    having bool_and(delivered_native_hours is not null)
)

select
    hour.cluster,
    epoch_ms(hour.hour_start_at + interval 1 hour),
    hour.used,
    sum(node.gpu_count * overlap_ms(node.start_at, node.end_at, hour_start_at, hour_start_at + interval 1 hour)) / 3600000
from hour
inner join facts.node_allocation as node
    on hour.cluster = node.cluster and node.start_at < hour_start_at + interval 1 hour and node.end_at > hour_start_at
group by all
order by all
"""


def past_use(con: duckdb.DuckDBPyConnection, lake: Lake, window: Window, rules: Rules) -> Mapping[str, Sequence[Past]]:
    """Return KAI's past use hour by hour, by cluster; hours with unknown use or nodes are omitted."""
    found: dict[str, list[Past]] = defaultdict(list)
    since = window.start_at - timedelta(hours=rules.window_hours)
    days = list(Window(since, window.start_at).days()) if rules.k_value and rules.window_hours else []
    made = views(con, lake, [name.replace(".", "/") for name in _FACTS] if days else [], dates=days)
    if len(made) == len(_FACTS):
        define_functions(con, _HOURS)
        hours = con.execute(_HOURS, {"since": plain(since), "until": plain(window.start_at)}).fetchall()
        for cluster, end_ms, used, capacity in hours:
            found[cluster].append(Past(end_ms, used, float(capacity)))
    for name in made:
        drop_if_exists(con, name)
    return found


OUTCOME = "period.quota_outcome"
_QUOTA_TERMS = "day.quota_terms"
_LABELLED = ("nos", "scheduler-plugins")
_AFTER_REPLAY = ("day.quota_share", "day.quota_lending")
_AFTER_LABELS = (QUOTA_POD_LABEL.name, QUOTA_EXPOSURE.name, "facts.quota_pod_hour")
_REQUESTS = """
select
    pod.requests, count(distinct pod.pod_uid)
from day.quota_member as member
inner join day.quota_pod as pod
    on
        member.cluster = pod.cluster
        and member.pod_uid = pod.pod_uid
inner join day.quota_watch as watch
    on
        pod.cluster = watch.cluster
        and pod.created_at < watch.end_at
        and (pod.ended_at is null or pod.ended_at > watch.start_at)
        and watch.watched = 'pods'
where member.system = 'nos'
group by pod.requests
order by all
"""
_RECORDED, _REPLAYED = "day.recorded_demand", "replayed_demand"
_ERRORS = """
select
    term.cluster, term.system, term.resource, term.flavor, term.quota,
    sum(
        abs(replayed.delivered_native - replayed.recorded_native)
        * unit.gpus_per_native
        * epoch_ms(replayed.end_at - replayed.start_at) / 3600000
    )
from replayed_demand as replayed
inner join day.quota_terms as term
    using (terms_id)
inner join day.quota_unit as unit
    using (system, resource)
group by all
"""
_TERM = f"update day.quota_terms set {', '.join(f'{name} = ?' for name in ('parent', 'is_parent', *TERMS))} where terms_id = ?"
_NODE_GPUS = """
with amount as (
    select node.cluster, node.node_name, contains(node.resource, '/mig-') as is_instance, max(native.amount_gpus) as gpus
    from (from day.quota_node qualify end_at = max(end_at) over (partition by cluster, node_name)) as node
    inner join day.quota_native as native
        on native.system = '' and map([node.resource], [node.allocatable_native])::text = native.requests
    anti join (
        select cluster, node_name from day.kube_series where try_cast(replicas as bigint) > 1
        union
        select cluster, node_name from lake.node where try_cast(labels['nvidia.com/gpu.replicas'] as bigint) > 1
    ) as time_slicing
        using (cluster, node_name)
    where native.amount_gpus > 0 and list_contains($clusters, node.cluster)
    group by node.cluster, node.node_name, node.resource
),

held as (
    select coalesce(max(gpus) filter (not is_instance), 0) + coalesce(ceil(round(sum(gpus) filter (is_instance), 6)), 0) as gpus
    from amount
    group by cluster, node_name
)

select gpus
from held
group by gpus
order by count(*) desc, gpus desc
limit 1
"""
"""The most common number of GPUs of the clusters' nodes, by their last state: whole ones, and those with MIG instances."""


@dataclass(frozen=True)
class Answer:
    """Outcomes by quota of each variant, with omissions of the replays."""

    recorded: list[Row]
    replayed: list[Row]
    """Outcomes of quotas with at least one replayed step."""
    changed: list[Row]
    left_out_seconds: LeftOut
    changed_quotas: Collection[tuple[str, str, str]]
    """Cluster, system and name of quotas that the question names."""
    uncounted_pods: Mapping[str, int]
    """Number of nos pods by requested resource that nos counts as 0 GB."""
    errors: Mapping[tuple[str, ...], float]
    """Absolute difference between replay and record in GPU-hours over all steps, by cluster, system, … and quota."""
    by_amounts: Collection[Pool]
    """Pools replayed as divisible amounts."""
    added_gpus: float = 0
    doubts: Collection[str] = ()
    """Warnings about the changed quotas."""
    past_hours: Mapping[str, int] = field(default_factory=dict)
    """Hours before the window with known use for KAI's past use, by cluster."""

    @property
    def systems(self) -> list[str]:
        """Return the systems with replayed outcomes."""
        return sorted({str(row["system"]) for row in self.replayed})


def answer(
    con: duckdb.DuckDBPyConnection,
    rules: Rules,
    window: Window,
    question: Question,
    past: Mapping[str, Sequence[Past]] = MappingProxyType({}),
) -> Answer:
    """Return the outcomes of the window's quotas; ``lake.*`` must be open on the connection (``quotas.quota_lake``).

    LakeError where the lake has no quotas with pods; UsageError for an unknown quota.
    """
    _build_recorded(con, rules, window, question)
    con.execute("create table recorded_capacity as from day.quota_capacity")
    con.execute("alter table day.quota_demand rename to recorded_demand")
    inputs, pools = read_inputs(con, rules, past), dict[Pool, list[str]]()
    for pool, _, quotas in inputs.scopes.values():
        pools.setdefault(pool, []).extend(quotas)
    changes = resolved(question.change, pools)
    added = _added_gpus(con, question, sorted({pool.cluster for pool in pools}))
    recorded = _outcome(con, window, _RECORDED)
    _usable(con, 0.0)
    left_out = replay_steps(con, inputs, inputs.scopes)
    errors = {tuple(key): error for *key, error in con.execute(_ERRORS).fetchall()}
    _use_demand(con, _REPLAYED)
    build_quota_facts(con, rules, window, _all_but(_AFTER_REPLAY), targets=_AFTER_REPLAY)
    replayed = _outcome(con, window, _REPLAYED)
    others = _others(question, changes, inputs.scopes)
    if added:
        _usable(con, added)
    replay_steps(con, replace(inputs, changes=changes, rules=rules.with_settings(question.rules)), others)
    doubtful = _change_terms(con, changes)
    _use_demand(con, _REPLAYED)
    anew = (*_AFTER_REPLAY, *_AFTER_LABELS)
    build_quota_facts(con, rules, window, _all_but(anew), question.pod_order, anew)
    names = {(*inputs.scopes[number][0], quota) for number in others for quota in inputs.scopes[number][2]}
    same = [row for row in replayed if tuple(row[name] for name in (*Pool._fields, "quota")) not in names]
    changed_quotas = {(pool.cluster, pool.system, name) for pool, change in changes.items() for name in change.quotas()}
    by_amounts = [pool for pool in pools if pool not in inputs.requests]
    return Answer(
        recorded,
        replayed,
        [*same, *_outcome(con, window, _REPLAYED)],
        left_out,
        changed_quotas,
        _uncounted_pods(con),
        errors,
        by_amounts,
        added,
        doubtful,
        {cluster: len(hours) for cluster, hours in past.items()},
    )


def _build_recorded(con: duckdb.DuckDBPyConnection, rules: Rules, window: Window, question: Question) -> None:
    """Build all facts of the question's quotas, for the window only."""
    there = set[str]()
    for query in needed(load(), [_QUOTA_TERMS]):
        build(con, query, {})
        there.add(query.table)
    con.execute(
        f"delete from {_QUOTA_TERMS} where ($cluster != '' and cluster != $cluster) or ($system != '' and system != $system)",
        {"cluster": question.cluster, "system": question.system},
    )
    # No step table is built here: each outcome builds its steps week by week.
    build_quota_facts(con, rules, window, there, targets=(*load()["day.quota_step"].reads, *_AFTER_LABELS))
    if not con.execute("select 1 from day.quota_amount limit 1").fetchone():
        raise LakeError(
            f"the lake has no quota with pods in {window}; run gpureport snapshot or import --kubernetes, "
            "or change --cluster and --system"
        )
    build(con, load()["period.quota_outside"], {})


def _added_gpus(con: duckdb.DuckDBPyConnection, question: Question, clusters: Sequence[str]) -> float:
    """Return the number of added GPUs; added nodes have the most common number of GPUs per node."""
    if (question.added_gpus or question.added_nodes) and len(clusters) > 1:
        raise UsageError(f"there are quotas in {', '.join(clusters)}; choose the cluster that gets GPUs with --cluster")
    if not question.added_nodes:
        return question.added_gpus
    row = con.execute(_NODE_GPUS, {"clusters": clusters}).fetchone()
    if row is None:
        raise UsageError("no node with whole GPUs is known in the window; give the number of GPUs with --add-gpus")
    return question.added_gpus + question.added_nodes * float(row[0])


def _usable(con: duckdb.DuckDBPyConnection, added_gpus: float) -> None:
    """Build the capacity to share, with added GPUs."""
    con.execute("create or replace table day.quota_capacity as from recorded_capacity")
    _use_demand(con, _RECORDED)
    build(con, load()["period.quota_usable"], {"added_gpus": added_gpus})
    con.execute("create or replace table day.quota_capacity as from period.quota_usable")


def _use_demand(con: duckdb.DuckDBPyConnection, demand: str) -> None:
    con.execute(f"create or replace view day.quota_demand as from {demand}")


def _others(question: Question, changes: Mapping[Pool, Change], scopes: Scopes) -> list[int]:
    """Return scopes that the question may affect; labels of nos depend on all resources of a cluster."""
    if question.added_gpus or question.added_nodes or question.rules or question.pod_order != ORDER:
        return list(scopes)
    named = {(pool, name) for pool, change in changes.items() for name in change.quotas()}
    labelled = {pool[:2] for pool in changes if pool.system in _LABELLED}
    return [
        number
        for number, (pool, _, quotas) in scopes.items()
        if pool[:2] in labelled or any((pool, quota) in named for quota in quotas)
    ]


def _change_terms(con: duckdb.DuckDBPyConnection, changes: Mapping[Pool, Change]) -> list[str]:
    """Update ``day.quota_terms`` and return warnings; a removed quota keeps its row, without terms."""
    rows, found = QuotaRows(), dict[str, None]()
    for row in con.sql(QUOTAS).to_arrow_table().to_pylist():
        pool = Pool(*(row[name] for name in Pool._fields))
        if row["quota"] in changes.get(pool, NO_CHANGE).quotas():
            quota = changed(rows.quota(row), pool.resource, changes[pool])
            terms = vars(quota.of(pool.resource)).values()
            con.execute(_TERM, [quota.parent, quota.is_parent, *terms, row["terms_id"]])
            found |= dict.fromkeys(doubts([quota], pool.resource))
    return list(found)


def _uncounted_pods(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    found: dict[str, int] = {}
    for requests, pod_count in con.execute(_REQUESTS).fetchall():
        for resource in uncounted({name: amount or 0.0 for name, amount in requests.items()}):
            found[resource] = found.get(resource, 0) + pod_count
    return dict(sorted(found.items()))


def _all_but(rebuilt: Collection[str]) -> set[str]:
    """Return the names of all tables except these."""
    return {*quota_graph()} - set(rebuilt)


def _outcome(con: duckdb.DuckDBPyConnection, window: Window, demand: str) -> list[Row]:
    """Return the outcome rows of a demand; hours are built week by week, because steps of a month do not fit into memory."""
    hours = []
    for day in list(window.days())[::7]:
        _use_demand(con, f"{demand} where start_at >= date '{day}' and start_at < date '{day}' + 7")
        build_view(con, load()["day.quota_step"])
        build(con, load()["facts.quota_hour"], {})
        hours.append(con.sql("from facts.quota_hour").to_arrow_table())
    con.register("_made", pa.concat_tables(hours))
    con.execute("create or replace table facts.quota_hour as from _made")
    con.unregister("_made")
    build(con, load()[OUTCOME], {})
    rows: list[Row] = con.sql(f"from {OUTCOME} order by cluster, system, resource, flavor, quota").to_arrow_table().to_pylist()
    return rows
