"""When the power fails, a lake opens on a whole version: the one before a change, or the one after it."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from lake_rows import contents, seen
from power_loss import power_losses as losses_of
from test_lake_killed import CHANGES, DAY, FIRST, SECOND, export, observe

from gpureport.errors import LakeError
from gpureport.lake import open_lake


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An exported day with two observations."""
    export(tmp_path / "lake", 2)
    observe(tmp_path / "lake", FIRST)
    observe(tmp_path / "lake", SECOND)
    return tmp_path / "lake"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_a_power_loss_it_is_as_before_the_change_or_as_after_it(
    change: Callable[[Path], object], lake: Path, tmp_path: Path, power_losses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(lake)
    with losses_of(lake, monkeypatch) as moments:
        change(lake)
    after = seen(lake)
    found = []
    for number in range(power_losses // len(CHANGES)):
        choice, left = random.Random(number), tmp_path / f"left-{number}"
        choice.choice(moments).leave(left, choice)
        found.append(seen(left))
        shutil.rmtree(left)
    moments[-1].leave(tmp_path / "end", random.Random(1))
    assert all(files in (before, after) for files in found)
    assert seen(tmp_path / "end") == after  # what a command has done stays done


@pytest.mark.parametrize("syncs", ["gpureport.lake.change.sync", "gpureport.store.folder.sync"])
def test_a_sync_that_is_missing_would_be_noticed(syncs: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the test: without the syncs of files, or of folders and the root, something is lost."""
    monkeypatch.setattr(syncs, lambda _: None)
    with losses_of(lake, monkeypatch) as moments:
        export(lake, 3)
    after = seen(lake)
    outcomes = []
    for number in range(20):
        moments[-1].leave(tmp_path / str(number), random.Random(number))
        try:
            outcomes.append(seen(tmp_path / str(number)) == after)
        except LakeError:
            outcomes.append(False)
    assert not all(outcomes)


def test_readers_beside_a_writer_and_prune_see_one_version_each(lake: Path) -> None:
    """Each version has as many rows in ``series`` as in ``sample``: a reader that mixed two would see different ones."""
    failures: list[str] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            try:
                opened = open_lake(lake)
                counts = {table: [each.row_count for each in opened.partitions(table)] for table in ("sample", "series")}
                contents(opened)
                if counts["sample"] != counts["series"]:
                    failures.append(f"{counts}")
            except (LakeError, OSError) as error:
                failures.append(str(error))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for count in range(1, 30):
        export(lake, count)
        opened = open_lake(lake)
        opened.remove(each for table in ("sample", "series") for each in opened.partitions(table) if each.date == DAY)
        opened.tidy(timedelta(days=1))
    is_over.set()
    for reader in readers:
        reader.join()
    assert failures == []
