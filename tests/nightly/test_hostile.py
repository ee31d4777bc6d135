"""A night whose labels want to do harm, with secrets everywhere: names stay text, and no secret is written anywhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from kube.api_server import TOKEN as KUBERNETES_TOKEN
from kube.api_server import api_server, kubeconfig, recorded_routes
from prometheus.programs import fill_blocks, program, prometheus
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpureport.cli import main

NOW = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
NOON = 1_795_176_000
HOSTILE = (
    "<script>alert(1)</script>",
    "'; drop table report.finding; --",
    "=cmd|' /C calc'!A0",
    "../../../../outside",
    '"} 1\n# EOF\n{"level":"error","message":"forged',
    "\x1b[2J\x1b]0;title\x07",
    "{node_name}{detail}' or true --",
)
PROMETHEUS_TOKEN = "token-of-prometheus-5e471e1a"
PASSWORD = "password-of-the-gateway-5e471e1a"
METRICS = {"DCGM_FI_DEV_POWER_USAGE": 100, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0}


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def openmetrics() -> str:
    """Twelve hours of idle GPUs, each held by a pod of a hostile name in a namespace of the same name, every five minutes."""
    lines = []
    for metric, value in METRICS.items():
        lines.append(f"# TYPE {metric} gauge")
        for number, name in enumerate(HOSTILE):
            text = escaped(name)
            labels = f'UUID="GPU-{number}",Hostname="n{number}",modelName="{text}",namespace="{text}",pod="{text}",container="c"'
            lines += [f"{metric}{{{labels}}} {value} {NOON + 300 * step}" for step in range(144)]
    return "\n".join([*lines, "# EOF\n"])


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over real servers, its log beside its files."""
    folder = tmp_path_factory.mktemp("hostile")
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "token").write_text(PROMETHEUS_TOKEN)
    (secrets / "http.yml").write_text(f"bearer_token_file: {secrets}/token\n")
    (secrets / "gateway.yml").write_text(f"basic_auth: {{username: me, password: {PASSWORD}}}\n")
    work = folder / "work" / "deep" / "er"
    work.mkdir(parents=True)
    (work / "gpureport.toml").write_text(f"""
        cluster = "lab"
        log_format = "json"
        lake = "{work}/lake"
        out = "{work}/out"
        [prometheus]
        http_config_file = "{secrets}/http.yml"
        [metrics]
        file = "{work}/gpureport.prom"
        pushgateway_url = "http://127.0.0.1:9"
        http_config_file = "{secrets}/gateway.yml"
        [retention]
        keep_samples = "30d"
    """)
    fill_blocks(folder / "blocks", openmetrics())
    with (
        prometheus(program("PROMETHEUS_BIN"), folder / "blocks", folder / "server") as url,
        api_server(recorded_routes()) as api,
        pytest.MonkeyPatch.context() as patch,
    ):
        config = kubeconfig(secrets, api.url)
        with (work / "log").open("w") as log:
            patch.setattr("sys.stderr", log)
            arguments = ["--config", str(work / "gpureport.toml"), "run", "--prometheus-url", url, "--kubeconfig", str(config)]
            code = main(arguments, environ={}, now=NOW)
    assert code == 0, (work / "log").read_text()
    return work


def test_no_secret_is_in_any_file_of_the_lake_the_report_the_metrics_or_the_log(night: Path) -> None:
    files = [path for path in night.rglob("*") if path.is_file()]
    assert {"log", "gpureport.prom", "report.html", "gpureport.duckdb"} <= {path.name for path in files}
    for secret in (PROMETHEUS_TOKEN, PASSWORD, KUBERNETES_TOKEN):
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
    lake = str(night / "lake" / "**" / "*.parquet")
    with duckdb.connect() as con:
        for (file,) in con.execute("select file from glob(?)", [lake]).fetchall():
            rows = repr(con.execute("from read_parquet(?)", [file]).fetchall())
            assert not [secret for secret in (PROMETHEUS_TOKEN, PASSWORD, KUBERNETES_TOKEN) if secret in rows]


def test_no_name_becomes_a_path(night: Path) -> None:
    top = night.parents[2]
    assert {path.name for path in top.iterdir()} == {"secrets", "work", "blocks", "blocks-0.txt", "server"}
    assert {path.name for path in night.iterdir()} == {"gpureport.toml", "lake", "out", "gpureport.prom", "log"}
    assert not [path for path in night.rglob("*") if any(word in path.name for word in ("script", "outside", "cmd"))]


def test_every_line_of_the_log_is_an_object_that_gpureport_wrote(night: Path) -> None:
    entries = [json.loads(line) for line in (night / "log").read_text().splitlines()]
    assert len({entry["run_id"] for entry in entries}) == 1
    assert {entry["level"] for entry in entries} == {"info", "warning"}  # the Pushgateway is not there
    assert "\x1b" not in (night / "log").read_text()


def test_the_metrics_are_whole(night: Path) -> None:
    families = list(text_string_to_metric_families((night / "gpureport.prom").read_text()))
    assert {family.name for family in families} >= {"gpureport_run_success", "gpureport_run_coverage_ratio"}


def test_the_statements_that_findings_print_run_and_harm_nothing(night: Path, tmp_path: Path) -> None:
    copy = tmp_path / "gpureport.duckdb"
    copy.write_bytes((night / "out" / "gpureport.duckdb").read_bytes())
    with duckdb.connect(str(copy)) as con:
        found = con.execute("select code, pod, sql from report.finding").fetchall()
        named = {pod for _, pod, _ in found}
        assert named >= set(HOSTILE)
        before = con.execute("select count(*) from report.finding").fetchall()
        for _, _, statement in found:
            assert len(con.extract_statements(statement)) == 1
            con.execute(statement).fetchall()
        assert con.execute("select count(*) from report.finding").fetchall() == before


def test_names_arrive_as_they_were(night: Path) -> None:
    with duckdb.connect(str(night / "out" / "gpureport.duckdb"), read_only=True) as con:
        rows = con.execute("select distinct namespace, pod from report.container").fetchall()
    assert sorted(rows) == sorted((name, name) for name in HOSTILE)
