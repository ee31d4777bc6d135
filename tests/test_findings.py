"""Findings through the whole program: exit codes, suppressions, thresholds, and statements that run."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path

import duckdb
import pytest
from built_once import built_once
from golden_case import NOON, NOW, report_rows
from report_tables import Report, report_tables

from gpureport.cli import main
from gpureport.config.findings import SEVERITIES, failing, gpu_models, mig_profiles, not_on_model, rules, xid_classes
from gpureport.values.runtime.resources import QUERIES
from gpureport.values.tables import SIGNALS

OWNER = 'namespace="research",pod="idler-0",container="main"'
GPU = 'UUID="GPU-a",gpu="0",modelName="NVIDIA H200",Hostname="node-a"'
SUPPRESSION = """
[[suppressions]]
code = "GR101"
pod = "idler-*"
until = {until}
reason = "being moved"
"""


@pytest.fixture(scope="session")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``lake`` and its report without any configuration, ``out``; to read only."""
    return built_once("findings", build, request, tmp_path_factory)


def build(folder: Path) -> None:
    """Two hours of a GPU that is held and idle, with one XID 79."""
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    lines += [f"DCGM_FI_DEV_GPU_UTIL{{{GPU},{OWNER}}} 0 {NOON + minute * 60}" for minute in range(120)]
    lines += ["# TYPE DCGM_FI_DEV_XID_ERRORS gauge"]
    lines += [f"DCGM_FI_DEV_XID_ERRORS{{{GPU},{OWNER}}} {0 if minute < 60 else 79} {NOON + minute * 60}" for minute in range(120)]
    (folder / "metrics.txt").write_text("\n".join([*lines, "# EOF", ""]))
    lake = folder / "lake"
    assert main(["import", str(folder / "metrics.txt"), "--lake", str(lake)], environ={}, now=NOW) == 0
    assert main(["compute", "--date", "2026-11-20", "--lake", str(lake)], environ={}, now=NOW) == 0
    assert report(lake, folder / "out", "--facts", "--only", "duckdb") == 0


@pytest.fixture
def lake(told: Path) -> Path:
    return told / "lake"


def report(lake: Path, out: Path, *arguments: str, config: str = "") -> int:
    """The exit code of a report over the two hours."""
    (out.parent / "gpureport.toml").write_text(config)
    window = ["--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T14:00:00Z"]
    given = ["--config", str(out.parent / "gpureport.toml"), "report", *window, "--lake", str(lake), "--out", str(out)]
    return main([*given, *arguments], environ={}, now=NOW)


@pytest.fixture
def reported(told: Path) -> Path:
    """The DuckDB file of the report without any configuration."""
    return told / "out" / "gpureport.duckdb"


def test_an_idle_holder_and_a_lost_gpu_are_found(reported: Path) -> None:
    found = {row["code"]: row for row in report_rows(reported, "finding")}
    assert found.keys() == {"GR101", "GR401"}
    assert found["GR101"]["gpu_hours"] == pytest.approx(2)
    assert found["GR101"]["owner"] == "research"
    assert found["GR101"]["evidence"] == "idle for 2.0 of 2.0 GPU-hours (100 %) on 1 GPU"
    assert (found["GR401"]["detail"], found["GR401"]["severity"], found["GR401"]["owner"]) == ("79", "critical", "platform")
    assert found["GR401"]["unknown_reasons"] == {"gpu_hours": "not_estimated", "at_stake_cost": "not_estimated"}
    assert found["GR101"]["unknown_reasons"] == {"at_stake_cost": "not_configured"}


def tables(lake: Path, folder: Path, config: str) -> AbstractContextManager[Report]:
    """The tables of a report over the two hours."""
    (folder / "gpureport.toml").write_text(config)
    return report_tables(lake, "2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z", config_file=folder / "gpureport.toml")


@pytest.fixture(scope="module")
def configured(told: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """The tables with prices, a budget, and a suppression of GR101."""
    prices = '[prices]\ncurrency = "EUR"\n[prices.gpu_hour]\n"NVIDIA H200" = 3.5\nall = 1\n[prices.budgets]\nresearch = 100\n'
    with tables(told / "lake", tmp_path_factory.mktemp("out"), prices + SUPPRESSION.format(until="2026-11-30")) as found:
        yield found


def test_what_is_at_stake_is_money_where_a_price_is_configured(configured: Report) -> None:
    at_stake = dict(configured.rows("select code, at_stake_cost from report.finding"))
    assert at_stake == {"GR101": pytest.approx(2 * 3.5), "GR401": None}


def test_charges_and_the_cost_of_teams_are_the_whole_ledger(configured: Report) -> None:
    [(hours,)] = configured.rows("select sum(gpu_hours) from report.gpu_hour_ledger")
    [charged] = configured.rows("select sum(ConsumedQuantity), sum(BilledCost), sum(EffectiveCost) from report.focus")
    [cost] = configured.rows("select sum(gpu_hours), sum(total_cost), sum(total_cost) from report.team_cost")
    unnamed = "select count(*) from report.focus where SubAccountId is null and AllocatedMethodId is not null"
    assert charged == cost == pytest.approx((hours, 3.5 * hours, 3.5 * hours))
    assert configured.rows(unnamed) == [(0,)]


def test_a_suppressed_finding_is_listed_and_fails_nothing(configured: Report) -> None:
    listed = configured.rows("select suppressed_until::varchar, suppression from report.finding where code = 'GR101'")
    assert listed == [("2026-11-30", "being moved")]
    assert failing(configured.con, "GR101") == {}


def test_a_suppression_that_is_over_does_nothing_a_budget_is_of_a_namespace_and_without_a_currency_there_are_no_charges(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All in one report. A namespace that no team is known of is its own."""
    config = "[prices.gpu_hour]\nall = 2\n[prices.budgets]\nresearch = 100\nreserch = 100\n" + SUPPRESSION.format(
        until="2026-11-19"
    )
    assert report(lake, tmp_path / "out", "--fail-on", "GR101", "--only", "html,csv", config=config) == 3
    assert (tmp_path / "out" / "report.html").exists()
    [warning] = [line for line in capsys.readouterr().err.splitlines() if "budgets" in line]
    assert warning == "warning: prices.budgets names 'reserch', which is no team of the period; known: research"
    files = {path.name for path in (tmp_path / "out" / "csv").iterdir()}
    assert ("focus.csv" in files, "team_cost.csv" in files) == (False, True)


def test_each_statement_runs_on_the_reports_file(reported: Path) -> None:
    with duckdb.connect(str(reported), read_only=True) as con:
        statements = [row[0] for row in con.execute("select sql from report.finding").fetchall()]
        assert all(con.execute(statement).fetchall() for statement in statements)


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [("GR401", ["GR401"]), ("warning", ["GR101", "GR401"]), ("critical", ["GR401"]), ("GR201", []), ("", [])],
)
def test_a_finding_fails_the_run_only_where_that_is_asked_for(reported: Path, fail_on: str, codes: list[str]) -> None:
    with duckdb.connect(str(reported), read_only=True) as con:
        assert failing(con, fail_on) == dict.fromkeys(codes, 1)


def test_to_fail_on_what_is_no_finding_is_a_usage_error_before_anything_is_written(lake: Path, tmp_path: Path) -> None:
    assert report(lake, tmp_path / "out", "--fail-on", "GR999") == 2
    assert not (tmp_path / "out").exists()


def test_thresholds_are_the_configurations(lake: Path, tmp_path: Path) -> None:
    with tables(lake, tmp_path, "[thresholds]\nfindings_gpu_hours = 2.5\n") as con:
        assert con.rows("select code from report.finding where severity != 'info'") == [("GR401",)]


@pytest.mark.parametrize(
    "config",
    [
        "[thresholds]\nidel_ratio = 0.5\n",
        "[thresholds]\nidle_ratio = 2\n",
        '[[suppressions]]\ncode = "GR101"\n',
        '[[suppressions]]\ncode = "GR999"\nuntil = 2026-12-31\nreason = "no such code"\n',
    ],
)
def test_what_is_misspelt_or_out_of_range_is_a_usage_error(lake: Path, tmp_path: Path, config: str) -> None:
    assert report(lake, tmp_path / "out", config=config) == 2


def test_every_rule_is_complete_and_made_by_a_query() -> None:
    sql = "\n".join(path.read_text() for path in (QUERIES / "findings").glob("period.finding_*.sql"))
    for code, rule in rules().items():
        assert f"'{code}'" in sql
        assert rule["severity"] in SEVERITIES
        assert all((rule["title"], rule["rule"], rule["action"], rule["sql"]))
        assert "delete" not in rule["action"].lower()


def test_every_xid_class_has_a_source_and_a_date() -> None:
    with (QUERIES / "catalog" / "xid.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["class"] for row in rows} == {"application", "driver", "firmware", "memory", "interconnect", "bus", "hardware"}
    assert all(row["source"] and row["as_of"] and row["meaning"] and row["severity"] in SEVERITIES for row in rows)
    assert len({row["code"] for row in rows}) == len(rows)
    assert all(row["action"] for row in xid_classes())  # of 162 to 172 NVIDIA names none, and that is said


def test_mig_profiles_fit_on_their_gpu_as_often_as_told_and_no_more_often() -> None:
    for row in mig_profiles():
        compute, memory = (int(row[f"{kind}_slices_total"]) // int(row[f"{kind}_slices"]) for kind in ("compute", "memory"))
        assert 1 <= int(row["instances_max"]) <= min(compute, memory)
        assert row["profile"].startswith(f"{row['compute_slices']}g.")
        assert row["source"] and row["as_of"]


def test_every_gpu_model_has_a_source_and_a_date() -> None:
    assert all(row["source"] and row["as_of"] and float(row["fp16_tensor_teraflops"]) > 0 for row in gpu_models())
    assert len({row["gpu_model"] for row in gpu_models()}) == len(gpu_models())


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA B200", "B200"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("NVIDIA GH200 120GB", "GH200 96GB"),
        ("NVIDIA GH200 144G HBM3e", None),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA-H100-80GB-HBM3", "H100 SXM"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("A100-SXM-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA A30", "A30"),
        ("NVIDIA RTX A3000 Laptop GPU", None),
        ("NVIDIA A40", "A40"),
        ("NVIDIA A40-8Q", None),  # a virtual GPU of 8 of its 48 GB
        ("NVIDIA RTX A4000", None),  # another board, of 16 GB
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40S-24Q", None),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("Tesla V100-SXM2-32GB", "V100 32GB SXM"),
        ("Tesla V100-SXM3-32GB", "V100 32GB SXM"),
        ("Tesla V100-PCIE-32GB", "V100 32GB PCIe"),
        ("Tesla V100S-PCIE-32GB", "V100S 32GB PCIe"),
        ("GRID V100D-32C", None),
        ("Tesla V100-SXM2-16GB", "V100 16GB SXM"),
        ("Tesla T4", "T4"),
    ],
)
def test_a_model_is_known_by_the_name_that_its_driver_gives_and_no_other_is_taken_for_it(printed: str, name: str | None) -> None:
    assert [row["name"] for row in gpu_models() if fnmatchcase(printed, row["gpu_model"])] == ([name] if name else [])


def test_what_a_model_cannot_have_are_signals_and_no_speed_is_told_of_them() -> None:
    signals = {signal.name for signal in SIGNALS}
    assert all(set(row["lacks"].split()) <= signals for row in gpu_models())
    assert not [row["name"] for row in gpu_models() if "nvlink" in row["lacks"] and row["nvlink_gigabytes_per_second"]]
    assert not_on_model("NVIDIA L40S") == not_on_model("Tesla T4") >= {"nvlink_tx_bytes_per_second"}
    assert not_on_model("NVIDIA H200") == not_on_model("a model that nobody lists") == frozenset()


@pytest.mark.parametrize(
    ("code", "action"),
    [
        *((code, "No action is needed now") for code in ("44", "63", "92", "121", "157")),
        *((code, "Restart the program") for code in ("31", "32", "94", "105")),
        *((code, "Drain the node and reset the GPU") for code in ("48", "95", "109", "119", "155")),
        ("79", "Drain the node and switch it off and on"),
        ("45", "Check the previous error"),
    ],
)
def test_what_to_do_after_an_xid_is_what_nvidias_catalog_says(code: str, action: str) -> None:
    [row] = [row for row in xid_classes() if row["code"] == code]
    assert row["action"].startswith(action)
