"""A lake on object storage holds what a folder would hold, whoever else writes and whenever a writer dies."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from lake_rows import contents
from msgspec import structs

from gpureport.config import Retention
from gpureport.lake import DamagedError, LakeBusyError, open_lake
from gpureport.lake.migrate import migrate
from gpureport.lake.retention import prune
from gpureport.lake.root import ROOT, encode_root, is_own
from gpureport.store import Bucket, ObjectAddress, Place, Reach
from gpureport.values.errors import LakeError, StoreError

from .changes import DAY, FIRST, NEXT, SECOND, export, observe, seen
from .servers import BUCKET, KEYS

OLDER = Path(__file__).parents[1] / "older"
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


def _numbers(count: int) -> object:
    import pyarrow as pa

    return pa.table({"gpu": list(range(count))})


def test_a_storage_without_conditional_writes_is_refused(rclone_url: str, tmp_path: Path) -> None:
    reach = Reach(endpoint_url=rclone_url, environ=KEYS, retries=1, cache=tmp_path)
    with pytest.raises(StoreError, match=f"the storage of s3://{BUCKET}/none has no conditional writes"):
        export(ObjectAddress(BUCKET, "none", reach), 1)
    assert not list(Bucket(ObjectAddress(BUCKET, "none", reach)).objects())


def test_a_lake_that_an_older_version_has_on_such_a_storage_is_read_and_not_changed(address: ObjectAddress) -> None:
    export(address, 1)
    held, lake = seen(address), open_lake(address)
    Bucket(address).put(ROOT, encode_root(structs.replace(lake.root, is_conditional=False)))
    with pytest.raises(StoreError, match="has no conditional writes"):
        export(address, 2)
    assert seen(address) == held


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
    lake = open_lake(address)
    assert lake.delete_unused_files() == 0  # not a day old
    assert {each.name for each in Bucket(address).objects()} == objects
    assert lake.delete_unused_files(NO_GRACE) >= 5 + 2  # the day's five files of the first export, and what the dead one sent
    third = replace(elsewhere, reach=replace(elsewhere.reach, cache=elsewhere.reach.cache / "third"))
    assert seen(third) == held
    left = {each.name for each in Bucket(address).objects()}
    assert left == {ROOT, *open_lake(address).root.names()} and len(left) == len(held) + 1
    assert lake.delete_unused_files(NO_GRACE) == 0


def test_a_reader_goes_on_with_the_lake_that_it_opened(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 2)
    before = seen(address)
    lake = open_lake(elsewhere)
    export(address, 3)
    assert contents(lake) == before


def test_only_what_is_read_is_fetched(address: ObjectAddress, elsewhere: ObjectAddress) -> None:
    export(address, 2)
    export(address, 2, NEXT)
    lake = open_lake(elsewhere)
    lake.fetch(each for each in lake.partitions("facts/device_hour") if each.date == DAY)
    copies = list(elsewhere.cache.glob("**/*.parquet"))
    assert [file.parent.name for file in copies] == ["2026-11-20"]
    assert "device_hour" in str(copies[0])


def test_an_object_that_is_not_what_was_written_is_named_and_a_damaged_copy_is_fetched_again(
    address: ObjectAddress, elsewhere: ObjectAddress
) -> None:
    export(address, 2)
    held = seen(elsewhere)
    for copy in elsewhere.cache.glob("**/*.parquet"):
        copy.write_bytes(copy.read_bytes()[:-1] + b"!")
    assert seen(elsewhere) == held
    bucket = Bucket(address)
    (name,) = [each.name for each in bucket.objects() if is_own(each.name) and "device_hour" in each.name]
    bucket.put(name, b"PAR1")
    bucket.delete_copy(name)
    with pytest.raises(DamagedError, match=f"facts/device_hour, lab, {DAY} is damaged .* run 'gpureport compute --date {DAY}"):
        seen(address)
    bucket.put(ROOT, b"{}")
    with pytest.raises(LakeError, match="is damaged"):
        seen(elsewhere)


def test_a_prefix_with_other_objects_is_no_lake(address: ObjectAddress) -> None:
    with pytest.raises(LakeError, match=r"there is no lake at \w+://"):
        open_lake(address)
    Bucket(address).put("holiday.jpg", b"")
    with pytest.raises(LakeError, match="has files but is not a gpureport lake"):
        export(address, 1)


def test_a_lake_of_the_older_form_is_migrated_and_holds_the_same_files(
    address: ObjectAddress, elsewhere: ObjectAddress, tmp_path: Path
) -> None:
    with tarfile.open(OLDER / "objects.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "s3objects"
    objects = [path for path in folder.rglob("*") if path.is_file()]
    for path in objects:
        Bucket(address).upload(path, path.relative_to(folder).as_posix())
    with pytest.raises(LakeError, match=r"run 'gpureport migrate --lake \w+://"):
        open_lake(elsewhere)
    done = migrate(address)
    assert done.from_version == 2
    before = [path.read_bytes() for path in objects if path.suffix == ".parquet"]
    kept = set(before) & set(seen(elsewhere).values())
    assert len(seen(elsewhere)) == len(before) == len(kept) + done.file_count  # written anew is what lacked columns
    export(elsewhere, 1)
    assert open_lake(elsewhere).delete_unused_files(NO_GRACE) > 0  # what only the older form needs
    assert set(seen(address).values()) > kept
