"""Compute makes some facts alone, and what is behind them: where the question is which days it makes, or what these say."""

from __future__ import annotations

import pytest

from gpureport.compute import day


def compute_only(patch: pytest.MonkeyPatch, *tables: str) -> None:
    """The facts that every compute makes from now on; each check of these is made too."""
    patch.setattr(day, "of_life", lambda *_: tables)
