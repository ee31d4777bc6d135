"""`gpureport export` as a CronJob calls it: exit codes, one sentence on stderr, paths on stdout."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import duckdb
import pytest

from gpureport.cli import main

from . import fleet
from .fleet import environment, export_command, run_export
from .programs import free_port
from .replay import Reply, replaying

NOWHERE = "http://127.0.0.1:1"
TOKEN = "a-token-that-must-stay-secret"


class Outcome(NamedTuple):
    """A command's exit code and what it said."""

    returncode: int
    stdout: str
    stderr: str


Export = Callable[..., Outcome]


@pytest.fixture
def export_here(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Export:
    """Run an export within this process: what is refused before anything is written needs none of its own."""
    monkeypatch.chdir(tmp_path)

    def run(url: str, *more: str, day: str = fleet.DAY.isoformat(), **settings: str) -> Outcome:
        arguments = export_command(url, tmp_path / "lake", *more, day=day)
        code = main(arguments[arguments.index("export") :], environ=environment(**settings))
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


def assert_one_sentence(outcome: Outcome | CompletedProcess[str], code: int, words: str) -> None:
    assert outcome.returncode == code, outcome.stderr
    (line,) = outcome.stderr.strip().splitlines()
    assert line.startswith("gpureport: ")
    assert words in line
    assert outcome.stdout == ""


def test_a_day_is_exported_and_the_lake_named(fleet_prometheus: str, tmp_path: Path) -> None:
    outcome = run_export(fleet_prometheus, tmp_path / "lake")
    assert (outcome.returncode, outcome.stdout) == (0, f"{tmp_path / 'lake'}\n")
    assert "Traceback" not in outcome.stderr
    files = f"{tmp_path}/lake/device_sample/cluster=lab/date={fleet.DAY}/*.parquet"
    (found,) = duckdb.connect().execute("select count(*), count(distinct device_uuid) from read_parquet(?)", [files]).fetchall()
    assert found == (60 * fleet.NODE_COUNT, fleet.NODE_COUNT)


def test_a_day_without_data_is_a_source_that_cannot_be_read(fleet_prometheus: str, export_here: Export) -> None:
    outcome = export_here(fleet_prometheus, day="2024-06-01")
    assert_one_sentence(outcome, 5, "has no series of the catalog for 2024-06-01")


def test_a_server_that_is_not_there_is_exit_code_5(export_here: Export, tmp_path: Path) -> None:
    outcome = export_here(f"http://127.0.0.1:{free_port()}")
    assert_one_sentence(outcome, 5, "connection refused")
    assert not (tmp_path / "lake").exists()


def test_a_refused_token_is_exit_code_5_and_not_shown(tmp_path: Path) -> None:
    http = tmp_path / "http.yml"
    http.write_text(f"bearer_token: {TOKEN}\n")
    with replaying({}, otherwise=Reply(401, b"Unauthorized", "text/plain")) as server:
        outcome = run_export(server.url, tmp_path / "lake", GPUREPORT_PROMETHEUS__HTTP_CONFIG_FILE=str(http))
    assert_one_sentence(outcome, 5, "refuses these credentials")
    assert TOKEN not in outcome.stderr
    assert {request.headers["Authorization"] for request in server.requests} == {f"Bearer {TOKEN}"}


WRONG_USE = {
    "no such HTTP configuration": ([NOWHERE, "--http-config-file", "nothing-here"], {}, "nothing-here cannot be read"),
    "an address that is none": (["prometheus:9090"], {}, "'prometheus:9090' is not the URL of a server"),
    "no address": ([""], {}, "no Prometheus to read; give --prometheus-url"),
    "an unknown setting": ([NOWHERE], {"GPUREPORT_PROMETHEUS__RETRYS": "1"}, "retrys"),
    "a setting out of range": ([NOWHERE], {"GPUREPORT_PROMETHEUS__MAX_CONCURRENCY": "0"}, "max_concurrency"),
}


@pytest.mark.parametrize(("arguments", "settings", "words"), WRONG_USE.values(), ids=WRONG_USE)
def test_wrong_use_is_exit_code_2(arguments: list[str], settings: dict[str, str], words: str, export_here: Export) -> None:
    url, *more = arguments
    assert_one_sentence(export_here(url, *more, **settings), 2, words)


@pytest.mark.parametrize("day", ["someday", "2024-02-30", "9999-01-01"])
def test_a_date_that_is_none_is_exit_code_2(day: str, export_here: Export) -> None:
    assert_one_sentence(export_here(NOWHERE, day=day), 2, day)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_lake_that_cannot_be_written_is_exit_code_1(fleet_prometheus: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert_one_sentence(run_export(fleet_prometheus, tmp_path / "lake"), 1, "cannot be written")


def test_a_lake_that_is_a_file_is_exit_code_1(fleet_prometheus: str, export_here: Export, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    assert_one_sentence(export_here(fleet_prometheus), 1, "is a file, not a lake")
