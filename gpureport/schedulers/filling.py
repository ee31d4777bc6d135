"""Handing out an amount among those who want it: by weight, or to those who had it before and then in proportion."""

from __future__ import annotations

from collections.abc import Mapping

_TOLERANCE = 1e-9


def water_fill(amount: float, wants: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """The amount by weight, never more to one than it wants; what one does not want is shared by the others.

    All reach the same level per weight, or what they want. Without weight nobody gets anything.
    """
    given = dict.fromkeys(wants, 0.0)
    hungry = [name for name in wants if wants[name] > 0 and weights.get(name, 0) > 0]
    left = max(0.0, amount)
    while hungry and left > _TOLERANCE:
        level = left / sum(weights[name] for name in hungry)
        content = [name for name in hungry if wants[name] - given[name] <= level * weights[name] + _TOLERANCE]
        for name in content or hungry:
            part = min(wants[name] - given[name], level * weights[name])
            given[name] += part
            left -= part
        hungry = [name for name in hungry if name not in content] if content else []
    return given


def first_come(amount: float, wants: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """The amount to those who had it and still want it; the rest in proportion to what is wanted, for who came is not known."""
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
