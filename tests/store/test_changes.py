"""A lake on object storage holds what a folder would hold, whoever else writes and whenever a writer dies."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gpureport.config import Retention
from gpureport.errors import LakeError, StoreError
from gpureport.lake import open_lake
from gpureport.lake.change import LakeBusyError
from gpureport.lake.manifest import CHANGES, ROOT
from gpureport.lake.retention import prune
from gpureport.lake.stock import Stock
from gpureport.lake.sweeping import sweep
from gpureport.store import Bucket, ObjectAddress, Place
from gpureport.store.turn import TURNS, knows_conditions

from .changes import DAY, FIRST, NEXT, SECOND, THIRD, export, observe, seen

NO_GRACE = timedelta(seconds=-60)
"""Objects are stamped to the second."""

CHANGES_OF_A_LAKE: dict[str, Callable[[Place], object]] = {
    "a day": lambda lake: export(lake, 2),
    "an observation": lambda lake: observe(lake, FIRST),
    "another": lambda lake: observe(lake, SECOND),
    "the day again": lambda lake: export(lake, 3),
    "the observation again": lambda lake: observe(lake, SECOND, 2),
    "another day": lambda lake: export(lake, 1, NEXT),
    "observations joined": lambda lake: open_lake(lake).pack_observations(NEXT),
    "a joined observation again": lambda lake: observe(lake, FIRST, 3),
    "old days removed": lambda lake: prune(open_lake(lake), Retention(keep_samples="1d"), NEXT + timedelta(days=1)),
}


def test_after_every_change_it_holds_what_a_folder_holds(
    address: ObjectAddress, elsewhere: ObjectAddress, tmp_path: Path
) -> None:
    for name, change in CHANGES_OF_A_LAKE.items():
        change(address)
        change(tmp_path / "folder")
        assert seen(elsewhere) == seen(tmp_path / "folder"), name


def test_a_writer_that_dies_at_any_request_leaves_the_lake_as_it_was_or_changed(
    address: ObjectAddress, elsewhere: ObjectAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(address, 2)
    observe(address, FIRST)
    before, after, deaths = seen(elsewhere), {}, 0
    while before not in (after, None) and deaths < 100:
        with monkeypatch.context() as patched:
            _die_at(patched, deaths)
            try:
                export(address, 3)
            except _DeadError:
                deaths += 1
                assert seen(elsewhere) == before
                continue
        after = seen(elsewhere)
        break
    assert deaths > 5
    assert after != before
    export(address, 3)
    assert seen(elsewhere) == after


class _DeadError(BaseException):
    pass


def _die_at(patched: pytest.MonkeyPatch, number: int) -> None:
    """Let so many writing requests through, and no more."""
    left = iter([True] * number)
    for name in ("put", "upload"):
        method = getattr(Bucket, name)

        def counted(self: Bucket, *arguments: object, method: Callable[..., object] = method, **named: object) -> object:
            if not next(left, False):
                raise _DeadError
            return method(self, *arguments, **named)

        patched.setattr(Bucket, name, counted)


def test_of_two_writers_of_a_day_the_second_loses_whole(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 1)
    with pytest.raises(LakeBusyError, match="another gpureport changed 2026-11-20 of lab"), open_lake(elsewhere).change() as late:
        late.write("facts/device_hour", "lab", DAY, _numbers(7))
        export(address, 2)
        there = {each.name for each in Bucket(address).objects()}
    assert {each.name for each in Bucket(address).objects()} == there  # who has lost before it sends anything sends nothing
    held = seen(address)
    assert seen(elsewhere) == held
    export(elsewhere, 2)
    assert seen(address) == held


def test_writers_of_different_days_and_snapshots_beside_them_all_come_through(
    address: ObjectAddress, elsewhere: ObjectAddress, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    for place in (address, folder):
        export(place, 1)
    with open_lake(elsewhere).change() as change:
        change.write("facts/device_hour", "lab", NEXT, _numbers(4))
        export(address, 2)
        observe(address, FIRST)
    export(folder, 2)
    observe(folder, FIRST)
    with open_lake(folder).change() as change:
        change.write("facts/device_hour", "lab", NEXT, _numbers(4))
    assert seen(address) == seen(folder)


def test_many_snapshots_at_once_are_all_kept(address: ObjectAddress, tmp_path: Path) -> None:
    export(address, 1)
    times = [FIRST + timedelta(minutes=minute) for minute in range(6)]
    machines = [replace(address, reach=replace(address.reach, cache=tmp_path / f"cache{number}")) for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(observe, machines, times))
    assert sum(name.startswith("node/") for name in seen(address)) == 6
    assert not list(Bucket(address).objects(TURNS))


def _numbers(count: int) -> object:
    import pyarrow as pa

    return pa.table({"gpu": list(range(count))})


def test_the_storage_is_asked_whether_it_knows_conditions(rclone_url: str, moto_url: str, address: ObjectAddress) -> None:
    found = {
        url: knows_conditions(Bucket(replace(address, reach=replace(address.reach, endpoint_url=url))))
        for url in (rclone_url, moto_url)
    }
    assert found == {rclone_url: False, moto_url: True}


def test_what_nothing_refers_to_is_removed_in_time_and_nothing_else(
    address: ObjectAddress, elsewhere: ObjectAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(address, 2)
    export(address, 3)
    observe(address, FIRST)
    with monkeypatch.context() as patched, pytest.raises(_DeadError):
        _die_at(patched, 3)
        export(address, 4)
    held = seen(elsewhere)
    objects = {each.name for each in Bucket(address).objects()}
    stock = Stock(Bucket(address))
    assert sweep(stock) == 0  # not a day old
    assert {each.name for each in Bucket(address).objects()} == objects
    assert sweep(stock, NO_GRACE) > 10
    third = replace(elsewhere, reach=replace(elsewhere.reach, cache=elsewhere.reach.cache / "third"))
    assert seen(third) == held
    left = {each.name for each in Bucket(address).objects()}
    root = stock.read_root()
    assert root is not None and not root.root.dropped
    needed = {ROOT, *(day.index for day in root.root.days.values())}
    assert {name for name in left if name.endswith((".json", ".gz"))} == needed
    assert sum(name.endswith(".parquet") for name in left) == len(held)
    assert sweep(stock, NO_GRACE) == 0


def test_a_reader_goes_on_with_the_lake_that_it_opened(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 2)
    before = seen(address)
    lake = open_lake(elsewhere)
    export(address, 3)
    found = {
        f"{table}/{each.cluster}/{each.date}/{file.name}": file.read_bytes()
        for table in lake.tables()
        for each in lake.partitions(table)
        for file in each.files
    }
    assert found == before


def test_only_what_is_read_is_fetched(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 2)
    export(address, 2, NEXT)
    lake = open_lake(elsewhere)
    lake.bring(each for each in lake.partitions("facts/device_hour") if each.date == DAY)
    copies = list(elsewhere.cache.glob("changes/**/*.parquet"))
    assert [file.parent.name for file in copies] == ["date=2026-11-20"]
    assert "device_hour" in str(copies[0])


def test_objects_that_are_not_what_was_written_are_refused(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 2)
    bucket = Bucket(address)
    (name,) = [each.name for each in bucket.objects(CHANGES) if "device_hour" in each.name]
    bucket.put(name, b"PAR1")
    with pytest.raises(StoreError, match="is not what was written there"):
        seen(elsewhere)
    bucket.put(ROOT, b"{}")
    with pytest.raises(LakeError, match="cannot be read"):
        seen(elsewhere)


def test_a_prefix_with_other_objects_is_no_lake(address: ObjectAddress) -> None:
    with pytest.raises(LakeError, match="there is no lake at s3://"):
        open_lake(address)
    Bucket(address).put("holiday.jpg", b"")
    with pytest.raises(LakeError, match="holds objects but is not a gpureport lake"):
        export(address, 1)


def test_folders_of_this_machine_go_with_the_lake_that_used_them(address: ObjectAddress) -> None:
    export(address, 1)
    lake = open_lake(address)
    assert lake.path.is_dir()
    views = lake.path.parent
    del lake
    assert list(views.iterdir()) == []
    observe(address, THIRD)
    assert list(views.iterdir()) == []
