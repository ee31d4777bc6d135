"""A table in Markdown, and links to headings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


def markdown_table(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """Head, rule and a line per row, the first cell of each as code."""
    head = f"| {' | '.join(names)} |\n|{'---|' * len(tuple(names))}\n"
    return head + "".join("| " + " | ".join(_cell(number, found) for number, found in enumerate(row)) + " |\n" for row in rows)


def anchor(heading: str) -> str:
    """What a link to a heading names, as forges make it: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _cell(number: int, found: Any) -> str:
    text = str(found).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if number == 0 else text
