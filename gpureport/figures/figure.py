"""What a figure of the report is."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure's formula over facts and the device signals (names of ``tables.SIGNALS``) that it needs."""

    formula: str
    signals: tuple[str, ...] = ()
    absent: str = ""
    """When it is null, where that is not simply 'no sample of its signals'."""
    ways: tuple[tuple[str, ...], ...] = ()
    """Sets of its signals of which one is enough, the most direct first; () where it needs all of ``signals``."""

    def missing(self, present: Set[str]) -> tuple[str, ...]:
        """The signals to add so that it becomes known: of the way that lacks the fewest; () where it is known."""
        lacks = [tuple(signal for signal in way if signal not in present) for way in self.ways or (self.signals,)]
        return min(lacks, key=len)
