"""Compiled loops work wherever their machine code can, or cannot, be kept."""

from __future__ import annotations

import numba
import pytest

from gpureport.values.runtime.compiled import compiled


def doubled() -> object:
    """A function whose source is no file: there is nothing beside which its machine code could be kept."""
    found: dict[str, object] = {}
    exec(compile("def double(number):\n    return 2 * number\n", "/nowhere/double.py", "exec"), found)
    return found["double"]


def test_a_loop_whose_machine_code_can_be_kept_nowhere_is_compiled_anew() -> None:
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(doubled())
    assert compiled(doubled())(21) == 42  # type: ignore[operator,type-var]
