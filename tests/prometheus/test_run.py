"""The nightly job against a real Prometheus: missing days are filled, late data is taken in, a second run leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from few_facts import compute_only
from nightly.test_run_metrics import LAST_SUCCESS, of

from gpureport.cli import main
from gpureport.collect.export import Exported
from gpureport.commands.work import collecting, delivering, nightly, reporting
from gpureport.compute.day import ComputeResult
from gpureport.compute.fact_views import ClusterDay
from gpureport.config import Config, load_config
from gpureport.lake import Lake, exclusive_run, open_lake, views
from gpureport.report import NOTICE
from gpureport.values.errors import SourceError
from gpureport.values.window import Window

from .programs import fill_blocks, program, prometheus

NOW = datetime(2026, 11, 23, 1, 30, tzinfo=UTC)
DAY_SECONDS = 86_400
METRIC = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


def energy(day_shift: int, count: int) -> str:
    """A GPU that takes 1 J a second, seen every 30 s from 12:00 of 2026-11-20 plus the shift."""
    start = 1_795_176_000 + day_shift * DAY_SECONDS
    labels = 'UUID="GPU-a",Hostname="n1",job="dcgm",instance="i:9400"'
    lines = [f"{METRIC}{{{labels}}} {number * 30_000} {start + number * 30}" for number in range(count)]
    return "\n".join([f"# TYPE {METRIC} gauge", *lines, "# EOF\n"])


def run(url: str, folder: Path, day: str | None = None, now: datetime = NOW, environ: Mapping[str, str] | None = None) -> int:
    chosen = ["--date", day] if day else []
    arguments = ["run", "--prometheus-url", url, "--lake", str(folder / "lake"), "--out", str(folder / "out"), *chosen]
    return main(arguments, environ={"GPUREPORT_REPORT__ONLY": "html", **(environ or {})}, now=now)


def joules(folder: Path) -> dict[date, float]:
    """Energy by day, from the facts."""
    with duckdb.connect() as con:
        views(con, open_lake(folder / "lake"), ["facts/device_hour"])
        return dict(con.execute("select date, sum(energy_joules) from facts.device_hour group by date order by date").fetchall())


def from_blocks(folder: Path, blocks: Path, *days: int) -> None:
    """Samples of days of November out of blocks into the folder's lake."""
    for day in days:
        arguments = [
            "export",
            "--date",
            f"2026-11-{day}",
            "--blocks",
            str(blocks),
            "--no-kubernetes",
            "--lake",
            str(folder / "lake"),
        ]
        assert main(arguments, environ={}, now=NOW) == 0


def compute(folder: Path, since: int, until: int) -> None:
    days = ["--since", f"2026-11-{since}", "--until", f"2026-11-{until}"]
    assert main(["compute", *days, "--lake", str(folder / "lake")], environ={}, now=NOW) == 0


@pytest.fixture
def lagging(tmp_path: Path) -> Path:
    """A lake as runs leave it that came too early or were killed after their export: samples of a first day without facts, and
    facts of fewer samples than the lake has, of 11-21, and than Prometheus has, of 11-22."""
    fill_blocks(tmp_path / "early", energy(1, 11), energy(2, 5))
    from_blocks(tmp_path, tmp_path / "early", 21, 22)
    with pytest.MonkeyPatch.context() as patch:
        compute_only(patch, "facts.device_hour")
        compute(tmp_path, 21, 23)
    assert joules(tmp_path) == {date(2026, 11, 21): 300, date(2026, 11, 22): 120}
    fill_blocks(tmp_path / "later", energy(-2, 5), energy(1, 21))
    from_blocks(tmp_path, tmp_path / "later", 18, 21)
    return tmp_path


def test_a_night_fills_every_day_from_the_first_one_held_publishes_what_it_did_and_with_findings_a_report_is_made_again(
    lagging: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts that lack or are behind are made, late data is taken in, 11-19 stays missing; what has not grown is left alone.

    Neither findings nor a missing gateway are a failure. A night after it is one.
    """
    fill_blocks(tmp_path / "late", energy(-2, 5), energy(1, 21), energy(2, 41))
    file, report, compute_days = tmp_path / "node" / "gpureport.prom", reporting.report, reporting.compute_days
    written: list[dict[Path, int]] = []
    computed: list[list[int]] = []
    texts: list[str] = []
    reports: list[reporting.Reported] = []

    def noted(lake: Lake, days: Sequence[ClusterDay], *more: Any) -> ComputeResult:
        computed.append([day.day for _, day in days])
        return compute_days(lake, days, *more)

    def once(*arguments: Any) -> reporting.Reported:
        reports.append(reports[0] if reports else report(*arguments))
        return reports[0]

    monkeypatch.setattr(reporting, "compute_days", noted)
    monkeypatch.setattr(reporting, "report", once)
    metrics = {"GPUREPORT_METRICS__FILE": str(file), "GPUREPORT_METRICS__PUSHGATEWAY_URL": "http://127.0.0.1:9"}
    environ = {"GPUREPORT_REPORT__ONLY": "html,duckdb", "GPUREPORT_REPORT__FAIL_ON": "info", **metrics}
    with prometheus(program("PROMETHEUS_BIN"), tmp_path / "late", tmp_path / "server") as url:
        for _ in range(2):
            capsys.readouterr()
            assert run(url, lagging, environ=environ) == 3
            printed = capsys.readouterr().err
            assert "has findings that fail the run" in printed
            assert "warning: the job's metrics are not published: the Pushgateway http://127.0.0.1:9" in printed
            assert re.search("2026-11-19 stays missing: .* has no series", printed)
            written.append(_written(lagging / "lake"))
            texts.append(file.read_text())
            monkeypatch.setattr("gpureport.collect.export._Export.run", lambda *_: pytest.fail("samples are fetched again"))
        assert run(url, lagging, "2026-11-23", NOW + timedelta(days=1), environ) == 5
    good, bad = texts[0], file.read_text()
    days = {18: 120, 21: 600, 22: 1200}
    assert joules(lagging) == {date(2026, 11, day): energy for day, energy in days.items()}
    assert written[0] == written[1]
    assert computed == [[18], [21, 22]]  # days that follow each other at once
    assert len(reports) == 2

    assert [of(each, "gpureport_run_success") for each in (good, bad)] == [{(): 1}, {(): 0}]
    assert [of(each, "gpureport_run_exit_code") for each in (good, bad)] == [{(): 3}, {(): 5}]
    cluster = (("cluster", "default"),)
    assert of(good, "gpureport_run_samples_total") == {cluster: 41}
    # Expected all day, for it was seen on days before.
    assert of(good, "gpureport_run_coverage_ratio") == {cluster: pytest.approx(41 * 30 / DAY_SECONDS)}
    assert of(bad, "gpureport_run_coverage_ratio") == {}  # not known, which is not 0
    assert of(good, "gpureport_run_unknown_gpu_hours").keys() == {cluster}
    stages = {dict(labels)["stage"] for labels in of(good, "gpureport_run_duration_seconds")}
    assert stages == {"snapshot", "export", "compute", "report", "housekeeping"}
    [at] = of(texts[1], LAST_SUCCESS).values()
    assert NOW.timestamp() <= at < NOW.timestamp() + 3600
    assert of(bad, LAST_SUCCESS) == {(): at}
    assert {path.name for path in file.parent.iterdir()} == {"gpureport.prom"}


def test_a_gpu_that_late_samples_show_is_expected_on_the_days_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPU-b of 11-19 and GPU-c of 11-21 come late, and are silent from then on; the days after were computed without them.

    A run was killed when 11-19 was done and the next day was not; 11-21 is of the run that comes after it.
    """
    compute_only(monkeypatch, "facts.expected_device")
    one, other = (energy(shift, 21).replace("GPU-a", gpu).split("\n", 1)[1] for shift, gpu in ((-1, "GPU-b"), (1, "GPU-c")))
    days = [energy(shift, 21) for shift in range(-1, 3)]
    fill_blocks(tmp_path / "blocks", *days)
    from_blocks(tmp_path, tmp_path / "blocks", *range(19, 23))
    compute(tmp_path, 19, 23)
    days[0], days[2] = days[0].replace("# EOF\n", one), days[2].replace("# EOF\n", other)
    fill_blocks(tmp_path / "late", *days)
    from_blocks(tmp_path, tmp_path / "late", 19)
    compute(tmp_path, 19, 20)
    monkeypatch.setattr(nightly, "_reported", lambda plan: reporting.Reported([plan.config.out / "report.html"], ()))
    with prometheus(program("PROMETHEUS_BIN"), tmp_path / "late", tmp_path / "server") as url:
        assert run(url, tmp_path) == 0
    counts = {each.date.day: each.row_count for each in open_lake(tmp_path / "lake").partitions("facts/expected_device")}
    assert counts == {19: 2, 20: 2, 21: 3, 22: 3}


def test_an_export_of_less_than_the_lake_held_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 21 samples the server has dropped ten by now."""
    printed = []

    def export(*source: str) -> None:
        arguments = ["export", "--date", "2026-11-20", "--no-kubernetes", "--lake", str(tmp_path / "lake")]
        assert main([*arguments, *source], environ={}, now=NOW) == 0
        printed.append(capsys.readouterr().err)

    for count in (21, 11, 6):
        fill_blocks(tmp_path / f"blocks-{count}", energy(0, count))
    for count in (21, 11):
        with prometheus(program("PROMETHEUS_BIN"), tmp_path / f"blocks-{count}", tmp_path / f"server-{count}") as url:
            export("--prometheus-url", url)
    for count in (6, 21):
        export("--blocks", str(tmp_path / f"blocks-{count}"))
    assert ["may be partial" in each for each in printed] == [False, True, True, False]
    assert "2026-11-20 may be partial: the lake had 21 samples of the day" in printed[1]
    assert "2026-11-20 may be partial: the lake had 11 samples of the day" in printed[2]


def test_a_day_without_any_series_is_exit_code_5(three_days: str, tmp_path: Path) -> None:
    assert run(three_days, tmp_path, "2026-11-21") == 5
    assert open_lake(tmp_path / "lake", create=True).partitions("device_sample") == []


def test_a_file_is_not_merged_into_a_day_that_was_exported_over_what_was_imported(
    three_days: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The raw samples of the import are not those of the day any more: with them the exported ones would be gone."""
    file, lake = tmp_path / "few.txt", ["--lake", str(tmp_path / "lake")]
    file.write_text(energy(0, 5))
    assert main(["import", str(file), *lake], environ={}, now=NOW) == 0
    arguments = ["export", "--date", "2026-11-20", "--prometheus-url", three_days, "--no-kubernetes"]
    assert main([*arguments, *lake], environ={}, now=NOW) == 0
    assert main(["import", str(file), *lake], environ={}, now=NOW) == 1
    assert "was exported without its raw samples" in capsys.readouterr().err
    [held] = open_lake(tmp_path / "lake").partitions("device_sample")
    assert held.row_count == 21


def _written(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_made_again_when_it_would_say_something_else(
    three_days: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Yesterday's. Not where nothing changed; where another command's report lies there, the page is gone, or facts or settings
    are others.
    """
    assert run(three_days, tmp_path) == 0
    assert "Nothing has changed" not in capsys.readouterr().out
    assert "2026-11-22" in (tmp_path / "out/report.html").read_text()
    before = _written(tmp_path)
    assert run(three_days, tmp_path) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["Nothing has changed since the report was made.", str(tmp_path / "out" / "report.html")]
    assert _written(tmp_path) == before

    out = tmp_path / "out"
    page = out / "report.html"
    assert is_as_made(three_days, tmp_path)
    assert not is_as_made(three_days, tmp_path, idle_policy="pool")
    (out / NOTICE).touch()
    assert not is_as_made(three_days, tmp_path)
    (out / NOTICE).unlink()
    page.rename(tmp_path / "page")
    assert not is_as_made(three_days, tmp_path)
    (tmp_path / "page").rename(page)
    delivering.deliver(out, lambda _: [])
    assert not is_as_made(three_days, tmp_path)

    facts, answers = _written(tmp_path / "lake" / "facts"), ("made again",)
    monkeypatch.setattr(reporting, "report", lambda *_: reporting.Reported([page], answers))
    compute_only(monkeypatch, "facts.device_hour")
    capsys.readouterr()
    assert run(three_days, tmp_path, environ={"GPUREPORT_SATURATION__MEMORY_THRESHOLD_RATIO": "0.8"}) == 0
    assert capsys.readouterr().out.splitlines() == [*answers, str(page)]
    assert _written(tmp_path / "lake" / "facts") != facts
    assert joules(tmp_path) == {date(2026, 11, 22): 1200}
    saturation = {"saturation.memory_threshold_ratio": 0.8}
    assert is_as_made(three_days, tmp_path, saturation) and not is_as_made(three_days, tmp_path)
    lake = open_lake(tmp_path / "lake")
    [held] = lake.partitions("facts/device_hour")
    with lake.change() as change:
        change.write(held.table, held.cluster, held.date, pq.read_table(held.files[0], partitioning=None))
        change.note(held.cluster, held.date, {"change": "another"})
    assert not is_as_made(three_days, tmp_path, saturation)


def is_as_made(url: str, folder: Path, more: Mapping[str, Any] = MappingProxyType({}), **report: str) -> bool:
    """Whether a run would leave the report as it is."""
    flags = {"prometheus.url": url, "lake": str(folder / "lake"), "out": str(folder / "out")}
    given = {f"report.{name}": value for name, value in {"only": "html", **report}.items()}
    config, window = load_config(None, {}, {**flags, **given, **more})[0], Window.of_day(date(2026, 11, 22))
    return delivering.has_input_digest(config.out, reporting.input_digest(config, window.over_by(NOW)))


def test_an_older_day_that_cannot_be_read_keeps_none_of_yesterday(
    three_days: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_blocks(tmp_path / "blocks", energy(0, 21))
    from_blocks(tmp_path, tmp_path / "blocks", 20)
    export = collecting.export

    def broken(config: Config, environ: Mapping[str, str], day: date, only_if_grown: bool) -> Exported:
        if day < date(2026, 11, 22):
            raise SourceError(f"the store gateway of {day} is away")
        return export(config, environ, day, only_if_grown)

    reported = list[date]()
    monkeypatch.setattr(collecting, "export", broken)
    compute_only(monkeypatch, "facts.device_hour")
    monkeypatch.setattr(nightly, "_reported", lambda plan: reported.append(plan.last_day) or reporting.Reported([], ()))
    assert run(three_days, tmp_path) == 5
    assert "the store gateway of 2026-11-20 is away" in capsys.readouterr().err
    assert joules(tmp_path) == {date(2026, 11, 22): 1200}
    assert reported == [date(2026, 11, 22)]


def test_a_second_run_at_the_same_time_leaves_at_once(
    three_days: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with exclusive_run(tmp_path / "lake"):
        assert run(three_days, tmp_path) == 0
    assert "another run" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_whose_day_an_export_replaced_has_failed_for_no_other_run_makes_the_report(
    three_days: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--lake", str(tmp_path / "lake"), "--no-kubernetes"]

    def disturbed(lake: Lake, days: Sequence[ClusterDay], *_: object) -> None:
        [of_day] = days
        assert main(["export", "--date", "2026-11-22", "--prometheus-url", three_days, *where], environ={}, now=NOW) == 0
        with lake.change() as change:
            change.write("facts/device_hour", *of_day, pa.table({"n": [1]}))

    monkeypatch.setattr(reporting, "compute_days", disturbed)
    metrics = tmp_path / "run.prom"
    assert run(three_days, tmp_path, environ={"GPUREPORT_METRICS__FILE": str(metrics)}) == 1
    assert "changed 2026-11-22 of default at the same time" in capsys.readouterr().err
    assert "gpureport_run_success 0.0" in metrics.read_text()


def test_a_day_that_has_not_begun_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("http://127.0.0.1:9", tmp_path, "2026-11-24") == 2
    assert "has not begun" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()
