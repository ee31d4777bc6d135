"""Wherever a writer is killed, the lake holds all of its change or nothing of it, and every observation, once it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from lake_moments import moments
from lake_rows import seen

from gpureport.lake import open_lake
from gpureport.lake.root import ROOT
from gpureport.values.tables import SAMPLE, SOURCE, TABLE_BY_NAME
from gpureport.values.tables.table import Table

DAY, NEXT = date(2026, 11, 20), date(2026, 11, 21)
FIRST, SECOND, THIRD = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (6, 7, 8))


def rows(table: Table, count: int, **known: object) -> pa.Table:
    """So many rows that are alike: null, or zero where that may not be, but for what is given."""
    return pa.table([_column(field, count, known.get(field.name)) for field in table.schema], schema=table.schema)


def _column(field: pa.Field, count: int, value: object) -> pa.Array:
    if value is None and not field.nullable:
        empty = [] if pa.types.is_nested(field.type) else "" if pa.types.is_string(field.type) else 0
        return pa.array([empty] * count, None if empty == 0 else field.type).cast(field.type)
    return pa.array([value] * count, field.type)


def export(lake: Path, count: int) -> None:
    with open_lake(lake, create=True).change() as change:
        change.write("sample", "lab", DAY, rows(SAMPLE, count))
        change.write("series", "lab", DAY, pa.table({"series_id": list(range(count))}))
        change.write("source", "lab", DAY, rows(SOURCE, count, kind="prometheus"))


def observe(lake: Path, at: datetime, count: int = 1) -> None:
    tables = {name: rows(TABLE_BY_NAME[name], count, observed_at=at) for name in ("namespace", "node")}
    with open_lake(lake).change() as change:
        change.observe("lab", at, tables | {"source": rows(SOURCE, count, kind="kubernetes", start_at=at)})


CHANGES: dict[str, Callable[[Path], object]] = {
    "a day exported again": lambda lake: export(lake, 3),
    "an observation": lambda lake: observe(lake, THIRD),
    "an observation made again": lambda lake: observe(lake, SECOND, 2),
    "observations joined": lambda lake: open_lake(lake).pack_observations(NEXT),
}


@pytest.fixture(autouse=True)
def _memory_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process leaves what it wrote to the kernel; waiting thousands of times for the disk would show nothing more."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An exported day with two observations."""
    export(tmp_path / "lake", 2)
    observe(tmp_path / "lake", FIRST)
    observe(tmp_path / "lake", SECOND)
    return tmp_path / "lake"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_is_cut_off_anywhere_is_there_whole_or_not_at_all(
    change: Callable[[Path], object], lake: Path, tmp_path: Path
) -> None:
    before = seen(lake)
    with moments(lake, tmp_path / "moments") as found:
        change(lake)
    after = seen(lake)
    assert after != before
    outcomes = [seen(moment) for moment in found]
    assert all(files in (before, after) for files in outcomes)
    assert before in outcomes and after in outcomes


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_cut_off_is_simply_done_again(change: Callable[[Path], object], lake: Path, tmp_path: Path) -> None:
    with moments(lake, tmp_path / "moments") as found:
        change(lake)
    after = seen(lake)
    for moment in found:
        change(moment)
        assert seen(moment) == after
        assert {path.name for path in moment.iterdir() if path.name.startswith(".")} <= {".lock", f".{ROOT}.draft"}


def test_an_observation_comes_through_between_the_cut_and_the_next_export(lake: Path, tmp_path: Path) -> None:
    with moments(lake, tmp_path / "moments") as found:
        export(lake, 3)
    observe(lake, THIRD)
    after = seen(lake)
    for moment in found:
        observe(moment, THIRD)
        export(moment, 3)
        assert seen(moment) == after


def test_a_lake_whose_first_change_was_cut_off_is_still_one(tmp_path: Path) -> None:
    with moments(tmp_path / "lake", tmp_path / "moments") as found:
        export(tmp_path / "lake", 2)
    assert any(not (moment / ROOT).exists() for moment in found)
    for moment in found:
        export(moment, 2)
        assert seen(moment) == seen(tmp_path / "lake")
