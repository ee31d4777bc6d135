"""What changed between two windows: through the whole program with hours counted by hand, and as a property of any ledger."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_case import NOON, NOW
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.cli import main
from gpureport.compute.period import WindowTables
from gpureport.compute.query import build, load
from gpureport.report.comparison import _bridge, _findings, _namespaces, _periods, _print_summaries
from gpureport.report.results import Result

QUERIES = load()
HOUR = 3600
DAY = 24 * HOUR
BEFORE, AFTER = (
    ["--previous-since", "2026-11-20T12:00:00Z"],
    ["--since", "2026-11-20T14:00:00Z", "--until", "2026-11-20T16:00:00Z"],
)


def samples(gpu: str, pod: str, sm_active: float, start: int, hours: float) -> list[tuple[str, str]]:
    """A minute's samples of a GPU that a pod holds: utilisation and SM activity, by metric."""
    labels = f'UUID="{gpu}",gpu="0",modelName="NVIDIA H200",Hostname="node-a",namespace="{pod[:3]}",pod="{pod}",container="main"'
    found = []
    for minute in range(int(hours * 60)):
        at = start + minute * 60
        found.append(("DCGM_FI_DEV_GPU_UTIL", f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {100 if sm_active else 0} {at}"))
        found.append(("DCGM_FI_PROF_SM_ACTIVE", f"DCGM_FI_PROF_SM_ACTIVE{{{labels}}} {sm_active} {at}"))
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Until 14:00 run-a works on GPU-a, idl-b holds GPU-b. Then run-a for an hour, new-c for one; GPU-b is silent, GPU-d came."""
    folder = tmp_path_factory.mktemp("diff")
    told = [
        *samples("GPU-a", "run-a", 0.9, NOON, 3),
        *samples("GPU-a", "new-c", 0.9, NOON + 3 * HOUR, 1),
        *samples("GPU-b", "idl-b", 0, NOON, 2),
        *samples("GPU-d", "new-d", 0.3, NOON + 2 * HOUR, 2),
    ]
    text = []
    for metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE"):
        text += [f"# TYPE {metric} gauge", *(line for name, line in told if name == metric)]
    (folder / "metrics.txt").write_text("\n".join([*text, "# EOF", ""]))
    assert main(["import", str(folder / "metrics.txt"), "--lake", str(folder / "lake")], environ={}, now=NOW) == 0
    assert main(["compute", "--date", "2026-11-20", "--lake", str(folder / "lake")], environ={}, now=NOW) == 0
    return folder / "lake"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["diff", *arguments], environ={}, now=NOW) == code
    found = capsys.readouterr()
    return found.err if code else found.out


@pytest.fixture(scope="module")
def in_json(lake: Path) -> Any:
    """Everything that changed between the two windows."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["diff", *BEFORE, *AFTER, "--lake", str(lake), "-o", "json"], environ={}, now=NOW) == 0
    return json.loads(out.getvalue())


EXPECTED = {
    # run-a 2 h and idl-b 2 h; then run-a 1 h, new-c 1 h on the same GPU, and new-d 2 h on the GPU that came.
    ("allocated", "before"): 4,
    ("allocated", "capacity_added"): 2,
    ("allocated", "ended"): -2,
    ("allocated", "new"): 1,
    ("allocated", "shrank"): -1,
    ("allocated", "after"): 4,
    # SM activity of 0.9 is effective, of 0.3 is not.
    ("effective", "before"): 2,
    ("effective", "new"): 1,
    ("effective", "shrank"): -1,
    ("effective", "after"): 2,
    # GPU-b is silent and not gone: on the day on which it was seen it is still expected.
    ("capacity", "before"): 4,
    ("capacity", "capacity_added"): 2,
    ("capacity", "after"): 6,
}


def test_hours_counted_by_hand_are_bridged(in_json: Any) -> None:
    """Steps of more than three minutes: a last minute is expected for three and held for one."""
    found = {(row["measure"], row["step"]): row["gpu_hours"] for row in in_json["bridge"] if abs(row["gpu_hours"]) > 0.05}
    assert found == pytest.approx(EXPECTED, abs=0.05)


def test_findings_are_new_or_resolved(reports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *map(str, reports), "-o", "csv", "--show", "findings")
    found = {(row["change"], row["code"], row["pod"]) for row in csv.DictReader(io.StringIO(text))}
    assert ("resolved", "GR101", "idl-b") in found
    assert not {code for change, code, _ in found if change == "new"} & {"GR101"}


def test_all_parts_are_in_the_table_and_in_json(
    reports: tuple[Path, Path], in_json: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_json.keys() == {"bridge", "namespaces", "findings", "periods", "restated"}
    assert {row["namespace"]: row["change"] for row in in_json["namespaces"]} == {"run": "shrank", "idl": "ended", "new": "new"}
    text = printed(capsys, *map(str, reports))
    assert all(title in text.splitlines() for title in in_json)
    assert "capacity_added" in text
    for figure in ("allocated_cost", "unscheduled_unit_hours", "placing_seconds_p95"):
        assert figure in text


@pytest.fixture(scope="module")
def reports(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of the two windows, each in a folder of its own."""
    folders = (tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("after"))
    for folder, times in zip(folders, (["12:00", "14:00"], ["14:00", "16:00"]), strict=True):
        start, end = (f"2026-11-20T{time}:00Z" for time in times)
        report = ["report", "--since", start, "--until", end, "--only", "csv,duckdb", "--lake", str(lake), "--out", str(folder)]
        assert main(report, environ={}, now=NOW) == 0
    return folders


def test_two_reports_tell_the_same_as_their_windows(
    reports: tuple[Path, Path], in_json: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = reports
    assert json.loads(printed(capsys, str(before), str(after / "gpureport.duckdb"), "-o", "json")) == in_json
    assert not (before / "csv" / "gpu_hour_bridge.csv").exists()  # nothing was there before noon
    assert (after / "csv" / "gpu_hour_bridge.csv").exists()


def moved(report: Path, statement: str, to: Path) -> str:
    """A copy of a report's database in which a statement was run over every table that names clusters."""
    shutil.copy(report / "gpureport.duckdb", to)
    with duckdb.connect(str(to)) as con:
        told = """select schema_name || '.' || table_name from duckdb_columns() semi join duckdb_tables() using (table_oid)
                  where column_name = 'cluster' and not internal"""
        for (table,) in con.execute(told).fetchall():
            con.execute(statement.format(table=table))
    return str(to)


def test_reports_of_other_clusters_are_not_held_against_each_other(
    reports: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is of one cluster in one report only has neither come nor gone."""
    before, after = map(str, reports)
    other = moved(reports[1], "update {table} set cluster = 'us'", tmp_path / "other.duckdb")
    both = moved(reports[1], "insert into {table} select * replace ('us' as cluster) from {table}", tmp_path / "both.duckdb")
    assert f"{before} is of default and {other} of us; give two reports of one cluster" in printed(capsys, before, other, code=1)
    alone = printed(capsys, before, after, "-o", "csv")
    assert printed(capsys, before, both, "-o", "csv") == alone
    assert main(["diff", both, after, "--show", "periods", "-o", "csv"], environ={}, now=NOW) == 0
    found = capsys.readouterr()
    assert f"left out, because only {both} has it: us" in found.err
    assert [row["cluster"] for row in csv.DictReader(io.StringIO(found.out))] == ["default", "default"]


def test_a_first_report_whose_data_begin_within_it_is_not_held_against_another(
    lake: Path, reports: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Data begin at 12:00: of 10:00 to 14:00 two hours of two GPUs are unknown, and of the day before all; not without use."""
    after, only = reports[1], ["--until", "2026-11-20T14:00:00Z", "--only", "duckdb", "--lake", str(lake)]
    for name, since in (("late", "2026-11-20T10:00:00Z"), ("later", "2026-11-19T14:00:00Z")):
        late = str(tmp_path / name)
        assert main(["report", "--since", since, *only, "--out", late], environ={}, now=NOW) == 0
        told = f"the data of default begin within the period of {late}"
        assert f"{told}; give a report of a later period" in printed(capsys, late, str(after), code=1)
    twice = "insert into {table} select * replace ('us' as cluster) from {table}"
    before, now = moved(tmp_path / "late", twice, tmp_path / "first.duckdb"), moved(after, twice, tmp_path / "second.duckdb")
    with duckdb.connect(before) as con:
        con.execute("update period.capacity set capacity_seconds = 14400 where cluster = 'us' and device_uuid = 'GPU-a'")
        later = "select * replace (day + 1 as day, 'not_exported' as unseen_cause) from period.capacity"
        con.execute(f"insert into period.capacity {later}")
    assert main(["diff", before, now, "--show", "periods", "-o", "csv"], environ={}, now=NOW) == 0
    found = capsys.readouterr()
    assert f"left out, because the data of default begin within the period of {before}" in found.err
    told = f"hours of us are unknown on 1 day of the period of {before}: nothing was exported"
    assert re.findall("hours of .*", found.err) == [told]
    assert [row["cluster"] for row in csv.DictReader(io.StringIO(found.out))] == ["us", "us"]


def test_days_that_the_later_report_restates_are_told(
    reports: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hours = {"previous_seen_gpu_hours": 1.5, "seen_gpu_hours": 2.5, "previous_allocated_gpu_hours": 1, "allocated_gpu_hours": 2}
    row = {"cluster": "default", "day": "2026-11-20", **hours}
    later = shutil.copy(reports[1] / "gpureport.duckdb", tmp_path)
    with duckdb.connect(str(later)) as con:
        con.execute(f"insert into report.restated_day ({', '.join(row)}) values {tuple(row.values())}")
    told = printed(capsys, str(reports[0]), str(later), "--show", "restated", "-o", "json")
    assert json.loads(told) == {"restated": [row]}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "nothing to compare"),
        (["a-report"], 2, "give two reports"),
        (["--since", "2026-11-20", "--previous-until", "2026-11-19"], 2, "--previous-until needs --previous-since"),
        (["nowhere-a", "nowhere-b"], 1, "is not a report's database"),
        (["--since", "2026-11-20"], 1, "cannot be compared with"),
        (["--since", "2026-10"], 1, "2026-10-01"),
        (["--since", "2026-13"], 2, "'2026-13' is not a month; write it as 2026-10"),
        (
            ["--since", "2026-11-20T14:10:00Z", "--until", "2026-11-20T15:10:00Z"],
            1,
            "cannot be compared with 2026-11-20T13:10:00Z … 2026-11-20T14:10:00Z",
        ),
        # The first data are of 12:00: of the hour before it nothing is known.
        (["--since", "2026-11-20T13:00:00Z", "--until", "2026-11-20T15:00:00Z"], 1, "whole hours with data from their beginning"),
    ],
)
def test_what_cannot_be_compared_is_said_before_any_work(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.setattr(WindowTables, "build_checked", lambda *_: pytest.fail("a report is built first"))
    assert said in printed(capsys, *arguments, "--lake", str(lake), code=code)


def test_a_cluster_that_cannot_be_compared_is_named(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The data of late begin with the second window."""
    shutil.copytree(lake, tmp_path / "lake")
    lines = [line for metric, line in samples("GPU-l", "run-l", 0.9, NOON + 2 * HOUR, 2) if metric == "DCGM_FI_DEV_GPU_UTIL"]
    (tmp_path / "late.txt").write_text("\n".join(["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", *lines, "# EOF", ""]))
    place = ["--lake", str(tmp_path / "lake")]
    assert main(["import", str(tmp_path / "late.txt"), "--cluster", "late", *place], environ={}, now=NOW) == 0
    assert main(["compute", "--date", "2026-11-20", *place], environ={}, now=NOW) == 0
    capsys.readouterr()
    assert main(["diff", *BEFORE, *AFTER, *place, "-o", "json"], environ={}, now=NOW) == 0
    told = capsys.readouterr()
    assert [line for line in told.err.splitlines() if line.startswith("left out")] == [
        "left out, because their days of 2026-11-20T12:00:00Z … 2026-11-20T14:00:00Z are not complete, or were computed "
        "differently: late"
    ]
    assert {row["cluster"] for row in json.loads(told.out)["bridge"]} == {"default"}


HELD = ("effective", "underutilized", "active_unmeasured", "allocated_unmeasured", "allocated_idle")
Entry = tuple[str, str, str, int]
entries = st.lists(
    st.tuples(st.sampled_from("123"), st.sampled_from("abcd"), st.sampled_from((*HELD, "free")), st.integers(1, 100)), max_size=12
)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(
            "create schema period; create schema previous; "
            "create table previous.workload_ledger (cluster varchar, device_uuid varchar, gpu_model varchar, namespace varchar, "
            "workload varchar, bucket varchar, gpu_hours double); "
            "create table period.workload_ledger as from previous.workload_ledger; "
            "create table previous.capacity (cluster varchar, node_name varchar, device_uuid varchar, gpu_model varchar, "
            "day varchar, device_count bigint, capacity_seconds double); create table period.capacity as from previous.capacity"
        )
        yield con


def fill(con: duckdb.DuckDBPyConnection, ledger: str, capacity: str, clusters: list[list[Entry]]) -> None:
    """A window's ledger, and the capacity of its devices, one of them free."""
    held = [(str(cluster), "0", "m", "", "", "free", 100.0) for cluster in range(len(clusters))] + [
        (str(cluster), device, "m", "ns", workload, bucket, float(hours))
        for cluster, rows in enumerate(clusters)
        for device, workload, bucket, hours in rows
    ]
    devices = {(str(cluster), "0") for cluster in range(len(clusters))} | {row[:2] for row in held}
    there = [(cluster, "", device, "m", "2026-11-20", 1, 100.0 * HOUR) for cluster, device in devices]
    for table, rows in ((ledger, held), (capacity, there)):
        frame = pl.DataFrame(rows, schema=[name for name, *_ in con.table(table).description], orient="row")  # noqa: F841
        con.execute(f"truncate {table}; insert into {table} from frame")


def result_of(table: str, frame: pl.DataFrame) -> Result:
    """A report table with these rows; key columns that they lack are empty."""
    query, con = QUERIES[f"report.{table}"], duckdb.connect()
    rows = frame.with_columns(pl.lit("").alias(name) for name in query.grain if name not in frame.columns)  # noqa: F841
    con.execute(f"create schema report; create table {query.table} as from rows")
    return Result(query, con)


def test_a_sum_of_steps_is_unknown_where_those_of_a_model_are() -> None:
    """Of model A the effective hours are unknown, so it has no step that ended: -4 would be said to be all."""
    steps = [
        ("A", "before", 1, None),
        ("A", "after", 11, None),
        ("B", "before", 1, 10.0),
        ("B", "ended", 5, -4.0),
        ("B", "after", 11, 6.0),
    ]
    names = ("gpu_model", "step", "position", "gpu_hours")
    frame = pl.DataFrame(steps, schema=names, orient="row").with_columns(measure=pl.lit("effective"))
    assert _bridge(result_of("gpu_hour_bridge", frame))[1] == [["effective", step, None] for step in ("before", "ended", "after")]


@pytest.mark.parametrize(
    ("resource", "pending"), [("gpu", [["unscheduled_unit_hours", 14.0, 22.0]]), ("nebuly.com/gpu-memory", [])]
)
def test_pending_units_of_unlike_resources_have_no_sum(resource: str, pending: list[Any]) -> None:
    """10 and 20 GPU-h beside 4 and 2 GPU-h of another cluster are 14 and 22 GPU-h; beside GB-h of GPU memory they have no sum."""
    rows = [("a", "before", "gpu", 10.0), ("a", "now", "gpu", 20.0), ("b", "before", resource, 4.0), ("b", "now", resource, 2.0)]
    names = ("cluster", "period", "demanded_resource", "unscheduled_unit_hours")
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        since_at=pl.datetime(2026, 11, 20), until_at=pl.datetime(2026, 11, 21)
    )
    assert _periods(result_of("period", frame))[1] == pending


CHANGED = {
    "change": "new", "allocated_change_gpu_hours": 1.0, "allocated_gpu_hours": 1.0, "effective_change_gpu_hours": 0.0,
    "code": "GR301", "severity": "warning", "namespace": "ml", "pod": "", "workload": "", "node_name": "n", "device_uuid": "",
    "evidence": "",
}  # fmt: skip


@pytest.mark.parametrize(("clusters", "first"), [(["a", "b"], "cluster"), (["a", "a"], None)])
def test_namespaces_and_findings_of_several_clusters_show_the_cluster(clusters: list[str], first: str | None) -> None:
    """Two clusters have a namespace of the same name."""
    frame = pl.DataFrame([{"cluster": cluster, **CHANGED} for cluster in clusters])
    for told, table in ((_namespaces, "namespace_change"), (_findings, "finding_change")):
        names, rows = told(result_of(table, frame))
        assert ("cluster" in names, len(rows)) == (first is not None, 2)
        assert [row[0] for row in rows] == (clusters if first else [CHANGED[names[0]]] * 2)


def test_findings_that_a_terminal_leaves_out_are_counted() -> None:
    """Thirty are shown of forty."""
    rows = [[str(number)] for number in range(40)]
    out = io.StringIO()
    _print_summaries({"findings": (["code"], rows), "namespaces": (["namespace"], rows)}, out)
    text = out.getvalue()
    assert "findings (30 of 40; -o json has all)\n" in text
    assert "namespaces\n" in text
    assert len(text.splitlines()) == (2 + 30 + 1) + (2 + 40 + 1)


@settings(max_examples=8)
@given(ledgers=st.lists(st.tuples(entries, entries), min_size=5, max_size=5), ratio=st.sampled_from((0.5, 1.0, 3.0)))
def test_the_bridge_adds_up_between_any_two_ledgers(
    con: duckdb.DuckDBPyConnection, ledgers: list[tuple[list[Entry], list[Entry]]], ratio: float
) -> None:
    """Five clusters at once, each with an earlier ledger and one of now."""
    fill(con, "previous.workload_ledger", "previous.capacity", [earlier for earlier, _ in ledgers])
    fill(con, "period.workload_ledger", "period.capacity", [now for _, now in ledgers])
    params = {"window_ratio": ratio, "figure_min_coverage_ratio": 0.0}
    for table in ("period.allocated_change", "report.gpu_hour_bridge", "checks.bridge_does_not_add_up"):
        build(con, QUERIES[table], params)

    found: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for cluster, measure, step, hours in con.sql(
        "select cluster::int, measure, step, gpu_hours from report.gpu_hour_bridge"
    ).fetchall():
        found[cluster, measure][step] = hours
    for cluster, windows in enumerate(ledgers):
        for measure, buckets in (("allocated", HELD), ("effective", HELD[:1])):
            steps = found[cluster, measure]
            for step, rows in zip(("before", "after"), windows, strict=True):
                assert steps.get(step, 0) == pytest.approx(sum(row[3] for row in rows if row[2] in buckets))
            assert sum(hours for step, hours in steps.items() if step != "after") == pytest.approx(
                steps.get("after", 0), abs=1e-9
            )
    assert con.table("checks.bridge_does_not_add_up").fetchall() == []
    assert all(
        hours >= 0 for steps in found.values() for step, hours in steps.items() if step in ("new", "grew", "capacity_added")
    )
