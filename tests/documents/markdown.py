"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def markdown_table(names: Iterable[str], rows: Iterable[tuple[Any, ...]], is_code: bool = True) -> str:
    """Head, rule and a line per row, the first cell of each as code if so wanted."""
    lines = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    if is_code:
        lines = [[f"`{first}`", *others] for first, *others in lines]
    head = [list(names)]
    return "".join(f"|{'|'.join(line)}|\n" for line in [*head, ["---"] * len(head[0]), *lines])
