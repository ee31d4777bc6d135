"""Shares of a capacity of which hours are unknown: what is known is a lower bound, and nothing known is not zero."""

from __future__ import annotations

from gpureport import formats
from gpureport.report.ledger import Balance
from gpureport.report.unknown import Unknown

_ALL = 0.9995
_LEAST_PRINTED = 0.0005


def bounded(whole: Balance, *names: str, hidden: tuple[str, ...] = ("unknown",)) -> str:
    """The share of buckets as it can be told where hours of ``hidden`` may belong to it.

    ``≥ 40.0 %`` of what is known in part, ``≤ 25.0 %`` where none is known, a dash where nothing at all is; the share itself
    where what is hidden does not show (``Balance.shows``).
    """
    if not whole.shows(*hidden):
        return formats.percent(whole.share(*names))
    at_most = whole.share(*hidden) or 0.0
    if not whole.of(*names):
        return (
            f"≤ {formats.percent(at_most)}"
            if at_most < _ALL
            else Unknown(f"of {formats.gpu_hours(whole.of(*hidden))} it is unknown")
        )
    return "> 0 %" if is_trace(whole, *names) else f"≥ {formats.percent(whole.share(*names))}"


def is_trace(whole: Balance, *names: str) -> bool:
    """Whether the share is too small to be printed as a number of percent."""
    return 0 < (whole.share(*names) or 0.0) < _LEAST_PRINTED
