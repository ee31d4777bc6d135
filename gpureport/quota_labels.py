"""``facts.quota_pod_label`` and ``facts.quota_exposure``: nos' labels, and who may preempt whom, change by change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from gpureport.fairshare.model import Pod, Quota, Terms
from gpureport.fairshare.nos import Used
from gpureport.fairshare.nos_labels import ORDER, OVER_QUOTA, labelled
from gpureport.fairshare.nos_preemption import Situation, exposures
from gpureport.rule_tables import QUOTA_EXPOSURE, QUOTA_POD_LABEL

_PODS = """
select
    member.cluster,
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
        requests,
        map_from_entries(list((resource, amount_native) order by resource)) as amounts
    from facts.quota_native
    where system = 'nos'
    group by requests
) as native
    on pod.requests::text = native.requests
where member.system = 'nos' and member.is_own
order by member.cluster, member.quota, pod.pod_uid
"""
_TERMS = """
select cluster, quota, resource, start_at, end_at, namespaces, guaranteed_native, cap_native
from clean.quota_span
where system = 'nos'
order by all
"""
_WATCH = "select cluster, start_at, end_at from clean.quota_watch order by all"

Row = dict[str, Any]


def quota_label_tables(con: duckdb.DuckDBPyConnection, order: Sequence[str] = ORDER) -> dict[str, pa.Table]:
    """Labels and exposures of every cluster that nos' quotas govern, in the time in which its pods are known.

    ``order`` is that in which a quota's pods are counted: nos' own, unless somebody asks what another would do.
    """
    labels, exposed = _Spans(), _Spans()
    pods, terms, watch = (_by_cluster(con, statement) for statement in (_PODS, _TERMS, _WATCH))
    for cluster in sorted(terms):
        scene = _Scene(cluster, pods[cluster], terms[cluster], watch[cluster], order)
        for moment in scene.moments():
            labels.step(moment.start_at, moment.end_at, moment.labels)
            exposed.step(moment.start_at, moment.end_at, moment.exposures())
    return {
        QUOTA_POD_LABEL.name: _table(labels, ("cluster", "quota", "pod_uid"), "label", QUOTA_POD_LABEL.schema),
        QUOTA_EXPOSURE.name: _table(exposed, ("cluster", "pod_uid", "by_quota", "condition"), "evidence", QUOTA_EXPOSURE.schema),
    }


def _by_cluster(con: duckdb.DuckDBPyConnection, statement: str) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    rows: list[Row] = con.sql(statement).to_arrow_table().to_pylist()
    for row in rows:
        found[row["cluster"]].append(row)
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
    start_at: datetime
    end_at: datetime
    quotas: tuple[Quota, ...]
    pods: Collection[Pod]
    labels: Mapping[tuple[str, ...], str]
    """Label by cluster, quota and pod."""

    def exposures(self) -> dict[tuple[str, ...], str]:
        """Evidence by cluster, pod, quota of the one that waits and condition; pods that wait for the same are asked once."""
        waiting = {
            (pod.quota, pod.namespace, pod.priority, *sorted(pod.requests.items())): pod for pod in self.pods if not pod.is_bound
        }
        if not waiting:
            return {}
        bound = [pod for pod in self.pods if pod.is_bound]
        held = [Used(quota, _sum(pod.requests for pod in bound if pod.quota == quota.name)) for quota in self.quotas]
        over = frozenset(uid for (_, _, uid), label in self.labels.items() if label == OVER_QUOTA)
        situation = Situation(held, bound, over)
        found: dict[tuple[str, ...], str] = {}
        for pod in waiting.values():
            for each in exposures(pod, situation):
                found.setdefault((self.cluster, each.pod_uid, each.by_quota, each.condition), each.evidence)
        return found


def _sum(requests: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in requests:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0.0) + amount
    return total


class _Scene:
    """The pods and quotas of one cluster over time; only what an instant changes is reckoned anew."""

    def __init__(self, cluster: str, pods: list[Row], terms: list[Row], watch: list[Row], order: Sequence[str]) -> None:
        self._cluster = cluster
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
                labels = {key: label for quota in quotas for key, label in self._labels[quota.name].items()}
                pods = [pod for quota in quotas for pod in self._pods[quota.name].values()]
                yield _Moment(self._cluster, start_at, end_at, quotas, pods, labels)

    def _move(self, at: datetime) -> set[str]:
        """Quotas whose pods change at an instant."""
        for row in self._changes.get(at, ()):
            if at >= row["created_at"] and (row["ended_at"] is None or at < row["ended_at"]):
                self._pods[row["quota"]][row["pod_uid"]] = _pod(row, at)
            else:
                self._pods[row["quota"]].pop(row["pod_uid"], None)
        return {row["quota"] for row in self._changes.get(at, ())}

    def _label(self, quotas: Iterable[Quota], changed: Collection[str]) -> None:
        for quota in quotas:
            if quota.name in changed:
                found = labelled(quota, self._pods[quota.name].values(), self._order)
                self._labels[quota.name] = {(self._cluster, quota.name, each.pod.uid): each.label for each in found}

    def _quotas(self, at: datetime) -> tuple[Quota, ...]:
        there = [row for row in self._terms if row["start_at"] <= at < row["end_at"]]
        terms: dict[str, dict[str, Terms]] = defaultdict(dict)
        for row in there:
            terms[row["quota"]][row["resource"]] = Terms(row["guaranteed_native"], row["cap_native"])
        namespaces = {row["quota"]: tuple(row["namespaces"]) for row in there}
        return tuple(Quota("nos", name, terms[name], namespaces=namespaces[name]) for name in sorted(terms))


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
