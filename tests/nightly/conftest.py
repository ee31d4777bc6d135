"""How often the nightly run is killed."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known where this folder is named on the command line."""
    parser.addoption("--kills", type=int, default=10)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A chain of kills for every seed."""
    if "chain_seed" in metafunc.fixturenames:
        kills = metafunc.config.getoption("--kills", 10)
        metafunc.parametrize("chain_seed", range(-(-kills // KILLS_OF_A_CHAIN)))


KILLS_OF_A_CHAIN = 5
"""How often a night is killed before it is let go."""
