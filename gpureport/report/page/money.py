"""Amounts of money as people read them, in the configured currency."""

from __future__ import annotations

from dataclasses import dataclass

from gpureport.text import formats

_BEFORE = "$€£¥"


@dataclass(frozen=True)
class Money:
    """Writes amounts; ``currency`` is a symbol, which goes before, or a word or code, which goes behind; '' for neither."""

    currency: str = ""

    def __call__(self, amount: float | None) -> str:
        """The amount; a dash where it is unknown."""
        if amount is None:
            return formats.UNKNOWN
        text = f"{amount:,.0f}" if abs(amount) >= 100 else formats.significant(amount)
        if self.currency and self.currency[-1] in _BEFORE:
            return f"{self.currency}{text}"
        return f"{text} {self.currency}".rstrip()

    def tail(self, amount: float | None, before: str = ", ", behind: str = "") -> str:
        """The amount as the end of a sentence; '' where there is none to tell."""
        return f"{before}{self(amount)}{behind}" if amount else ""
