"""Limit compute to some facts and the tables behind them, for tests of the days that compute makes, or of these facts."""

from __future__ import annotations

import pytest

from gpureport.compute import day


def compute_only(patch: pytest.MonkeyPatch, *tables: str) -> None:
    """Limit every later compute to these facts and their checks."""
    patch.setattr(day, "of_life", lambda *_: tables)
