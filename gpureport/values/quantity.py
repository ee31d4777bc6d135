"""Kubernetes quantities (``81559Mi``, ``500m``, ``1e3``) as exact numbers of the base unit."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

NANO = 1_000_000_000
_SUFFIXES = {"n": Fraction(1, NANO), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES |= {prefix: Fraction(1000**power) for power, prefix in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{prefix}i": Fraction(1024**power) for power, prefix in enumerate("KMGTPE", start=1)}
_MOST_DIGITS = 30
"""A quantity of more is none: Kubernetes keeps 19 digits at most, and a double ends at 308."""
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([num]|[kMGTPE]|[KMGTPE]i)?)")


def nano_units(written: Any) -> int | None:
    """The quantity in billionths of its base unit, whole because Kubernetes keeps no finer ones (it rounds them up).

    None for what is no quantity. Numbers without quotes, as custom resources have them, are taken as they are.
    """
    if isinstance(written, str):
        return _parsed(written)
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    return _parsed(repr(written)) if is_number else None


@lru_cache(65_536)
def _parsed(written: str) -> int | None:
    found = _QUANTITY.fullmatch(written)
    if not found:
        return None
    number, exponent, suffix = found.groups()
    if len(number) > _MOST_DIGITS or abs(int(exponent or 0)) > _MOST_DIGITS:
        return None
    factor = Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return ceil(Fraction(number) * factor * NANO)


def base_units(nano: int | None) -> float | None:
    """Billionths as the nearest number of the base unit; whole numbers below 2**53 are exact."""
    return None if nano is None else nano / NANO


def amount(written: Any) -> float | None:
    """A quantity in its base unit: cores, bytes, devices; None for what is no quantity."""
    return base_units(nano_units(written))


def amounts(quantities: Any) -> dict[str, float | None]:
    """A resource list in base units; empty for what is no mapping."""
    return {name: amount(written) for name, written in quantities.items()} if isinstance(quantities, dict) else {}
