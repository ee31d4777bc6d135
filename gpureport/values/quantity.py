"""Kubernetes quantities (``81559Mi``, ``500m``, ``1e3``) as exact numbers of the base unit."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from functools import lru_cache
from math import ceil
from typing import Any

NANO = 1_000_000_000
_GRAMMAR = re.compile(r"[+-]?(?![\d.]{31})(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?[0-2]?\d|[numkMGTPE]|[KMGTPE]i)?", re.ASCII)
"""Kubernetes' grammar, at most 30 digits (Kubernetes keeps 19). The client's parser also accepts ``NaN``, ``1_000``, ``1K``."""


def nano_units(written: Any) -> int | None:
    """Return the quantity in billionths of its base unit: an integer, because Kubernetes rounds finer values up.

    None where the value is not a quantity. Numbers without quotes, as in custom resources, are accepted.
    """
    if isinstance(written, str):
        return _parsed(written)
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    return _parsed(repr(written)) if is_number else None


@lru_cache(65_536)
def _parsed(written: str) -> int | None:
    from kubernetes.utils.quantity import parse_quantity  # only lakes with quantities pay for this import

    if not _GRAMMAR.fullmatch(written):
        return None
    with localcontext(prec=80):  # 30 digits, times the largest suffix, in billionths
        nano: Decimal = parse_quantity(written) * NANO
    return ceil(nano)


def base_units(nano: int | None) -> float | None:
    """Convert billionths to the nearest number of the base unit. Integers below 2**53 are exact."""
    return None if nano is None else nano / NANO


def amount(written: Any) -> float | None:
    """Return a quantity in its base unit: cores, bytes, devices. None where the value is not a quantity."""
    return base_units(nano_units(written))


def amounts(quantities: Any) -> dict[str, float | None]:
    """Return a resource list in base units; empty where the value is not a mapping."""
    return {name: amount(written) for name, written in quantities.items()} if isinstance(quantities, dict) else {}
