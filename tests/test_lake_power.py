"""When the power fails, a lake opens on a whole version: the one before a change, or the one after it."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path

import pytest
from lake_rows import contents, seen
from power_loss import power_losses as losses_of
from test_lake_killed import CHANGES, DAY, FIRST, NEXT, SECOND, export, observe, rows

from gpureport.lake import Lake, open_lake
from gpureport.store import Folder, Found
from gpureport.values.errors import LakeError
from gpureport.values.tables import SAMPLE


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


@pytest.mark.parametrize("syncs", ["gpureport.lake.commit.sync", "gpureport.store.folder.sync"])
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


def test_readers_beside_a_writer_and_prune_see_one_version_each(lake: Path, publishes: int) -> None:
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
    for number in range(publishes):
        export(lake, 1 + number % 30)
        opened = open_lake(lake)
        opened.remove(each for table in ("sample", "series") for each in opened.partitions(table) if each.date == DAY)
        opened.delete_unused_files(timedelta(days=1))
    is_over.set()
    for reader in readers:
        reader.join()
    assert failures == []


class _Slow(Folder):
    """A folder as a writer sees it whose clock is an hour slow: by its clock files are older than they are."""

    def add(self, files: Mapping[str, Path]) -> None:
        super().add(files)
        for name in files:
            self._shift(name)

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        done = super().replace(name, old, data)
        self._shift(name)
        return done

    def _shift(self, name: str) -> None:
        at = time.time() - 3600
        os.utime(self.place / name, (at, at))


def test_two_writers_with_clocks_an_hour_apart_lose_nothing_of_each_other(lake: Path) -> None:
    opened, failures = open_lake(lake), list[str]()
    before, slow = contents(opened), Lake(_Slow(lake), opened.root)

    def write(own: Lake, day: date) -> None:
        try:
            for count in range(1, 15):
                with own.change() as change:
                    change.write("sample", "lab", day, rows(SAMPLE, count))
                own.delete_unused_files()
        except LakeError as error:
            failures.append(str(error))

    writers = [threading.Thread(target=write, args=each) for each in ((slow, NEXT), (open_lake(lake), DAY))]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert {each.date: each.row_count for each in open_lake(lake).partitions("sample")} == {DAY: 14, NEXT: 14}
    assert contents(Lake(opened.storage, opened.root)) == before  # a reader of before goes on
