"""A lake of an older form: refused with the command that migrates it, and whole after that."""

from __future__ import annotations

import csv
import json
import re
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from golden_case import MINUTES
from kube.lake import query
from lake_rows import seen

from gpureport.cli import main
from gpureport.lake import migrate as migration
from gpureport.lake import open_lake
from gpureport.lake.root import MARKER, ROOT
from gpureport.values.tables import SCHEMA_VERSION

OLDER = Path(__file__).parents[1] / "older"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = "2026-11-20"
LACKING = {"device_sample": ["gpu_temp_celsius", "sm_active_ratio"], "pod": ["priority", "scheduler"], "source": ["joined_ratio"]}


def command(lake: Path, *arguments: str) -> int:
    return main([*arguments, "--lake", str(lake)], environ={}, now=NOW)


def unpacked(folder: Path) -> Path:
    with tarfile.open(OLDER / "folder.tgz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "lake"


def files(lake: Path) -> dict[str, bytes]:
    return {str(path.relative_to(lake)): path.read_bytes() for path in lake.rglob("*.parquet")}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The recording and a snapshot of Kubernetes, as the last released version stored them."""
    return unpacked(tmp_path)


@pytest.fixture
def lacking(lake: Path) -> Path:
    """As a version before some columns would have written it."""
    for table, columns in LACKING.items():
        for each in (lake / table).rglob("*.parquet"):
            rows = pq.ParquetFile(each).read()
            pq.write_table(rows.drop_columns(columns), each, store_decimal_as_integer=True)
    (lake / MARKER).write_text(json.dumps({"schema_version": 1}))
    return lake


@pytest.mark.parametrize(
    "arguments",
    [["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"], ["prune", "--keep-samples", "1d"]],
    ids=lambda arguments: arguments[0],
)
def test_it_is_refused_with_the_command_that_migrates_it(
    arguments: list[str], lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(lake, *arguments) == 1
    assert f"run 'gpureport migrate --lake {lake}' once" in capsys.readouterr().err


def test_one_of_this_schema_without_a_root_is_told_to_be_migrated_and_is(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Schema 3 was there before there was a root."""
    (lake / MARKER).write_text(json.dumps({"schema_version": SCHEMA_VERSION}))
    assert command(lake, "sql", "select 1") == 1
    assert f"run 'gpureport migrate --lake {lake}' once" in capsys.readouterr().err
    assert command(lake, "migrate") == 0
    assert f"from schema {SCHEMA_VERSION} to {SCHEMA_VERSION}" in capsys.readouterr().err
    assert query(lake, "select count(*) from lake.pod") == [(21,)]


def test_migrated_it_holds_the_same_files(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(lake)
    assert command(lake, "migrate", "--dry-run") == 0
    assert (lake / MARKER).exists() and not (lake / ROOT).exists()
    assert command(lake, "migrate") == 0
    assert "from schema 2 to 3: 2 files" in capsys.readouterr().err
    found = seen(lake)  # samples and their source gained columns
    assert files(lake).items() >= before.items()
    assert len(found) == len(before) == len(set(found.values()) & set(before.values())) + 2
    assert query(lake, "select cluster, count(*) from lake.source group by all order by all")[0][0] == "h200-recording"
    assert query(lake, "select count(*), count(distinct observed_at) from lake.pod") == [(21, 1)]
    assert command(lake, "migrate") == 0
    assert "already" in capsys.readouterr().err


def test_days_whose_samples_are_gone_are_reported_with_the_same_numbers(lake: Path, demo: Path, tmp_path: Path) -> None:
    """As the demo, which is the same recording computed by this version."""
    assert command(lake, "migrate") == 0
    opened = open_lake(lake)
    samples = ("device_sample", "sample", "raw_sample", "series", "owner_label", "device_label", "device_signal")
    opened.remove(each for table in samples for each in opened.partitions(table))
    assert command(lake, "report", *MINUTES, "--only", "csv", "--out", str(tmp_path / "out")) == 0
    for name in ("container_power", "container_saturation", "device", "energy", "gpu_hour_ledger", "container"):
        assert numbers(tmp_path / "out", name) == numbers(demo, name), name
    methods = {row["energy_method"] for row in rows_of_csv(tmp_path / "out", "device")}
    assert methods == {"unknown"}  # facts of that version do not say how energy was told
    assert {row["corrected_joules"] for row in rows_of_csv(tmp_path / "out", "device")} == {""}


def rows_of_csv(report: Path, name: str) -> list[dict[str, str]]:
    with (report / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(report: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table without what only newer facts say of their energy, and what they hold to the board's largest power."""
    found = rows_of_csv(report, name)
    for row in found:
        row.pop("energy_method", None)
        row.pop("active_watts_max", None)
        for figure in ("corrected_sample_count", "corrected_joules"):
            row.pop(figure, None)
            row["unknown_reasons"] = re.sub(rf'(,"{figure}":"\w+"|"{figure}":"\w+",?)', "", row.get("unknown_reasons", ""))
    return found


def test_a_snapshot_that_was_packed_and_comes_again_is_there_once(lake: Path) -> None:
    for file in lake.rglob("observed-*.parquet"):
        file.rename(file.with_name("observed-20261121.parquet"))
    assert command(lake, "migrate") == 0
    recording = OLDER.parents[1] / "data" / "fixtures" / "k8s-1.36-recording"
    assert command(lake, "import", "--kubernetes", str(recording), "--cluster", "lab") == 0
    assert query(lake, "select count(*), count(distinct observed_at) from lake.pod") == [(21, 1)]


def test_what_a_killed_writer_left_complete_is_part_of_the_lake(lake: Path) -> None:
    before = files(lake)
    (lake / "sample").rename(lake / "moved")
    (lake / ".placing").mkdir()
    (lake / "moved").rename(lake / ".placing" / "sample")
    (lake / "node").rename(lake / ".placing" / "node")
    assert command(lake, "migrate") == 0
    assert files(lake).items() >= before.items()  # beside what was written anew for columns that it lacked
    assert {"sample", "node"} <= {name.partition("/")[0] for name in seen(lake)}
    assert not (lake / ".placing").exists()


def test_columns_that_it_lacks_are_unknown(lacking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(lacking, "migrate") == 0
    # device_sample of one day, pod of one, source of both.
    assert "from schema 1 to 3: 4 files" in capsys.readouterr().err
    [(watts, temperatures, count)] = query(
        lacking, "select count(power_watts), count(gpu_temp_celsius), count(*) from lake.device_sample"
    )
    assert (watts, temperatures) == (count, 0)
    assert query(lacking, "select count(*), count(priority), max(scheduler) from lake.pod") == [(21, 0, "")]


def test_one_that_was_killed_is_run_again(lacking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Path] = []
    whole = migration._completed

    def die_at_the_second(file: Path, missing: list[migration.Column], draft: Path) -> Path:
        if done:
            raise KeyboardInterrupt
        done.append(file)
        return whole(file, missing, draft)

    monkeypatch.setattr(migration, "_completed", die_at_the_second)
    assert command(lacking, "migrate") == 1
    monkeypatch.undo()
    assert (lacking / MARKER).exists() and not (lacking / ROOT).exists()
    assert command(lacking, "migrate") == 0
    assert query(lacking, "select count(*), count(priority), max(scheduler) from lake.pod") == [(21, 0, "")]


def test_what_cannot_be_unknown_is_refused_and_nothing_is_changed(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [file] = (lake / "device_sample").rglob("*.parquet")
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.drop_columns(["seen_at"]), file)
    before = files(lake)
    assert command(lake, "migrate") == 1
    assert "lacks seen_at, which cannot be unknown" in capsys.readouterr().err
    assert files(lake) == before
