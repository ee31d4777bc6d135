"""Days of which nothing was exported, and GPUs that fell silent: expected, and unknown, until they are known to be gone."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from report_tables import report_tables

from gpureport.cli import main

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
DEAD = {"GPU-b": "H100", "GPU-c": "L40S"}
"""Of the cluster that was exported on 2 March only."""


def unused(uuid: str, node: str, model: str, *days: int) -> list[str]:
    """A sample every ten minutes of each of these days of March."""
    labels = f'UUID="{uuid}",Hostname="{node}",modelName="{model}",gpu="0",instance="{node}:9400",job="dcgm"'
    starts = [int(datetime(2026, 3, day, tzinfo=UTC).timestamp()) for day in days]
    return [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 0 {start + second}" for start in starts for second in range(0, 86_400, 600)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """eu has days 1 to 4, with GPU-s on the first alone; us has day 2. Each first sample names a pod, so exporters can."""
    folder = tmp_path_factory.mktemp("missing")
    eu = [*unused("GPU-a", "n1", "H100", 1, 2, 3, 4), *unused("GPU-s", "n2", "H100", 1)]
    us = [line for uuid, model in DEAD.items() for line in unused(uuid, "n1", model, 2)]
    for cluster, (first, *lines) in (("eu", eu), ("us", us)):
        file = folder / f"{cluster}.txt"
        named = first.replace("{", '{namespace="ns",pod="p",container="c",')
        file.write_text("\n".join(["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", named, *lines, "# EOF\n"]))
        call("import", str(file), "--cluster", cluster, "--lake", str(folder / "lake"))
    call("compute", "--since", "2026-03-01", "--until", "2026-03-05", "--lake", str(folder / "lake"))
    return folder / "lake"


def call(*arguments: str) -> None:
    assert main([*arguments], environ={}, now=NOW) == 0


UNKNOWN = """
    select cluster, gpu_model, cause, sum(gpu_hours) from report.gpu_hour_ledger where bucket = 'unknown'
    group by all order by all
"""


def report(out: Path) -> dict[str, Any]:
    """report.json of a folder, with unknown GPU-hours by cluster, model and cause."""
    with duckdb.connect(str(out / "gpureport.duckdb"), read_only=True) as con:
        unknown = con.execute(UNKNOWN).fetchall()
    found: dict[str, Any] = json.loads((out / "report.json").read_bytes())
    return {**found, "unknown": unknown}


def test_missing_days_first_in_the_middle_and_last_are_unknown_by_model(lake: Path) -> None:
    """eu: days 5 to 7 of GPU-a and GPU-s, and days 2 to 4 of GPU-s, which is silent; us: day 1, and days 3 to 7."""
    with report_tables(lake, "2026-03-01", "2026-03-08", NOW) as found:
        assert found.rows(UNKNOWN) == [
            ("eu", "H100", "not_exported", 6 * 24.0),
            ("eu", "H100", "unseen", 3 * 24.0),
            ("us", "H100", "not_exported", 6 * 24.0),
            ("us", "L40S", "not_exported", 6 * 24.0),
        ]
        evidence = found.rows("select evidence from report.coverage where reason = 'not_exported'")
    assert ("no export of the cluster; its GPUs are those of 2026-03-02",) in evidence


def test_what_is_retired_is_not_expected_and_a_report_of_one_cluster_has_no_other(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gpureport.toml"
    file.write_text(
        '[owners]\nteam_label = "crew"\n[prices.gpu_hour]\nH100 = 1\nH1000 = 1\n'
        '[prices.budgets]\nnobody = 5\n[[retired]]\ncluster = "mars"\nsince = 2026-03-02\n'
        '[[retired]]\ncluster = "eu"\ndevice = "GPU-s"\nsince = 2026-03-02\n'
    )
    asked = ("--since", "2026-03-04", "--cluster", "eu", "--only", "json,duckdb")
    call("--config", str(file), "report", *asked, "--lake", str(lake), "--out", str(tmp_path))
    found = report(tmp_path)
    assert (found["unknown"], found["clusters"]) == ([], ["eu"])
    said = capsys.readouterr().err
    assert "prices.gpu_hour names 'H1000', which is no GPU of the period; known: H100" in said
    assert "prices.budgets names 'nobody', which is no team of the period; known: none" in said
    assert "retired names 'mars', which is no cluster of the lake; known: eu" in said
    assert "owners.team_label is 'crew', which no namespace with GPUs in the period has" in said


def test_sql_and_top_of_one_cluster_read_no_other(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--lake", str(lake), "--cluster", "us", "-o", "csv")
    call("sql", "select distinct cluster, device_uuid from facts.device_hour order by all", *flags)
    assert capsys.readouterr().out.splitlines() == ["cluster,device_uuid", "us,GPU-b", "us,GPU-c"]
    call("top", "gpus", "--since", "2026-03-02", "--until", "2026-03-03", *flags)
    told = capsys.readouterr().out
    assert [uuid for uuid in ("GPU-a", "GPU-b", "GPU-c", "GPU-s") if uuid in told] == [*DEAD], told
    assert main(["report", "--since", "2026-03-04", "--lake", str(lake), "--cluster", "ap"], environ={}, now=NOW) == 2
    assert "has no cluster 'ap'; it has eu, us" in capsys.readouterr().err


def test_a_day_of_which_no_hour_is_over_is_not_reported(lake: Path, tmp_path: Path) -> None:
    arguments = ["report", "--since", "2026-03-04", "--lake", str(lake), "--cluster", "eu", "--out", str(tmp_path)]
    assert main(arguments, environ={}, now=datetime(2026, 3, 4, 0, 30, tzinfo=UTC)) == 2


def test_a_run_of_today_has_its_hours_and_a_dead_cluster_is_unknown_in_them(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its server is gone: what the lake has of the day is reported, of both clusters; the other one died two days before."""
    file = tmp_path / "gpureport.toml"
    file.write_text("[prices.gpu_hour]\nL40S = 1\n")
    flags = ["--prometheus-url", "http://127.0.0.1:9", "--no-kubernetes", "--lake", str(lake), "--out", str(tmp_path)]
    environ = {"GPUREPORT_REPORT__ONLY": "json,duckdb"}
    now = datetime(2026, 3, 4, 9, 19, 20, tzinfo=UTC)
    assert main(["--config", str(file), "run", "--date", "today", "--cluster", "eu", *flags], environ, now) == 5
    assert "L40S" not in capsys.readouterr().err  # it is expected, so its price is not misspelt
    found = report(tmp_path)
    assert found["window"] == {"start_at": "2026-03-04T00:00:00Z", "end_at": "2026-03-04T09:00:00Z"}
    assert found["notes"][0] == "Provisional: the period lasts until 2026-03-05T00:00:00Z; the report has its completed part."
    assert found["unknown"] == [
        ("eu", "H100", "unseen", 9.0),
        ("us", "H100", "not_exported", 9.0),
        ("us", "L40S", "not_exported", 9.0),
    ]
    coverage, hours = found["coverage"], 9 * 3600
    assert (coverage["expected_device_seconds"], coverage["observed_device_seconds"]) == (4 * hours, hours)
    assert coverage["unknown_device_seconds"] == {"not_exported": 2.0 * hours, "exporter_down": 1.0 * hours}
    assert main(["run", "--until", "now", "--cluster", "eu", *flags], environ, now - timedelta(hours=9)) == 2  # before 5
    assert "no full hour of 2026-03-04T00:00:00Z … 2026-03-05T00:00:00Z is over" in capsys.readouterr().err
    assert main(["run", "--date", "tomorrow", "--cluster", "eu", *flags], environ, now) == 2
    assert "'tomorrow' is not a date" in capsys.readouterr().err
    assert main(["run", "--until", "now", "--date", "2026-03-03", "--cluster", "eu", *flags], environ, now) == 2
    assert "leave out --date" in capsys.readouterr().err


def test_sql_and_diff_of_a_period_that_goes_on_end_with_the_last_full_hour(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two GPUs are expected in eu until 09:00 of 4 March: 3 x 24 + 9 h each, also of all days that have facts."""
    now, flags = datetime(2026, 3, 4, 9, 19, 20, tzinfo=UTC), ("--lake", str(lake), "--cluster", "eu", "-o", "csv")
    asked = "select round(sum(gpu_hours), 9) as gpu_hours from report.gpu_hour_ledger"
    for period in (("--since", "2026-03"), ()):
        assert main(["sql", asked, *period, *flags], environ={}, now=now) == 0
        assert capsys.readouterr().out.splitlines() == ["gpu_hours", "162.0"]
    compared = ("diff", "--since", "2026-03-04", "--previous-since", "2026-03-03", "--show", "periods")
    assert main([*compared, *flags], environ={}, now=now) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert {row["period"]: row["capacity_gpu_hours"] for row in rows} == {"before": "48.0", "now": "18.0"}


@pytest.mark.parametrize("command", [["report", "--out", "out"], ["sql", "from report.gpu_hour_balance"], ["top", "gpus"]])
def test_a_period_that_cuts_an_hour_with_data_on_both_sides_is_refused(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Of 09:20 to 10:25, GPU-hours of report.* would be those of two hours."""
    monkeypatch.chdir(tmp_path)
    window = ["--since", "2026-03-04T09:20:00Z", "--until", "2026-03-04T10:25:00Z"]
    assert main([*command, *window, "--lake", str(lake.resolve())], environ={}, now=NOW) == 2
    assert "Give 2026-03-04T09:00:00Z … 2026-03-04T11:00:00Z" in capsys.readouterr().err
