"""A night that is killed at any moments, and then run again: the same facts and report, and nothing that is half there."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from .conftest import KILLS_OF_A_CHAIN
from .killed_run import Night, killed_after
from .wholeness import assert_as_never_disturbed, assert_nothing_is_half_there

IMPORT_SECONDS = 0.7
"""CPU before a run begins to work."""


def test_a_night_that_is_killed_and_run_again_is_as_one_that_was_not(
    chain_seed: int, night: Night, nights: Path, tmp_path: Path
) -> None:
    moments = random.Random(chain_seed)
    span = float((nights / "after" / "cpu").read_text())
    shutil.copytree(nights / "before", tmp_path, dirs_exist_ok=True)
    kills = 0
    while kills < KILLS_OF_A_CHAIN:
        if killed_after(night.start(tmp_path), moments.uniform(IMPORT_SECONDS, span)):
            assert_nothing_is_half_there(tmp_path, nights)
            kills += 1
        else:  # what earlier runs had done already it found done
            span = float((tmp_path / "cpu").read_text())
    assert night.run(tmp_path) == 0
    assert_as_never_disturbed(tmp_path, nights)
