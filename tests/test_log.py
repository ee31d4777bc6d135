"""The log: lines for people; or objects, with one id in all lines of a run and another in the next."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.values.text.log import start_log

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SAMPLE = 'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1"} 100 1795176000\n'


def entries(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_lines_of_a_run_are_objects_with_one_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = ["--lake", str(tmp_path / "lake")]
    ids = []
    for _ in range(2):
        assert main(["compute", "--date", "2026-11-20", *lake, "--log-format", "json"], environ={}, now=NOW) == 1
        [entry] = entries(capsys.readouterr().err)
        assert (entry["level"], entry["command"], entry["exit_code"]) == ("error", "compute", 1)
        assert "there is no lake" in str(entry["message"])
        assert str(entry["time"]).endswith("Z")
        ids.append(entry["run_id"])
    assert ids[0] != ids[1]


def test_the_environment_chooses_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "metrics.txt"
    file.write_text(f"# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n{SAMPLE}# EOF\n")
    arguments = ["import", str(file), "--lake", str(tmp_path / "lake")]
    environ = {"GPUREPORT_LOG_FORMAT": "json", "GPU_MEMORY_SATURATION_THRESHOLD": "7"}
    assert main(arguments, environ=environ, now=NOW) == 0
    told = entries(capsys.readouterr().err)
    assert [entry["level"] for entry in told] == ["warning", "info"]
    assert len({entry["run_id"] for entry in told}) == 1


def test_a_name_cannot_move_the_cursor_or_forge_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    name = 'pod\x1b[2J\r"},{"level":"error"'
    for wanted in ("text", "json"):
        start_log({"GPUREPORT_LOG_FORMAT": wanted})
        logging.getLogger("gpureport.some.module").warning(f"{name} is odd")
    text, as_json = capsys.readouterr().err.splitlines()
    assert text == 'warning: pod\\x1b[2J\\r"},{"level":"error" is odd'
    assert json.loads(as_json)["message"] == f"{name} is odd"
    assert abs(datetime.now(UTC) - datetime.fromisoformat(json.loads(as_json)["time"])) < timedelta(minutes=1)


def test_what_the_log_names_is_not_read_as_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    start_log({})
    logging.getLogger("gpureport").warning("100 %s of it")
    assert capsys.readouterr().err == "warning: 100 %s of it\n"


def test_what_is_wrong_with_the_command_line_or_the_configuration_is_an_object_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"GPUREPORT_LOG_FORMAT": "json"}
    (tmp_path / "gpureport.toml").write_text("no = 'such key'")
    for arguments in (["run", "--no-such-flag"], ["--config", str(tmp_path / "gpureport.toml"), "run"]):
        assert main(arguments, environ=environ, now=NOW) == 2
        [entry] = entries(capsys.readouterr().err)
        assert (entry["level"], entry["exit_code"]) == ("error", 2)
        assert "no" in str(entry["message"])
