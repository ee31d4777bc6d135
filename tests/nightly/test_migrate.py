"""A lake of an older schema: refused with the command that migrates it, and whole after that."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from kube.lake import RECORDING, ask

from gpureport.cli import main
from gpureport.lake import migrate as migration
from gpureport.lake.layout import MARKER
from gpureport.tables import SCHEMA_VERSION

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = "2026-11-20"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LACKING = {"device_sample": ["gpu_temp_celsius", "sm_active_ratio"], "pod": ["priority", "scheduler"], "source": ["joined_ratio"]}


def command(lake: Path, *arguments: str) -> int:
    return main([*arguments, "--lake", str(lake)], environ={}, now=NOW)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A day of samples and a look at Kubernetes, as a version before some columns would have written them."""
    path = tmp_path / "lake"
    lines = [f'{POWER}{{UUID="GPU-a",Hostname="n1"}} {100 + number} {1_795_176_000 + 60 * number}' for number in range(10)]
    file = tmp_path / "metrics.txt"
    file.write_text("\n".join([f"# TYPE {POWER} gauge", *lines, "# EOF\n"]))
    assert command(path, "import", str(file)) == 0
    assert command(path, "import", "--kubernetes", str(RECORDING)) == 0
    for table, columns in LACKING.items():
        for each in (path / table).rglob("*.parquet"):
            rows = pq.ParquetFile(each).read()
            assert set(columns) <= set(rows.column_names)
            pq.write_table(rows.drop_columns(columns), each, store_decimal_as_integer=True)
    (path / MARKER).write_text(json.dumps({"schema_version": SCHEMA_VERSION - 1}))
    return path


@pytest.mark.parametrize(
    "arguments",
    [["compute", "--date", DAY], ["report", "--since", DAY], ["sql", "select 1"], ["prune", "--keep-samples", "1d"]],
    ids=lambda arguments: arguments[0],
)
def test_it_is_refused_with_the_command_that_migrates_it(
    arguments: list[str], lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert command(lake, *arguments) == 1
    assert f"run 'gpureport migrate --lake {lake}' once" in capsys.readouterr().err


def test_migrated_it_holds_what_it_held_and_nulls_for_the_rest(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(lake, "migrate", "--dry-run") == 0
    assert json.loads((lake / MARKER).read_text())["schema_version"] == SCHEMA_VERSION - 1
    capsys.readouterr()
    assert command(lake, "migrate") == 0
    # device_sample of one day, pod of one, source of both.
    assert f"from schema {SCHEMA_VERSION - 1} to {SCHEMA_VERSION}: 4 files" in capsys.readouterr().err
    assert ask(lake, "select sum(power_watts), count(gpu_temp_celsius), count(*) from lake.device_sample") == [(1045, 0, 10)]
    assert ask(lake, "select count(*), count(priority), max(scheduler) from lake.pod") == [(21, 0, "")]
    assert command(lake, "compute", "--date", DAY) == 0
    assert command(lake, "migrate") == 0
    assert "already" in capsys.readouterr().err
    assert list(lake.rglob("*.draft")) == []


def test_one_that_was_killed_is_run_again(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Path] = []
    whole = migration._complete

    def die_at_the_second(lake_path: Path, file: Path, missing: list[migration.Column]) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(file)
        whole(lake_path, file, missing)

    monkeypatch.setattr(migration, "_complete", die_at_the_second)
    assert command(lake, "migrate") == 1
    monkeypatch.undo()
    assert json.loads((lake / MARKER).read_text())["schema_version"] == SCHEMA_VERSION - 1
    assert command(lake, "migrate") == 0
    assert ask(lake, "select sum(power_watts) from lake.device_sample") == [(1045,)]


def test_what_cannot_be_unknown_is_refused_and_nothing_is_changed(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [file] = (lake / "device_sample").rglob("*.parquet")
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.drop_columns(["seen_at"]), file)
    before = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    assert command(lake, "migrate") == 1
    assert "lacks seen_at, which cannot be unknown" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in lake.rglob("*.parquet")} == before
