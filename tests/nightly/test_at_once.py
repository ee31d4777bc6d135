"""Processes over one lake at the same time: a second run leaves, observations come through, and nothing is mixed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb
import pytest
from kube.lake import query
from lake_rows import files
from prometheus.replay import replaying
from prometheus.test_export_killed import Gate, kill_session

from .killed_run import PATIENCE_SECONDS, TONIGHT, Night, ended


@contextmanager
def run_that_waits(night: Night, folder: Path) -> Iterator[tuple[BaseProcess, Gate]]:
    """A run that has come to its second read of samples, and waits for the answer until the gate is opened."""
    gate = Gate(night.prometheus, closes_at=2)
    with replaying({}, otherwise=gate) as proxy:
        process = replace(night, prometheus=proxy.url, environ={"GPUREPORT_REPORT__ONLY": "html"}).start(folder)
        try:
            assert gate.is_reached.wait(PATIENCE_SECONDS)
            yield process, gate
        finally:
            gate.may_go_on.set()
            kill_session(process)


def test_a_second_run_leaves_and_two_snapshots_come_through(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = [TONIGHT + timedelta(minutes=minute) for minute in (5, 10)]
    with run_that_waits(night, tmp_path) as (first, gate):
        other = night.start_snapshot(tmp_path, looks[0])
        assert night.run(tmp_path) == 0
        assert capsys.readouterr().err.splitlines() == [f"another run over {tmp_path / 'lake'} is active; this one ends"]
        assert night.snapshot(tmp_path, looks[1]) == 0
        assert ended(other) == 0
        assert not (tmp_path / "out").exists()
        gate.may_go_on.set()
        assert ended(first) == 0
    observed = query(tmp_path / "lake", "select observed_at, count(*) from lake.pod group by all order by all")
    assert [(at.hour, at.minute) for at, _ in observed] == [(1, 30), (1, 35), (1, 40)]
    assert len({count for _, count in observed}) == 1
    # Two GPUs take 30 J in each of 20 steps; a day that two runs had written would hold them twice, or parts of both.
    facts = [str(file) for file in files(tmp_path / "lake", "facts/device_hour") if "2026-11-20" in str(file)]
    assert duckdb.execute("select sum(energy_joules) from read_parquet(?)", [facts]).fetchall() == [(2 * 20 * 30,)]
