"""Allocation of quotas at one instant by their system's rules, for known requests: the core of a replay.

Simplifications: amounts are divisible, and evictions take no time. ``ASSUMPTIONS`` lists the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpureport.schedulers import kai, koordinator, kueue, nos, volcano
from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share, Terms, below, leaves

NO_FAIR_SHARE = Share(None, "no_such_notion")
CAPACITY_UNKNOWN = Share(None, "capacity_unknown")
_WATER_FILLING = {"koordinator": koordinator.shares, "volcano": volcano.shares, "kai": kai.shares}
SHARING = ("nos", *_WATER_FILLING)
"""Systems with a fair share for each quota; the other systems do not define one."""


def fair_shares(
    system: str, resource: str, holdings: Sequence[Holding], capacity: float | None, rules: Rules = DEFAULT_RULES
) -> dict[str, Share]:
    """Return the fair share of each quota for the resource, by quota name, with the other quotas unchanged.

    ``capacity`` is the amount to share, in the resource's unit; None where it is unknown. nos does not need it, because
    it shares the unused min of quotas. scheduler-plugins, Kueue and ResourceQuota do not define a fair share.
    """
    if system == "nos":
        return nos.shares(resource, holdings)
    if system not in _WATER_FILLING:
        return {each.quota.name: NO_FAIR_SHARE for each in holdings}
    shared = [each for each in holdings if not each.quota.tree]
    found = {each.quota.name: CAPACITY_UNKNOWN for each in holdings}  # a Koordinator tree has its own nodes
    return found if capacity is None else {**found, **_WATER_FILLING[system](resource, shared, capacity, rules)}


def by_namespace(holdings: Sequence[Holding]) -> dict[str, list[Holding]]:
    """Group quotas with the same namespaces and scopes, which govern the same pods; the key is the first quota's name."""
    found: dict[tuple[str, ...], list[Holding]] = {}
    for each in sorted(holdings, key=lambda each: each.quota.name):
        found.setdefault((each.quota.scopes, *(each.quota.namespaces or (each.quota.name,))), []).append(each)
    return {group[0].quota.name: group for group in found.values()}


def merge_holdings(resource: str, group: Sequence[Holding]) -> Holding:
    """Merge quotas of the same pods: the lowest cap applies; demand and allocation are equal in all, so they are not summed."""
    caps = [cap for each in group if (cap := each.quota.of(resource).cap) is not None]
    terms = {resource: Terms(cap=min(caps, default=None))}
    demanded, delivered = max(each.demanded for each in group), max(each.delivered for each in group)
    return Holding(replace(group[0].quota, terms=terms), demanded, delivered)


_TOLERANCE = 1e-9


def water_fill(amount: float, wants: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """Share the amount by weight, at most what each wants; the excess is shared among the others.

    All reach the same level per unit of weight, or what they want. A quota without weight gets nothing.
    """
    parts = dict.fromkeys(wants, 0.0)
    hungry = [name for name in wants if wants[name] > 0 and weights.get(name, 0) > 0]
    left = max(0.0, amount)
    while hungry and left > _TOLERANCE:
        level = left / sum(weights[name] for name in hungry)
        content = [name for name in hungry if wants[name] - parts[name] <= level * weights[name] + _TOLERANCE]
        for name in content or hungry:
            part = min(wants[name] - parts[name], level * weights[name])
            parts[name] += part
            left -= part
        hungry = [name for name in hungry if name not in content] if content else []
    return parts


def share_by_previous_use(amount: float, wants: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Allocate first to previous holders that still want it, then in proportion to demand: the order of arrival is unknown."""
    left = max(0.0, amount)
    kept = _in_proportion(left, {name: min(want, max(0.0, before.get(name, 0.0))) for name, want in wants.items()})
    more = _in_proportion(left - sum(kept.values()), {name: want - kept[name] for name, want in wants.items()})
    return {name: kept[name] + more[name] for name in wants}


def _in_proportion(amount: float, wants: Mapping[str, float]) -> dict[str, float]:
    total = sum(wants.values())
    if total <= amount:
        return dict(wants)
    ratio = max(0.0, amount) / total
    return {name: want * ratio for name, want in wants.items()}


Amounts = dict[str, float]
"""By quota name, in the resource's unit."""

ASSUMPTIONS: Mapping[str, str] = {
    "nos": "min and guaranteed over-quota are reclaimed from pods over quota; the total stays within the sum of min",
    "scheduler-plugins": "min is reclaimed from quotas above their min; the total stays within the sum of min",
    "koordinator": "pods are admitted within their quota's runtime; use above it is reclaimed only with monitorAllQuotas",
    "volcano": "deserved amounts are reclaimed from queues above theirs; the action reclaim is assumed to be on",
    "kai": "the fair share is reclaimed from queues above theirs; limits apply; past use counts with kai.kValue",
    "kueue": "each ClusterQueue reclaims and preempts as it is configured (reclaimWithinCohort: Never where not set)",
    "kubernetes": "there is no guarantee: allocations stay, within the hard limit",
}
"""By system: assumptions of a replay where the rules do not decide."""


def allocate(system: str, resource: str, holdings: Sequence[Holding], capacity: float, before: Mapping[str, float]) -> Amounts:
    """Return the allocation of each leaf quota for its demand; ``before`` is the previous allocation.

    Order: guarantees, then fair shares, then the remainder; within cap, demand and total capacity. If guarantees exceed
    the capacity, previous holders keep their allocation. Several ResourceQuotas of a namespace have the same allocation.
    """
    if system != "kubernetes":
        return _allocate(system, resource, holdings, capacity, before)
    groups = by_namespace(holdings)
    held = _allocate(system, resource, [merge_holdings(resource, group) for group in groups.values()], capacity, before)
    return {each.quota.name: held[name] for name, group in groups.items() for each in group}


def _allocate(system: str, resource: str, holdings: Sequence[Holding], capacity: float, before: Mapping[str, float]) -> Amounts:
    wanted = {each.quota.name: wanted_within_cap(resource, each) for each in leaves(holdings)}
    held = dict.fromkeys(wanted, 0.0)
    usable = min(capacity, _sum_of_min(resource, holdings)) if system in _BOUND_BY_MIN else capacity
    for rule in _STAGES[system]:
        limits = rule(system, resource, holdings, capacity, held)
        more = {name: max(0.0, min(want, limits.get(name, want)) - held[name]) for name, want in wanted.items()}
        had = {name: before.get(name, 0.0) - held[name] for name in wanted}
        granted = share_by_previous_use(usable - sum(held.values()), more, had)
        held = {name: held[name] + granted[name] for name in held}
    return held


def wanted_within_cap(resource: str, each: Holding) -> float:
    """Return the demand of a quota, at most its cap."""
    cap = each.quota.of(resource).cap
    return each.demanded if cap is None else min(each.demanded, cap)


def _sum_of_min(resource: str, holdings: Sequence[Holding]) -> float:
    return sum(each.quota.of(resource).guaranteed or 0.0 for each in holdings)


_Stage = Callable[[str, str, Sequence[Holding], float, Amounts], Amounts]


def _guaranteed(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    return {each.quota.name: each.quota.of(resource).guaranteed or 0.0 for each in holdings}


def _fair_share(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Limit to the fair share, given the current allocation; for nos it depends on the unused min."""
    now = [each._replace(delivered=held.get(each.quota.name, each.delivered)) for each in holdings]
    found = fair_shares(system, resource, now, capacity)
    return {name: share.fair_share for name, share in found.items() if share.fair_share is not None}


def _within_parent_caps(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Limit only by the caps of parents; the rest of a cap is shared in proportion to the unmet demand of its queues."""
    limits = dict.fromkeys(held, math.inf)
    for parent in holdings:
        cap = parent.quota.of(resource).cap
        if cap is None or parent.quota.name in held:
            continue
        own = {each.quota.name: each for each in below(parent.quota.name, holdings) if each.quota.name in held}
        short = {name: max(0.0, wanted_within_cap(resource, each) - held[name]) for name, each in own.items()}
        ratio = max(0.0, cap - sum(held[name] for name in own)) / (sum(short.values()) or 1.0)
        limits |= {name: min(limits[name], held[name] + short[name] * ratio) for name in own}
    return limits


def _real_capability(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Limit (Volcano) to capacity outside the guarantees of others: guarantees are never lent."""
    limits = volcano.limits(resource, holdings, capacity)
    left = _within_parent_caps(system, resource, holdings, capacity, held)
    return {name: min(limits.get(name, math.inf), left[name]) for name in held}


def _borrowed_by_weight(system: str, resource: str, holdings: Sequence[Holding], capacity: float, held: Amounts) -> Amounts:
    """Limit (Kueue) to the nominal quota plus what cohorts lend, level by level."""
    now = [each._replace(delivered=_within_borrowing(resource, each) if each.quota.name in held else 0.0) for each in holdings]
    trees = kueue.cohorts(resource, now)
    roots = [name for name, node in trees.nodes.items() if not node.parent]
    return {name: part for root in roots for name, part in _lent(trees, resource, root, 0.0).items()}


def _within_borrowing(resource: str, each: Holding) -> float:
    limit = each.quota.of(resource).borrowing_limit
    own = each.quota.of(resource).guaranteed or 0.0
    return min(wanted_within_cap(resource, each), math.inf if limit is None else own + limit)


def _lent(trees: kueue.Cohorts, resource: str, name: str, from_above: float) -> Amounts:
    """Return the allocation of a queue, or of all queues under a cohort, from an amount."""
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
    lent = water_fill(pool + from_above, wants, {child.name: child.weight for child in children})
    return {leaf: part for child in children for leaf, part in _lent(trees, resource, child.name, lent[child.name]).items()}


_BOUND_BY_MIN = ("nos", "scheduler-plugins")
"""Systems whose total use never exceeds the sum of all min."""
_STAGES: Mapping[str, Sequence[_Stage]] = {
    "nos": (_guaranteed, _fair_share, _within_parent_caps),
    "scheduler-plugins": (_guaranteed, _within_parent_caps),
    "koordinator": (_fair_share,),
    "volcano": (_guaranteed, _fair_share, _real_capability),
    "kai": (_fair_share, _within_parent_caps),
    "kueue": (_guaranteed, _borrowed_by_weight),
    "kubernetes": (_within_parent_caps,),
}
