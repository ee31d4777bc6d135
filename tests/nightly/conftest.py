"""Tonight's servers, and how often the nightly run is killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from built_once import built_once

from .killed_run import Night, fill, tonight

KILLS_OF_A_CHAIN = 5
"""How often a night is killed before it is let go; a chain is what the suite has, `make soak` has 40."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known where this folder is named on the command line."""
    parser.addoption("--kills", type=int, default=KILLS_OF_A_CHAIN)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A chain of kills for every seed."""
    if "chain_seed" in metafunc.fixturenames:
        kills = metafunc.config.getoption("--kills", KILLS_OF_A_CHAIN)
        metafunc.parametrize("chain_seed", range(-(-kills // KILLS_OF_A_CHAIN)))


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """A Prometheus with two days of two GPUs, and the recorded API server."""
    with tonight(tmp_path_factory.mktemp("tonight")) as servers:
        yield servers


@pytest.fixture(scope="session")
def nights(night: Night, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``before``: a lake and a report of last night; ``after``: the same when tonight's run is done."""
    return built_once("killed-nights", partial(fill, night), request, tmp_path_factory)
