"""The demo's lake: of an older schema it is made anew; no other lake is touched."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from test_lake import DAY, contents, sample_rows

from gpureport.lake import open_lake
from gpureport.lake.layout import MARKER
from gpureport.lake.renewal import renew
from gpureport.tables import SCHEMA_VERSION


def lake_of(folder: Path, *clusters: str, version: int, day: date = DAY) -> Path:
    """A lake of that schema with samples of these clusters, and a file of somebody's beside its tables."""
    with open_lake(folder, create=True).change() as change:
        for cluster in clusters:
            change.write("sample", cluster, day, sample_rows(3))
            change.write("facts/device_hour", cluster, day, sample_rows(1))
    (folder / MARKER).write_text(json.dumps({"schema_version": version}))
    (folder / "notes.txt").write_text("mine")
    return folder


def test_an_older_lake_of_the_demo_is_emptied_and_can_be_filled_again(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", "demo", version=1)
    assert renew(lake, "demo", [DAY])
    assert contents(lake) == {} and (lake / "notes.txt").read_text() == "mine"
    with open_lake(lake).change() as change:
        change.write("sample", "demo", DAY, sample_rows(2))
    assert len(contents(lake)) == 1


def test_a_demo_that_was_killed_between_emptying_and_marking_goes_on(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", version=1)
    assert renew(lake, "demo", [DAY])
    assert open_lake(lake).tables() == []


@pytest.mark.parametrize(
    ("clusters", "version", "day"),
    [
        (("demo",), SCHEMA_VERSION, DAY),
        (("demo",), SCHEMA_VERSION + 1, DAY),
        (("demo", "production"), 1, DAY),
        (("demo",), 1, DAY + timedelta(days=1)),
    ],
    ids=["of this schema", "newer", "of another cluster too", "of another day"],
)
def test_a_lake_that_is_not_an_older_demos_stays_as_it_is(
    clusters: tuple[str, ...], version: int, day: date, tmp_path: Path
) -> None:
    lake = lake_of(tmp_path / "lake", *clusters, version=version, day=day)
    before = contents(lake)
    assert not renew(lake, "demo", [DAY])
    assert contents(lake) == before and before


def test_somebodys_file_among_the_demos_keeps_it_as_it_is(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", "demo", version=1)
    next(lake.rglob("part-0000.parquet")).with_name("mine.parquet").write_bytes(b"")
    assert not renew(lake, "demo", [DAY])
    assert len(contents(lake)) == 3


def test_a_folder_that_is_no_lake_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lake" / "sample" / "cluster=demo" / f"date={DAY}").mkdir(parents=True)
    assert not renew(tmp_path / "lake", "demo", [DAY]) and not renew(tmp_path / "none", "demo", [DAY])
    assert (tmp_path / "lake" / "sample" / "cluster=demo" / f"date={DAY}").is_dir()
