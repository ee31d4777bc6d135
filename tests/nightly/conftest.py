"""Tonight's servers, and how often the nightly run is killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from built_once import built_once, started_once
from kube.api_server import api_server, kubeconfig, recorded_routes
from prometheus.programs import filled_with

from .killed_run import DAY_SECONDS, Night, fill, samples

KILLS = 1
"""How often the suite kills the nightly run over a folder, and over a bucket; `make soak` does 200 times each."""
KILLS_OF_A_CHAIN = 2
"""How often one night is killed at most before it is let go."""
RESTARTS = 2
"""How often Prometheus is stopped and started during nights; `make soak` does it 20 times."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known where this folder is named on the command line."""
    parser.addoption("--kills", type=int, default=KILLS)
    parser.addoption("--restarts", type=int, default=RESTARTS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Chains of kills, each with its seed."""
    if "chain" in metafunc.fixturenames:
        kills = metafunc.config.getoption("--kills", KILLS)
        starts = range(0, kills, KILLS_OF_A_CHAIN)
        metafunc.parametrize("chain", [(seed, min(KILLS_OF_A_CHAIN, kills - at)) for seed, at in enumerate(starts)])


@pytest.fixture(scope="session")
def night(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """A Prometheus with two days of two GPUs, more of yesterday than last night's held, and the recorded API server."""
    start = filled_with(samples(-DAY_SECONDS, 11), samples(0, 21))
    with started_once("tonight", start, request, tmp_path_factory) as url, api_server(recorded_routes()) as api:
        yield Night(url, kubeconfig(tmp_path_factory.mktemp("tonight"), api.url))


@pytest.fixture(scope="session")
def nights(night: Night, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``before``: a lake and a report of last night; ``after``: the same when tonight's run is done."""
    return built_once("killed-nights", partial(fill, night), request, tmp_path_factory)
