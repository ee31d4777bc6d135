"""Compiled loops work wherever their machine code can, or cannot, be kept."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from gpureport.values.runtime.compiled import compiled, unpack


def doubled() -> object:
    """A function whose source is no file: there is nothing beside which its machine code could be kept."""
    found: dict[str, object] = {}
    exec(compile("def double(number):\n    return 2 * number\n", "/nowhere/double.py", "exec"), found)
    return found["double"]


def test_a_loop_whose_machine_code_can_be_kept_nowhere_is_compiled_anew() -> None:
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(doubled())
    assert compiled(doubled())(21) == 42  # type: ignore[operator,type-var]


def test_code_that_an_image_brings_is_put_where_code_is_kept_unless_some_is_there(tmp_path: Path) -> None:
    brought, kept = tmp_path / "brought", tmp_path / "kept"
    unpack(brought, kept)
    assert not kept.exists()
    for text in ("first", "second"):
        brought.mkdir(exist_ok=True)
        (brought / "loop.nbc").write_text(text)
        unpack(brought, kept)
    assert (kept / "loop.nbc").read_text() == "first"
    assert {each.name for each in tmp_path.iterdir()} == {"brought", "kept"}
