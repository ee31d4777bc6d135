"""Elastic quotas pod by pod: whom nos and scheduler-plugins let in, and whom they take out for it.

Sources: nos (12e0a72, 2024-04) and scheduler-plugins (2026-08), their plugins of capacity scheduling; one resource at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from gpureport.schedulers.pods import Ask, Policy, Situation

_TOLERANCE = 1e-9


class ElasticPolicy(Policy):
    """scheduler-plugins: within its min a quota takes back from those above theirs, else from its own less important pods."""

    def admits(self, now: Situation, ask: Ask) -> bool:
        """All quotas together stay within the sum of min."""
        return now.fits(ask) and now.total + ask.amount <= sum(map(now.minimum, now.quotas)) + _TOLERANCE

    def victims(self, now: Situation, ask: Ask) -> Sequence[Ask]:
        """Pods of others while it is within what it may claim, and less important ones of its own where it is above min."""
        own = [each for each in now.least_important([ask.quota]) if each.priority < ask.priority]
        own = [] if self._is_within_min(now, ask) else own
        return [*own, *(each for each in self._exposed(now) if each.quota != ask.quota)]

    def may_go(self, now: Situation, victim: Ask, ask: Ask) -> bool:
        """Its own always; others while their quota still has more than it may keep."""
        if victim.quota == ask.quota:
            return True
        bound = now.minimum(victim.quota) + (0.0 if self._is_within_min(now, ask) else self._over(now, victim.quota))
        return self._may_claim(now, ask) and now.used[victim.quota] > bound + _TOLERANCE

    def _is_within_min(self, now: Situation, ask: Ask) -> bool:
        return now.is_within(ask.quota, ask.amount, now.minimum(ask.quota))

    def _may_claim(self, now: Situation, ask: Ask) -> bool:
        return now.is_within(ask.quota, ask.amount, now.minimum(ask.quota) + self._over(now, ask.quota))

    def _over(self, now: Situation, quota: str) -> float:
        """Guarantee beyond its min."""
        return 0.0

    def _exposed(self, now: Situation) -> list[Ask]:
        """Candidates for another quota."""
        return now.least_important()


class NosPolicy(ElasticPolicy):
    """nos: unused min is guaranteed to others in proportion, and only pods over quota are taken."""

    def _over(self, now: Situation, quota: str) -> float:
        total = sum(map(now.minimum, now.quotas))
        unused = sum(max(0.0, now.minimum(name) - now.used[name]) for name in now.quotas)
        return math.floor(now.minimum(quota) / total * unused) if total else 0.0

    def _exposed(self, now: Situation) -> list[Ask]:
        """Those over quota: they and the older ones of their quota request more than min together."""
        used: dict[str, float] = defaultdict(float)
        over = set()
        for each in sorted(now.running.values(), key=_counted):
            used[each.quota] += each.amount
            if used[each.quota] > now.minimum(each.quota) + _TOLERANCE:
                over.add(each.uid)
        return [each for each in now.least_important() if each.uid in over]


def _counted(pod: Ask) -> tuple[int, int, float, str]:
    return pod.created_ms, pod.priority, pod.amount, pod.uid
