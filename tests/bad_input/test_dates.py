"""Dates and windows that are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpureport.cli import main

from .samples import DAY, FAILURE, NOW, USAGE, Refused, write


@pytest.mark.parametrize("date", ["2026-13-40", "tomorrow", "20.11.2026", ""])
def test_a_date_that_is_none_is_a_usage_error(date: str, refused: Refused) -> None:
    if date:
        assert "2026-11-20" in refused(USAGE, "compute", "--date", date)
    assert "2026-11-20T23:51:40Z" in refused(USAGE, "report", "--since", date)


def test_a_date_of_a_year_without_gpus_is_not_said_to_be_no_date(refused: Refused) -> None:
    assert "is not a date in 2000-2199" in refused(USAGE, "compute", "--date", "2999-01-01")
    assert "is not a time in 2000-2199" in refused(USAGE, "report", "--since", "1999-01-01")


def test_a_day_that_has_not_begun_cannot_be_computed(refused: Refused) -> None:
    assert "--date" in refused(USAGE, "compute", "--date", "2027-01-01")


def test_a_day_that_the_lake_does_not_hold_is_named(refused: Refused, tmp_path: Path) -> None:
    assert "2026-11-18" in refused(FAILURE, "compute", "--date", "2026-11-18")
    assert "2026-10-20" in refused(FAILURE, "report", "--since", "2026-10-20", "--out", tmp_path / "out")
    assert "no full hour of 2027-11-20" in refused(USAGE, "report", "--since", "2027-11-20", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("until", [DAY, "2026-11-19", "2026-11-19T23:59:59Z"])
def test_an_empty_window_is_a_usage_error(until: str, refused: Refused, tmp_path: Path) -> None:
    assert "empty" in refused(USAGE, "report", "--since", DAY, "--until", until, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_time_without_a_zone_is_a_usage_error(refused: Refused) -> None:
    assert "add Z" in refused(USAGE, "report", "--since", "2026-11-20T10:00:00")


def test_the_last_day_of_the_calendar_is_no_crash(refused: Refused) -> None:
    refused(USAGE, "report", "--since", "9999-12-31")


def test_days_that_were_imported_but_not_computed_are_named(refused: Refused, lake: Path, tmp_path: Path) -> None:
    shutil.rmtree(lake / "facts")
    sentence = refused(FAILURE, "report", "--since", DAY, "--out", tmp_path / "out")
    assert DAY in sentence
    assert "gpureport compute" in sentence


def test_facts_of_another_threshold_are_reported_with_a_note(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out = write(tmp_path / "half.toml", "[saturation]\nmemory_threshold_ratio = 0.5\n"), tmp_path / "out"
    command = ["--config", str(config), "report", "--since", DAY, "--lake", str(lake), "--out", str(out), "--only", "html"]
    assert main(command, environ={}, now=NOW) == 0
    printed = capsys.readouterr().err
    assert f"saturation.memory_threshold_ratio 0.9 instead of 0.5: {DAY}; run 'gpureport compute' for these days" in printed
    assert "0.9 instead of 0.5" in (out / "summary.md").read_text()
    assert "0.9 instead of 0.5" in (out / "report.html").read_text()
