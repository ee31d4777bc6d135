"""Kueue's cohorts: what a queue may borrow and lend, and its weighted share of what its cohort can lend.

Source: Kueue ff69552 (2026-08), the cache of its scheduler. Amounts are per flavor and resource; usage is what workloads have
reserved, not only what is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gpureport.schedulers.model import Holding, Quota, Terms
from gpureport.schedulers.pods import Ask, Policy, Situation

FlavorResource = tuple[str, str]
MAX_WEIGHTED_SHARE = 2**63 - 1
"""Share that the status shows for a queue of weight 0 that borrows."""
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Node:
    """A ClusterQueue, or a Cohort with what it has beyond its queues."""

    name: str
    parent: str = ""
    terms: Mapping[FlavorResource, Terms] = field(default_factory=dict)
    weight: float = 1
    usage: Mapping[FlavorResource, float] = field(default_factory=dict)
    """Of queues; a cohort's is what its queues use of what they share."""


@dataclass(frozen=True)
class WeightedShare:
    """Use above nominal quota, in thousandths of what its cohort can lend, over its weight."""

    value: float
    """0 where it borrows nothing, inf where it borrows with weight 0. Lower is let in first, higher goes first."""
    resource: str = ""
    """The resource of which it borrows most."""

    @property
    def as_status(self) -> int:
        """The whole number in ``status.fairSharing.weightedShare``."""
        return MAX_WEIGHTED_SHARE if math.isinf(self.value) else math.ceil(self.value)


@dataclass(frozen=True)
class Lending:
    """Lending between a queue or cohort and the others of its tree; inferred, for Kueue does not record lenders."""

    lent: float
    """Its own that others use: what lies unused under a cohort is lent in one proportion, first within it, then beyond it."""
    borrowers: Mapping[str, float]
    """By queue what it borrows that this one might have back: in its cohort all, beyond it what the cohort lent."""

    @property
    def others_borrowed(self) -> float:
        """All of that."""
        return _total(self.borrowers)


class Cohorts:
    """ClusterQueues and Cohorts as trees; a cohort that only queues name exists too, and has nothing of its own.

    What is under a cohort that is its own ancestor is left out: Kueue admits nothing there.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        known = {node.name: node for node in nodes}
        implied = {node.parent: Node(node.parent) for node in known.values() if node.parent and node.parent not in known}
        both = {**known, **implied}
        self.nodes: Mapping[str, Node] = {name: node for name, node in both.items() if _has_root(node, both)}
        self._subtree: dict[tuple[str, FlavorResource], float] = {}
        self._local: dict[tuple[str, FlavorResource], float] = {}
        self._usage: dict[tuple[str, FlavorResource], float] = {}
        self._available: dict[tuple[str, FlavorResource], float] = {}

    def forget_usage(self) -> None:
        """Queues hold something else now."""
        self._usage.clear()
        self._available.clear()

    @cached_property
    def _children(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            if node.parent:
                found[node.parent].append(node)
        return found

    def subtree_quota(self, name: str, key: FlavorResource) -> float:
        """Its own nominal quota, and what its children lend it."""
        if (name, key) not in self._subtree:
            lent = (self.subtree_quota(each.name, key) - self.local_quota(each.name, key) for each in self._children[name])
            self._subtree[name, key] = _nominal(self.nodes[name], key) + sum(lent)
        return self._subtree[name, key]

    def local_quota(self, name: str, key: FlavorResource) -> float:
        """Amount that it never lends: beyond its lending limit. Without one all may be lent."""
        if (name, key) not in self._local:
            limit = _terms(self.nodes[name], key).lending_limit
            self._local[name, key] = 0.0 if limit is None else max(0.0, self.subtree_quota(name, key) - limit)
        return self._local[name, key]

    def usage(self, name: str, key: FlavorResource) -> float:
        """Reserved amount of a queue; of a cohort, its members' beyond what they never lend."""
        if (name, key) not in self._usage:
            shared = (max(0.0, self.usage(each.name, key) - self.local_quota(each.name, key)) for each in self._children[name])
            self._usage[name, key] = self.nodes[name].usage.get(key, 0.0) + sum(shared)
        return self._usage[name, key]

    def potential(self, name: str, key: FlavorResource) -> float:
        """The most that it could have, were nothing in use: its own, and what borrowing limit and cohort allow."""
        node = self.nodes[name]
        if not node.parent:
            return self.subtree_quota(name, key)
        found = self.local_quota(name, key) + self.potential(node.parent, key)
        limit = _terms(node, key).borrowing_limit
        return found if limit is None else min(self.subtree_quota(name, key) + limit, found)

    def available(self, name: str, key: FlavorResource) -> float:
        """Amount left for it; negative where more was admitted than there is now."""
        if (name, key) not in self._available:
            self._available[name, key] = self._what_is_left(name, key)
        return self._available[name, key]

    def _what_is_left(self, name: str, key: FlavorResource) -> float:
        node, quota, used = self.nodes[name], self.subtree_quota(name, key), self.usage(name, key)
        if not node.parent:
            return quota - used
        local = self.local_quota(name, key)
        shared = self.available(node.parent, key)
        limit = _terms(node, key).borrowing_limit
        if limit is not None:
            shared = min(quota - local - max(0.0, used - local) + limit, shared)
        return max(0.0, local - used) + shared

    def borrowed(self, name: str, key: FlavorResource) -> float:
        """Use beyond its nominal quota."""
        return max(0.0, self.usage(name, key) - self.subtree_quota(name, key))

    def lendable(self, name: str, key: FlavorResource) -> float:
        """Its own that it leaves unused and that others may have."""
        return max(0.0, self.subtree_quota(name, key) - max(self.usage(name, key), self.local_quota(name, key)))

    def lending(self, key: FlavorResource) -> dict[str, Lending]:
        """Lending between the queues and cohorts of every tree."""
        roots = [name for name, node in self.nodes.items() if not node.parent]
        found = {name: Lending(0.0, {}) for name in roots}
        for root in roots:
            found |= self._lent_below(root, key, {})
        return found

    def _lent_below(self, name: str, key: FlavorResource, beyond: Mapping[str, float]) -> dict[str, Lending]:
        """Under a cohort of which queues beyond it borrow so much: its own quota serves like that of its members."""
        members = [each.name for each in self._children[name]]
        borrowed = {each: self._borrowed_by_queue(each, key) for each in members}
        lendable = {each: self.lendable(each, key) for each in members}
        wanted, stock = sum(map(_total, borrowed.values())), _nominal(self.nodes[name], key) + sum(lendable.values())
        served = min(wanted, stock)
        lent_all = served + _total(beyond)
        found: dict[str, Lending] = {}
        for each in members:
            inside = {queue: amount for other in members if other != each for queue, amount in borrowed[other].items()}
            found[each] = Lending(lendable[each] * min(1.0, lent_all / stock) if stock > 0 else 0.0, {**inside, **beyond})
            part = found[each].lent / lent_all if lent_all > 0 else 0.0
            users = {**{queue: amount * served / wanted for queue, amount in inside.items()}, **beyond}
            found |= self._lent_below(each, key, {queue: amount * part for queue, amount in users.items() if part > 0})
        return found

    def _borrowed_by_queue(self, name: str, key: FlavorResource) -> dict[str, float]:
        """By queue what a queue borrows, or those under a cohort beyond what the cohort has for them."""
        amount, below = self.borrowed(name, key), self._children[name]
        if amount <= 0 or not below:
            return {name: amount} if amount > 0 else {}
        found = {queue: part for each in below for queue, part in self._borrowed_by_queue(each.name, key).items()}
        return {queue: part * amount / _total(found) for queue, part in found.items()}

    def weighted_share(self, name: str) -> WeightedShare:
        """Its largest borrowed part of a resource, of what its cohort can lend of it.

        A resource of which nothing can be lent is left out; of equals the first by name is given.
        """
        node = self.nodes[name]
        borrowed = self._by_resource({key: self.borrowed(name, key) for key in self._keys}) if node.parent else {}
        if not any(borrowed.values()):
            return WeightedShare(0.0)
        lendable = self._by_resource({key: self.potential(node.parent, key) for key in self._keys})
        ratios = {name: 1000 * amount / lendable[name] for name, amount in borrowed.items() if amount > 0 and lendable[name] > 0}
        dominant = min(ratios, key=lambda resource: (-ratios[resource], resource), default="")
        if not dominant:
            return WeightedShare(0.0)
        return WeightedShare(ratios[dominant] / node.weight if node.weight else math.inf, dominant)

    @cached_property
    def _keys(self) -> Sequence[FlavorResource]:
        return sorted({key for node in self.nodes.values() for key in node.terms})

    @staticmethod
    def _by_resource(amounts: Mapping[FlavorResource, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for (_, resource), amount in amounts.items():
            found[resource] = found.get(resource, 0.0) + amount
        return found


def _total(amounts: Mapping[str, float]) -> float:
    return sum(amounts.values())


def _has_root(node: Node, nodes: Mapping[str, Node]) -> bool:
    seen = set()
    while node.parent and node.name not in seen:
        seen.add(node.name)
        node = nodes[node.parent]
    return not node.parent


def _terms(node: Node, key: FlavorResource) -> Terms:
    return node.terms.get(key, Terms())


def _nominal(node: Node, key: FlavorResource) -> float:
    return _terms(node, key).guaranteed or 0.0


def cohorts(resource: str, holdings: Sequence[Holding], places: Iterable[Node] = ()) -> Cohorts:
    """The trees of one flavor's resource, from what queues and cohorts say and hold.

    ``places``: where cohorts stand, also those that have no quota of the flavor.
    """
    key = ("", resource)
    nodes = list(places)
    for each in holdings:
        terms = each.quota.terms.get(resource, Terms())
        usage = {} if each.quota.is_parent else {key: each.delivered}
        weight = 1.0 if terms.weight is None else terms.weight
        nodes.append(Node(each.quota.name, each.quota.parent, {key: terms}, weight, usage))
    return Cohorts(nodes)


def consumed(before: float, since: float, until: float, runs: Iterable[tuple[float, float, float]], half_life: float) -> float:
    """Past use by Admission Fair Sharing until a time: the amount at ``since``, decayed, and use since then.

    ``runs``: from when until when how much was in use; times in one unit. Kueue samples what this integrates.
    """

    def left(at: float) -> float:
        return float(0.5 ** ((until - at) / half_life))

    parts = (
        amount * (left(min(end, until)) - left(max(start, since))) for start, end, amount in runs if start < until and end > since
    )
    return before * left(since) + sum(parts)


class KueuePolicy(Policy):
    """Admission within a queue's quota and its cohort's lending; preemption only as the ClusterQueue allows."""

    is_held_by_nodes = False

    def __init__(self) -> None:
        self._quotas: Mapping[str, Quota] = {}
        self._seen_count = 0

    def turn(self, now: Situation) -> None:
        """The trees anew where quotas are others."""
        if now.quotas is not self._quotas:
            self._quotas, self._key = now.quotas, ("", now.resource)
            self._trees = Cohorts(
                Node(name, quota.parent, {self._key: now.terms(name)}, 1, {} if quota.is_parent else _Live(now, name))
                for name, quota in now.quotas.items()
            )

    def order(self, now: Situation, ask: Ask) -> tuple[Any, ...]:
        """Queues that have some of their own left first; within a queue nobody overtakes."""
        return now.used[ask.quota] >= now.minimum(ask.quota), *ask.rank

    def blocks(self, now: Situation, ask: Ask) -> bool:
        """StrictFIFO."""
        return self._said(now, ask.quota, "queueingStrategy") == "StrictFIFO"

    def admits(self, now: Situation, ask: Ask) -> bool:
        """Its own and what it may borrow; nothing under cohorts in a circle."""
        return ask.quota in self._trees.nodes and ask.amount <= self._now(now).available(ask.quota, self._key) + _TOLERANCE

    def victims(self, now: Situation, ask: Ask) -> Sequence[Ask]:
        """Of queues of its tree that borrow, then of its own; lowest priority first, of equals the youngest."""
        highest, policy = self._highest_across(now, ask), self._said(now, ask.quota, "withinClusterQueue")
        found: list[Ask] = []
        if highest > -math.inf:
            found = [each for each in now.least_important(self._borrowers(now, ask.quota)) if each.priority <= highest]
        if policy == "Never":
            return found
        is_newer = policy == "LowerOrNewerEqualPriority"
        return found + [
            each
            for each in now.least_important([ask.quota])
            if each.priority < ask.priority or (is_newer and each.priority == ask.priority and each.created_ms > ask.created_ms)
        ]

    def may_go(self, now: Situation, victim: Ask, ask: Ask) -> bool:
        """Another queue's only while that queue borrows."""
        return victim.quota == ask.quota or self._now(now).borrowed(victim.quota, self._key) > _TOLERANCE

    def _highest_across(self, now: Situation, ask: Ask) -> float:
        """The priority up to which it takes from borrowers: reclaiming within its own quota, else preempting while it borrows."""
        lower = ask.priority - 1
        if now.is_within(ask.quota, ask.amount, now.minimum(ask.quota)):
            return {"Any": math.inf, "LowerPriority": lower}.get(self._said(now, ask.quota, "reclaimWithinCohort"), -math.inf)
        if self._said(now, ask.quota, "borrowWithinCohort") != "LowerPriority":
            return -math.inf
        threshold = self._said(now, ask.quota, "maxPriorityThreshold")
        return lower if threshold == "Never" else min(lower, int(threshold))

    def _now(self, now: Situation) -> Cohorts:
        """The trees with what is held now."""
        if now.move_count != self._seen_count:
            self._trees.forget_usage()
            self._seen_count = now.move_count
        return self._trees

    def _borrowers(self, now: Situation, quota: str) -> list[str]:
        """Other queues of its tree that borrow."""
        root = self._root(quota)
        alike = [name for name in self._trees.nodes if name != quota and self._root(name) == root]
        return [name for name in alike if self._now(now).borrowed(name, self._key) > _TOLERANCE]

    @staticmethod
    def _said(now: Situation, quota: str, field: str) -> str:
        """Kueue's default where the object says nothing."""
        return now.quotas[quota].policy.get(field, "Never")

    def _root(self, name: str) -> str:
        while name in self._trees.nodes and self._trees.nodes[name].parent:
            name = self._trees.nodes[name].parent
        return name


class _Live(Mapping[FlavorResource, float]):
    """Present use of a queue."""

    def __init__(self, now: Situation, name: str) -> None:
        self._now, self._name = now, name

    def __getitem__(self, key: FlavorResource) -> float:
        return self._now.used[self._name]

    def __iter__(self) -> Iterator[FlavorResource]:
        return iter(())

    def __len__(self) -> int:
        return 1


def policy_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Policy of a ClusterQueue for queueing and preemption."""
    preemption = spec.get("preemption") or {}
    borrow = preemption.get("borrowWithinCohort") or {}
    said = {
        "queueingStrategy": spec.get("queueingStrategy"),
        "reclaimWithinCohort": preemption.get("reclaimWithinCohort"),
        "withinClusterQueue": preemption.get("withinClusterQueue"),
        "borrowWithinCohort": borrow.get("policy"),
        "maxPriorityThreshold": borrow.get("maxPriorityThreshold"),
    }
    return {field: str(value) for field, value in said.items() if value is not None}
