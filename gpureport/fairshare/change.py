"""What somebody would change of the quotas and the cluster, and quotas with the change made."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gpureport.errors import UsageError
from gpureport.fairshare.model import Quota, Terms

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
"""The systems' own names of the terms."""
_MAY_BE_ABSENT: tuple[Term, ...] = ("cap", "deserved", "borrowing_limit", "lending_limit")
_SHOWN = 8


@dataclass(frozen=True)
class Setting:
    """One term of one quota with another value; None for none (no cap, no limit)."""

    quota: str
    term: Term
    value: float | None


@dataclass(frozen=True)
class Change:
    """Everything that is to be different."""

    settings: tuple[Setting, ...] = ()
    removed: tuple[str, ...] = ()
    added_gpus: float = 0

    def quotas(self) -> tuple[str, ...]:
        """The quotas that it names, each once."""
        return tuple(dict.fromkeys((*(each.quota for each in self.settings), *self.removed)))


NO_CHANGE = Change()
"""Everything as it was."""


def parse_setting(text: str) -> Setting:
    """``quota.NAME.TERM=VALUE``; the name may hold dots and slashes. UsageError says what is wrong with it."""
    left, equals, value = text.partition("=")
    name, dot, term = left.removeprefix("quota.").rpartition(".")
    if not (equals and dot and name) or not left.startswith("quota."):
        raise UsageError(f"--set {text!r} is not quota.NAME.TERM=VALUE; write it as quota.team-a.min=20")
    known = _OWN_WORDS.get(term, term)
    if known not in get_args(Term):
        raise UsageError(f"--set {text!r}: a quota has no {term!r}; choose of min, max, {', '.join(get_args(Term)[2:])}")
    return Setting(name, known, _value(text, known, value.strip()))  # type: ignore[arg-type]


def _value(text: str, term: str, written: str) -> float | None:
    if written == "none":
        if term not in _MAY_BE_ABSENT:
            raise UsageError(f"--set {text!r}: {term} cannot be none; give a number, as 0")
        return None
    try:
        value = float(written)
    except ValueError:
        raise UsageError(f"--set {text!r}: {written!r} is no number; give one in the quota's own unit, or none") from None
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"--set {text!r}: {written} cannot be; give a number from 0 on, in the quota's own unit")
    return value


def found_quota(name: str, known: Collection[str]) -> str:
    """The one known quota of this name, or the one of this name in some namespace; UsageError where none or several are."""
    if name in known:
        return name
    matches = sorted(each for each in known if each.rpartition("/")[2] == name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"there are several quotas {name!r}: {', '.join(matches)}; name one of them in full")
    shown = ", ".join(sorted(known)[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
    raise UsageError(f"there is no quota {name!r} in the window; there are {shown or 'none at all'}")


def resolved(change: Change, known: Collection[str]) -> Change:
    """The change with quotas' full names."""
    settings = tuple(replace(each, quota=found_quota(each.quota, known)) for each in change.settings)
    return replace(change, settings=settings, removed=tuple(found_quota(name, known) for name in change.removed))


def changed(quota: Quota, resource: str, change: Change) -> Quota:
    """The quota with what is set of the resource; one that is removed has no terms left."""
    if quota.name in change.removed:
        return replace(quota, terms={}, parent="", is_parent=False)
    own = [each for each in change.settings if each.quota == quota.name]
    if not own:
        return quota
    terms = quota.terms.get(resource, Terms())
    for each in own:
        terms = _with(terms, each)
    return replace(quota, terms={**quota.terms, resource: _kueue_cap(quota, terms) if quota.system == "kueue" else terms})


def _with(terms: Terms, setting: Setting) -> Terms:
    return replace(terms, **{setting.term: setting.value})


def _kueue_cap(quota: Quota, terms: Terms) -> Terms:
    """Kueue's cap follows from its other terms."""
    if not quota.parent:
        return replace(terms, cap=terms.guaranteed)
    if terms.borrowing_limit is None or terms.guaranteed is None:
        return replace(terms, cap=None)
    return replace(terms, cap=terms.guaranteed + terms.borrowing_limit)


def doubts(quotas: Iterable[Quota], resource: str) -> list[str]:
    """What a scheduler might refuse, or take otherwise than it looks, of quotas as they would be."""
    found = []
    for quota in quotas:
        terms = quota.terms.get(resource, Terms())
        if terms.cap is not None and terms.guaranteed is not None and terms.cap < terms.guaranteed:
            found.append(f"{quota.name}: max {terms.cap:g} is below min {terms.guaranteed:g}")
    return found
