"""What-if of nodes or pods: a new placement of each cluster's recorded pods, one row per number of nodes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection

from gpureport.values.errors import LakeError, UsageError
from gpureport.values.text import formats
from gpureport.values.window import Window
from gpureport.whatif.placement import Node, Outcome, Pod, Policy, Request, Scene, Use, calibrated, outcome, replayed
from gpureport.whatif.pods import PodChange, returned_gpu_hours

_TABLES = ("period.pod_run", "period.node_placeable", "period.pod_place", "period.capacity")
_GAPS = """
with known as (select distinct cluster, node_name, start_at::date as day from facts.node_allocation)

select capacity.cluster, epoch(capacity.day)
from period.capacity as capacity
left join (select distinct cluster, node_name, true as is_known from known) as node using (cluster, node_name)
left join (select distinct cluster, day, true as is_known from known) as listed using (cluster, day)
group by all
having bool_and(unseen_cause = 'not_exported' or (node.is_known is not null and listed.is_known is null))
order by all
"""
"""Days without export, or without requests (Kubernetes' data begins later) of nodes whose requests are known on other days."""
_CHANGED = ("changed_pod_count", "returned_gpu_hours", "returned_cost")
NAMES = ("cluster", "variant", "gpu_model", "node_count", *_CHANGED, *Outcome._fields, "node_cost")
_MOST_VARIANTS = 50
_MOST_ADDED = 1_000
_GIB = 1024**3
Prices = Mapping[str, Mapping[str, float]]
"""Price of a GPU-hour, by GPU model (or ``all``) and first day of validity."""


@dataclass(frozen=True)
class NodeScenario:
    """Numbers of nodes to add (negative: to remove) and the kind of node."""

    counts: tuple[int, ...]
    like: str = ""
    """Name of a node, or GPU model; '' for the most common kind of node."""
    policy: Policy | None = None
    """Placement policy; None for the policy that agrees best with the recorded placement."""
    cluster: str = ""
    pods: PodChange = field(default_factory=PodChange)
    wait_seconds: float | None = None
    """Maximum p95 wait; if set, the smallest number of added nodes below it is searched, instead of ``counts``."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the period's tables that the question reads."""
        return _TABLES if self.pods == PodChange() else (*_TABLES, "period.workload", "period.pod_idle")


def parse_counts(text: str) -> tuple[int, ...]:
    """Parse ``+4``, ``-3``, or a range ``-2..+6``; UsageError for anything else."""
    parts = re.fullmatch(r"([+-]?\d{1,6})(?:\.\.([+-]?\d{1,6}))?", text)
    if not parts:
        raise UsageError(f"--nodes {text!r} is not a number of nodes; write it like +4, -3 or -2..+6")
    first, last = int(parts[1]), int(parts[2] or parts[1])
    if not 0 <= last - first < _MOST_VARIANTS:
        raise UsageError(f"--nodes {text!r}: give an ascending range of 1 to {_MOST_VARIANTS} numbers, such as -2..+6")
    return tuple(range(first, last + 1))


def rows_of(
    con: DuckDBPyConnection, window: Window, scenario: NodeScenario, prices: Prices
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield rows with a note on the replay error: per cluster one recorded row, one replayed, and one per number of nodes.

    LakeError where pods, nodes or required activity are unknown; UsageError where no node matches ``question.like``.
    """
    scenes = [found for found in _scenes(con, window, scenario.pods) if found[1].pods]
    if not scenes:
        raise LakeError(f"no pod on a GPU is known in {window}; this needs kube-state-metrics or snapshots, and computed days")
    if scenario.pods.needs_activity and all(pod.use.ratio is None for _, scene in scenes for pod in scene.pods):
        raise LakeError(f"no pod's activity is known in {window}; this needs an exporter that names pods")
    fitting = [(cluster, scene, like) for cluster, scene in scenes if (like := _like(scene, scenario.like))]
    if not fitting:
        models = sorted({node.gpu_model or "unknown model" for _, scene in scenes for node in scene.nodes})
        raise UsageError(f"--like {scenario.like!r} is neither a node nor a GPU model here; models: {', '.join(models)}")
    for cluster, scene, like in fitting:
        costs = {model: _hourly(prices, model, window) for model in {node.gpu_model for node in scene.nodes}}
        yield from _rows(cluster, scene, like, scenario, costs)


def _rows(
    cluster: str, scene: Scene, like: Node, scenario: NodeScenario, costs: Mapping[str, Sequence[float | None]]
) -> Iterator[tuple[str, Sequence[Any]]]:
    alike = [node for node in scene.nodes if node.kind == like.kind]
    if -min(scenario.counts) > len(alike):
        kind = f"{like.gpu_model} with {like.size:g} GPUs"
        raise UsageError(f"{cluster} has {formats.counted(len(alike), 'node')} of {kind}; --nodes can remove no more")
    held, best_policy = calibrated(scene)
    policy = scenario.policy or best_policy
    replayed_starts = replayed(held, policy)
    recorded = outcome(scene, [pod.start for pod in scene.pods], replayed_starts)
    again = outcome(held, replayed_starts, replayed_starts)
    unwaited = sum(not pod.is_wait_known for pod in scene.pods)
    error = again.allocated_gpu_hours / recorded.allocated_gpu_hours - 1 if recorded.allocated_gpu_hours else 0.0
    note = (
        f"{cluster}: replay error {100 * error:+.2f} % of allocated GPU-hours, "
        f"p95 wait {formats.duration(again.wait_seconds_p95)} (recorded {formats.duration(recorded.wait_seconds_p95)}); "
        f"placement {policy}; {formats.counted(len(held.held or ()), 'pod')} waited for another reason than capacity: same start"
        + (f"; {formats.counted(len(scene.gaps), 'day')} without data, left out of averages" if scene.gaps else "")
        + (f"; {formats.counted(unwaited, 'pod')} of unknown wait, left out of quantiles" if unwaited else "")
    )
    unknown = sum(pod.use.is_unknown and pod.start is not None for pod in scene.pods)
    if unknown and scenario.pods.needs_activity:
        note += f"; {formats.counted(unknown, 'pod')} of partly unknown use, counted as use: returned GPU-hours are a lower bound"
    yield note, (cluster, "recorded", "", 0, 0, 0.0, None, *recorded, None)
    yield note, (cluster, "replayed", "", 0, 0, 0.0, None, *again, None)
    other, rates = scenario.pods.apply_to(held), costs[like.gpu_model]
    returned: tuple[Any, ...] = _returned(held, other, replayed_starts, costs)
    if scenario.pods.needs_activity and not scenario.pods.slices and all(pod.use.ratio is None for pod in scene.pods):
        returned = (None, None, None)

    def placed(count: int) -> Outcome:
        changed = other.with_nodes(count, like)
        return outcome(changed, replayed(changed, policy), replayed_starts)

    counts, wait = scenario.counts, scenario.wait_seconds
    if wait is not None:
        if recorded.wait_seconds_p95 is None:
            raise LakeError(f"{cluster}: the creation of no pod in the window is known, so waits are unknown; use --nodes")
        counts = (bisect_left(range(_MOST_ADDED), True, key=lambda count: (placed(count).wait_seconds_p95 or 0.0) < wait),)
        if counts == (_MOST_ADDED,):
            raise LakeError(
                f"{cluster}: even {_MOST_ADDED:,} more nodes do not reach this p95 wait; pods wait for other things than GPUs"
            )
    for count in counts:
        cost = None if None in rates else np.mean(np.array(rates, float)) * count * like.size * (scene.until - scene.since) / 3600
        yield note, (cluster, "changed", like.gpu_model, count, *returned, *placed(count), cost)


def _returned(
    before: Scene, after: Scene, starts: Sequence[float | None], costs: Mapping[str, Sequence[float | None]]
) -> tuple[int, float, float | None]:
    """Return the number of changed pods, saved GPU-hours and their cost; cost None unless each model has exactly one price."""
    models = {node.name: node.gpu_model for node in before.nodes}
    hours = returned_gpu_hours(before, after, starts)
    amounts = [(found, {*costs.get(models.get(name, ""), ())}) for name, found in hours.items()]
    is_priced = bool(amounts) and all(len(each) == 1 and None not in each for _, each in amounts)
    cost = sum(found * (price or 0.0) for found, prices in amounts for price in prices)
    count = sum(one != other for one, other in zip(before.pods, after.pods, strict=True))
    return count, sum(hours.values()), cost if is_priced else None


_USE = """, pod_run.namespace || '/' || coalesce(workload.workload, pod_run.pod),
    idle.used_ratio, coalesce(idle.idle_runs, []), coalesce(idle.is_unknown, true) from period.pod_run as pod_run
    left join period.workload as workload using (cluster, namespace, pod, pod_uid)
    left join period.pod_idle as idle using (cluster, namespace, pod, pod_uid)"""


def _scenes(con: DuckDBPyConnection, window: Window, change: PodChange) -> Iterator[tuple[str, Scene]]:
    nodes = con.execute(f"""
        select cluster, node_name, gpu_model, coalesce(node_cpu_cores, 'inf'), coalesce(node_memory_bytes / {_GIB}, 'inf'),
            coalesce(replica_gpus, 1), resource_units, epoch(start_at), placeable_gpus
        from period.node_placeable order by cluster, node_name, start_at
    """).fetchall()
    use = ", null, null, [], false from period.pod_run" if change == PodChange() else _USE
    pods = con.execute(f"""
        select cluster, requested_gpus, epoch(coalesce(created_at, start_at)) as created, epoch(start_at), epoch(end_at),
            node_name, resource, wanted_model, coalesce(cpu_cores, 0), coalesce(host_memory_bytes, 0) / {_GIB}, placed_gpus,
            coalesce(requested_units, 0), unit_gpus, created_at is not null
        {use} order by cluster, created, namespace, pod, pod_uid
    """).fetchall()
    places = con.execute("select * from period.pod_place order by all").fetchall()
    gaps, since, until = con.execute(_GAPS).fetchall(), window.start_at.timestamp(), window.end_at.timestamp()
    for cluster, rows in groupby(nodes, key=lambda row: row[0]):
        steps: dict[str, list[tuple[float, float]]] = {}
        described = {}
        for _, name, *described[name], at, gpus in rows:
            steps.setdefault(name, []).append((at, gpus))
        there: dict[tuple[str, str], list[str]] = {}
        for of, resource, wanted, name in places:
            if of == cluster:
                there.setdefault((resource, wanted), []).append(name)
        of_pods = [
            Pod._make([*row[1:6], row[6:8], Use(row[14] or "", *row[15:18]), row[8:10], Request(*row[10:13]), row[13]])
            for row in pods
            if row[0] == cluster
        ]
        taken = _taken(of_pods)
        of_nodes = []
        for name, (model, *host, unit_gpus, units) in described.items():
            cores, memory = (max(amounts) for amounts in zip(host, taken[name, ""], strict=True))
            had = {resource: max(amount, taken[name, resource][0]) for resource, amount in (units or {}).items()}
            of_nodes.append(Node(name, model, tuple(steps[name]), (cores, memory), unit_gpus, had))
        without = [(max(day, since), min(day + 86400, until)) for of, day in gaps if of == cluster]
        yield cluster, Scene(since, until, of_pods, of_nodes, there, gaps=without)


def _taken(pods: Sequence[Pod]) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Return the peak use by pods: units by node and resource, cores and GiB by node and ''.

    Capacity is at least this peak, even if the average request of other pods suggests less.
    """
    edges: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for pod in pods:
        if pod.start is not None:
            for resource, (one, other) in (("", pod.host), (pod.kind[0], (pod.request.units, 0.0))):
                ends = (pod.start, one, other), (inf if pod.end is None else pod.end, -one, -other)
                edges.setdefault((pod.node, resource), []).extend(ends)
    found = ((key, np.cumsum(sorted(each), axis=0).max(axis=0)) for key, each in edges.items())
    return defaultdict(lambda: (0.0, 0.0), {key: (float(most[1]), float(most[2])) for key, most in found})


def _like(scene: Scene, name: str) -> Node | None:
    """Return the node of that name, or one of the most common kind (of the model, if given); None without any match."""
    chosen = [node for node in scene.nodes if name in ("", node.name, node.gpu_model)]
    kinds = Counter(node.kind for node in chosen if node.size)
    if not kinds:
        return None
    [(kind, _)] = kinds.most_common(1)
    return next(node for node in chosen if node.kind == kind)


def _hourly(prices: Prices, model: str, window: Window) -> list[float | None]:
    """Return the price of each hour of a model's GPUs, as valid on that day; None for hours without a price."""
    days = (str((window.start_at + timedelta(hours=hour)).date()) for hour in range(-int(-window.seconds // 3600)))
    steps = [each for name in (model, "all") for each in sorted(prices.get(name, {}).items(), reverse=True)]
    return [next((amount for since, amount in steps if since <= day), None) for day in days]
