"""Whole pods and gangs through a scheduler's policy, instant by instant: which are admitted, and which are preempted."""

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
    """Unit of admission, all or nothing: a pod, a gang of pods, a workload."""

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
        """Class of pods for a scheduler: where one cannot be admitted, no other of its class can."""
        return self.quota, self.amount, self.priority

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """Higher priority first, then older; of those that came together as they were recorded."""
        return -self.priority, self.created_ms, math.inf if self.bound_ms is None else self.bound_ms, self.uid


class Situation:
    """Running and waiting pods at one instant, under quotas and a capacity that change."""

    def __init__(self, resource: str, rules: Rules = DEFAULT_RULES) -> None:
        self.resource, self.rules = resource, rules
        self.quotas: dict[str, Quota] = {}
        self.holdings: Sequence[Holding] = ()
        self.capacity = math.inf
        self.at_ms = 0
        self.running: dict[str, Request] = {}
        self.pending: dict[str, Request] = {}
        self.used: dict[str, float] = defaultdict(float)
        """By quota, and by those that contain it."""
        self.total = 0.0
        self.move_count = 0
        """Number of admissions, ends and changes of quotas so far: without a new one nothing else changes."""
        self._listed: Sequence[Quota] = ()
        self._above: dict[str, tuple[str, ...]] = {}
        self._terms: dict[str, Terms] = {}

    def update(self, holdings: Sequence[Holding], capacity: float) -> None:
        """Quotas and capacity from now on."""
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
        """Term of a quota for the resource."""
        if name not in self._terms:
            self._terms[name] = self.quotas[name].of(self.resource) if name in self.quotas else Terms()
        return self._terms[name]

    def minimum(self, name: str) -> float:
        """Guarantee of a quota."""
        return self.terms(name).guaranteed or 0.0

    def chain(self, name: str) -> tuple[str, ...]:
        """A quota and those that contain it, from within."""
        if name not in self._above:
            found: list[str] = []
            above = name
            while above in self.quotas and above not in found:
                found.append(above)
                above = self.quotas[above].parent
            self._above[name] = tuple(found)
        return self._above[name]

    def hold(self, request: Request) -> None:
        """Admit it."""
        self.pending.pop(request.uid, None)
        self.running[request.uid] = request
        self.total += request.amount
        self.count(request, request.amount)

    def release(self, request: Request) -> None:
        """Take its place away."""
        del self.running[request.uid]
        self.total -= request.amount
        self.count(request, -request.amount)

    def count(self, request: Request, amount: float) -> None:
        """So much more is in use by its quota, and by those that contain it."""
        self.move_count += 1
        for name in self.chain(request.quota):
            self.used[name] += amount

    def fits(self, request: Request) -> bool:
        """Whether capacity is free, and no cap is exceeded."""
        if self.total + request.amount > self.capacity + _TOLERANCE:
            return False
        return all(self.is_within(name, request.amount, self.terms(name).cap) for name in self.chain(request.quota))

    def is_within(self, name: str, more: float, bound: float | None) -> bool:
        """Whether a quota with so much more holds no more than the bound."""
        return bound is None or self.used[name] + more <= bound + _TOLERANCE

    def least_important(self, quotas: Iterable[str] | None = None) -> list[Request]:
        """Running pods, of these quotas or of all: lower priority first, of equals the youngest."""
        names = None if quotas is None else set(quotas)
        found = [each for each in self.running.values() if names is None or each.quota in names]
        return sorted(found, key=lambda each: (each.priority, -each.created_ms, each.uid))

    def less_important(self, request: Request) -> list[Request]:
        """Running pods of its own quota that are less important than it."""
        return [each for each in self.least_important([request.quota]) if each.priority < request.priority]


class Policy:
    """A scheduler that admits what fits, the more important and older first, and takes nothing back."""

    is_held_by_nodes = True
    """Whether nodes must have free capacity."""
    follows_demand = False
    """Whether a request may be admitted because others wait, though none ended."""

    def begin(self, past: Sequence[Past], rules: Rules) -> None:
        """Recorded state before."""

    def update(self, now: Situation) -> None:
        """Quotas, demand or capacity change now."""

    def order(self, now: Situation, request: Request) -> tuple[Any, ...]:
        """Sort key among requests."""
        return request.rank

    def ordered(self, now: Situation, requests: Iterable[Request]) -> Iterable[Request]:
        """All of them in the order of admission."""
        return sorted(requests, key=lambda request: self.order(now, request))

    def blocks(self, now: Situation, request: Request) -> bool:
        """Whether those behind it in its quota wait until it is admitted."""
        return False

    def admits(self, now: Situation, request: Request) -> bool:
        """Whether it may be admitted now."""
        return now.fits(request)

    def victims(self, now: Situation, request: Request) -> Iterable[Request]:
        """Possible victims, in this order."""
        return ()

    def is_preemptible(self, now: Situation, victim: Request, request: Request) -> bool:
        """Whether it may still be preempted, after those before it."""
        return True


class Replay:
    """Requests that come, are admitted, are preempted and end."""

    def __init__(self, policy: Policy, resource: str, requests: Iterable[Request], rules: Rules) -> None:
        self._policy, self._resource, self._rules = policy, resource, rules
        self._requests = sorted(requests, key=lambda each: each.created_ms)
        self.now = Situation(resource, rules)
        self._next, self._failed = 0, set[tuple[str, float, int]]()
        self._ends: list[tuple[int, str]] = []

    def restart(self, at_ms: int, holdings: Sequence[Holding], capacity: float, is_changed: bool) -> None:
        """Begin with what was recorded to hold at an instant; under changed quotas, with as much of it as they admit."""
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
        self._settle()

    def step(self, at_ms: int, holdings: Sequence[Holding], capacity: float) -> None:
        """Go on to an instant at which something changes."""
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
        self._settle()

    def _update(self, at_ms: int, holdings: Sequence[Holding], capacity: float) -> None:
        before = self.now.quotas, self.now.capacity
        self.now.at_ms = at_ms
        self.now.update(holdings, capacity if self._policy.is_held_by_nodes else math.inf)
        self._policy.update(self.now)
        if before != (self.now.quotas, self.now.capacity) or self._policy.follows_demand:
            self._failed.clear()

    def _settle(self) -> None:
        """Admit what the policy admits, one after the other, until it admits nothing more."""
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
        if evicted:  # they have not tried to preempt yet
            self._failed.clear()

    def _admit(self, request: Request, may_preempt: bool) -> list[Request] | None:
        """Victims; None where it is not admitted, and everything as it was."""
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
