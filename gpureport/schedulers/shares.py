"""Fair shares of any system by its own rules: the one place that knows which system has which."""

from __future__ import annotations

from collections.abc import Sequence

from gpureport.schedulers import kai, koordinator, nos, volcano
from gpureport.schedulers.model import DEFAULT_RULES, Holding, Rules, Share

NO_SUCH_NOTION = Share(None, "no_such_notion")
CAPACITY_UNKNOWN = Share(None, "capacity_unknown")
_WATER_FILLING = {"koordinator": koordinator.shares, "volcano": volcano.shares, "kai": kai.shares}
SHARING = ("nos", *_WATER_FILLING)
"""Systems whose rules give each quota a number; the others have no such notion."""


def fair_shares(
    system: str, resource: str, holdings: Sequence[Holding], capacity: float | None, rules: Rules = DEFAULT_RULES
) -> dict[str, Share]:
    """What each quota may have of the resource, its others as they are, by the quotas' names.

    ``capacity`` is what the system has to share out, in the resource's unit; None where it is not known. nos needs none:
    it shares what quotas leave of their min. scheduler-plugins, Kueue and ResourceQuota have no such number.
    """
    if system == "nos":
        return nos.shares(resource, holdings)
    if system not in _WATER_FILLING:
        return {each.quota.name: NO_SUCH_NOTION for each in holdings}
    shared = [each for each in holdings if not each.quota.tree]
    found = {each.quota.name: CAPACITY_UNKNOWN for each in holdings}  # a tree of Koordinator's has nodes of its own
    return found if capacity is None else {**found, **_WATER_FILLING[system](resource, shared, capacity, rules)}
