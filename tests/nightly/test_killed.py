"""A night that is killed at any moments, and then run again: the same facts and report, and nothing that is half there."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import duckdb
import pytest
from built_once import built_once
from kube.lake import ask

from gpureport.lake import open_lake

from .conftest import KILLS_OF_A_CHAIN
from .killed_run import Night, fill, killed_after, lake_files, report_files

IMPORT_SECONDS = 0.7
"""CPU before a run begins to work."""
OBSERVED = """
select 'node', observed_at, count(*) from lake.node group by all
union all select 'pod', observed_at, count(*) from lake.pod group by all
"""


@pytest.fixture(scope="module")
def nights(night: Night, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once("killed-nights", partial(fill, night), request, tmp_path_factory)


def days_of(files: dict[str, bytes], *tables: str) -> dict[str, bytes]:
    """The day's own files of some tables, without observations."""
    return {
        name: data
        for name, data in files.items()
        if name.startswith(tables) and "date=2026-11-20" in name and "observed" not in name
    }


def assert_nothing_is_half_there(folder: Path, nights: Path) -> None:
    """Samples are the old or the new ones, so are facts; observations are all there; every file of the report is whole."""
    open_lake(folder / "lake")
    files, before, after = (lake_files(each) for each in (folder, nights / "before", nights / "after"))
    for tables in (("device_sample", "sample", "series", "owner_label"), ("facts/",)):
        assert days_of(files, *tables) in (days_of(before, *tables), days_of(after, *tables))
    found = set(ask(folder / "lake", OBSERVED))
    assert found >= set(ask(nights / "before" / "lake", OBSERVED))
    assert found <= set(ask(nights / "after" / "lake", OBSERVED))
    old, new = (report_files(nights / each) for each in ("before", "after"))
    for name, data in report_files(folder).items():
        assert data in (old.get(name), new.get(name)), name
    with duckdb.connect(str(folder / "out" / "gpureport.duckdb"), read_only=True) as con:
        assert con.execute("select count(*) from report.device").fetchone() == (2,)


def test_a_night_that_is_killed_and_run_again_is_as_one_that_was_not(
    chain_seed: int, night: Night, nights: Path, tmp_path: Path
) -> None:
    moments = random.Random(chain_seed)
    span = float((nights / "after" / "cpu").read_text())
    shutil.copytree(nights / "before", tmp_path, dirs_exist_ok=True)
    for _ in range(KILLS_OF_A_CHAIN):
        if killed_after(night.start(tmp_path), moments.uniform(IMPORT_SECONDS, span)):
            assert_nothing_is_half_there(tmp_path, nights)
    assert night.run(tmp_path) == 0
    assert lake_files(tmp_path) == lake_files(nights / "after")
    assert report_files(tmp_path) == report_files(nights / "after")
    assert {path.name for path in tmp_path.glob("*/.*")} <= {".lock", ".run.lock"}
