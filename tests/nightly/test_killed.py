"""A night that is killed at any moments, and then run again: the same facts and report, and nothing that is half there."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from store.conftest import moto_url  # noqa: F401
from store.servers import BUCKET, KEYS

from gpureport.config import load_config
from gpureport.store import Bucket, Folder, ObjectAddress, Place

from .killed_run import Night, killed_after
from .wholeness import assert_as_never_disturbed, assert_nothing_is_half_there


@pytest.fixture(params=["folder", "bucket"])
def begun(request: pytest.FixtureRequest, night: Night, nights: Path, tmp_path: Path) -> tuple[Night, Place]:
    """Tonight's servers, and the lake of last night."""
    shutil.copytree(nights / "before", tmp_path, dirs_exist_ok=True)
    if request.param == "folder":
        return night, tmp_path / "lake"
    url, cache = request.getfixturevalue("moto_url"), str(tmp_path / "cache")
    environ = {**KEYS, "GPUREPORT_OBJECT_STORE__ENDPOINT_URL": url, "XDG_CACHE_HOME": cache}
    place = load_config(None, environ, {"lake": f"s3://{BUCKET}/killed-{uuid4().hex}"})[0].lake
    assert isinstance(place, ObjectAddress)
    for each in Folder(tmp_path / "lake").objects():
        if not each.name.startswith("."):
            Bucket(place).upload(tmp_path / "lake" / each.name, each.name)
    shutil.rmtree(tmp_path / "lake")
    return replace(night, lake=str(place), environ=environ), place


def test_a_night_that_is_killed_and_run_again_is_as_one_that_was_not(
    chain: tuple[int, int], begun: tuple[Night, Place], nights: Path, tmp_path: Path
) -> None:
    (night, lake), (seed, kill_count) = begun, chain
    moments = random.Random(seed + isinstance(lake, ObjectAddress))  # a bucket's are none of a folder's: both see more of a night
    span = float((nights / "after" / "cpu").read_text())
    kills = 0
    while kills < kill_count:
        if killed_after(night.start(tmp_path), moments.uniform(0, span)):
            assert_nothing_is_half_there(tmp_path, nights, lake=lake)
            kills += 1
        else:  # what earlier runs had done already it found done
            span = float((tmp_path / "cpu").read_text())
    assert night.run(tmp_path) == 0
    assert_as_never_disturbed(tmp_path, nights, lake)
