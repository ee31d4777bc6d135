"""Several clusters in one lake: from servers of their own, or from one server that tells them apart by a label."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from kube.api_server import api_server, kubeconfig, recorded_routes
from kube.lake import query
from prometheus.programs import fill_blocks, program, prometheus
from report_tables import report_tables

from gpureport.cli import main
from gpureport.commands.work.collecting import clusters_by_label
from gpureport.config import Config

NOW = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
METRIC = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"


def energy(*clusters: tuple[str, str, int], label: str = "") -> str:
    """A GPU of each cluster that takes 1 J a second, seen every 30 s from noon; cluster, UUID, how many samples."""
    lines = [f"# TYPE {METRIC} gauge"]
    for cluster, uuid, count in clusters:
        own = f'{label}="{cluster}",' if label else ""
        lines += [
            f'{METRIC}{{{own}UUID="{uuid}",Hostname="n1",job="dcgm",instance="i:9400"}} {number * 30_000} {NOON + number * 30}'
            for number in range(count)
        ]
    return "\n".join([*lines, "# EOF\n"])


def fleet(folder: Path) -> dict[str, tuple[int, float]]:
    """By cluster how many GPUs, and how much of them was seen, from the report's own file."""
    with duckdb.connect(str(folder / "out" / "gpureport.duckdb"), read_only=True) as con:
        rows = con.execute("select cluster, device_count, round(coverage_ratio, 6) from report.fleet").fetchall()
    return {cluster: (count, ratio) for cluster, count, ratio in rows}


def run(folder: Path, config: str, *more: str, now: datetime = NOW, command: str = "run") -> int:
    file = folder / "gpureport.toml"
    file.write_text(f'lake = "{folder}/lake"\nout = "{folder}/out"\n{config}')
    return main(["--config", str(file), command, *more], environ={"GPUREPORT_REPORT__ONLY": "duckdb"}, now=now)


def test_what_fails_costs_no_other_cluster_its_day_and_one_that_is_not_read_on_the_next_is_unknown_and_not_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers are down. One tells eu and us apart by a label, which have the same node name and one UUID; Kubernetes of
    both is down. Every stage takes half an hour; ap is seen when its turn comes. On the next day only eu is read, and then ap,
    which is scaled away."""
    clusters, seen = [("eu", "GPU-a", 2880), ("us", "GPU-a", 41), ("us", "GPU-b", 41)], pytest.approx(21 * 30 / 43200, abs=1e-6)
    fill_blocks(tmp_path / "labeled", energy(*clusters, label="k8s_cluster"))
    fill_blocks(tmp_path / "blocks", energy(("", "GPU-a", 21)))
    night_after, two_nights_after, lake = NOW + timedelta(1), NOW + timedelta(2), ["--lake", str(tmp_path / "lake")]
    with (
        prometheus(program("PROMETHEUS_BIN"), tmp_path / "labeled", tmp_path / "server-of-two") as labeled,
        prometheus(program("PROMETHEUS_BIN"), tmp_path / "blocks", tmp_path / "server") as url,
        api_server(recorded_routes()) as api,
    ):
        one = f'[[clusters]]\nname = "{{}}"\nprometheus.url = "{url}"\n'
        config = f"""
            [kubernetes]
            kubeconfig = "{kubeconfig(tmp_path, api.url)}"
            [[clusters]]
            name = "down"
            prometheus.url = "http://127.0.0.1:9"
            [[clusters]]
            name = "fleet"
            prometheus = {{ url = "http://127.0.0.1:9", cluster_label = "site" }}
            [[clusters]]
            name = "both"
            prometheus = {{ url = "{labeled}", cluster_label = "k8s_cluster" }}
            kubernetes.context = "nowhere"
            {one.format("ap")}
            kubernetes.context = "works"
        """
        assert run(tmp_path, config, "--date", "2026-11-20", command="export") == 5
        counts = "select cluster, count(distinct device_uuid) from lake.device_sample group by all order by all"
        assert query(tmp_path / "lake", counts) == [("ap", 1), ("eu", 1), ("us", 2)]
        assert capsys.readouterr().err.count("connection refused") == 4

        with monkeypatch.context() as patch:
            patch.setattr("gpureport.commands.nightly.time", SimpleNamespace(monotonic=itertools.count(0, 1800).__next__))
            assert run(tmp_path, config, "--by", "squad") == 2  # before 5
        assert run(tmp_path, config) == 5
        # Half a day is expected of each GPU from its first sample on.
        of_us = pytest.approx(41 * 30 / 43200, abs=1e-6)
        assert fleet(tmp_path) == {"ap": (1, seen), "eu": (1, pytest.approx(1, abs=1e-3)), "us": (2, of_us)}
        # Others name no Kubernetes. Before ap came an export, and snapshot, export and compute of two: seven stages.
        looks = "select cluster, max(observed_at)::time::varchar from lake.pod group by all"
        assert query(tmp_path / "lake", looks) == [("ap", "05:00:00")]

        flags = ["--date", "2026-11-21", "--cluster", "eu", "--prometheus-url", labeled, "--no-kubernetes", *lake]
        environ = {"GPUREPORT_PROMETHEUS__MATCH": json.dumps({"k8s_cluster": "eu"})}
        assert main(["export", *flags], environ=environ, now=night_after) == 0
        assert main(["compute", "--date", "2026-11-21", *lake], environ={}, now=night_after) == 0
        with report_tables(tmp_path / "lake", "2026-11-21", now=night_after) as con:
            found = dict(con.rows("select cluster, (device_count, coverage_ratio) from report.fleet"))
        assert found["us"] == (2, 0)
        assert found["eu"][1] > 0.4

        gone = (f'[[retired]]\ncluster = "{name}"\nsince = 2026-11-22\n' for name in ("eu", "us"))
        config = one.format("ap") + "".join(gone)
        assert run(tmp_path, config, now=two_nights_after) == 5  # nothing says that there was none on 11-22
        import_a_cpu_node(tmp_path, "ap", "2026-11-22T08:00:00Z", two_nights_after)
        assert run(tmp_path, config, now=two_nights_after) == 0
    assert fleet(tmp_path) == {}
    assert "has no GPU-hours" in (tmp_path / "out" / "summary.md").read_text()


def test_a_server_names_its_cluster_by_its_external_label_else_the_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_blocks(tmp_path / "blocks", energy(("", "GPU-a", 21)))
    labels = "global: {external_labels: {region: eu-west}}"
    with prometheus(program("PROMETHEUS_BIN"), tmp_path / "blocks", tmp_path / "server", config=labels) as url:
        config = f'[prometheus]\nurl = "{url}"\ncluster_label = "region"\n'
        assert run(tmp_path, config, "--no-kubernetes", "--date", "2026-11-20", command="export") == 0
        assert query(tmp_path / "lake", "select distinct cluster from lake.device_sample") == [("eu-west",)]
        capsys.readouterr()
        assert run(tmp_path, config.replace("region", "site"), "--no-kubernetes") == 2
    assert "its external labels have 'site'; set cluster" in capsys.readouterr().err


def import_a_cpu_node(folder: Path, cluster: str, observed_at: str, now: datetime) -> None:
    """A look at a cluster that has nothing else."""
    node = {"metadata": {"name": "cpu-1", "uid": "1"}, "spec": {}, "status": {"capacity": {"cpu": "4"}}}
    (folder / "state").mkdir()
    (folder / "state" / "nodes.json").write_text(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [node]}))
    state = ["--kubernetes", str(folder / "state"), "--observed-at", observed_at, "--cluster", cluster]
    assert main(["import", *state, "--lake", str(folder / "lake")], environ={}, now=now) == 0


def test_a_cluster_that_is_not_configured_or_named_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = '[[clusters]]\nname = "a"\n[[clusters]]\nname = "{}"\n'
    assert run(tmp_path, two.format("b"), "--cluster", "c") == 2
    assert "no cluster 'c' is configured; the configuration has a, b" in capsys.readouterr().err
    assert run(tmp_path, two.format("a")) == 2
    assert "two clusters are named 'a'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "chosen"),
    [({"cluster": "us"}, ["us"]), ({"cluster": "default"}, ["eu", "us"]), ({"clusters": [{"name": "us"}]}, ["eu", "us"])],
)
def test_one_cluster_of_a_label_is_read_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, Any], chosen: list[str]
) -> None:
    monkeypatch.setattr("gpureport.collect.sources.prometheus.open_connection", lambda *_: None)
    monkeypatch.setattr("gpureport.collect.sources.prometheus.label_values", lambda *_: ["eu", "us"])
    config = Config.model_validate({"prometheus": {"url": "http://thanos", "cluster_label": "site"}, **named})
    [each] = config.each_cluster()
    each = each.model_copy(update={"prometheus": config.prometheus})
    assert [found.cluster for found in clusters_by_label(each, {}, date(2026, 11, 20))] == chosen


def test_a_name_that_would_lead_out_of_the_lake_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill_blocks(tmp_path / "blocks", energy(("../../outside", "GPU-a", 21), label="site"))
    with prometheus(program("PROMETHEUS_BIN"), tmp_path / "blocks", tmp_path / "server") as url:
        config = f'[prometheus]\nurl = "{url}"\ncluster_label = "site"\n'
        assert run(tmp_path, config, "--no-kubernetes") == 2
    assert "cannot name a cluster" in capsys.readouterr().err
    assert not (tmp_path.parent / "outside").exists()


def test_snapshot_reads_every_cluster_that_names_its_kubernetes(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as api:
        kubeconfig(tmp_path, api.url)
        file = tmp_path / "gpureport.toml"
        clusters = "".join(f'[[clusters]]\nname = "{name}"\nkubernetes.context = "works"\n' for name in ("eu", "us"))
        shared = f'lake = "{tmp_path}/lake"\n[kubernetes]\nkubeconfig = "{tmp_path}/kubeconfig"\n'
        file.write_text(f'{shared}{clusters}[[clusters]]\nname = "dark"\n')
        assert main(["--config", str(file), "snapshot"], environ={}, now=NOW) == 0
    assert query(tmp_path / "lake", "select distinct cluster from lake.pod order by all") == [("eu",), ("us",)]


def test_a_finding_that_does_not_exist_is_refused_before_any_server_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = '[prometheus]\nurl = "http://127.0.0.1:9"\n[kubernetes]\nenabled = false\n[report]\nfail_on = "GR999"\n'
    assert run(tmp_path, config) == 2
    assert "--fail-on 'GR999' is not a finding" in capsys.readouterr().err
    assert run(tmp_path, config.replace("GR999", "info")) == 5
