"""Common data model of quotas: the input and output of every scheduler's rules.

Amounts are in the scheduler's native unit of the resource: GB of ``nos.nebuly.com/gpu-memory``, devices, bytes, cores,
percent of a GPU (Koordinator's gpu-core). Systems are named as in the lake's table ``quota``: nos, scheduler-plugins,
koordinator, volcano, kai, kueue, kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple


def leaves(holdings: Sequence[Holding]) -> list[Holding]:
    """Return the holdings without children; a parent's amounts are the sum of its children's."""
    parents = {each.quota.parent for each in holdings}
    return [each for each in holdings if not each.quota.is_parent and each.quota.name not in parents]


def roots(holdings: Sequence[Holding]) -> list[Holding]:
    """Return the holdings whose parent is not among the holdings."""
    known = {each.quota.name for each in holdings}
    return [each for each in holdings if each.quota.parent not in known]


def children(name: str, holdings: Sequence[Holding]) -> list[Holding]:
    """Return the direct children of this quota."""
    return [each for each in holdings if each.quota.parent == name and each.quota.name != name]


def below(name: str, holdings: Sequence[Holding]) -> list[Holding]:
    """Return all descendants of this quota, each once."""
    found: dict[str, Holding] = {}
    waiting = children(name, holdings)
    while waiting:
        each = waiting.pop()
        if each.quota.name not in found:
            found[each.quota.name] = each
            waiting += children(each.quota.name, holdings)
    return list(found.values())


@dataclass(frozen=True)
class Rules:
    """Settings in the schedulers' own configuration; no API object shows them."""

    gb_per_gpu: int = 32
    """nos: GB of gpu-memory that one whole GPU counts as."""
    scales_minimums: bool = True
    """Koordinator enableMinQuotaScale: mins are reduced in proportion if their sum exceeds the amount to share."""
    monitors_quotas: bool = False
    """Koordinator monitorAllQuotas: pods above the runtime quota are evicted."""
    k_value: float = 0.0
    """KAI kValue: how strongly past use counts against a queue; 0 where no usage database is configured."""
    half_life_hours: float = 0.0
    """KAI: half-life of past use; 0 where all past use counts equally."""
    window_hours: float = 168.0
    """KAI: length of the period of past use."""
    fair_sharing: float | None = None
    """Kueue: whether fair sharing is on; None to read it from Kueue's objects."""
    usage_half_life_hours: float = 0.0
    """Kueue usageHalfLifeTime of Admission Fair Sharing; 0 where it is unknown."""

    @property
    def of_facts(self) -> dict[str, float]:
        """Return the settings that facts depend on; usage_half_life_hours only if set, because older facts do not name it."""
        named = asdict(self)
        del named["window_hours"], named["fair_sharing"]
        return {name: value for name, value in named.items() if value or name != "usage_half_life_hours"}

    def with_settings(self, settings: Iterable[tuple[str, float]]) -> Rules:
        """Return a copy with other values, given by field name."""
        return replace(self, **dict(settings))  # type: ignore[arg-type]


DEFAULT_RULES = Rules()
"""Default configuration of each scheduler."""


@dataclass(frozen=True)
class Terms:
    """Terms of a quota for one resource; None where the quota or its system does not have the term."""

    guaranteed: float | None = None
    """nos, scheduler-plugins and Koordinator min, Kueue nominalQuota, Volcano guarantee, KAI quota (inf for its -1)."""
    cap: float | None = None
    """Hard limit: max, capability, limit, hard. None where there is no limit."""
    weight: float | None = None
    """Weight in sharing the surplus: shared-weight, Volcano weight, overQuotaWeight, fairSharing.weight."""
    deserved: float | None = None
    """Volcano's capacity plugin: amount that other queues may not reclaim."""
    borrowing_limit: float | None = None
    """Kueue: most that the queue may borrow. None where there is no limit."""
    lending_limit: float | None = None
    """Kueue: most that others may borrow from the queue. None where they may borrow all of it."""


@dataclass(frozen=True)
class Quota:
    """A quota, queue or cohort at one instant; ``name`` is unique within its system and cluster."""

    system: str
    name: str
    """namespace/name for namespaced objects (nos, scheduler-plugins, kubernetes), else the object's name."""
    terms: Mapping[str, Terms] = field(default_factory=dict)
    """By resource name as in the quota (nvidia.com/gpu; requests.nvidia.com/gpu for a ResourceQuota)."""
    parent: str = ""
    is_parent: bool = False
    """Its amounts are its children's amounts: exclude it from sums."""
    namespaces: tuple[str, ...] = ()
    """Namespaces whose pods it governs; empty where it does not govern by namespace."""
    tree: str = ""
    """Koordinator's tree id; empty for its default tree and in other systems."""
    scopes: str = ""
    """Scopes of a ResourceQuota; quotas with different scopes govern different pods."""
    priority: int | None = None
    may_lend: bool = True
    """Koordinator allow-lent-resource."""
    created_at_ms: int | None = None
    uid: str = ""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Kueue: reclaimWithinCohort and similar fields, as written in the object."""

    def of(self, resource: str) -> Terms:
        """Return the terms for a resource; empty terms where the quota has none."""
        return self.terms.get(resource, Terms())


class Past(NamedTuple):
    """Past use by queues, and capacity, over a period that ended at an instant; in amount × hours."""

    end_ms: float
    used: Mapping[str, float]
    capacity: float


class Holding(NamedTuple):
    """Demand and allocation of a quota for one resource at one instant."""

    quota: Quota
    demanded: float
    """Sum of requests of its allocated and waiting pods; never less than ``delivered``."""
    delivered: float
    """Sum of requests of its allocated pods."""


@dataclass(frozen=True)
class Share:
    """Fair share of a quota for one resource at one instant, by its system's rules, with all other quotas unchanged."""

    fair_share: float | None
    """Guarantee plus part of the surplus; None where the system does not define one or the amount is unknown."""
    reason: str = ""
    """Reason for None, as a code of ``catalog.REASONS``."""


@dataclass(frozen=True)
class Pod:
    """A pod under a quota, at one instant."""

    uid: str
    namespace: str
    name: str
    quota: str
    """Name of its quota."""
    requests: Mapping[str, float]
    """All requests by resource name as in the quota: gpu-memory in GB for nos, other resources in base units."""
    created_at_ms: int
    priority: int = 0
    is_bound: bool = False
    """Bound to a node and not finished."""
    is_running: bool = False
    """In phase Running."""


@dataclass(frozen=True)
class Exposure:
    """A pod that demand of another quota, or of its own, may preempt at one instant."""

    pod_uid: str
    by_quota: str
    condition: str
    """within min, fair share, or same namespace (nos); for others, the system's own terms."""
    evidence: str
    """Comparison in numbers, for example 40 + 10 <= 40 + 15 and 40 > 13."""
