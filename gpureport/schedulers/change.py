"""Changes of quotas and scheduler settings, and their application to quotas."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from gpureport.schedulers.model import Quota, Terms
from gpureport.values.errors import UsageError

Term = Literal["guaranteed", "cap", "weight", "deserved", "borrowing_limit", "lending_limit"]
_OWN_WORDS: dict[str, Term] = {
    "min": "guaranteed",
    "nominalQuota": "guaranteed",
    "guarantee": "guaranteed",
    "quota": "guaranteed",
    "max": "cap",
    "limit": "cap",
    "hard": "cap",
    "capability": "cap",
    "overQuotaWeight": "weight",
    "borrowingLimit": "borrowing_limit",
    "lendingLimit": "lending_limit",
}
"""Each system's own names of the terms."""
_POLICIES: Mapping[str, tuple[str, ...]] = {
    "reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
    "withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "borrowWithinCohort": ("Never", "LowerPriority"),
    "queueingStrategy": ("BestEffortFIFO", "StrictFIFO"),
}
"""Policy fields of Kueue and their values."""
RULES = {
    "kueue.fairSharing": "fair_sharing",
    "kai.kValue": "k_value",
    "kai.halfLifeHours": "half_life_hours",
    "kai.windowHours": "window_hours",
    "koordinator.enableMinQuotaScale": "scales_minimums",
}
"""Global settings of schedulers, mapped to fields of ``Rules``."""
SETTABLE: Mapping[str, str] = {
    "nos": "min, max",
    "scheduler-plugins": "min, max",
    "kueue": f"nominalQuota, borrowingLimit, lendingLimit, weight, {', '.join(_POLICIES)}; kueue.fairSharing",
    "koordinator": "min, max, weight; koordinator.enableMinQuotaScale",
    "volcano": "guarantee, capability, weight, deserved",
    "kai": "quota, limit, overQuotaWeight; kai.kValue, kai.halfLifeHours, kai.windowHours",
    "kubernetes": "hard",
}
"""By system: terms and settings that a change may name."""
_MAY_BE_ABSENT: tuple[Term, ...] = ("cap", "deserved", "borrowing_limit", "lending_limit")
_SHOWN = 8


class Pool(NamedTuple):
    """Quotas that share one resource: one system in one cluster, and one flavor where the system has flavors."""

    cluster: str
    system: str
    resource: str
    flavor: str = ""

    @property
    def shown_resource(self) -> str:
        """Return the resource with its flavor: h100/nvidia.com/gpu, nos.nebuly.com/gpu-memory."""
        return f"{self.flavor}/{self.resource}" if self.flavor else self.resource


@dataclass(frozen=True)
class Setting:
    """New value of one term of one quota; None removes it (no cap, no limit)."""

    quota: str
    term: str
    value: float | None
    resource: str = ""
    """Name of the resource; needed where a quota has several."""
    word: str = ""
    """Value of a Kueue policy field, instead of a number."""


@dataclass(frozen=True)
class Change:
    """Changed terms of quotas, and removed quotas."""

    settings: tuple[Setting, ...] = ()
    removed: tuple[str, ...] = ()

    def quotas(self) -> tuple[str, ...]:
        """Return the names of changed and removed quotas, each once."""
        return tuple(dict.fromkeys((*(each.quota for each in self.settings), *self.removed)))


NO_CHANGE = Change()
"""No difference from the recorded quotas."""


def parse_setting(text: str) -> Setting:
    """Parse ``quota.NAME.TERM=VALUE`` or ``quota.NAME.TERM[RESOURCE]=VALUE``; the name may contain dots and slashes.

    Raises UsageError for any other text.
    """
    left, equals, value = text.partition("=")
    named, _, resource = left.partition("[")
    name, dot, term = named.removeprefix("quota.").rpartition(".")
    if not (equals and dot and name and named.startswith("quota.")) or (resource and not resource.endswith("]")):
        raise UsageError(f"--set {text!r} is not quota.NAME.TERM=VALUE; write it as quota.team-a.min=20")
    known = _OWN_WORDS.get(term, term)
    if term in _POLICIES:
        if value not in _POLICIES[term]:
            raise UsageError(f"--set {text!r}: {term} cannot be {value!r}; choose from {', '.join(_POLICIES[term])}")
        return Setting(name, term, None, resource.removesuffix("]"), value)
    if known not in get_args(Term):
        raise UsageError(f"--set {text!r}: a quota has no {term!r}; choose from min, max, {', '.join(get_args(Term)[2:])}")
    return Setting(name, known, _value(text, known, value.strip()), resource.removesuffix("]"))


def parse_rule(text: str) -> tuple[str, float] | None:
    """Return the setting of a scheduler; None where the text names a quota instead."""
    name, _, value = text.partition("=")
    return (RULES[name], _value(text, name, value.strip()) or 0.0) if name in RULES else None


def _value(text: str, term: str, written: str) -> float | None:
    if written == "none":
        if term not in _MAY_BE_ABSENT:
            raise UsageError(f"--set {text!r}: {term} cannot be none; give a number, as 0")
        return None
    try:
        value = float(written)
    except ValueError:
        raise UsageError(f"--set {text!r}: {written!r} is not a number; give one in the quota's own unit, or none") from None
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"--set {text!r}: {written} is not possible; give 0 or more, in the quota's own unit")
    return value


def resolved(change: Change, known: Mapping[Pool, Collection[str]]) -> dict[Pool, Change]:
    """Return changes by pool, with full quota names; UsageError where a quota or resource is unknown or ambiguous."""
    found: dict[Pool, Change] = {}
    for setting in change.settings:
        name, pools = _quota_meant(setting.quota, known)
        pool = _resource_meant(setting, name, pools)
        before = found.get(pool, NO_CHANGE)
        found[pool] = replace(before, settings=(*before.settings, replace(setting, quota=name)))
    for removed in change.removed:
        name, pools = _quota_meant(removed, known)
        for pool in pools:
            before = found.get(pool, NO_CHANGE)
            found[pool] = replace(before, removed=(*before.removed, name))
    return found


def _quota_meant(name: str, known: Mapping[Pool, Collection[str]]) -> tuple[str, list[Pool]]:
    """Return the only match (full name, name in any namespace, or namespace) and its pools; UsageError if none or several."""
    every = sorted({quota for quotas in known.values() for quota in quotas})
    matches = [name] if name in every else [each for each in every if name in (each.rpartition("/")[2], each.partition("/")[0])]
    if not matches:
        shown = ", ".join(every[:_SHOWN]) + (", …" if len(every) > _SHOWN else "")
        raise UsageError(f"there is no quota {name!r} in the window; there are {shown or 'none at all'}")
    if len(matches) > 1:
        raise UsageError(f"there are several quotas {name!r}: {', '.join(matches)}; name one of them in full")
    pools = [pool for pool, quotas in known.items() if matches[0] in quotas]
    for option, places in (("cluster", {pool.cluster for pool in pools}), ("system", {pool.system for pool in pools})):
        if len(places) > 1:
            raise UsageError(f"there is a quota {matches[0]!r} in {' and in '.join(sorted(places))}; choose one with --{option}")
    return matches[0], pools


def _resource_meant(setting: Setting, name: str, pools: Sequence[Pool]) -> Pool:
    meant = [pool for pool in pools if setting.resource in ("", pool.resource, pool.shown_resource)]
    shown = ", ".join(sorted(pool.shown_resource for pool in meant or pools))
    if not meant:
        raise UsageError(f"quota {name!r} has no {setting.resource!r}; it has {shown}")
    if len(meant) > 1:
        raise UsageError(f"quota {name!r} has several resources, {shown}; name one, as quota.{name}.min[RESOURCE]=20")
    return meant[0]


def changed(quota: Quota, resource: str, change: Change) -> Quota:
    """Return the quota with its changes to the resource; a removed quota has no terms."""
    if quota.name in change.removed:
        return replace(quota, terms={}, parent="", is_parent=False)
    own = [each for each in change.settings if each.quota == quota.name]
    if not own:
        return quota
    terms = replace(quota.of(resource), **{each.term: each.value for each in own if not each.word})
    policy = {**quota.policy, **{each.term: each.word for each in own if each.word}}
    own_terms = _kueue_cap(quota, terms) if quota.system == "kueue" else terms
    return replace(quota, terms={**quota.terms, resource: own_terms}, policy=policy)


def _kueue_cap(quota: Quota, terms: Terms) -> Terms:
    """Return terms with Kueue's cap, which follows from the other terms."""
    if not quota.parent:
        return replace(terms, cap=terms.guaranteed)
    if terms.borrowing_limit is None or terms.guaranteed is None:
        return replace(terms, cap=None)
    return replace(terms, cap=terms.guaranteed + terms.borrowing_limit)


def doubts(quotas: Iterable[Quota], resource: str) -> list[str]:
    """Return warnings about changed quotas: terms that a scheduler rejects or interprets differently."""
    found = []
    for quota in quotas:
        terms = quota.of(resource)
        if terms.cap is not None and terms.guaranteed is not None and terms.cap < terms.guaranteed:
            found.append(f"{quota.name}: max {terms.cap:g} is below min {terms.guaranteed:g}")
    return found
