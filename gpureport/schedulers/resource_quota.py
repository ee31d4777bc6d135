"""Kubernetes' ResourceQuota: a cap on what a namespace asks for, waiting pods too; no guarantee, no borrowing, no fair share.

Source: Kubernetes 1.36, the quota admission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpureport.schedulers.model import Holding, Terms


def by_namespace(holdings: Sequence[Holding]) -> dict[str, list[Holding]]:
    """Quotas of the same namespaces, which govern the same pods, under the first one's name."""
    found: dict[tuple[str, ...], list[Holding]] = {}
    for each in sorted(holdings, key=lambda each: each.quota.name):
        found.setdefault(each.quota.namespaces or (each.quota.name,), []).append(each)
    return {group[0].quota.name: group for group in found.values()}


def together(resource: str, group: Sequence[Holding]) -> Holding:
    """Several quotas of one namespace as one: the lowest cap holds, and what they demand and hold is the same, never the sum."""
    caps = [cap for each in group if (cap := each.quota.terms.get(resource, Terms()).cap) is not None]
    terms = {resource: Terms(cap=min(caps, default=None))}
    demanded, delivered = max(each.demanded for each in group), max(each.delivered for each in group)
    return Holding(replace(group[0].quota, terms=terms), demanded, delivered)
