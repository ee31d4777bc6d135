"""A night whose Prometheus is stopped and started, again and again, while it is asked: the lake and the report of any other."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus.programs import Restarted, fill_blocks

from .conftest import RESTARTS
from .killed_run import DAY_SECONDS, Night, ended, samples
from .wholeness import assert_as_never_disturbed

_LONGEST_SECONDS = 1.0
"""For which it is down, or up after the first answer."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Restarted]:
    """Tonight's Prometheus."""
    folder = tmp_path / "restarted"
    folder.mkdir()
    fill_blocks(folder / "blocks", samples(-DAY_SECONDS, 11), samples(0, 21))
    server = Restarted(folder / "blocks", folder)
    yield server
    server.stop()


def test_a_night_whose_prometheus_comes_and_goes_is_as_one_whose_stayed(
    server: Restarted, night: Night, nights: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    moments, asked = random.Random(20), request.config.getoption("--restarts", RESTARTS)
    count = number = 0
    while count < asked:
        folder = tmp_path / f"night-{number}"
        shutil.copytree(nights / "before", folder)
        process = replace(night, prometheus=server.url).start(folder)
        while process.exitcode is None:
            time.sleep(moments.uniform(0, _LONGEST_SECONDS))
            server.start()
            while process.exitcode is None and not server.answers():  # else, by chance, it is down at every attempt of a request
                time.sleep(0.05)
            time.sleep(moments.uniform(0, _LONGEST_SECONDS))
            count += process.exitcode is None
            server.stop(is_killed=moments.random() < 0.5)
        assert ended(process) == 0, (folder / "said").read_text()
        shutil.rmtree(folder / "scratch")
        assert_as_never_disturbed(folder, nights)
        number += 1
