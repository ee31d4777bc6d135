"""Observations in a lake: side by side, the same one once, and what an export leaves of them."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from lake_rows import seen

from gpureport.cli import main
from gpureport.collect.sources.provenance import Origin, source_table
from gpureport.lake import open_lake
from gpureport.values.catalog import load_catalog
from gpureport.values.window import Window
from kube.api_server import api_server, kubeconfig, recorded_routes
from kube.lake import DAY, NOW, RECORDING, VERSIONS, import_state, query

USAGE, SOURCE = 2, 5


def digests(lake: Path) -> dict[str, str]:
    return {name: sha256(data).hexdigest() for name, data in seen(lake).items()}


def failed(capsys: pytest.CaptureFixture[str], code: int, *arguments: str | Path) -> str:
    capsys.readouterr()
    assert main(["import", *map(str, arguments)], environ={}, now=NOW) == code
    sentence = capsys.readouterr().err
    assert sentence.startswith("gpureport: ")
    assert sentence.count("\n") == 1
    return sentence


def listed(kind: str, *items: Any, version: str = "v1", **metadata: Any) -> str:
    return json.dumps({"kind": f"{kind}List", "apiVersion": version, "metadata": metadata, "items": list(items)})


def pod(name: str, uid: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid}, "spec": spec, "status": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder saved in the morning."""
    found = tmp_path / "state"
    found.mkdir()
    (found / "observed_at.txt").write_text("2026-11-21T08:00:00Z\n")
    return found


# Side by side


def test_the_same_observation_twice_changes_nothing(tmp_path: Path) -> None:
    import_state(tmp_path / "lake", RECORDING)
    before = digests(tmp_path / "lake")
    import_state(tmp_path / "lake", RECORDING)
    assert digests(tmp_path / "lake") == before


def test_observations_of_a_day_stand_side_by_side_and_of_another_day_apart(tmp_path: Path) -> None:
    import_state(tmp_path / "lake", RECORDING)
    first = digests(tmp_path / "lake")
    import_state(tmp_path / "lake", RECORDING, "--observed-at", "2026-11-21T01:51:21Z")
    import_state(tmp_path / "lake", RECORDING, "--observed-at", "2026-11-20T23:59:59.999+00:00")
    assert digests(tmp_path / "lake").items() >= first.items()
    assert query(tmp_path / "lake", "select date::varchar, observed_at, count(*) from lake.pod group by all order by 2") == [
        ("2026-11-20", datetime(2026, 11, 20, 23, 59, 59, 999_000), 21),
        (DAY, datetime(2026, 11, 21, 1, 46, 21), 21),
        (DAY, datetime(2026, 11, 21, 1, 51, 21), 21),
    ]


def test_a_time_of_another_zone_is_the_same_instant(tmp_path: Path) -> None:
    import_state(tmp_path / "lake", RECORDING)
    before = digests(tmp_path / "lake")
    import_state(tmp_path / "lake", RECORDING, "--observed-at", "2026-11-21T03:46:21+02:00")
    assert digests(tmp_path / "lake") == before


def test_the_same_instant_with_less_leaves_nothing_of_before(tmp_path: Path, folder: Path) -> None:
    (folder / "pods.json").write_text(listed("Pod", pod("a", "u1")))
    (folder / "nodes.json").write_text(listed("Node", {"metadata": {"name": "n1"}}))
    import_state(tmp_path / "lake", folder)
    (folder / "nodes.json").unlink()
    import_state(tmp_path / "lake", folder)
    assert query(tmp_path / "lake", "select (select count(*) from lake.pod), (select count(*) from lake.node)") == [(1, 0)]


def test_a_new_export_of_the_day_leaves_its_observations(tmp_path: Path) -> None:
    import_state(tmp_path / "lake", RECORDING)
    before = digests(tmp_path / "lake")
    day = date(2026, 11, 21)
    for _ in range(2):
        with open_lake(tmp_path / "lake").change() as change:
            origin = Origin("prometheus", "Prometheus 3", "remote-read")
            change.write("source", "lab", day, source_table({}, load_catalog(), origin, Window.of_day(day)))
    assert digests(tmp_path / "lake").items() >= before.items()
    kinds = query(tmp_path / "lake", "select kind, count(distinct start_at) from lake.source group by kind order by kind")
    assert kinds == [("kubernetes", 1), ("prometheus", 1)]


def test_an_observation_does_not_wait_for_an_export_nor_is_it_lost_to_it(tmp_path: Path) -> None:
    import_state(tmp_path / "lake", an_earlier_folder(tmp_path))
    day = date(2026, 11, 21)
    with open_lake(tmp_path / "lake").change() as change:
        change.write("source", "lab", day, source_table({}, load_catalog(), Origin("file", "", ""), Window.of_day(day)))
        other = threading.Thread(target=import_state, args=(tmp_path / "lake", RECORDING))
        other.start()
        other.join(300)
        assert not other.is_alive()
    assert query(tmp_path / "lake", "select count(distinct start_at) from lake.source where kind = 'kubernetes'") == [(2,)]
    assert query(tmp_path / "lake", "select count(distinct observed_at) from lake.pod") == [(2,)]


def an_earlier_folder(tmp_path: Path) -> Path:
    """The objects of the other recording, as v1beta1, saved an hour before."""
    found = tmp_path / "versions"
    found.mkdir()
    for file in [*VERSIONS.glob("core.*.json"), *VERSIONS.glob("v1beta1.*.json")]:
        shutil.copy(file, found / file.name)
    (found / "observed_at.txt").write_text("2026-11-21T00:46:21Z")
    return found


# Folders


def test_pages_of_a_list_are_one_list_and_the_list_beside_them_is_the_same(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for file in [*RECORDING.glob("pods-page*.json"), RECORDING / "observed_at.txt"]:
        shutil.copy(file, pages / file.name)
    import_state(tmp_path / "lake", pages)
    assert query(tmp_path / "lake", "select count(*), count(distinct pod_uid) from lake.pod") == [(21, 21)]
    assert query(tmp_path / "lake", "select warnings, series_count from lake.source where asked = 'pods'") == [([], 21)]


@pytest.mark.parametrize("missing", ["2", "3"])
def test_a_page_that_is_missing_is_said(missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = tmp_path / "pages"
    shutil.copytree(RECORDING, pages)
    (pages / "pods.json").unlink()
    (pages / f"pods-page{missing}.json").unlink()
    import_state(tmp_path / "lake", pages)
    assert "warning: pods: the folder lacks 7 of 21 objects" in capsys.readouterr().err
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(14,)]


def test_names_of_files_mean_nothing(tmp_path: Path, folder: Path) -> None:
    (folder / "a.json").write_text(listed("Pod", pod("p", "u1")))
    (folder / "pods.json").write_text(listed("Namespace", {"metadata": {"name": "ns", "uid": "n"}}))
    (folder / "other.json").write_text(listed("Secret", {"metadata": {"name": "s"}}))
    import_state(tmp_path / "lake", folder)
    assert query(tmp_path / "lake", "select pod from lake.pod") == [("p",)]
    assert query(tmp_path / "lake", "select namespace from lake.namespace") == [("ns",)]


def test_kubectls_own_list_of_mixed_kinds_is_read(tmp_path: Path, folder: Path) -> None:
    mixed = [
        {"kind": "Pod", "apiVersion": "v1", **pod("p", "u1")},
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}},
    ]
    (folder / "all.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": mixed}))
    import_state(tmp_path / "lake", folder)
    assert query(tmp_path / "lake", "select (select pod from lake.pod), (select node_name from lake.node)") == [("p", "n")]


def test_kubelets_files_complete_the_pods_and_leave_koordinators_out(tmp_path: Path) -> None:
    """train-llm-0 by the checkpoint of one node, wants-1-0 by a dump of another; koord-half-0 is known by its annotation."""
    folder = tmp_path / "state"
    shutil.copytree(RECORDING, folder)
    train, koord = "47de1083-d52a-4023-a89b-f5cef7638eae", "70775f1f-4190-4e90-94b9-fb7e0fe893d7"
    entry = {"ContainerName": "trainer", "ResourceName": "nvidia.com/gpu", "AllocResp": ""}
    entries = [
        {**entry, "PodUID": train, "DeviceIDs": {"-1": ["GPU-h200::2"]}},
        {**entry, "PodUID": koord, "DeviceIDs": {"0": ["GPU-c0d9ebaf-fc8f-5053-b3f5-330ea31a8d26"]}},
    ]
    checkpoint = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1}
    (folder / "kubelet_internal_checkpoint.gpu-node-0").write_text(json.dumps(checkpoint))
    container = {"name": "main", "devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["GPU-a100"]}]}
    dump = {"podResources": [{"name": "wants-1-0", "namespace": "research", "containers": [container]}]}
    (folder / "podresources-gpu-node-3.json").write_text(json.dumps(dump))
    import_state(tmp_path / "lake", folder)
    columns = "source, pod, container, device_id, replica, node_name"
    statement = f"select {columns} from lake.pod_device where source <> 'koordinator' order by source"
    assert query(tmp_path / "lake", statement) == [
        ("kubelet-checkpoint", "train-llm-0", "trainer", "GPU-h200", "2", "gpu-node-0"),
        ("pod-resources", "wants-1-0", "main", "GPU-a100", "", "gpu-node-3"),
    ]
    assert query(tmp_path / "lake", "select count(*) from lake.pod_device where source = 'koordinator'") == [(3,)]


# What is wrong with a folder


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("pods.json", listed("Node", {"metadata": {"name": "n2"}}), "Pod"),
        ("pods.json", '{"kind": "List", "items": []}', "Pod"),
        ("resourceclaims.json", listed("Deployment"), "ResourceClaim"),
    ],
)
def test_a_file_that_holds_another_list_than_its_name_says_is_named(
    name: str, text: str, kind: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nodes.json").write_text(listed("Node", {"metadata": {"name": "n1"}}))
    (folder / "elasticquotas.json").write_text(listed("ElasticQuota", version="scheduling.x-k8s.io/v1alpha1"))
    (folder / name).write_text(text)
    import_state(tmp_path / "lake", folder)
    told = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(told) == 1
    assert f"{name} has no {kind}List" in told[0]


def test_a_byte_order_mark_is_no_content(folder: Path, tmp_path: Path) -> None:
    (folder / "observed_at.txt").write_text("2026-11-21T08:00:00Z\n", encoding="utf-8-sig")
    (folder / "pods.json").write_text(listed("Pod", pod("a", "u1")), encoding="utf-8-sig")
    import_state(tmp_path / "lake", folder)
    assert query(tmp_path / "lake", "select pod from lake.pod") == [("a",)]


def test_a_folder_that_is_not_there_is_a_source_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = failed(capsys, SOURCE, "--kubernetes", tmp_path / "nowhere", "--observed-at", DAY, "--lake", tmp_path / "lake")
    assert "nowhere" in sentence
    assert not (tmp_path / "lake").exists()


def test_a_folder_that_does_not_say_when_is_a_usage_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "observed_at.txt").unlink()
    (folder / "pods.json").write_text(listed("Pod"))
    assert "--observed-at" in failed(capsys, USAGE, "--kubernetes", folder, "--lake", tmp_path / "lake")


@pytest.mark.parametrize("written", ["", "yesterday", "2026-11-21T08:00:00", "1795219581"])
def test_a_time_that_is_none_is_a_usage_error(
    written: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pods.json").write_text(listed("Pod"))
    (folder / "observed_at.txt").write_text(written)
    failed(capsys, USAGE, "--kubernetes", folder, "--lake", tmp_path / "lake")
    if written:
        failed(capsys, USAGE, "--kubernetes", folder, "--observed-at", written, "--lake", tmp_path / "lake")


def test_a_time_yet_to_come_is_a_source_error(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pods.json").write_text(listed("Pod"))
    arguments = ["--kubernetes", folder, "--observed-at", "2026-11-22T08:00:00Z", "--lake", tmp_path / "lake"]
    assert "clock" in failed(capsys, SOURCE, *arguments)


CUT = listed("Pod", *(pod(f"p-{number}", f"u-{number}") for number in range(50)))


@pytest.mark.parametrize(
    "text", ["", "<html>", CUT[: len(CUT) // 2], CUT[:-1], CUT + "x"], ids=["none", "html", "half", "brace", "more"]
)
def test_a_file_that_is_no_json_is_named_and_nothing_written(
    text: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nodes.json").write_text(listed("Node"))
    (folder / "pods.json").write_text(text)
    assert "pods.json" in failed(capsys, SOURCE, "--kubernetes", folder, "--lake", tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("text", [None, "[]", "null", "3", '{"kind":"Status","status":"Failure"}', listed("Secret")])
def test_a_folder_without_a_list_that_is_read_is_a_source_error(
    text: str | None, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (folder / "reply.json").write_text(text)
    assert str(folder) in failed(capsys, SOURCE, "--kubernetes", folder, "--lake", tmp_path / "lake")


def test_an_import_of_nothing_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--kubernetes" in failed(capsys, USAGE, "--lake", tmp_path / "lake")


# Beside other work

ENERGY = 'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1"} 100 1795252800\n# EOF\n'


def test_samples_and_state_are_imported_together(tmp_path: Path) -> None:
    (tmp_path / "metrics.txt").write_text(ENERGY)
    import_state(tmp_path / "lake", RECORDING, str(tmp_path / "metrics.txt"))
    assert query(tmp_path / "lake", "select (select count(*) from lake.pod), count(*) > 0 from lake.device_sample") == [
        (21, True)
    ]


def test_an_export_that_fails_has_taken_its_snapshot_and_one_without_a_cluster_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = ["export", "--date", DAY, "--prometheus-url", "http://127.0.0.1:1", "--lake", str(tmp_path / "lake")]
    with api_server(recorded_routes()) as server:
        config = kubeconfig(tmp_path, server.url)
        assert main([*nowhere, "--kubeconfig", str(config)], environ={}, now=NOW.astimezone(UTC)) == SOURCE
        count = len(server.requests)
        assert count > 10
        assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(21,)]
        assert main([*nowhere, "--kubeconfig", str(config), "--no-kubernetes"], environ={}, now=NOW) == SOURCE
        assert len(server.requests) == count
