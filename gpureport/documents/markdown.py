"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def markdown_table(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """Head, rule and a line per row, the first cell of each as code."""
    head = f"| {' | '.join(names)} |\n|{'---|' * len(tuple(names))}\n"
    return head + "".join("| " + " | ".join(_cell(number, found) for number, found in enumerate(row)) + " |\n" for row in rows)


def _cell(number: int, found: Any) -> str:
    text = str(found).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if number == 0 else text
