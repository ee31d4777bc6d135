"""What goes wrong on a night costs that night a sentence and an exit code, and the lake and the last report nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from full_disk import full_disk
from prometheus.replay import Reply, Request, forwarding, replaying

from .killed_run import TONIGHT, Night
from .wholeness import assert_nothing_is_half_there, lake_files, report_files

FAILURE, SOURCE = 1, 5
Outcome = tuple[int, str]


@pytest.fixture
def folder(nights: Path, tmp_path: Path) -> Path:
    """The lake and the report as last night left them."""
    shutil.copytree(nights / "before", tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def outcome(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the night; its exit code, and the line that says what is wrong."""

    def run(night: Night, *more: str, now: datetime = TONIGHT) -> Outcome:
        code = night.run(folder, *more, now=now)
        lines = capsys.readouterr().err.splitlines()
        return code, next((line for line in reversed(lines) if line.startswith("gpureport: ")), "")

    return run


def test_a_server_that_answers_by_halves_is_told_and_what_the_lake_has_is_reported(
    night: Night, folder: Path, nights: Path, outcome: Callable[..., Outcome]
) -> None:
    answer = forwarding(night.prometheus)

    def half(request: Request) -> Reply:
        whole = answer(request)
        kept = len(whole.body) // 2 if request.path == "/api/v1/read" else len(whole.body)
        return replace(whole, body=whole.body[:kept], missing_bytes=len(whole.body) - kept)

    with replaying({}, otherwise=half) as server:
        code, said = outcome(replace(night, prometheus=server.url))
    assert code == SOURCE
    assert "run again" in said
    # The lake has samples of the day, so they are reported.
    assert_nothing_is_half_there(folder, nights, is_reported_anew=True)


@pytest.mark.parametrize("limit", [5_000, 15_000, 25_000], ids=["snapshot", "export", "compute"])
def test_a_disk_that_fills_up_ends_the_night_and_leaves_the_last_one(
    limit: int, night: Night, folder: Path, nights: Path, outcome: Callable[..., Outcome]
) -> None:
    with full_disk(limit):
        code, said = outcome(night)
    assert code == FAILURE
    assert "free space, then run again" in said
    assert_nothing_is_half_there(folder, nights)


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(days=-30)], ids=str)
def test_a_clock_that_jumped_changes_nothing(
    jump: timedelta, night: Night, folder: Path, nights: Path, outcome: Callable[..., Outcome]
) -> None:
    code, said = outcome(night, "--no-kubernetes", now=TONIGHT + jump)
    assert code == SOURCE
    assert "has no series of the catalog" in said
    assert lake_files(folder) == lake_files(nights / "before")
    assert report_files(folder) == report_files(nights / "before")
