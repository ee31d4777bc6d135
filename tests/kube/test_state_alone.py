"""Snapshots alone are a day: it is computed and reported, and what no exporter reported is unknown."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from report_tables import report_tables

from gpureport.cli import main
from gpureport.commands.work.settings import facts_made_with
from gpureport.compute.identity import are_current
from gpureport.config import Config
from gpureport.lake import open_lake
from kube.lake import DAY, NOW, RECORDING, import_state


def is_current(lake: Path) -> bool:
    return are_current(open_lake(lake), "lab", date.fromisoformat(DAY), facts_made_with(Config()))


def test_a_lake_of_snapshots_alone_computes_and_reports(tmp_path: Path) -> None:
    """Its facts are those of its snapshots, joined or not, until there are more."""
    lake = str(tmp_path / "lake")
    for time in ("01:46:21", "05:46:21", "09:46:21"):
        import_state(tmp_path / "lake", RECORDING, "--observed-at", f"{DAY}T{time}Z")
    assert main(["compute", "--date", DAY, "--lake", lake], environ={}, now=NOW) == 0
    with report_tables(tmp_path / "lake", DAY, now=NOW + timedelta(days=1)) as con:
        figures = "device_count, capacity_gpu_hours, unknown_gpu_hours, energy_joules, reason"
        [found] = con.rows(f"select {figures} from report.fleet")
    # 15 devices from the first snapshot to the end of the day, 22:13:39.
    hours = 15 * (22 + 13 / 60 + 39 / 3600)
    # Three snapshots stand for 15 minutes each. Allocated: seven GPUs by claims, four quarters of a shared one, and on gpu-node-3
    # wants-1-0's, slices of 1/7 and 3/7, and 0.5 + 2 by Koordinator. Free: gpu-6 and gpu-7 of gpu-node-1.
    known = 3 * 0.25 * (7 + 1 + 1 + 4 / 7 + 2.5 + 2)
    assert found == (15, pytest.approx(hours), pytest.approx(hours - known), None, "no_exporter")
    assert is_current(tmp_path / "lake")
    assert open_lake(tmp_path / "lake").pack_observations(NOW.date() + timedelta(days=1)) > 0
    assert is_current(tmp_path / "lake")
    import_state(tmp_path / "lake", RECORDING, "--observed-at", f"{DAY}T10:46:21Z")
    assert not is_current(tmp_path / "lake")
