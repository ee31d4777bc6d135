"""The page's room is shared out: small tables whole, large ones alike, never more than there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpureport.report.room import ROWS_ON_PAGE, rows_shown

SIZES = st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 60)), max_size=30)


def test_a_small_table_leaves_its_room_to_the_others() -> None:
    # 100 cells for three: 10 are enough for the first, 45 are left for each of the others.
    assert rows_shown([(5, 2), (100, 5), (100, 9)], cells=100) == [5, 9, 5]


def test_all_is_shown_where_there_is_room_but_for_very_long_tables() -> None:
    assert rows_shown([(3, 4), (20, 5), (10_000, 1)]) == [3, 20, ROWS_ON_PAGE]


@given(SIZES, st.integers(0, 5000))
def test_never_more_than_there_is_nor_than_there_is_room_for(sizes: list[tuple[int, int]], cells: int) -> None:
    shown = rows_shown(sizes, cells)
    assert sum(count * width for count, (_, width) in zip(shown, sizes, strict=True)) <= cells
    assert all(0 <= count <= rows for count, (rows, _) in zip(shown, sizes, strict=True))
