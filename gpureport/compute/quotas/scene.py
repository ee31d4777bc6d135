"""Pods and quotas of one system in one cluster over time; each change recomputes only what it affects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any

from gpureport.schedulers import scheduler_plugins
from gpureport.schedulers.model import Pod, Quota, Terms
from gpureport.schedulers.nos import OVER_QUOTA, Used, base, labelled, units
from gpureport.schedulers.nos_preemption import Situation, exposures

TERMS = ("guaranteed_native", "cap_native", "weight", "deserved_native", "borrowing_limit_native", "lending_limit_native")
"""Columns of a quota's terms, in the order of ``model.Terms``."""
_OWN = ("system", "quota", "parent", "is_parent", "tree", "scopes", "priority", "may_lend", "created_at_ms", "uid", "resource")
_KEY = itemgetter(*_OWN, *TERMS)

Row = dict[str, Any]
STEP = ("cluster", "system", "resource", "flavor", "start_at")
"""Columns that identify a step of ``day.quota_amount``."""
step_of = itemgetter(*STEP)


class QuotaRows:
    """Quotas by the values of rows: rows with equal values share one object, because quotas change rarely."""

    def __init__(self, policies: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._known: dict[tuple[Any, ...], Quota] = {}
        self._policies = policies or {}

    def quota(self, row: Row) -> Quota:
        """Return the quota of a row, with terms for the row's resource; the row needs ``created_at_ms`` as an added column."""
        key = (*_KEY(row), *row["namespaces"])
        if key not in self._known:
            self._known[key] = Quota(
                system=row["system"],
                name=row["quota"],
                terms={row["resource"]: Terms(*(row[name] for name in TERMS))},
                parent=row["parent"],
                is_parent=row["is_parent"],
                namespaces=tuple(row["namespaces"]),
                tree=row["tree"],
                scopes=row["scopes"] or "",
                priority=row["priority"],
                may_lend=row["may_lend"],
                created_at_ms=row["created_at_ms"],
                uid=row["uid"],
                policy=self._policies.get(row["quota"], {}),
            )
        return self._known[key]


@dataclass(frozen=True)
class Members:
    """Pods of a quota at one instant, and the nos labels of running pods, by uid."""

    quota: Quota
    pods: Sequence[Pod]
    labels: Mapping[str, str]

    @cached_property
    def running(self) -> frozenset[str]:
        """Return the uids of running pods."""
        return frozenset(pod.uid for pod in self.pods if pod.is_running)

    @cached_property
    def used(self) -> Used:
        """Return the quota with the sum of requests of bound pods."""
        amounts: dict[str, float] = defaultdict(float)
        for pod in self.pods:
            for resource, amount in pod.requests.items() if pod.is_bound else ():
                amounts[resource] += amount
        return Used(self.quota, amounts)

    @cached_property
    def alike(self) -> Mapping[str, str]:
        """Return the group name of each bound pod, by uid; preemption treats all pods of a group equally."""
        return {
            pod.uid: "|".join((pod.quota, pod.namespace, str(pod.priority), self.labels.get(pod.uid, "")))
            for pod in self.pods
            if pod.is_bound
        }

    @cached_property
    def stand_ins(self) -> Sequence[Pod]:
        """Return one pod per group, which represents it in the rules; its request is the group's sum in the scheduler's units."""
        amounts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        some: dict[str, Pod] = {}
        for pod in self.pods:
            if pod.is_bound:
                name = self.alike[pod.uid]
                some[name] = pod
                for resource, amount in pod.requests.items():
                    amounts[name][resource] += units(resource, amount)
        return [_stand_in(name, pod, amounts[name]) for name, pod in some.items()]

    @cached_property
    def over_quota_uids(self) -> frozenset[str]:
        """Return the group names with the label over-quota."""
        return frozenset(self.alike[uid] for uid, label in self.labels.items() if label == OVER_QUOTA and uid in self.alike)

    @cached_property
    def waiting(self) -> Mapping[tuple[Any, ...], Pod]:
        """Return one waiting pod for each distinct namespace, priority and request."""
        return {(pod.namespace, pod.priority, *sorted(pod.requests.items())): pod for pod in self.pods if not pod.is_bound}

    @cached_property
    def seen(self) -> tuple[Any, ...]:
        """Return all inputs of the preemption rules; while they are unchanged, so is the result."""
        amounts = {pod.uid: pod.requests for pod in self.stand_ins}
        return self.quota, self.used.amounts, amounts, self.over_quota_uids, self.waiting.keys()


def _stand_in(name: str, pod: Pod, amounts: Mapping[str, int]) -> Pod:
    requests = {resource: base(resource, whole) for resource, whole in amounts.items()}
    return Pod(name, pod.namespace, name, pod.quota, requests, pod.created_at_ms, pod.priority, is_bound=True)


class Scene:
    """Waiting and bound pods at each change; empty while the pods are unknown."""

    def __init__(self, system: str, pods: list[Row], terms: list[Row], watch: list[Row], order: Sequence[str]) -> None:
        self._system = system
        self._order = order
        self._terms = terms
        self._watch = watch
        self._changes: dict[datetime, list[Row]] = defaultdict(list)
        for row in pods:
            for each in {row[name] for name in ("created_at", "bound_at", "running_at", "ended_at")} - {None}:
                self._changes[each].append(row)
        self._names = {row["quota"] for row in (*pods, *terms)}
        self._pods: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._quotas: dict[str, Quota] = {}
        self._members: dict[str, Members] = {}
        self._is_answered = False
        self._answer: dict[tuple[str, ...], str] = {}

    def steps(self) -> Iterator[tuple[datetime, Collection[str]]]:
        """Yield each instant of change, in order, with the affected quotas; nothing is left after the last."""
        edges = {row[name] for row in (*self._terms, *self._watch) for name in ("start_at", "end_at")}
        for at in sorted(edges | self._changes.keys()):
            changed_quotas = self._apply_changes(at)
            if at in edges:
                self._quotas = _quotas(self._system, [row for row in self._terms if row["start_at"] <= at < row["end_at"]])
                changed_quotas = self._names
            is_known = any(interval["start_at"] <= at < interval["end_at"] for interval in self._watch)
            for name in changed_quotas:
                self._update(name, is_known)
            yield at, changed_quotas

    def labels(self, quota: str) -> dict[tuple[str, ...], str]:
        """Return the label of each pod of a quota."""
        return {(uid,): label for uid, label in self._members[quota].labels.items()} if quota in self._members else {}

    def alike(self, quota: str) -> dict[tuple[str, ...], str]:
        """Return the group name of each bound pod of a quota; ``exposures`` uses these names."""
        return {(uid,): name for uid, name in self._members[quota].alike.items()} if quota in self._members else {}

    def exposures(self) -> dict[tuple[str, ...], str]:
        """Return evidence by group that may be preempted, quota of the waiting pod, and condition."""
        if not self._is_answered:
            self._answer, self._is_answered = self._exposures(), True
        return self._answer

    def _exposures(self) -> dict[tuple[str, ...], str]:
        members = [self._members[name] for name in sorted(self._members)]
        waiting = [pod for each in members for pod in each.waiting.values()]
        if not waiting:
            return {}
        held, pods = [each.used for each in members], [pod for each in members for pod in each.stand_ins]
        if self._system == "nos":
            over = frozenset(uid for each in members for uid in each.over_quota_uids)
            exposed = exposures(waiting, Situation(held, pods, over))
        else:
            exposed = scheduler_plugins.exposures(waiting, held, pods)
        found: dict[tuple[str, ...], str] = {}
        for each in exposed:
            found.setdefault((each.pod_uid, each.by_quota, each.condition), each.evidence)
        return found

    def _apply_changes(self, at: datetime) -> Collection[str]:
        """Return the quotas whose pods change at an instant; a pod exists from its creation to its end."""
        for row in self._changes.get(at, ()):
            if at >= row["created_at"] and (row["ended_at"] is None or at < row["ended_at"]):
                self._pods[row["quota"]][row["pod_uid"]] = _pod(row, at)
            else:
                self._pods[row["quota"]].pop(row["pod_uid"], None)
        return {row["quota"] for row in self._changes.get(at, ())}

    def _update(self, name: str, is_known: bool) -> None:
        before = self._members.pop(name, None)
        if is_known and name in self._quotas:
            quota = self._quotas[name]
            now = Members(quota, tuple(pod for pod in self._pods[name].values() if pod.namespace in quota.namespaces), {})
            if self._system == "nos":
                is_same = before is not None and before.running == now.running and before.quota == now.quota
                now = Members(now.quota, now.pods, before.labels if before and is_same else _labels(now, self._order))
            self._members[name] = now
        after = self._members.get(name)
        self._is_answered &= (before and before.seen) == (after and after.seen)


def _labels(members: Members, order: Sequence[str]) -> dict[str, str]:
    return {each.pod.uid: each.label for each in labelled(members.quota, members.pods, order)}


def _quotas(system: str, rows: Iterable[Row]) -> dict[str, Quota]:
    terms: dict[str, dict[str, Terms]] = defaultdict(dict)
    namespaces = {}
    for row in rows:
        terms[row["quota"]][row["resource"]] = Terms(row["guaranteed_native"], row["cap_native"])
        namespaces[row["quota"]] = tuple(row["namespaces"])
    return {name: Quota(system, name, terms[name], namespaces=namespaces[name]) for name in terms}


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
