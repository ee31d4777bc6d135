"""What quotas would hold at an instant, by their system's rules, of what they ask for: the heart of a replay.

Amounts are as divisible as water here, and evictions take no time. ``ASSUMPTIONS`` says what else is taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpureport.schedulers import kueue, volcano
from gpureport.schedulers.filling import first_come, water_fill
from gpureport.schedulers.model import Holding, Terms
from gpureport.schedulers.resource_quota import by_namespace, together
from gpureport.schedulers.shares import fair_shares
from gpureport.schedulers.tree import below, leaves

Amounts = dict[str, float]
"""By quota's name, in the resource's unit."""

ASSUMPTIONS: Mapping[str, str] = {
    "nos": "min and guaranteed over-quota are taken back from pods over quota; all stay within the sum of min",
    "scheduler-plugins": "min is taken back from quotas above theirs; all stay within the sum of min",
    "koordinator": "pods come in within their quota's runtime; what is above is taken back only with monitorAllQuotas",
    "volcano": "what is deserved is taken back from queues beyond theirs; the action reclaim is taken to be on",
    "kai": "the fair share is taken back from queues beyond theirs; limits hold; past use counts with kai.kValue",
    "kueue": "taken back and preempted as each ClusterQueue says (reclaimWithinCohort is Never where it says nothing)",
    "kubernetes": "there is no guarantee: those who hold keep, within the cap",
}
"""By system: how a replay decides what its rules leave open."""


def allocate(system: str, resource: str, holdings: Sequence[Holding], capacity: float, before: Mapping[str, float]) -> Amounts:
    """What each leaf quota holds of what it demands, if ``before`` is what each held until now.

    First what is guaranteed, then up to the fair share, then what is left; never more than the cap, the demand and, all
    together, the capacity. Where even guarantees are more than there is, those who hold keep. Several ResourceQuotas of a
    namespace hold the same.
    """
    if system != "kubernetes":
        return _allocate(system, resource, holdings, capacity, before)
    groups = by_namespace(holdings)
    held = _allocate(system, resource, [together(resource, group) for group in groups.values()], capacity, before)
    return {each.quota.name: held[name] for name, group in groups.items() for each in group}


def _allocate(system: str, resource: str, holdings: Sequence[Holding], capacity: float, before: Mapping[str, float]) -> Amounts:
    wanted = {each.quota.name: wanted_within_cap(resource, each) for each in leaves(holdings)}
    held = dict.fromkeys(wanted, 0.0)
    usable = min(capacity, _sum_of_min(resource, holdings)) if system in _BOUND_BY_MIN else capacity
    for rule in _STAGES[system]:
        limits = rule(system, resource, holdings, capacity, held)
        more = {name: max(0.0, min(want, limits.get(name, want)) - held[name]) for name, want in wanted.items()}
        had = {name: before.get(name, 0.0) - held[name] for name in wanted}
        granted = first_come(usable - sum(held.values()), more, had)
        held = {name: held[name] + granted[name] for name in held}
    return held


def wanted_within_cap(resource: str, each: Holding) -> float:
    """What a quota asks for and may have at most."""
    cap = _terms(each, resource).cap
    return each.demanded if cap is None else min(each.demanded, cap)


def _terms(each: Holding, resource: str) -> Terms:
    return each.quota.terms.get(resource, Terms())


def _sum_of_min(resource: str, holdings: Sequence[Holding]) -> float:
    return sum(_terms(each, resource).guaranteed or 0.0 for each in holdings)


_Stage = Callable[[str, str, Sequence[Holding], float, Amounts], Amounts]


def _guaranteed(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    return {each.quota.name: _terms(each, resource).guaranteed or 0.0 for each in holdings}


def _fair_share(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """By the rules, from what is held so far; nos shares what quotas leave of their min."""
    now = [replace(each, delivered=held.get(each.quota.name, each.delivered)) for each in holdings]
    found = fair_shares(system, resource, now, capacity)
    return {name: share.fair_share for name, share in found.items() if share.fair_share is not None}


def _what_is_left(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Anything, but no more than what the cap of a parent leaves, which its queues share by what they still ask for."""
    limits = dict.fromkeys(held, math.inf)
    for parent in holdings:
        cap = _terms(parent, resource).cap
        if cap is None or parent.quota.name in held:
            continue
        own = {each.quota.name: each for each in below(parent.quota.name, holdings) if each.quota.name in held}
        short = {name: max(0.0, wanted_within_cap(resource, each) - held[name]) for name, each in own.items()}
        ratio = max(0.0, cap - sum(held[name] for name in own)) / (sum(short.values()) or 1.0)
        limits |= {name: min(limits[name], held[name] + short[name] * ratio) for name in own}
    return limits


def _real_capability(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Volcano: what the guarantees of others leave, which are never lent."""
    limits = volcano.limits(resource, holdings, capacity)
    left = _what_is_left(system, resource, holdings, capacity, held)
    return {name: min(limits.get(name, math.inf), left[name]) for name in held}


def _borrowed_by_weight(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Kueue: the nominal quota and what cohorts lend, level by level."""
    now = [replace(each, delivered=_within_borrowing(resource, each) if each.quota.name in held else 0.0) for each in holdings]
    trees = kueue.cohorts(resource, now)
    roots = [name for name, node in trees.nodes.items() if not node.parent]
    return {name: part for root in roots for name, part in _lent(trees, resource, root, 0.0).items()}


def _within_borrowing(resource: str, each: Holding) -> float:
    limit = _terms(each, resource).borrowing_limit
    own = _terms(each, resource).guaranteed or 0.0
    return min(wanted_within_cap(resource, each), math.inf if limit is None else own + limit)


def _lent(trees: kueue.Cohorts, resource: str, name: str, from_above: float) -> Amounts:
    """What a queue may hold, or the queues under a cohort, that is given so much from above."""
    key = ("", resource)
    children = [node for node in trees.nodes.values() if node.parent == name]
    if not children:
        return {name: trees.subtree_quota(name, key) + from_above}
    pool, wants = trees.nodes[name].terms.get(key, Terms()).guaranteed or 0.0, {}
    for child in children:
        quota, used = trees.subtree_quota(child.name, key), trees.usage(child.name, key)
        local, limit = trees.local_quota(child.name, key), child.terms.get(key, Terms()).borrowing_limit
        pool += quota - local - min(max(0.0, used - local), quota - local)
        wants[child.name] = min(max(0.0, used - quota), math.inf if limit is None else limit)
    given = water_fill(pool + from_above, wants, {child.name: child.weight for child in children})
    return {leaf: part for child in children for leaf, part in _lent(trees, resource, child.name, given[child.name]).items()}


_BOUND_BY_MIN = ("nos", "scheduler-plugins")
"""All quotas together never use more than all min."""
_STAGES: Mapping[str, Sequence[_Stage]] = {
    "nos": (_guaranteed, _fair_share, _what_is_left),
    "scheduler-plugins": (_guaranteed, _what_is_left),
    "koordinator": (_fair_share,),
    "volcano": (_guaranteed, _fair_share, _real_capability),
    "kai": (_fair_share, _what_is_left),
    "kueue": (_guaranteed, _borrowed_by_weight),
    "kubernetes": (_what_is_left,),
}
