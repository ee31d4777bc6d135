"""The one model of quotas that the rules of every scheduler read and answer in.

Amounts are in the scheduler's native unit of the resource: GB of ``nos.nebuly.com/gpu-memory``, devices, bytes, cores,
percent of a GPU (Koordinator's gpu-core). Systems are named as in the lake's table ``quota``: nos, scheduler-plugins,
koordinator, volcano, kai, kueue, kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple


def leaves(holdings: Sequence[Holding]) -> list[Holding]:
    """Holdings of their own: a parent's are its children's."""
    parents = {each.quota.parent for each in holdings}
    return [each for each in holdings if not each.quota.is_parent and each.quota.name not in parents]


def roots(holdings: Sequence[Holding]) -> list[Holding]:
    """Holdings under none that is known."""
    known = {each.quota.name for each in holdings}
    return [each for each in holdings if each.quota.parent not in known]


def children(name: str, holdings: Sequence[Holding]) -> list[Holding]:
    """Holdings right under this quota."""
    return [each for each in holdings if each.quota.parent == name and each.quota.name != name]


def below(name: str, holdings: Sequence[Holding]) -> list[Holding]:
    """Holdings anywhere under this quota, each once."""
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
    """Settings of the schedulers' own configuration, which no object of the API shows."""

    gb_per_gpu: int = 32
    """nos: GB of gpu-memory that a whole GPU counts."""
    scales_minimums: bool = True
    """Koordinator enableMinQuotaScale: mins that are more than there is are cut in proportion."""
    monitors_quotas: bool = False
    """Koordinator monitorAllQuotas: what is above the runtime is taken back."""
    k_value: float = 0.0
    """KAI kValue: how much past use counts against a queue; 0 where no usage database is configured."""
    half_life_hours: float = 0.0
    """KAI: after how long use counts half; 0 where all of it counts alike."""
    window_hours: float = 168.0
    """KAI: how far back use counts."""
    fair_sharing: float | None = None
    """Kueue: whether its fair sharing is on; None where its objects show it."""
    usage_half_life_hours: float = 0.0
    """Kueue usageHalfLifeTime of its Admission Fair Sharing; 0 where it is not known."""

    @property
    def of_facts(self) -> dict[str, float]:
        """Those that facts depend on; older facts do not name the half-life of use, so it is where it is set."""
        named = asdict(self)
        del named["window_hours"], named["fair_sharing"]
        return {name: value for name, value in named.items() if value or name != "usage_half_life_hours"}

    def but(self, settings: Iterable[tuple[str, float]]) -> Rules:
        """With other values, by the fields' names."""
        return replace(self, **dict(settings))  # type: ignore[arg-type]


DEFAULT_RULES = Rules()
"""Everything as it is installed."""


@dataclass(frozen=True)
class Terms:
    """Term of a quota for one resource; None where it has none or its system has no such notion."""

    guaranteed: float | None = None
    """nos, scheduler-plugins and Koordinator min, Kueue nominalQuota, Volcano guarantee, KAI quota (inf for its -1)."""
    cap: float | None = None
    """Hard limit: max, capability, limit, hard. None where there is none."""
    weight: float | None = None
    """Share of what is over, as the system counts it: shared-weight, Volcano weight, overQuotaWeight, fairSharing.weight."""
    deserved: float | None = None
    """Volcano's capacity plugin: what it has before others may reclaim."""
    borrowing_limit: float | None = None
    """Kueue: most that it may borrow. None where there is no limit."""
    lending_limit: float | None = None
    """Kueue: most that others may borrow of it. None where all of it may be."""


@dataclass(frozen=True)
class Quota:
    """A quota, queue or cohort as it is at one instant; ``name`` is one of its kind in its system and cluster."""

    system: str
    name: str
    """namespace/name of what is named per namespace (nos, scheduler-plugins, kubernetes), else the object's name."""
    terms: Mapping[str, Terms] = field(default_factory=dict)
    """By resource as the quota names it (nvidia.com/gpu; requests.nvidia.com/gpu of a ResourceQuota)."""
    parent: str = ""
    is_parent: bool = False
    """Holds what its children hold: leave it out of sums."""
    namespaces: tuple[str, ...] = ()
    """Namespaces whose pods it governs, where it governs namespaces."""
    tree: str = ""
    """Koordinator's tree; other systems have one."""
    scopes: str = ""
    """Scopes of a ResourceQuota: of others it governs other pods."""
    priority: int | None = None
    may_lend: bool = True
    """Koordinator allow-lent-resource."""
    created_at_ms: int | None = None
    uid: str = ""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Kueue: reclaimWithinCohort and similar fields, as in the object."""

    def of(self, resource: str) -> Terms:
        """Its term for a resource; an empty one where it has none."""
        return self.terms.get(resource, Terms())


class Past(NamedTuple):
    """Past use of queues and capacity, in some time that ended at an instant; amounts times hours."""

    end_ms: float
    used: Mapping[str, float]
    capacity: float


class Holding(NamedTuple):
    """Demand and allocation of a quota for one resource at one instant."""

    quota: Quota
    demanded: float
    """Requests of its pods that hold or wait; never less than ``delivered``."""
    delivered: float
    """Requests of its pods that hold."""


@dataclass(frozen=True)
class Share:
    """Share of a quota for one resource by its system's rules at one instant, with all others as they are."""

    fair_share: float | None
    """Guarantee and part of the surplus; None where the system has no such number."""
    reason: str = ""
    """Reason for None, as a code of ``figures.REASONS``."""


@dataclass(frozen=True)
class Pod:
    """A pod that is governed by a quota, at one instant."""

    uid: str
    namespace: str
    name: str
    quota: str
    """Name of its quota."""
    requests: Mapping[str, float]
    """By resource as the quota names it (gpu-memory in GB for nos), with all others that it requests, in base units."""
    created_at_ms: int
    priority: int = 0
    is_bound: bool = False
    """Placed on a node and not over."""
    is_running: bool = False
    """In phase Running."""


@dataclass(frozen=True)
class Exposure:
    """A pod that another quota's demand, or its own quota's, may preempt at one instant."""

    pod_uid: str
    by_quota: str
    condition: str
    """within min, fair share, or same namespace (nos); the system's own words for others."""
    evidence: str
    """The numbers, as 40 + 10 <= 40 + 15 and 40 > 13."""
