"""A figure that is not known, as a cell of a table: a dash, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from gpureport import formats
from gpureport.figures import REASONS
from gpureport.report.amount import amount


class Unknown(str):
    """A dash; ``why`` is a sentence, which a reader of the page gets under the pointer and one who listens hears."""

    __slots__ = ("why",)
    why: str

    def __new__(cls, reason: str) -> Self:
        """With the words of a reason's code, or with words of its own."""
        made = super().__new__(cls, formats.UNKNOWN)
        made.why = REASONS.get(reason, formats.words(reason))
        return made


def told_whys(cells: Iterable[str]) -> str:
    """Why those of the cells that are unknown are, each reason once; '' where none is."""
    return "; ".join(dict.fromkeys(each.why for each in cells if isinstance(each, Unknown)))


def cell(row: Mapping[str, Any], reasons: Mapping[str, str], name: str) -> str:
    """A figure of a report table's row as text; a duration carries its unit."""
    found = row[name]
    if found is None and name in reasons:
        return Unknown(reasons[name])
    text = formats.duration(found) if "_seconds" in name else formats.shortened(name, formats.value(name, found))
    return amount(text, found)
