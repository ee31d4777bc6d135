"""Kueue's cohorts: borrowing and lending of each queue, and its weighted share of the cohort's lendable capacity.

Source: Kueue ff69552 (2026-08), the scheduler's cache. Amounts are per flavor and resource; usage includes workloads that
have reserved quota but are not yet admitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gpureport.schedulers.model import Holding, Quota, Terms
from gpureport.schedulers.pods import Policy, Request, Situation

STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
"""Fair sharing preempts a borrower that keeps at least the requester's share; then, one whose share was larger before."""

FlavorResource = tuple[str, str]
MAX_WEIGHTED_SHARE = 2**63 - 1
"""Value in the status for a borrowing queue with weight 0."""
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Node:
    """A ClusterQueue, or a Cohort with its own quota."""

    name: str
    parent: str = ""
    terms: Mapping[FlavorResource, Terms] = field(default_factory=dict)
    weight: float = 1
    usage: Mapping[FlavorResource, float] = field(default_factory=dict)
    """Usage of a queue; empty for a cohort, whose usage follows from its queues."""


@dataclass(frozen=True)
class WeightedShare:
    """Use above nominal quota, in thousandths of the cohort's lendable amount, divided by weight."""

    value: float
    """0 without borrowing, inf for borrowing with weight 0. The lowest is admitted first, the highest preempted first."""
    resource: str = ""
    """Resource with the largest borrowed ratio."""

    @property
    def as_status(self) -> int:
        """Return the integer in ``status.fairSharing.weightedShare``."""
        return MAX_WEIGHTED_SHARE if math.isinf(self.value) else math.ceil(self.value)


@dataclass(frozen=True)
class Lending:
    """Lending between a queue or cohort and the rest of its tree; inferred, because Kueue does not record lenders."""

    lent: float
    """Own quota that others use: unused quota under a cohort is lent in equal proportion, inside the cohort first."""
    borrowers: Mapping[str, float]
    """By queue, borrowed amounts that this one could reclaim: all in its cohort; outside, only what the cohort lent."""
    borrowed: float
    """Use above its own quota; for a cohort, above the quota of the cohort and its members."""

    @property
    def others_borrowed(self) -> float:
        """Return the sum of ``borrowers``."""
        return _total(self.borrowers)


class Cohorts:
    """ClusterQueues and Cohorts as trees; a cohort that only queues name is included, without quota of its own.

    Nodes under a cohort that is its own ancestor are excluded: Kueue admits nothing there.
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

    def clear_usage_cache(self) -> None:
        """Clear cached amounts after a change of use."""
        self._usage.clear()
        self._available.clear()

    @cached_property
    def children(self) -> Mapping[str, list[Node]]:
        """Return the direct children of each queue and cohort, by name."""
        found: dict[str, list[Node]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            if node.parent:
                found[node.parent].append(node)
        return found

    def subtree_quota(self, name: str, key: FlavorResource) -> float:
        """Return its nominal quota plus the lendable quota of its children."""
        if (name, key) not in self._subtree:
            lent = (self.subtree_quota(each.name, key) - self.local_quota(each.name, key) for each in self.children[name])
            self._subtree[name, key] = _nominal(self.nodes[name], key) + sum(lent)
        return self._subtree[name, key]

    def local_quota(self, name: str, key: FlavorResource) -> float:
        """Return the amount that it never lends: quota above its lending limit; 0 without a limit."""
        if (name, key) not in self._local:
            limit = _terms(self.nodes[name], key).lending_limit
            self._local[name, key] = 0.0 if limit is None else max(0.0, self.subtree_quota(name, key) - limit)
        return self._local[name, key]

    def usage(self, name: str, key: FlavorResource) -> float:
        """Return the reserved amount of a queue; for a cohort, its members' use above their local quota."""
        if (name, key) not in self._usage:
            shared = (max(0.0, self.usage(each.name, key) - self.local_quota(each.name, key)) for each in self.children[name])
            self._usage[name, key] = self.nodes[name].usage.get(key, 0.0) + sum(shared)
        return self._usage[name, key]

    def potential(self, name: str, key: FlavorResource) -> float:
        """Return the most that it could have with nothing in use, within its borrowing limit and cohort."""
        node = self.nodes[name]
        if not node.parent:
            return self.subtree_quota(name, key)
        found = self.local_quota(name, key) + self.potential(node.parent, key)
        limit = _terms(node, key).borrowing_limit
        return found if limit is None else min(self.subtree_quota(name, key) + limit, found)

    def available(self, name: str, key: FlavorResource) -> float:
        """Return the amount still available; negative where usage exceeds the current quota."""
        if (name, key) not in self._available:
            self._available[name, key] = self._compute_available(name, key)
        return self._available[name, key]

    def _compute_available(self, name: str, key: FlavorResource) -> float:
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
        """Return the use above its nominal quota."""
        return max(0.0, self.usage(name, key) - self.subtree_quota(name, key))

    def lendable(self, name: str, key: FlavorResource) -> float:
        """Return the unused own quota that others may borrow."""
        return max(0.0, self.subtree_quota(name, key) - max(self.usage(name, key), self.local_quota(name, key)))

    def lending(self, key: FlavorResource) -> dict[str, Lending]:
        """Return the lending of every queue and cohort, by name."""
        roots = [name for name, node in self.nodes.items() if not node.parent]
        found = {name: Lending(0.0, {}, self.borrowed(name, key)) for name in roots}
        for root in roots:
            found |= self._lent_below(root, key, {})
        return found

    def _lent_below(self, name: str, key: FlavorResource, beyond: Mapping[str, float]) -> dict[str, Lending]:
        """Return lending under a cohort; queues outside it borrow ``beyond``, and its own quota is lent like its members'."""
        members = [each.name for each in self.children[name]]
        borrowed = {each: self._borrowed_by_queue(each, key) for each in members}
        lendable = {each: self.lendable(each, key) for each in members}
        wanted, stock = sum(map(_total, borrowed.values())), _nominal(self.nodes[name], key) + sum(lendable.values())
        served = min(wanted, stock)
        lent_all = served + _total(beyond)
        found: dict[str, Lending] = {}
        for each in members:
            inside = {queue: amount for other in members if other != each for queue, amount in borrowed[other].items()}
            lent = lendable[each] * min(1.0, lent_all / stock) if stock > 0 else 0.0
            found[each] = Lending(lent, {**inside, **beyond}, self.borrowed(each, key))
            part = lent / lent_all if lent_all > 0 else 0.0
            users = {**{queue: amount * served / wanted for queue, amount in inside.items()}, **beyond}
            found |= self._lent_below(each, key, {queue: amount * part for queue, amount in users.items() if part > 0})
        return found

    def _borrowed_by_queue(self, name: str, key: FlavorResource) -> dict[str, float]:
        """Return borrowed amounts by queue; for a cohort, amounts that its queues borrow from outside."""
        amount, below = self.borrowed(name, key), self.children[name]
        if amount <= 0 or not below:
            return {name: amount} if amount > 0 else {}
        found = {queue: part for each in below for queue, part in self._borrowed_by_queue(each.name, key).items()}
        return {queue: part * amount / _total(found) for queue, part in found.items()}

    def weighted_share(self, name: str) -> WeightedShare:
        """Return the largest ratio of borrowed to lendable amount over all resources, divided by weight.

        A resource with nothing to lend is excluded; if ratios are equal, the first resource by name is used.
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


def _weight(terms: Terms) -> float:
    return 1.0 if terms.weight is None else terms.weight


def _nominal(node: Node, key: FlavorResource) -> float:
    return _terms(node, key).guaranteed or 0.0


def cohorts(resource: str, holdings: Sequence[Holding], places: Iterable[Node] = ()) -> Cohorts:
    """Return the trees for one resource of one flavor, from terms and usage of queues and cohorts.

    ``places``: cohorts with their parents, including cohorts without quota of the flavor.
    """
    key = ("", resource)
    nodes = list(places)
    for each in holdings:
        terms = each.quota.of(resource)
        usage = {} if each.quota.is_parent else {key: each.delivered}
        nodes.append(Node(each.quota.name, each.quota.parent, {key: terms}, _weight(terms), usage))
    return Cohorts(nodes)


def consumed(before: float, since: float, until: float, runs: Iterable[tuple[float, float, float]], half_life: float) -> float:
    """Return past use by Admission Fair Sharing at ``until``: the amount at ``since``, decayed, plus later use.

    ``runs``: start, end and used amount; all times in one unit. Kueue samples the use that this function integrates.
    """

    def left(at: float) -> float:
        return float(0.5 ** ((until - at) / half_life))

    parts = (
        amount * (left(min(end, until)) - left(max(start, since))) for start, end, amount in runs if start < until and end > since
    )
    return before * left(since) + sum(parts)


class KueuePolicy(Policy):
    """Admission within a queue's quota and its cohort's lending; preemption only as the ClusterQueue allows.

    With fair sharing, the weighted share of the resource decides the order of admission and the victims.
    """

    is_held_by_nodes = False

    def __init__(self, strategies: Sequence[str] = STRATEGIES) -> None:
        self._strategies = strategies
        self._quotas: Mapping[str, Quota] = {}
        self._seen_count = 0

    def update(self, now: Situation) -> None:
        """Rebuild the trees after a change of quotas."""
        if now.quotas is not self._quotas:
            self._quotas, self._key = now.quotas, ("", now.resource)
            self._trees = Cohorts(
                Node(name, quota.parent, {self._key: now.terms(name)}, _weight(now.terms(name)), _CurrentUsage(now, quota))
                for name, quota in now.quotas.items()
            )
            is_configured = any("fairSharing" in quota.policy for quota in now.quotas.values())
            self._is_fair = is_configured if now.rules.fair_sharing is None else bool(now.rules.fair_sharing)

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Return the sort key: queues with unused quota of their own first; within a queue, strict order."""
        return now.used[request.quota] >= now.minimum(request.quota), *request.rank

    def ordered(self, now: Situation, requests: Iterable[Request]) -> Iterable[Request]:
        """Return the order of attempts; with fair sharing, one request per queue and round, the smallest share first."""
        return self._tournaments(now, requests) if self._is_fair else super().ordered(now, requests)

    def _tournaments(self, now: Situation, requests: Iterable[Request]) -> Iterator[Request]:
        left = _by_queue(sorted(requests, key=lambda request: request.rank))
        while heads := {name: each.pop(0) for name, each in left.items() if each}:
            while heads and (request := self._nominated(now, min(self._path(name)[-1] for name in heads), heads)):
                yield heads.pop(request.quota)

    def _nominated(self, now: Situation, name: str, heads: Mapping[str, Request]) -> Request | None:
        """Return the request whose branch has the smallest resulting share, level by level; None without requests below."""
        found = [
            (self._share_with(now, child.name, request, request.amount), request.rank, request)
            for child in self._trees.children.get(name, ())
            if (request := self._nominated(now, child.name, heads))
        ]
        return min(found)[2] if found else heads.get(name)

    def blocks(self, now: Situation, request: Request) -> bool:
        """Return whether the queue's strategy is StrictFIFO."""
        return self._field(now, request.quota, "queueingStrategy") == "StrictFIFO"

    def admits(self, now: Situation, request: Request) -> bool:
        """Return whether own quota and borrowing are enough; false for queues under cohorts in a circle."""
        own = request.quota
        return own in self._trees.nodes and request.amount <= self._now(now).available(own, self._key) + _TOLERANCE

    def victims(self, now: Situation, request: Request) -> Iterable[Request]:
        """Return pods of borrowing queues in its tree, then of its own queue; lowest priority first, then youngest."""
        highest, policy = self._highest_across(now, request), self._field(now, request.quota, "withinClusterQueue")
        found: list[Request] = []
        if highest > -math.inf:
            found = [each for each in now.least_important(self._borrowers(now, request.quota)) if each.priority <= highest]
        if policy != "Never":
            is_newer = policy == "LowerOrNewerEqualPriority"
            found += [
                each
                for each in now.least_important([request.quota])
                if each.priority < request.priority
                or (is_newer and each.priority == request.priority and each.created_ms > request.created_ms)
            ]
        return self._fairly(now, request, found) if self._is_fair and request.quota in self._trees.nodes else found

    def _fairly(self, now: Situation, request: Request, found: list[Request]) -> Iterator[Request]:
        """Yield victims one by one from the branch with the largest share, with the request included in the shares."""
        for number, strategy in enumerate(self._strategies):
            left, found = _by_queue(found), []
            while name := self._largest(now, request, left, self._path(request.quota)[-1]):
                victims = left.pop(name)
                while victims:
                    victim = victims.pop(0)
                    if self._is_fairer(now, request, victim, strategy):
                        yield victim
                        break
                    found.append(victim)
                if victims and not number:  # the second strategy takes at most one pod of a queue
                    left[name] = victims

    def _largest(self, now: Situation, request: Request, left: Mapping[str, Sequence[Request]], name: str) -> str:
        """Return the queue with victims left, in the branch with the largest share or its own branch; '' where there is none."""
        found = [(-1.0, False, name)] if name in left else []
        for child in self._trees.children.get(name, ()):
            share = self._share_with(now, child.name, request, request.amount)
            is_open = share > 0 or child.name in self._path(request.quota)
            if is_open and (queue := self._largest(now, request, left, child.name)):
                found.append((share, child.name != queue, queue))
        return max(found)[2] if found else ""

    def _is_fairer(self, now: Situation, request: Request, victim: Request, strategy: str) -> bool:
        """Return whether the victim may be preempted: same queue, request within nominal quota, or by the branches' shares."""
        if victim.quota == request.quota or now.is_within(request.quota, request.amount, now.minimum(request.quota)):
            return True
        mine, theirs = self._path(request.quota), self._path(victim.quota)
        common = next(name for name in mine if name in theirs)
        own_branch, other_branch = mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]
        share = self._share_with(now, own_branch, request, request.amount)
        if strategy == "LessThanInitialShare":
            return share < self._share_with(now, other_branch, victim, 0)
        return share <= self._share_with(now, other_branch, victim, -victim.amount)

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Return whether the victim's queue borrows; always true for its own queue and with fair sharing."""
        return self._is_fair or victim.quota == request.quota or self._now(now).borrowed(victim.quota, self._key) > _TOLERANCE

    def _highest_across(self, now: Situation, request: Request) -> float:
        """Return the highest priority of victims in borrowing queues: by reclaimWithinCohort, else by borrowWithinCohort."""
        name, lower = request.quota, request.priority - 1
        if self._is_fair or now.is_within(name, request.amount, now.minimum(name)):
            return {"Any": math.inf, "LowerPriority": lower}.get(self._field(now, name, "reclaimWithinCohort"), -math.inf)
        if self._field(now, name, "borrowWithinCohort") != "LowerPriority":
            return -math.inf
        threshold = self._field(now, name, "maxPriorityThreshold")
        return lower if threshold == "Never" else min(lower, int(threshold))

    def _now(self, now: Situation) -> Cohorts:
        """Return the trees with current use."""
        if now.move_count != self._seen_count:
            self._trees.clear_usage_cache()
            self._seen_count = now.move_count
        return self._trees

    def _borrowers(self, now: Situation, quota: str) -> list[str]:
        """Return other queues of its tree that borrow."""
        root = self._path(quota)[-1]
        alike = [name for name in self._trees.nodes if name != quota and self._path(name)[-1] == root]
        return [name for name in alike if self._now(now).borrowed(name, self._key) > _TOLERANCE]

    @staticmethod
    def _field(now: Situation, quota: str, name: str) -> str:
        """Return a policy field of a queue; Kueue's default where it is not set."""
        return now.quotas[quota].policy.get(name, "Never")

    def _path(self, name: str) -> list[str]:
        """Return the queue and its ancestors."""
        found = [name]
        while found[-1] in self._trees.nodes and (above := self._trees.nodes[found[-1]].parent):
            found.append(above)
        return found

    def _share_with(self, now: Situation, name: str, request: Request, more: float) -> float:
        """Return the weighted share of a queue or cohort with ``more`` added to the use of the request's quota."""
        now.count(request, more)
        share = self._now(now).weighted_share(name).value
        now.count(request, -more)
        return share


def _by_queue(requests: Sequence[Request]) -> dict[str, list[Request]]:
    return {name: [request for request in requests if request.quota == name] for name in {request.quota for request in requests}}


class _CurrentUsage(Mapping[FlavorResource, float]):
    """Current use of a queue; 0 for a cohort."""

    def __init__(self, now: Situation, quota: Quota) -> None:
        self._now, self._quota = now, quota

    def __getitem__(self, key: FlavorResource) -> float:
        return 0.0 if self._quota.is_parent else self._now.used[self._quota.name]

    def __iter__(self) -> Iterator[FlavorResource]:
        return iter(())

    def __len__(self) -> int:
        return 1


def policy_of(spec: Mapping[str, Any], is_fair: bool = False) -> dict[str, str]:
    """Return the queueing and preemption policy of a ClusterQueue; ``is_fair`` where its status shows fair sharing."""
    preemption = spec.get("preemption") or {}
    borrow = preemption.get("borrowWithinCohort") or {}
    fields = {
        "queueingStrategy": spec.get("queueingStrategy"),
        "reclaimWithinCohort": preemption.get("reclaimWithinCohort"),
        "withinClusterQueue": preemption.get("withinClusterQueue"),
        "borrowWithinCohort": borrow.get("policy"),
        "maxPriorityThreshold": borrow.get("maxPriorityThreshold"),
        "fairSharing": is_fair or None,
    }
    return {field: str(value) for field, value in fields.items() if value is not None}
