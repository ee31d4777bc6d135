"""A day that grows after it was reported is marked, with what was said of it at first; one that is computed again is not."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from built_once import built_once
from golden_case import NOON, NOW, Row, report_rows
from lake_rows import seen

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


def report(folder: Path, name: str) -> None:
    arguments = ["report", "--since", "2026-11-20", "--lake", str(folder / "lake"), "--out", str(folder / name)]
    assert main(arguments, environ={}, now=NOW) == 0


def restated(folder: Path, name: str) -> list[Row]:
    return report_rows(folder / name / "gpureport.duckdb", "restated_day")


def facts_digest(folder: Path) -> str:
    facts = sorted((name, data) for name, data in seen(folder / "lake").items() if name.startswith("facts/"))
    return sha256(b"".join(data for _, data in facts)).hexdigest()


@pytest.fixture(scope="session")
def grown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day that has an hour, is reported (``first``), gets two more, one by one, and is reported (``out``)."""

    def build(folder: Path) -> None:
        bring(folder, "a.txt", 0, 60)
        report(folder, "first")
        bring(folder, "b.txt", 60, 60)
        bring(folder, "c.txt", 120, 60)
        report(folder, "out")

    return built_once("grown", build, request, tmp_path_factory)


def test_a_day_that_grew_says_what_was_said_at_first(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert restated(grown, "first") == []
    [row] = restated(grown, "out")
    assert str(row["day"]) == "2026-11-20"
    assert (row["previous_allocated_gpu_hours"], row["allocated_gpu_hours"]) == pytest.approx((1, 3))
    assert (row["previous_seen_gpu_hours"], row["seen_gpu_hours"]) == pytest.approx((1, 3))
    assert "Restated days" in (grown / "out" / "report.html").read_text()
    capsys.readouterr()
    reports = [str(grown / name) for name in ("first", "out")]
    assert main(["diff", *reports, "--show", "restated", "-o", "json"], environ={}, now=NOW) == 0
    [told] = json.loads(capsys.readouterr().out)["restated"]
    assert told["day"] == "2026-11-20"
    assert (told["previous_allocated_gpu_hours"], told["allocated_gpu_hours"]) == pytest.approx((1, 3))


def test_computing_a_day_again_changes_no_byte(grown: Path, tmp_path: Path) -> None:
    shutil.copytree(grown / "lake", tmp_path / "lake")
    before = facts_digest(tmp_path)
    compute(tmp_path)
    assert facts_digest(tmp_path) == before
