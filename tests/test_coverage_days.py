"""The ledger from a file to the report: the day before as evidence, a node without exporter, and what the first screen says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from golden_case import rows_of
from report_tables import report_tables

from gpureport.cli import main
from gpureport.report.header import read_header
from gpureport.values.window import Window

NOW = datetime(2026, 3, 3, tzinfo=UTC)
GPU = 'gpu="0",UUID="GPU-a",device="nvidia0",Hostname="n1",instance="10.0.0.1:9400",job="dcgm"'
KSM = 'instance="10.0.0.9:8080",job="kube-state-metrics"'


def lines(metric: str, labels: str, value: float, start: datetime, end: datetime) -> Iterator[str]:
    """A sample a minute in [start, end)."""
    for second in range(int(start.timestamp()), int(end.timestamp()), 60):
        yield f"{metric}{{{labels}}} {value} {second}"


def metrics() -> str:
    """GPU-a on n1 until 23:30 of 1 March and from 10:00 to 12:00 of the 2nd; n2 offers two GPUs all of the 2nd."""
    second = datetime(2026, 3, 2, tzinfo=UTC)
    spans = [(datetime(2026, 3, 1, 22, tzinfo=UTC), datetime(2026, 3, 1, 23, 30, tzinfo=UTC)), (at(10), at(12))]
    found = ["# TYPE DCGM_FI_DEV_POWER_USAGE gauge"]
    found += [line for start, end in spans for line in lines("DCGM_FI_DEV_POWER_USAGE", GPU, 300, start, end)]
    found.append("# TYPE kube_node_status_capacity gauge")
    for node, count in (("n1", 1), ("n2", 2)):
        labels = f'{KSM},node="{node}",resource="nvidia_com_gpu",unit="integer"'
        found += lines("kube_node_status_capacity", labels, count, second, datetime(2026, 3, 3, tzinfo=UTC))
    return "\n".join([*found, "# EOF\n"])


def at(hour: int) -> datetime:
    return datetime(2026, 3, 2, hour, tzinfo=UTC)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What report.json of 2 March says of itself, with the rows of two tables."""
    folder = tmp_path_factory.mktemp("days")
    text, lake = folder / "metrics.txt", folder / "lake"
    text.write_text(metrics())
    for arguments in (["import", str(text)], ["compute", "--since", "2026-03-01", "--until", "2026-03-03"]):
        assert main([*arguments, "--lake", str(lake)], environ={}, now=NOW) == 0
    with report_tables(lake, "2026-03-02", now=NOW) as report:
        shown = {table: rows_of(report.execute(f"from report.{table}")) for table in ("coverage", "device")}
        report.tables.open_named("from report.api_agreement; from lake.source")
        window = Window.of_day(date(2026, 3, 2))
        return {**read_header(report.con, window, NOW, "", (), {}).as_dict(), "rows": shown}


def row(document: dict[str, Any], signal: str, node: str) -> dict[str, Any]:
    found = [each for each in document["rows"]["coverage"] if (each["signal"], each["node_name"]) == (signal, node)]
    (one,) = found
    return dict(one)


def test_a_device_that_was_there_the_day_before_is_expected_from_midnight_on(document: dict[str, Any]) -> None:
    power = row(document, "power_watts", "n1")
    # Two hours of a day: the last of its samples, at 11:59, holds for the minute that lies between them.
    assert (power["expected_device_seconds"], power["observed_device_seconds"]) == (86_400, 7_200)
    assert power["unknown_device_seconds"] == 79_200
    assert (power["reason"], power["source_metrics"]) == ("exporter_down", "DCGM_FI_DEV_POWER_USAGE")
    assert power["evidence"].endswith("for 79200 s in total; last sample: 11:59:00")


def test_a_node_that_offers_gpus_and_has_no_exporter_is_unknown_time(document: dict[str, Any]) -> None:
    silent = row(document, "any", "n2")
    assert (silent["expected_device_count"], silent["unknown_device_seconds"], silent["reason"]) == (2, 2 * 86_400, "no_exporter")
    assert silent["evidence"] == "2 nvidia_com_gpu by node capacity, no device series"


def test_the_first_screen_counts_both(document: dict[str, Any]) -> None:
    coverage = document["coverage"]
    assert (coverage["expected_device_seconds"], coverage["observed_device_seconds"]) == (3 * 86_400, 7_200)
    assert coverage["unknown_device_seconds"] == {"no_exporter": 172_800.0, "exporter_down": 79_200.0}
    assert "xid_code" in coverage["absent_signals"]["xid_absent_until_first_error"]
    assert "gr_engine_active_ratio" in coverage["absent_signals"]["no_dcp"]


def test_every_row_says_which_metric_it_was_read_from(document: dict[str, Any]) -> None:
    (device,) = document["rows"]["device"]
    assert device["source_metrics"] == {"power_watts": "DCGM_FI_DEV_POWER_USAGE"}
