"""An import gives the same lake whatever is in memory at once and whichever day comes first; its days are computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpureport.cli import main
from gpureport.collect import staging
from gpureport.collect.file_import import import_files
from gpureport.lake import open_lake
from gpureport.values.catalog import load_catalog

DAY_SECONDS = 86_400
SINCE = 1_772_323_200  # 2026-03-01, midnight
DEVICES = [f"GPU-{number}" for number in range(5)]
TABLES = ("device_sample", "raw_sample", "owner_label", "device_label", "device_signal")


def day_file(folder: Path, day: int) -> Path:
    """Power and energy of a few devices, a minute apart, in the first and last ten minutes of a day."""
    lines = []
    for number, device in enumerate(DEVICES):
        labels = f'{{UUID="{device}",Hostname="node",pod="p{number}",namespace="ns",container="main"}}'
        for second in (*range(7, 600, 60), *range(DAY_SECONDS - 600 + 7, DAY_SECONDS, 60)):
            at = SINCE + day * DAY_SECONDS + second
            lines.append(f"DCGM_FI_DEV_POWER_USAGE{labels} {100 + number + second % 7} {at}")
            lines.append(f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{labels} {(at - SINCE) * 100_000} {at}")
    path = folder / f"{day}.txt"
    path.write_text("\n".join([*lines, "# EOF\n"]))
    return path


def lake_of(folder: Path, imports: Sequence[Sequence[Path]]) -> dict[tuple[str, str], pa.Table]:
    """The rows of each table and day after imports in turn, whatever parts they are in."""
    for files in imports:
        import_files(folder, files, "c", load_catalog())
    lake = open_lake(folder)
    found = {}
    for table in TABLES:
        for each in lake.partitions(table):
            rows = pa.concat_tables([pq.read_table(file, partitioning=None) for file in each.files])
            keys = [(name, "ascending") for name in rows.schema.names if not pa.types.is_nested(rows.schema.field(name).type)]
            found[table, each.date.isoformat()] = rows.sort_by(keys)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("text")
    return [day_file(folder, day) for day in range(3)]


def test_days_in_turn_are_the_same_as_all_at_once(files: list[Path], tmp_path: Path) -> None:
    at_once = lake_of(tmp_path / "at-once", [files])
    assert lake_of(tmp_path / "in-turn", [[file] for file in files]) == at_once
    assert lake_of(tmp_path / "backwards", [[file] for file in reversed(files)]) == at_once
    # 100 W on: what the counter grows from 23:59:07 to 00:00:07 is cut at midnight, seven sixtieths of it the next day's.
    middle = at_once["device_sample", "2026-03-02"].filter(pa.compute.field("is_carried")).to_pylist()
    carried = [row for row in middle if row["seen_at"].hour == 0]
    assert [(row["held_seconds"], float(row["energy_joules_increase"])) for row in carried] == [(7.0, 700.0)] * len(DEVICES)


def test_few_devices_at_a_time_are_the_same_as_all_at_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = lake_of(tmp_path / "at-once", [files[:2]])
    monkeypatch.setattr(staging, "_SAMPLES_AT_ONCE", 1)
    assert lake_of(tmp_path / "apart", [files[:2]]) == at_once
    assert min(len(each.files) for each in open_lake(tmp_path / "apart").partitions("device_sample")) > 1


def command(lake: Path, *words: str) -> int:
    return main([*words, "--lake", str(lake)], environ={}, now=datetime(2026, 3, 9, tzinfo=UTC))


def facts_of(lake: Path) -> dict[tuple[str, str], list[bytes]]:
    """The facts' files as they lie there."""
    opened = open_lake(lake)
    tables = [table for table in opened.tables() if table.startswith("facts/")]
    parts = [each for table in tables for each in opened.partitions(table)]
    return {(each.table, each.date.isoformat()): [Path(file).read_bytes() for file in each.files] for each in parts}


@pytest.fixture(scope="module")
def computed(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("range")
    import_files(lake, files[:2], "c", load_catalog())
    assert command(lake, "compute", "--since", "2026-02-20", "--until", "2026-04-01") == 0
    return lake


def test_a_range_computes_the_days_that_the_lake_has(computed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {day for _, day in facts_of(computed)} == {"2026-03-01", "2026-03-02"}
    assert command(computed, "compute", "--since", "2026-02-01", "--until", "2026-03-01") == 1
    assert "has no data for 2026-02-01" in capsys.readouterr().err
    assert command(computed, "compute", "--since", "7d", "--date", "2026-03-02") == 2
    assert "one or the other" in capsys.readouterr().err


def test_facts_whose_samples_were_removed_stay_and_those_of_the_other_day_are_the_same_from_it_alone(
    computed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = copytree(computed, tmp_path / "lake")
    before = facts_of(lake)
    assert command(lake, "prune", "--keep-samples", "1d") == 0

    assert command(lake, "compute", "--since", "2026-03") == 0
    assert "c 2026-03-01: its samples were removed, its facts stay as they are" in capsys.readouterr().err
    assert command(lake, "compute", "--date", "2026-03-01") == 1
    assert "nothing to compute: c 2026-03-01: its samples were removed" in capsys.readouterr().err
    assert facts_of(lake) == before
