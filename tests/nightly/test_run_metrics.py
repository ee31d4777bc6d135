"""A run's own metrics: what they say of good and bad nights, that official parsers take them, and alerts on them."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
import requests
from prometheus.programs import program, pushgateway
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from gpureport.cli import main
from gpureport.commands.work.job_metrics import HELP, Night, publish
from gpureport.config import Metrics

NOW = datetime(2026, 11, 23, 1, 30, tzinfo=UTC)
RULES = Path(__file__).parents[2] / "deploy" / "helm" / "gpureport" / "alerts.yaml"
DASHBOARD = RULES.with_name("dashboard.json")
LAST_SUCCESS = "gpureport_run_last_success_timestamp_seconds"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def values(text: str, parser: object = openmetrics) -> Values:
    families = list(parser(text))  # type: ignore[operator]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for family in families for sample in family.samples}


def of(text: str, metric: str) -> dict[Mapping[str, str] | tuple[tuple[str, str], ...], float]:
    return {labels: value for (name, labels), value in values(text).items() if name == metric}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report's file with what the metrics read of it, names among it that want to break out."""
    path = tmp_path / "gpureport.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("create schema report")
        con.execute("""
            create table report.coverage as from (values
                ('eu', 'any', 50.0, 100.0), ('eu', 'any', 40.0, 50.0), ('us', 'any', 0.0, 0.0), ('eu', 'power_watts', 0.0, 9.0)
            ) as rows (cluster, signal, observed_device_seconds, expected_device_seconds)
        """)
        con.execute("""
            create table report.gpu_hour_balance as from (values ('eu', 'cluster', 7.5), ('eu', 'day', 9.0))
            as rows (cluster, dimension, unknown_gpu_hours)
        """)
        con.execute("""
            create table report.scheduler_pressure as
            select * replace (hour::timestamp as hour_start_at) from (values
                ('eu', 'nvidia.com/gpu', '2026-11-22 22:00', '2026-11-22 22:00', 3.0, 4.0, 1.5),
                ('eu', 'nvidia.com/gpu', '2026-11-22 23:00', '2026-11-22 23:00', 2.0, 2.5, null),
                ('eu', 'a"} 1\\n# EOF', '2026-11-22 23:00', '2026-11-22 23:00', 1.0, null, null)
            ) as rows (
                cluster, resource, hour, hour_start_at, pending_pod_count_avg, pending_request_units_avg,
                requested_allocatable_ratio_avg
            )
        """)
    return path


def night(report: Path | None, exit_code: int = 0) -> Night:
    return Night("eu", NOW, exit_code, {"report": 1.5}, {"eu": 41}, report)


def published(night: Night, folder: Path, **settings: object) -> str:
    file = folder / "gpureport.prom"
    publish(night, Metrics(file=str(file), **settings))  # type: ignore[arg-type]
    return file.read_text()


def test_what_the_report_says_becomes_gauges(report: Path, tmp_path: Path) -> None:
    text = published(night(report), tmp_path)
    assert of(text, "gpureport_run_coverage_ratio") == {(("cluster", "eu"),): 0.6}  # 90 of 150; of us nothing was expected
    assert of(text, "gpureport_run_unknown_gpu_hours") == {(("cluster", "eu"),): 7.5}
    gpu = (("cluster", "eu"), ("publisher", "gpureport"), ("resource", "nvidia.com/gpu"))
    assert of(text, "cluster_gpu_pending_pod_count")[gpu] == 2
    assert of(text, "cluster_gpu_pending_request_total") == {gpu: 2.5}
    assert of(text, "cluster_gpu_requested_allocatable_ratio") == {gpu: 1.5}  # the last hour in which it was known


def test_a_resource_by_a_hostile_name_is_one_label_value(report: Path, tmp_path: Path) -> None:
    text = published(night(report), tmp_path)
    assert {dict(labels)["resource"] for labels in of(text, "cluster_gpu_pending_pod_count")} == {
        "nvidia.com/gpu",
        'a"} 1\\n# EOF',
    }


def test_official_parsers_agree_on_the_text(report: Path, tmp_path: Path) -> None:
    text = published(night(report), tmp_path)
    assert values(text) == values(text, prometheus_text)
    assert {family.type for family in openmetrics(text)} == {"gauge"}
    of_a_success = {name for name in HELP if "snapshot" not in name} - {"gpureport_run_failure_reason"}
    assert {family.name for family in openmetrics(text)} == of_a_success
    checked = subprocess.run(
        [program("PROMTOOL_BIN"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert checked.returncode in (0, 3), checked.stderr  # 3: it parses, and promtool has something to say of names
    complaints = {line.split()[0] for line in checked.stderr.splitlines()}
    # Three names that are OpenCost's or end as OpenCost's do, and one in GPU-hours, which promtool would have in seconds.
    assert complaints <= {
        "cluster_gpu_pending_pod_count",
        "cluster_gpu_pending_request_total",
        "gpureport_run_samples_total",
        "gpureport_run_unknown_gpu_hours",
    }


def test_a_wrong_configuration_is_published_as_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "gpureport.prom"
    (tmp_path / "wrong.toml").write_text(f"cluster = 'eu'\n[metrics]\nfile = '{file}'\n[thresholds]\nidle_ratio = 7\n")
    assert main(["--config", str(tmp_path / "wrong.toml"), "run"], environ={}, now=NOW) == 2
    text = file.read_text()
    assert of(text, "gpureport_run_exit_code") == {(): 2}
    assert of(text, "gpureport_run_failure_reason") == {(("reason", "UsageError"),): 1}


def test_a_pushgateway_keeps_the_last_success_and_nothing_else_over_a_failure(
    report: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def shown() -> Values:
        return values(requests.get(f"{url}/metrics", timeout=60).text, prometheus_text)

    own, success = ((("instance", "eu"), ("job", job)) for job in ("gpureport", "gpureport_success"))
    with pushgateway(tmp_path) as url:
        settings = Metrics(pushgateway_url=url)
        publish(night(report), settings)
        assert shown()["gpureport_run_success", own] == 1
        assert shown()[LAST_SUCCESS, success] == NOW.timestamp()
        assert "gpureport_run_coverage_ratio" in {name for name, _ in shown()}
        publish(night(None, exit_code=5), settings)
        assert shown()["gpureport_run_success", own] == 0
        assert shown()[LAST_SUCCESS, success] == NOW.timestamp()
        assert "gpureport_run_coverage_ratio" not in {name for name, _ in shown()}
    assert caplog.messages == []


def test_a_run_that_leaves_publishes_nothing(three_days: str, tmp_path: Path) -> None:
    from gpureport.lake import exclusive_run

    file, lake = tmp_path / "gpureport.prom", ["--lake", str(tmp_path / "lake")]
    with exclusive_run(tmp_path / "lake"):
        asked = ["run", "--prometheus-url", three_days, "--no-kubernetes", *lake, "--metrics-file", str(file)]
        assert main(asked, environ={}, now=NOW) == 0
    assert not file.exists()


def test_promtool_takes_the_alerts_and_they_fire_when_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / "alerts.yaml")
    shutil.copy(Path(__file__).with_name("alerts_test.yaml"), tmp_path / "alerts_test.yaml")
    for arguments in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        told = subprocess.run([program("PROMTOOL_BIN"), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr


def test_the_alerts_speak_of_metrics_that_are_published() -> None:
    import re

    import yaml

    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"gpureport_\w+", rule["expr"])}
    assert named <= set(HELP)


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"].replace("$cluster", ".*") for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_dashboard_speaks_of_metrics_that_are_published_in_promql_that_prometheus_takes(tmp_path: Path) -> None:
    import re

    found = expressions(json.loads(DASHBOARD.read_text()))
    named = {name for expression in found for name in re.findall(r"(?:gpureport|cluster_gpu)_\w+", expression)}
    assert named == set(HELP) - {"gpureport_snapshot_success", "gpureport_snapshot_exit_code"}
    rules = [{"record": f"rule:{number}", "expr": expression} for number, expression in enumerate(found)]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    told = subprocess.run(
        [program("PROMTOOL_BIN"), "check", "rules", "rules.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_dashboard_has_nothing_that_grafanas_schema_does_not() -> None:
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder")
    importlib.import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
    given = json.loads(DASHBOARD.read_text())
    read = json.loads(encoder.JSONEncoder(sort_keys=True).encode(models.Dashboard.from_json(given)))
    assert list(lost(given, read)) == []


def lost(given: Any, read: Any, place: str = "") -> Iterator[str]:
    """Places whose value the schema's types did not take over."""
    if isinstance(given, dict):
        for name, value in given.items():
            yield from lost(value, read[name], f"{place}/{name}") if name in read else [f"{place}/{name}"]
    elif isinstance(given, list):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from lost(one, other, f"{place}/{number}")
    elif given != read:
        yield place
