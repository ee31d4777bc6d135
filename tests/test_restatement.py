"""A day that grows after it was reported is marked, with what was said of it at first; one that is computed again is not."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from few_facts import compute_only
from golden_case import NOON, NOW
from lake_rows import seen
from report_tables import report_tables

from gpureport.cli import main
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.identity import outdated_days
from gpureport.lake import open_lake
from gpureport.report.page.words import tables_of_page

LABELS = 'UUID="GPU-a",gpu="0",modelName="NVIDIA H200",Hostname="node-a",namespace="ns",pod="p",container="main"'


def put(folder: Path, first_minute: int, *clusters: str) -> None:
    """Import a file of an hour of a GPU that a pod holds into clusters."""
    lines = [f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 50 {NOON + (first_minute + minute) * 60}" for minute in range(60)]
    file, lake = folder / f"{first_minute}.txt", ["--lake", str(folder / "lake")]
    file.write_text("\n".join(["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *lines, "# EOF", ""]))
    for cluster in clusters:
        assert main(["import", str(file), "--cluster", cluster, *lake], environ={}, now=NOW) == 0


def bring(folder: Path, first_minute: int, *clusters: str) -> None:
    """Import such a file, and compute the day of all clusters that there are."""
    put(folder, first_minute, *clusters)
    assert main(["compute", "--date", "2026-11-20", "--lake", str(folder / "lake")], environ={}, now=NOW) == 0


def facts(folder: Path, cluster: str) -> dict[str, bytes]:
    return {name: data for name, data in seen(folder / "lake").items() if name.startswith("facts/") and f"/{cluster}/" in name}


def test_a_day_that_grew_says_what_was_said_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days that had an hour: one got two more, one by one, one got another one, and one got none."""
    compute_only(monkeypatch, "facts.device_hour", "facts.device_day", "facts.ledger_hour", "facts.ledger_day")
    bring(tmp_path, 0, "grown", "once", "never")
    bring(tmp_path, 60, "grown", "once")
    before = [facts(tmp_path, cluster) for cluster in ("once", "never")]
    bring(tmp_path, 120, "grown")
    assert all(before) and [facts(tmp_path, cluster) for cluster in ("once", "never")] == before  # computed again

    assert tables_of_page()["restated_day"].title == "Restated days"
    figures = (f"{said}{kind}_gpu_hours" for kind in ("allocated", "seen") for said in ("previous_", ""))
    with report_tables(tmp_path / "lake", "2026-11-20") as report:
        held = report.rows(f"select cluster, day::varchar, {', '.join(figures)} from report.restated_day order by all")
    restated = [(cluster, "2026-11-20", *map(pytest.approx, (1, now, 1, now))) for cluster, now in (("grown", 3), ("once", 2))]
    assert held == restated


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_days_that_are_computed_at_the_same_time_the_later_one_is_outdated(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expected devices and idle power of a day come from the days before it, which it did not have."""
    compute_only(monkeypatch, "facts.device_hour", "facts.ledger_hour")
    for minute in (-24 * 60, 0):
        put(tmp_path, minute, "eu", "us")
    days = [date(2026, 11, 19), date(2026, 11, 20)]
    lakes = [open_lake(tmp_path / "lake") for _ in days]
    for number in (first, 1 - first):
        compute_days(lakes[number], [("eu", days[number])], ComputeSettings())
    assert outdated_days(open_lake(tmp_path / "lake")) == {"eu": days[1:]}
    compute_days(open_lake(tmp_path / "lake"), [("eu", days[1])], ComputeSettings())
    compute_days(lakes[0], [("us", days[0])], ComputeSettings())
    assert outdated_days(open_lake(tmp_path / "lake")) == {}
