"""How many rows of each table the page has room for, so that it can be mailed whatever the cluster's size."""

from __future__ import annotations

from collections.abc import Sequence

ROWS_ON_PAGE = 500
CELLS_ON_PAGE = 13_000
"""More rows of a table than this, or cells of all tables together, are in the CSV only; it holds the page under 3 MB."""


def rows_shown(sizes: Sequence[tuple[int, int]], cells: int = CELLS_ON_PAGE) -> list[int]:
    """Rows to show of each table, by its (rows, columns): equal room for all, and what a small one leaves is the others'."""
    wanted = [min(rows, ROWS_ON_PAGE) for rows, _ in sizes]
    shown = [0] * len(sizes)
    left, waiting = cells, len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: wanted[number] * sizes[number][1]):
        width = max(sizes[number][1], 1)
        shown[number] = min(wanted[number], left // waiting // width)
        left, waiting = left - shown[number] * width, waiting - 1
    return shown
