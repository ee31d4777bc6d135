"""Figures of the report: formula, signals behind it, absence; and the meaning of the reasons for absence.

Plain values of ``queries/catalog``, read by the page, by ``docs/figures.md`` and by the tests that hold them to the SQL.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import groupby

from gpureport.values.runtime.resources import catalog_rows


@dataclass(frozen=True)
class Figure:
    """A figure's formula over facts and the device signals (names of ``tables.SIGNALS``) that it needs."""

    formula: str
    signals: tuple[str, ...]
    absent: str
    """Condition of null, where that is not simply 'no sample of its signals'."""
    ways: tuple[tuple[str, ...], ...]
    """Sets of its signals of which one is enough, the most direct first."""

    def missing(self, present: Set[str]) -> tuple[str, ...]:
        """The signals to add so that it becomes known: of the way that lacks the fewest; () where it is known."""
        return min((tuple(signal for signal in way if signal not in present) for way in self.ways), key=len)


def _figure(row: dict[str, str]) -> Figure:
    signals = tuple(row["signals"].split())
    ways = tuple(tuple(way.split()) for way in row["ways"].split("|")) if row["ways"] else (signals,)
    return Figure(row["formula"], signals, row["absent"], ways)


GROUPS = {
    title: {row["figure"]: _figure(row) for row in rows}
    for title, rows in groupby(catalog_rows("figure.csv"), lambda row: row["group"])
}
"""The figures by what they are about, under the headings of ``docs/figures.md``."""
FIGURES = {name: figure for group in GROUPS.values() for name, figure in group.items()}
"""Every figure of the report tables, in the order of the tables; seconds behind a ratio are named after it."""
REASONS = {row["reason"]: row["meaning"] for row in catalog_rows("reason.csv")}
"""The codes in ``unknown_reasons`` and in ``report.coverage``, each with a sentence for people."""
