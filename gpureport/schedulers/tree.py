"""Tree of holdings, by the parents that their quotas name."""

from __future__ import annotations

from collections.abc import Sequence

from gpureport.schedulers.model import Holding


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
