"""A number as people read it, and where it stands among others: nobody sorts 950 Wh, 1.5 kWh and 2 h 5 min by their text."""

from __future__ import annotations

from typing import Any, Self


class Amount(str):
    """A number's text; ``rank`` is the number, by which a page sorts it."""

    __slots__ = ("rank",)
    rank: str

    def __new__(cls, text: str, number: float) -> Self:
        """The text of a number."""
        made = super().__new__(cls, text)
        made.rank = f"{number:.9g}"
        return made


def amount(text: str, found: Any) -> str:
    """The text of a figure, an Amount where it is of a number that its text alone does not tell."""
    is_number = isinstance(found, float | int) and not isinstance(found, bool)
    return Amount(text, found) if is_number and not _is_plain(text) else text


def _is_plain(text: str) -> bool:
    """Whether a reader of the page can tell the number from the text."""
    return text.replace(",", "").replace(".", "").lstrip("-").isdecimal()
