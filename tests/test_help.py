"""What the command line says to somebody new: help, completion, a close command, the largest teams at once."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.compute.query import load


def test_an_unknown_command_names_the_one_that_is_close(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repot"], environ={}) == 2
    assert "Did you mean report" in capsys.readouterr().err


def test_the_help_has_the_number_of_days_that_can_be_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    """It was 1,000,000 in the help, and 3,660 in the refusal."""
    assert main(["simulate", "--help"], environ={}) == 0
    assert "1<=x<=3660" in capsys.readouterr().out


@pytest.mark.parametrize("where", [0, 1, 3])
@pytest.mark.parametrize("form", [("--config", "{}"), ("--config={}",)])
def test_the_configuration_is_named_before_the_command_or_behind_it(
    where: int, form: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lake of the file is the one that is looked for."""
    (tmp_path / "own.toml").write_text(f'lake = "{tmp_path / "nowhere"}"')
    words = ["top", "teams", "--since=2026-11-20"]
    words[where:where] = [each.format(tmp_path / "own.toml") for each in form]
    assert main(words, environ={}) == 1
    assert str(tmp_path / "nowhere") in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell], environ={}) == 0
    assert "_GPUREPORT_COMPLETE" in capsys.readouterr().out


def test_help_of_a_command_is_the_commands_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "report"], environ={}) == 0
    assert "the last complete week" in " ".join(capsys.readouterr().out.split())


def test_help_names_the_tables_whose_days_are_utcs_in_any_time_zone(capsys: pytest.CaptureFixture[str]) -> None:
    """Two have days that are no column of their grain."""
    daily = [query for query in load().values() if query.life == "report" and {"day"} <= {*query.grain}]
    utc = [query.table.removeprefix("report.") for query in daily if "timezone" not in query.params]
    assert main(["report", "--help"], environ={}) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"The days of {', '.join(sorted([*utc, 'focus', 'gpu_hour_balance']))} and teams' pages are UTC's." in told


def test_the_largest_teams_are_printed_at_once(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["top", "teams", "--since", "2026-11-20T23:51:40Z", "--until", "2026-11-20T23:59:40Z", "-o", "csv"]
    assert main([*asked, "--lake", str(demo / "lake")], environ={}) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["team"] for row in rows] == ["research", "serving", "data", "notebooks"]
    # Eight minutes of one GPU are 0.1333 GPU-h; of these 84.6 % were allocated.
    assert sum(float(row["allocated_gpu_hours"]) for row in rows) == pytest.approx(0.846 * 8 / 60, rel=2e-3)
