"""Configurations and SQL that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpureport.cli import main

from .samples import CONFIG, DAY, GOOD, NOW, USAGE, Refused, digests, metrics, write

WRONG = ["lak = 'x'", "lake = ", "[saturation]\nmemory_threshold_ratio = 2", "[compute]\nthreads = 0", "saturation = 1"]


@pytest.mark.parametrize("text", WRONG)
def test_a_configuration_that_is_wrong_is_a_usage_error(text: str, refused: Refused, tmp_path: Path) -> None:
    refused(CONFIG, "--config", write(tmp_path / "wrong.toml", text), "compute", "--date", DAY)


def test_an_amount_in_place_of_a_table_says_how_the_table_is_written(refused: Refused, tmp_path: Path) -> None:
    config = write(tmp_path / "wrong.toml", "[prices]\ngpu_hour = 2.5")
    assert "[prices.gpu_hour]" in refused(CONFIG, "--config", config, "compute", "--date", DAY)


def test_a_configuration_that_is_not_there_is_a_usage_error(refused: Refused, tmp_path: Path) -> None:
    assert "--config" in refused(CONFIG, "--config", tmp_path / "nowhere.toml", "compute", "--date", DAY)


def test_a_misspelt_environment_name_is_a_usage_error(refused: Refused) -> None:
    environ = {"GPUREPORT_SATURATION__MEMORY_TRESHOLD_RATIO": "0.8"}
    assert "saturation.memory_treshold_ratio" in refused(CONFIG, "compute", "--date", DAY, environ=environ)


def test_the_seeds_threshold_out_of_range_falls_back_with_a_warning(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"GPU_MEMORY_SATURATION_THRESHOLD": "1.5"}
    assert main(["sql", "select 1", "--lake", str(lake)], environ=environ, now=NOW) == 0
    warning = capsys.readouterr().err
    assert "GPU_MEMORY_SATURATION_THRESHOLD" in warning
    assert "0.9" in warning


def test_a_memory_limit_that_is_no_size_is_a_usage_error(refused: Refused, tmp_path: Path) -> None:
    config = write(tmp_path / "wrong.toml", "[compute]\nmemory_limit = 'abc'\n")
    assert "memory_limit" in refused(CONFIG, "--config", config, "compute", "--date", DAY)


@pytest.mark.parametrize("cluster", ["a/b", "", "..", "a b"])
def test_a_cluster_name_that_is_no_folder_is_a_usage_error(cluster: str, refused: Refused, tmp_path: Path) -> None:
    refused(USAGE, "import", write(tmp_path / "good.txt", metrics(*GOOD)), "--cluster", cluster)


@pytest.mark.parametrize(
    ("statement", "printed"),
    [
        ("selec 1", "SQL"),
        ("select nonsense from lake.device_sample", "SQL"),
        ("select 1/", "SQL"),
        ("select pwer_watts from lake.device_sample", 'Candidate bindings: "power_watts"'),
        ("from lake.nothing", "there is no table lake.nothing; did you mean"),
    ],
)
def test_sql_that_is_wrong_is_a_usage_error(statement: str, printed: str, refused: Refused) -> None:
    assert printed in refused(USAGE, "sql", statement)


@pytest.mark.parametrize(
    "statement", ["drop view lake.device_sample", "delete from lake.device_sample", "create table lake.mine (a int)"]
)
def test_sql_does_not_change_the_lake(statement: str, lake: Path) -> None:
    before = digests(lake)
    main(["sql", statement, "--lake", str(lake)], environ={}, now=NOW)
    assert digests(lake) == before


@pytest.mark.parametrize(
    ("statement", "wants_a_report"),
    [
        ("from lake.device_sample", False),
        ('from facts."device_hour" limit 1', False),
        ("from period.sum", True),
        ("show tables", False),
    ],
)
def test_only_a_statement_that_may_want_the_report_waits_for_it(
    statement: str, wants_a_report: bool, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts of another threshold make none, which is said where a statement names one, in the log's own form."""
    config = write(tmp_path / "half.toml", 'log_format = "json"\n[saturation]\nmemory_threshold_ratio = 0.5\n')
    main(["--config", str(config), "sql", statement, "--lake", str(lake)], environ={}, now=NOW)
    printed = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any("were computed with" in each["message"] for each in printed) == wants_a_report


def test_an_empty_place_does_not_mean_this_folder(refused: Refused) -> None:
    """As a variable of the shell leaves it that nobody set."""
    assert "--out is empty" in refused(USAGE, "report", "--since", DAY, "--out", "")
