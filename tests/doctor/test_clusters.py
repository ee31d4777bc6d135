"""`gpureport doctor` where a configuration names several clusters, or where one server holds them: each is looked at alone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus.programs import fill_blocks, free_port, program, prometheus

from .clusters import CLUSTERS, INSTANTS
from .conftest import Doctor, Told
from .test_server import Examined

AT = INSTANTS["whole"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server with two clusters, told apart by the label site: eu is whole, us has the stock exporter's metrics."""
    folder = tmp_path_factory.mktemp("sites")
    sites = {"eu": CLUSTERS["whole"], "us": CLUSTERS["default csv"]}
    texts = [re.sub(r"(?m)^(\w+)\{", rf'\1{{site="{site}",', cluster.text(AT)) for site, cluster in sites.items()]
    fill_blocks(folder / "blocks", *texts)
    with prometheus(program("PROMETHEUS_BIN"), folder / "blocks", folder / "server") as url:
        yield url


def losses(told: Told, cluster: str) -> set[str]:
    return {row["subject"] for row in told.rows if row["cluster"] == cluster and row["status"] in ("missing", "partial")}


def test_a_server_is_looked_at_as_far_as_the_configured_labels_say(doctor: Doctor, shared: str, examined: Examined) -> None:
    flags = ("--prometheus-url", shared, "-o", "json")
    eu, us = (doctor(*flags, now=AT, environ={"GPUREPORT_PROMETHEUS__MATCH": f'{{"site": "{site}"}}'}) for site in ("eu", "us"))
    assert (eu.code, eu.losses) == (0, {})
    assert f'{shared} at 2026-10-03T12:00:00Z ({{site="eu"}}) would be complete' in eu.err
    alone = examined("default csv")
    assert (us.code, us.losses) == (4, alone.losses)
    assert [row["found"] for row in us.of("signal")] == [row["found"] for row in alone.of("signal")]


def test_clusters_that_a_label_tells_apart_are_looked_at_one_by_one(doctor: Doctor, shared: str, examined: Examined) -> None:
    environ = {"GPUREPORT_PROMETHEUS__CLUSTER_LABEL": "site"}
    told = doctor("--prometheus-url", shared, "-o", "json", now=AT, environ=environ)
    assert told.code == 4
    assert losses(told, "eu") == set()
    assert losses(told, "us") == set(examined("default csv").losses)
    assert re.search("eu: a report from .* would be complete; us: a report from .* would lack", told.err)


def test_of_configured_clusters_one_that_cannot_be_read_does_not_hide_the_others(
    doctor: Doctor, shared: str, tmp_path: Path
) -> None:
    clusters = f"""
        [[clusters]]
        name = "far"
        prometheus.url = "http://127.0.0.1:{free_port()}"
        [[clusters]]
        name = "near"
        prometheus = {{url = "{shared}", match = {{site = "eu"}}}}
        [[clusters]]
        name = "next"
        prometheus = {{url = "{shared}", match = {{site = "us"}}}}
    """
    (tmp_path / "gpureport.toml").write_text(clusters)
    told = doctor("-o", "csv", now=AT, environ={})
    assert told.code == 5
    assert {row["cluster"] for row in csv.DictReader(io.StringIO(told.out))} == {"near", "next"}
    assert "cannot reach http://127.0.0.1" in told.err
    assert "near: a report from" in told.err
    chosen = doctor("--cluster", "near", now=AT, environ={})
    assert chosen.code == 0
    assert "cluster" not in chosen.out.splitlines()[0].split()


def test_lines_to_add_say_in_which_cluster(doctor: Doctor, shared: str) -> None:
    environ = {"GPUREPORT_PROMETHEUS__CLUSTER_LABEL": "site"}
    told = doctor("--prometheus-url", shared, now=AT, environ=environ)
    assert told.out.splitlines()[0].split() == ["cluster", "status", "code", "subject", "found", "costs"]
    assert "To add in us, metrics CSV of dcgm-exporter:" in told.out
    assert "To add in eu" not in told.out
