"""docs/scale.md: the model's table is what its own inputs and formulas give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "scale.md").read_text()


def rows(first_column: str) -> Iterator[list[str]]:
    """The cells of the rows below a table's head."""
    table = PAGE.partition(f"| {first_column} |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


INPUTS = {name.strip("`"): float(value) for name, value, _ in rows("input")}
MODEL = [(*re.fullmatch(r"(.+?) `(\w+)`", cells[0]).groups(), *cells[1:]) for cells in rows("figure, per day unless said")]  # type: ignore[union-attr]
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def three_digits(value: float) -> str:
    shown = float(f"{value:.3g}")
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:g}"


@pytest.mark.parametrize(("number", "gpus"), list(enumerate(SIZES)))
def test_every_cell_is_what_its_formula_gives_to_three_digits(number: int, gpus: int) -> None:
    names: dict[str, float] = {**INPUTS, "gpus": gpus}
    for _, name, how, *cells in MODEL:
        names[name] = eval(how.strip("`"), {"__builtins__": {}, "ceil": math.ceil, "max": max}, names)
        assert (name, cells[number]) == (name, three_digits(names[name]))


def test_every_input_is_used() -> None:
    text = " ".join(how for _, _, how, *_ in MODEL)
    assert [name for name in INPUTS if not re.search(rf"\b{name}\b", text)] == []
