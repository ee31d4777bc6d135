"""A day that grows after it was reported is marked, with what was said of it at first; one that is computed again is not."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from golden_case import NOON, NOW
from lake_rows import seen
from report_tables import report_tables

from gpureport.cli import main

LABELS = 'UUID="GPU-a",gpu="0",modelName="NVIDIA H200",Hostname="node-a",namespace="ns",pod="p",container="main"'


def bring(folder: Path, name: str, first_minute: int, minutes: int) -> None:
    """Import a file of a GPU's minutes that a pod holds, and compute the day."""
    lines = [
        f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 50 {NOON + minute * 60}" for minute in range(first_minute, first_minute + minutes)
    ]
    (folder / name).write_text("\n".join(["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *lines, "# EOF", ""]))
    lake = ["--lake", str(folder / "lake")]
    assert main(["import", str(folder / name), *lake], environ={}, now=NOW) == 0
    compute(folder)


def compute(folder: Path) -> None:
    assert main(["compute", "--date", "2026-11-20", "--lake", str(folder / "lake")], environ={}, now=NOW) == 0


def restated(lake: Path) -> list[tuple[Any, ...]]:
    """Days of a report that are marked: before and now allocated, before and now seen."""
    figures = (f"{said}{kind}_gpu_hours" for kind in ("allocated", "seen") for said in ("previous_", ""))
    with report_tables(lake, "2026-11-20") as found:
        return found.rows(f"select day::varchar, {', '.join(figures)} from report.restated_day")


def facts_digest(folder: Path) -> str:
    facts = sorted((name, data) for name, data in seen(folder / "lake").items() if name.startswith("facts/"))
    return sha256(b"".join(data for _, data in facts)).hexdigest()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the lake of a day that had an hour, and got two more, one by one."""
    folder = tmp_path_factory.mktemp("grown")
    bring(folder, "a.txt", 0, 60)
    assert restated(folder / "lake") == []
    bring(folder, "b.txt", 60, 60)
    bring(folder, "c.txt", 120, 60)
    return folder


def test_a_day_that_grew_says_what_was_said_at_first(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert restated(grown / "lake") == [("2026-11-20", *map(pytest.approx, (1, 3, 1, 3)))]
    lake = ["--lake", str(grown / "lake")]
    report = ["report", "--since", "2026-11-20", "--only", "html,duckdb", "--out", str(grown / "out"), *lake]
    assert main(report, environ={}, now=NOW) == 0
    assert "Restated days" in (grown / "out" / "report.html").read_text()
    capsys.readouterr()
    both = [shutil.copytree(grown / "out", grown / "again"), grown / "out"]
    assert main(["diff", *map(str, both), "--show", "restated", "-o", "json"], environ={}, now=NOW) == 0
    [told] = json.loads(capsys.readouterr().out)["restated"]
    assert told["day"] == "2026-11-20"
    assert (told["previous_allocated_gpu_hours"], told["allocated_gpu_hours"]) == pytest.approx((1, 3))


def test_computing_a_day_again_changes_no_byte(grown: Path, tmp_path: Path) -> None:
    shutil.copytree(grown / "lake", tmp_path / "lake")
    before = facts_digest(tmp_path)
    compute(tmp_path)
    assert facts_digest(tmp_path) == before
