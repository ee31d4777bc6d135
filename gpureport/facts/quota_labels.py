"""``facts.quota_pod_label`` and ``facts.quota_exposure``: nos' labels, and who may preempt whom, change by change.

scheduler-plugins has no labels, and preempts by rules of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.fairshare import scheduler_plugins
from gpureport.fairshare.model import Exposure, Pod, Quota, Terms
from gpureport.fairshare.nos import Used
from gpureport.fairshare.nos_labels import ORDER, OVER_QUOTA, labelled
from gpureport.fairshare.nos_preemption import Situation, exposures
from gpureport.tables.rules import QUOTA_EXPOSURE, QUOTA_POD_LABEL

_PODS = """
select
    member.cluster,
    member.system,
    member.quota,
    pod.* exclude (cluster),
    epoch_ms(pod.created_at) as created_at_ms,
    native.amounts
from clean.quota_member as member
inner join clean.quota_pod as pod
    on
        member.cluster = pod.cluster
        and member.pod_uid = pod.pod_uid
inner join (
    select
        system,
        requests,
        map_from_entries(list((resource, amount_native) order by resource)) as amounts
    from facts.quota_native
    where system in ('nos', 'scheduler-plugins')
    group by system, requests
) as native
    on
        member.system = native.system
        and pod.requests::text = native.requests
where member.is_own
order by member.cluster, member.system, member.quota, pod.pod_uid
"""
_TERMS = """
select cluster, system, quota, resource, start_at, end_at, namespaces, guaranteed_native, cap_native
from clean.quota_span
where system in ('nos', 'scheduler-plugins')
order by all
"""
_WATCH = "select cluster, start_at, end_at from clean.quota_watch order by all"

Row = dict[str, Any]


def quota_label_tables(con: duckdb.DuckDBPyConnection, order: Sequence[str] = ORDER) -> dict[str, pa.Table]:
    """Labels and exposures of every cluster that nos' or scheduler-plugins' quotas govern, while its pods are known.

    ``order`` is that in which a quota's pods are counted: nos' own, unless somebody asks what another would do.
    """
    labels, exposed = _Spans(), _Spans()
    pods, terms = _sorted_by(con, _PODS, "cluster", "system"), _sorted_by(con, _TERMS, "cluster", "system")
    watch = _sorted_by(con, _WATCH, "cluster")
    for cluster, system in sorted(terms):
        scene = _Scene(cluster, system, pods[cluster, system], terms[cluster, system], watch[cluster,], order)
        for moment in scene.moments():
            labels.step(moment.start_at, moment.end_at, moment.labels)
            exposed.step(moment.start_at, moment.end_at, moment.exposures())
    return {
        QUOTA_POD_LABEL.name: _table(labels, ("cluster", "quota", "pod_uid"), "label", QUOTA_POD_LABEL.schema),
        QUOTA_EXPOSURE.name: _table(
            exposed, ("cluster", "system", "pod_uid", "by_quota", "condition"), "evidence", QUOTA_EXPOSURE.schema
        ),
    }


def _sorted_by(con: duckdb.DuckDBPyConnection, statement: str, *names: str) -> Mapping[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    rows: list[Row] = con.sql(statement).to_arrow_table().to_pylist()
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


@dataclass
class _Spans:
    """Stretches in which a key had one value, made from steps that follow each other."""

    open: dict[tuple[str, ...], tuple[datetime, datetime, str]] = field(default_factory=dict)
    closed: list[tuple[tuple[str, ...], datetime, datetime, str]] = field(default_factory=list)

    def step(self, start_at: datetime, end_at: datetime, values: Mapping[tuple[str, ...], str]) -> None:
        """The values of one step; what has none in it has ended."""
        for key in [key for key, (_, until, _) in self.open.items() if until != start_at or key not in values]:
            self._close(key)
        for key, value in values.items():
            if key in self.open and self.open[key][2] != value:
                self._close(key)
            since = self.open[key][0] if key in self.open else start_at
            self.open[key] = (since, end_at, value)

    def rows(self) -> Iterator[tuple[tuple[str, ...], datetime, datetime, str]]:
        """All stretches, by key and start."""
        for key in list(self.open):
            self._close(key)
        yield from sorted(self.closed)

    def _close(self, key: tuple[str, ...]) -> None:
        since, until, value = self.open.pop(key)
        self.closed.append((key, since, until, value))


def _table(spans: _Spans, keys: Iterable[str], value: str, schema: pa.Schema) -> pa.Table:
    names = (*keys, "start_at", "end_at", value)
    rows = [dict(zip(names, (*key, since, until, said), strict=True)) for key, since, until, said in spans.rows()]
    return pa.Table.from_pylist(rows, schema)


@dataclass(frozen=True)
class _Moment:
    """A step: the pods and quotas of it, nothing changing."""

    cluster: str
    system: str
    start_at: datetime
    end_at: datetime
    quotas: tuple[Quota, ...]
    pods: Collection[Pod]
    labels: Mapping[tuple[str, ...], str]
    """Label by cluster, quota and pod."""

    def exposures(self) -> dict[tuple[str, ...], str]:
        """Evidence by cluster, system, pod, quota of the one that waits and condition; who waits for the same is asked once."""
        waiting = {
            (pod.quota, pod.namespace, pod.priority, *sorted(pod.requests.items())): pod for pod in self.pods if not pod.is_bound
        }
        if not waiting:
            return {}
        may_preempt = self._rule()
        found: dict[tuple[str, ...], str] = {}
        for pod in waiting.values():
            for each in may_preempt(pod):
                found.setdefault((self.cluster, self.system, each.pod_uid, each.by_quota, each.condition), each.evidence)
        return found

    def _rule(self) -> Callable[[Pod], list[Exposure]]:
        """Whom a pod that waits may preempt, with things as they are."""
        bound = [pod for pod in self.pods if pod.is_bound]
        held = [Used(quota, _sum(pod.requests for pod in bound if pod.quota == quota.name)) for quota in self.quotas]
        if self.system != "nos":
            return partial(scheduler_plugins.exposures, held=held, pods=bound)
        over = frozenset(uid for (_, _, uid), label in self.labels.items() if label == OVER_QUOTA)
        return partial(exposures, situation=Situation(held, bound, over))


def _sum(requests: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in requests:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0.0) + amount
    return total


class _Scene:
    """The pods and quotas of one system in one cluster over time; only what an instant changes is reckoned anew."""

    def __init__(
        self, cluster: str, system: str, pods: list[Row], terms: list[Row], watch: list[Row], order: Sequence[str]
    ) -> None:
        self._cluster = cluster
        self._system = system
        self._order = order
        self._terms = terms
        self._watch = watch
        self._changes: dict[datetime, list[Row]] = defaultdict(list)
        for row in pods:
            for each in {row[name] for name in ("created_at", "bound_at", "running_at", "ended_at")} - {None}:
                self._changes[each].append(row)
        self._pods: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._labels: dict[str, dict[tuple[str, ...], str]] = {}

    def moments(self) -> Iterator[_Moment]:
        """Every step in which the pods are known; a pod is there from its creation to its end."""
        edges = {row[name] for row in (*self._terms, *self._watch) for name in ("start_at", "end_at")}
        quotas: tuple[Quota, ...] = ()
        for start_at, end_at in pairwise(sorted(edges | self._changes.keys())):
            changed = self._move(start_at)
            if start_at in edges:
                quotas = self._quotas(start_at)
                changed = {quota.name for quota in quotas}
            self._label(quotas, changed)
            if any(span["start_at"] <= start_at < span["end_at"] for span in self._watch):
                labels = {key: label for quota in quotas for key, label in self._labels.get(quota.name, {}).items()}
                pods = [pod for quota in quotas for pod in self._pods[quota.name].values()]
                yield _Moment(self._cluster, self._system, start_at, end_at, quotas, pods, labels)

    def _move(self, at: datetime) -> set[str]:
        """Quotas whose pods change at an instant."""
        for row in self._changes.get(at, ()):
            if at >= row["created_at"] and (row["ended_at"] is None or at < row["ended_at"]):
                self._pods[row["quota"]][row["pod_uid"]] = _pod(row, at)
            else:
                self._pods[row["quota"]].pop(row["pod_uid"], None)
        return {row["quota"] for row in self._changes.get(at, ())}

    def _label(self, quotas: Iterable[Quota], changed: Collection[str]) -> None:
        for quota in quotas if self._system == "nos" else ():
            if quota.name in changed:
                found = labelled(quota, self._pods[quota.name].values(), self._order)
                self._labels[quota.name] = {(self._cluster, quota.name, each.pod.uid): each.label for each in found}

    def _quotas(self, at: datetime) -> tuple[Quota, ...]:
        there = [row for row in self._terms if row["start_at"] <= at < row["end_at"]]
        terms: dict[str, dict[str, Terms]] = defaultdict(dict)
        for row in there:
            terms[row["quota"]][row["resource"]] = Terms(row["guaranteed_native"], row["cap_native"])
        namespaces = {row["quota"]: tuple(row["namespaces"]) for row in there}
        return tuple(Quota(self._system, name, terms[name], namespaces=namespaces[name]) for name in sorted(terms))


def _pod(row: Row, at: datetime) -> Pod:
    return Pod(
        uid=row["pod_uid"],
        namespace=row["namespace"],
        name=row["pod"],
        quota=row["quota"],
        requests=dict(row["amounts"]),
        created_at_ms=row["created_at_ms"],
        priority=row["priority"] or 0,
        is_bound=row["bound_at"] is not None and row["bound_at"] <= at,
        is_running=row["running_at"] is not None and row["running_at"] <= at,
    )
