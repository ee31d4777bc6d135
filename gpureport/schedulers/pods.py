"""Replay of whole pods and gangs under a scheduler's policy: admissions and preemptions over time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

from gpureport.schedulers.model import DEFAULT_RULES, Holding, Past, Quota, Rules, Terms

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Request:
    """Unit of admission, all or nothing: a pod, a gang of pods, or a workload."""

    uid: str
    quota: str
    amount: float
    priority: int
    created_ms: int
    bound_ms: int | None
    """Recorded time of admission."""
    ended_ms: int | None

    @cached_property
    def kind(self) -> tuple[str, float, int]:
        """Return the scheduling class: if one request cannot be admitted, no other of the same class can."""
        return self.quota, self.amount, self.priority

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """Return the sort key: higher priority, older creation, then earlier recorded admission."""
        return -self.priority, self.created_ms, math.inf if self.bound_ms is None else self.bound_ms, self.uid


class Situation:
    """Running and waiting pods at one instant; quotas and capacity change over time."""

    def __init__(self, resource: str, rules: Rules = DEFAULT_RULES) -> None:
        self.resource, self.rules = resource, rules
        self.quotas: dict[str, Quota] = {}
        self.holdings: Sequence[Holding] = ()
        self.capacity = math.inf
        self.at_ms = 0
        self.running: dict[str, Request] = {}
        self.pending: dict[str, Request] = {}
        self.used: dict[str, float] = defaultdict(float)
        """Used amount of each quota, parents included."""
        self.total = 0.0
        self.move_count = 0
        """Number of admissions, ends and quota changes so far; if it is unchanged, use by quota is unchanged."""
        self._listed: Sequence[Quota] = ()
        self._above: dict[str, tuple[str, ...]] = {}
        self._terms: dict[str, Terms] = {}

    def update(self, holdings: Sequence[Holding], capacity: float) -> None:
        """Set the quotas and the capacity from now on."""
        listed = [each.quota for each in holdings]
        self.holdings, self.capacity = holdings, capacity
        if listed != self._listed:
            self.quotas, self._above, self._terms = {each.name: each for each in listed}, {}, {}
            self._listed = listed
            self.move_count += 1
            self.used.clear()
            for request in self.running.values():
                self.count(request, request.amount)

    def terms(self, name: str) -> Terms:
        """Return the terms of a quota for the resource."""
        if name not in self._terms:
            self._terms[name] = self.quotas[name].of(self.resource) if name in self.quotas else Terms()
        return self._terms[name]

    def minimum(self, name: str) -> float:
        """Return the guarantee of a quota; 0 where it has none."""
        return self.terms(name).guaranteed or 0.0

    def chain(self, name: str) -> tuple[str, ...]:
        """Return a quota and its ancestors, from the quota to the root."""
        if name not in self._above:
            found: list[str] = []
            above = name
            while above in self.quotas and above not in found:
                found.append(above)
                above = self.quotas[above].parent
            self._above[name] = tuple(found)
        return self._above[name]

    def hold(self, request: Request) -> None:
        """Move a request from pending to running."""
        self.pending.pop(request.uid, None)
        self.running[request.uid] = request
        self.total += request.amount
        self.count(request, request.amount)

    def release(self, request: Request) -> None:
        """Remove a request from the running ones."""
        del self.running[request.uid]
        self.total -= request.amount
        self.count(request, -request.amount)

    def count(self, request: Request, amount: float) -> None:
        """Add an amount to the use of its quota and of that quota's ancestors."""
        self.move_count += 1
        for name in self.chain(request.quota):
            self.used[name] += amount

    def fits(self, request: Request) -> bool:
        """Return whether free capacity is sufficient and no cap of the quota or its ancestors is exceeded."""
        if self.total + request.amount > self.capacity + _TOLERANCE:
            return False
        return all(self.is_within(name, request.amount, self.terms(name).cap) for name in self.chain(request.quota))

    def is_within(self, name: str, more: float, bound: float | None) -> bool:
        """Return whether the quota's use plus an amount stays within the bound."""
        return bound is None or self.used[name] + more <= bound + _TOLERANCE

    def least_important(self, quotas: Iterable[str] | None = None) -> list[Request]:
        """Return running pods of these quotas, or of all: lower priority first, then youngest first."""
        names = None if quotas is None else set(quotas)
        found = [each for each in self.running.values() if names is None or each.quota in names]
        return sorted(found, key=lambda each: (each.priority, -each.created_ms, each.uid))

    def less_important(self, request: Request) -> list[Request]:
        """Return running pods of the request's quota that have lower priority."""
        return [each for each in self.least_important([request.quota]) if each.priority < request.priority]


class Policy:
    """Default policy: admit requests that fit, higher priority and older first, and never preempt."""

    is_held_by_nodes = True
    """Whether admission needs free capacity on nodes."""
    follows_demand = False
    """Whether new demand alone can allow an admission, without a release."""

    def begin(self, past: Sequence[Past], rules: Rules) -> None:
        """Read the recorded past use before the replay."""

    def update(self, now: Situation) -> None:
        """Recompute state after a change of quotas, demand or capacity."""

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Return the sort key of a request."""
        return request.rank

    def ordered(self, now: Situation, requests: Iterable[Request]) -> Iterable[Request]:
        """Return all requests in the order of admission attempts."""
        return sorted(requests, key=lambda request: self.order(now, request))

    def blocks(self, now: Situation, request: Request) -> bool:
        """Return whether requests after this one in its quota wait until it is admitted."""
        return False

    def admits(self, now: Situation, request: Request) -> bool:
        """Return whether the request can be admitted in the current situation."""
        return now.fits(request)

    def victims(self, now: Situation, request: Request) -> Iterable[Request]:
        """Return pods that may be preempted for the request, in order of preemption."""
        return ()

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Return whether the victim may still be preempted after the previous victims were released."""
        return True


class Replay:
    """Replay of requests: arrival, admission, preemption and end."""

    def __init__(self, policy: Policy, resource: str, requests: Iterable[Request], rules: Rules) -> None:
        self._policy, self._resource, self._rules = policy, resource, rules
        self._requests = sorted(requests, key=lambda each: each.created_ms)
        self.now = Situation(resource, rules)
        self._next, self._failed = 0, set[tuple[str, float, int]]()
        self._ends: list[tuple[int, str]] = []

    def restart(self, at_ms: int, holdings: Sequence[Holding], capacity: float, is_changed: bool) -> None:
        """Start from the recorded allocation at an instant; with changed quotas, keep only what the policy admits."""
        self.now = Situation(self._resource, self._rules)
        self._update(at_ms, holdings, capacity)
        there = [each for each in self._requests if each.created_ms <= at_ms and (each.ended_ms is None or each.ended_ms > at_ms)]
        self._next = sum(each.created_ms <= at_ms for each in self._requests)
        self._ends = [(each.ended_ms, each.uid) for each in there if each.ended_ms is not None]
        heapify(self._ends)
        held = [each for each in there if each.bound_ms is not None and each.bound_ms <= at_ms]
        self.now.pending = {each.uid: each for each in there}
        for request in sorted(held, key=lambda each: (each.bound_ms, *each.rank)):
            if not is_changed or self._policy.admits(self.now, request):
                self.now.hold(request)
        self._admit_pending()

    def step(self, at_ms: int, holdings: Sequence[Holding], capacity: float) -> None:
        """Advance to the next instant of change."""
        while self._ends and self._ends[0][0] <= at_ms:
            _, uid = heappop(self._ends)
            if uid in self.now.running:
                self.now.release(self.now.running[uid])
                self._failed.clear()
            self.now.pending.pop(uid, None)
        while self._next < len(self._requests) and self._requests[self._next].created_ms <= at_ms:
            request = self._requests[self._next]
            self._next += 1
            if request.ended_ms is None or request.ended_ms > at_ms:
                self.now.pending[request.uid] = request
                if request.ended_ms is not None:
                    heappush(self._ends, (request.ended_ms, request.uid))
        self._update(at_ms, holdings, capacity)
        self._admit_pending()

    def _update(self, at_ms: int, holdings: Sequence[Holding], capacity: float) -> None:
        before = self.now.quotas, self.now.capacity
        self.now.at_ms = at_ms
        self.now.update(holdings, capacity if self._policy.is_held_by_nodes else math.inf)
        self._policy.update(self.now)
        if before != (self.now.quotas, self.now.capacity) or self._policy.follows_demand:
            self._failed.clear()

    def _admit_pending(self) -> None:
        """Admit requests one by one until the policy admits no more."""
        evicted: set[str] = set()
        is_moving = any(each.kind not in self._failed for each in self.now.pending.values())
        while is_moving:
            is_moving = False
            blocked: set[str] = set()
            for request in self._policy.ordered(self.now, self.now.pending.values()):
                if request.quota in blocked or request.quota not in self.now.quotas:
                    continue
                gone = None if request.kind in self._failed else self._admit(request, request.uid not in evicted)
                if gone is not None:
                    evicted |= {each.uid for each in gone}
                    self._failed.clear()
                    is_moving = True
                    break
                self._failed.add(request.kind)
                if self._policy.blocks(self.now, request):
                    blocked.add(request.quota)
        if evicted:  # evicted pods have not yet tried to preempt others
            self._failed.clear()

    def _admit(self, request: Request, may_preempt: bool) -> list[Request] | None:
        """Admit a request and return its victims; None, with the situation unchanged, where it cannot be admitted."""
        policy, now = self._policy, self.now
        gone: list[Request] = []
        is_in = policy.admits(now, request)
        for victim in policy.victims(now, request) if may_preempt and not is_in else ():
            if policy.is_preemptible(now, victim, request):
                now.release(victim)
                gone.append(victim)
                if is_in := policy.admits(now, request):
                    break
        for victim in reversed(gone[:-1] if is_in else gone):  # a victim that is not needed stays
            now.hold(victim)
            if is_in and not policy.admits(now, request):
                now.release(victim)
            else:
                gone.remove(victim)
        if not is_in:
            return None
        now.hold(request)
        now.pending.update({each.uid: each for each in gone})
        return gone
