"""`gpureport doctor` of a Kubernetes cluster, alone and beside a Prometheus: the recorded API server over real sockets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube.api_server import PODS, api_server, forbidden, kubeconfig, query_of, recorded_routes, version_routes
from kube.lake import RECORDING
from prometheus.replay import Replay, Reply, Routes, as_json

from gpureport.doctor.evidence import as_exported, is_accelerator_driver

from .clusters import INSTANTS
from .conftest import Doctor, Told

DRA = "/apis/resource.k8s.io/v1"
SLICES, CLAIMS, CLASSES = f"{DRA}/resourceslices", f"{DRA}/resourceclaims", f"{DRA}/deviceclasses"
NODES = "/api/v1/nodes"
NOW = INSTANTS["whole"]
HOLDER_TABLES = ["container.*", "container_saturation.*", "container_power.*"]
# By hand: the kinds that the recorded server has, of those that a snapshot lists.
RECORDED = {
    "nodes",
    "namespaces",
    "pods",
    "resourcequotas",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
    "devices.scheduling.koordinator.sh",
    "elasticquotas.nos.nebuly.com",
    "compositeelasticquotas.nos.nebuly.com",
    "clusterqueues.kueue.x-k8s.io",
    "elasticquotas.scheduling.sigs.k8s.io",
    "queues.scheduling.volcano.sh",
    "queues.scheduling.run.ai",
}
# Kinds that its groups have by name and it does not serve, or that the recording lacks.
NOT_THERE = ("localqueues", "cohorts", "resourceflavors", "workloads", "podgroups", "events")


@dataclass(frozen=True)
class Looked:
    """What the command said of a cluster, and what the API server was asked."""

    told: Told
    server: Replay

    def of(self, subject: str) -> dict[str, Any]:
        """The one row of a subject."""
        (row,) = [row for row in self.told.rows if row["subject"] == subject]
        return row

    @property
    def rules(self) -> Any:
        """The rules to add, all of them as one piece of YAML."""
        return yaml.safe_load("\n".join(self.told.lines))


Look = Callable[..., Looked]


@pytest.fixture
def look(doctor: Doctor, tmp_path: Path) -> Look:
    """Run the command against an API server with these routes, and perhaps more flags."""

    def run(routes: Routes, *flags: str, **of_config: Any) -> Looked:
        with api_server(routes) as server:
            config = kubeconfig(tmp_path, server.url, **of_config)
            return Looked(doctor("--kubeconfig", str(config), "-o", "json", *flags, now=NOW), server)

    return run


def test_a_cluster_that_shows_everything_is_whole(look: Look) -> None:
    looked = look(recorded_routes())
    assert (looked.told.code, looked.told.losses, looked.told.lines) == (0, {}, [])
    rows = {row["subject"]: row["status"] for row in looked.told.of("kubernetes_list")}
    assert rows == dict.fromkeys(RECORDED, "ok")
    assert f"the Kubernetes state from {looked.server.url} would be complete; telemetry was not read" in looked.told.err
    assert {row["code"] for row in looked.told.rows} == {
        "kubernetes_server",
        "kubernetes_list",
        "kubernetes_groups",
        "claim_version",
    }


def test_the_servers_version_and_that_of_its_claims_are_told(look: Look) -> None:
    looked = look(recorded_routes())
    assert looked.of("Kubernetes v1.36.2")["found"] == looked.server.url
    assert looked.of("resource.k8s.io")["found"] == "v1 is read; served: v1"
    assert looked.of("resourceclaims.resource.k8s.io")["found"] == "may be listed (resource.k8s.io/v1)"


def test_lists_are_asked_for_one_object_and_only_nodes_and_slices_are_read_whole(look: Look) -> None:
    looked = look(recorded_routes())
    limits: dict[str, list[str]] = {}
    for request in looked.server.requests:
        if limit := query_of(request).get("limit"):
            limits.setdefault(request.path, []).append(limit)
    assert limits.pop(NODES) == limits.pop(SLICES) == ["1", "500"]
    assert len(limits) == len(RECORDED) - 2 + len(NOT_THERE)
    assert {tuple(each) for each in limits.values()} == {("1",)}
    assert {request.method for request in looked.server.requests} == {"GET"}


def test_refused_slices_and_pods_are_losses_with_the_rules_to_add(look: Look) -> None:
    looked = look({**recorded_routes(), SLICES: forbidden, PODS: forbidden})
    assert looked.told.code == 4
    assert looked.told.losses == {"resourceslices.resource.k8s.io": tuple(HOLDER_TABLES), "pods": tuple(HOLDER_TABLES)}
    assert "403" in looked.of("pods")["found"]
    assert looked.rules == [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    assert "would lack some rows of container, container_saturation, container_power" in looked.told.err


def test_the_rules_in_a_table_are_one_list_of_yaml(doctor: Doctor, tmp_path: Path) -> None:
    with api_server({**recorded_routes(), SLICES: forbidden, PODS: forbidden}) as server:
        told = doctor("--kubeconfig", str(kubeconfig(tmp_path, server.url)), now=NOW)
    _, _, lines = told.out.partition("To add, rules of gpureport's ClusterRole:\n\n")
    assert [rule["resources"] for rule in yaml.safe_load(lines)] == [["resourceslices"], ["pods"]]


def test_lists_that_no_figure_needs_cost_nothing_but_get_their_rule(look: Look) -> None:
    looked = look({**recorded_routes(), "/api/v1/resourcequotas": forbidden, CLASSES: forbidden})
    assert (looked.told.code, looked.told.losses) == (0, {})
    assert [rule["resources"] for rule in looked.rules] == [["deviceclasses"], ["resourcequotas"]]


def test_where_nothing_may_be_listed_every_list_has_its_rule_of_reading_alone(look: Look) -> None:
    open_to_all = ("/apis", "/version")
    routes = {path: answer if path in open_to_all else forbidden for path, answer in recorded_routes().items()}
    looked = look(routes)
    assert looked.told.code == 4
    assert len(looked.rules) == len(RECORDED)
    assert {verb for rule in looked.rules for verb in rule["verbs"]} == {"list"}
    assert looked.told.losses["nodes"] == ("gpu_hour_ledger.*",)


def test_a_cluster_without_resource_claims_lacks_nothing(look: Look) -> None:
    groups = json.loads((RECORDING / "apis.json").read_text())
    groups["groups"] = [group for group in groups["groups"] if group["name"] != "resource.k8s.io"]
    looked = look({**recorded_routes(), "/apis": as_json(groups)})
    assert (looked.told.code, looked.told.losses) == (0, {})
    assert looked.of("resource.k8s.io")["status"] == "note"
    assert not [request for request in looked.server.requests if "resource.k8s.io" in request.path]
    assert {row["subject"] for row in looked.told.of("kubernetes_list")} == {
        name for name in RECORDED if not name.endswith("resource.k8s.io")
    }


def test_quota_systems_that_are_not_installed_are_one_note(look: Look) -> None:
    (row,) = look(recorded_routes()).told.of("kubernetes_groups")
    assert (row["status"], row["costs"]) == ("note", [])
    assert row["found"] == "not installed, so nothing is lost: scheduling.x-k8s.io, quota.koordinator.sh"


@pytest.mark.parametrize(("served", "read"), [(("v1beta1", "v1"), "v1"), (("v1beta1", "v1beta2"), "v1beta2")])
def test_the_version_that_is_read_is_the_newest_that_is_served(served: tuple[str, ...], read: str, look: Look) -> None:
    looked = look(version_routes(*served))
    assert looked.of("resource.k8s.io")["found"] == f"{read} is read; served: {', '.join(served)}"
    assert looked.of("resourceslices.resource.k8s.io")["found"] == f"may be listed (resource.k8s.io/{read})"


def test_claims_served_in_a_version_that_is_not_read_are_lost(look: Look) -> None:
    looked = look(version_routes("v1alpha3"))
    row = looked.of("resource.k8s.io")
    assert (looked.told.code, row["status"], row["costs"]) == (4, "partial", HOLDER_TABLES)
    assert row["found"].startswith("served only as v1alpha3, which is not read")


def test_a_server_that_hides_its_groups_gets_the_rule_that_shows_them(look: Look) -> None:
    looked = look({**recorded_routes(), "/apis": forbidden, "/version": forbidden})
    assert looked.told.code == 4
    assert looked.rules == [{"nonResourceURLs": ["/apis", "/version"], "verbs": ["get"]}]
    assert {row["subject"] for row in looked.told.of("kubernetes_list")} == {"nodes", "namespaces", "pods", "resourcequotas"}


# Servers that cannot be read


def test_refused_credentials_are_exit_code_5(look: Look) -> None:
    looked = look(recorded_routes(), user={"token": "stale-secret"})
    assert (looked.told.code, looked.told.out) == (5, "")
    assert "401" in looked.told.err
    assert "stale-secret" not in looked.told.err


def test_an_api_server_that_is_not_there_is_exit_code_5(doctor: Doctor, tmp_path: Path) -> None:
    told = doctor("--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")), now=NOW)
    assert (told.code, told.out) == (5, "")
    assert "connection refused" in told.err


def test_the_telemetrys_rows_are_told_before_an_api_server_that_is_not_there(doctor: Doctor, server: str, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    told = doctor("--prometheus-url", server, "--kubeconfig", str(config), "-o", "json", now=NOW)
    assert told.code == 5
    assert {row["status"] for row in told.of("signal")} == {"ok"}
    assert told.of("kubernetes_server") == []
    verdict, sentence = told.err.splitlines()
    assert verdict.endswith("would be complete")
    assert "http://127.0.0.1:1" in sentence


@pytest.mark.parametrize(
    "flags",
    [
        ("--kubeconfig", "config", "--lake", "lake"),
        ("--context", "prod", "--date", "2026-10-01"),
        ("--kubeconfig", "nowhere"),
        ("--no-kubernetes",),
    ],
)
def test_what_cannot_be_meant_of_a_cluster_is_exit_code_2(doctor: Doctor, flags: tuple[str, ...]) -> None:
    assert doctor(*flags, now=NOW).code == 2


# Nodes


def node(name: str, labels: Mapping[str, str] | None = None, capacity: int = 0, allocatable: int | None = None) -> dict[str, Any]:
    """A node with so many GPUs, of which all are allocatable unless told otherwise."""
    there, given = (
        {"cpu": "96", **({"nvidia.com/gpu": str(count)} if capacity else {})}
        for count in (capacity, capacity if allocatable is None else allocatable)
    )
    status = {"capacity": there, "allocatable": given}
    return {"metadata": {"name": name, "uid": name, "labels": dict(labels or {})}, "spec": {}, "status": status}


def nodes(*found: dict[str, Any]) -> Reply:
    return as_json({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": list(found)})


def slices(*pools: tuple[str, str, int]) -> Reply:
    """Driver, node and how many devices it hands out there."""
    items = [
        {
            "metadata": {"name": f"{name}-{driver}"},
            "spec": {
                "driver": driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{number}"} for number in range(count)],
            },
        }
        for driver, name, count in pools
    ]
    return as_json({"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "metadata": {}, "items": items})


PCI = {"feature.node.kubernetes.io/pci-10de.present": "true"}
N1, N2, N3 = (node(name, PCI, capacity=2) for name in ("n1", "n2", "n3"))


@contextmanager
def cluster(tmp_path: Path, **routes: Reply) -> Iterator[tuple[str, str]]:
    """Flags for a cluster with these nodes and slices."""
    with api_server({**recorded_routes(), NODES: routes["nodes"], SLICES: routes.get("slices", slices())}) as server:
        yield "--kubeconfig", str(kubeconfig(tmp_path, server.url))


@pytest.mark.parametrize("name", ["no kube-state-metrics", "whole"])
def test_a_node_that_no_exporter_speaks_of_is_named(name: str, doctor: Doctor, server: str, tmp_path: Path) -> None:
    """Telemetry has n1 and n2; where there is kube-state-metrics, it does not know n3 either."""
    with cluster(tmp_path, nodes=nodes(N1, N2, N3, node("cpu-1"))) as flags:
        told = doctor("--prometheus-url", server, *flags, "-o", "json", now=INSTANTS[name])
    (row,) = told.of("node_without_exporter")
    assert (told.code, row["status"], row["costs"]) == (4, "partial", ["device.*"])
    assert re.search(r"reports them: n3 \(2 nvidia_com_gpu\);", row["found"])
    assert told.of("hardware_without_driver") == []
    assert " and http://127.0.0.1:" in told.err  # both were looked at


def test_nodes_that_exporters_speak_of_lack_nothing(doctor: Doctor, server: str, tmp_path: Path) -> None:
    with cluster(tmp_path, nodes=nodes(N1, N2, node("cpu-1"))) as flags:
        told = doctor("--prometheus-url", server, *flags, "-o", "json", now=NOW)
    assert (told.code, told.losses) == (0, {})
    (row,) = [row for row in told.of("kubernetes_list") if row["subject"] == "nodes"]
    assert row["found"] == "may be listed (v1); 2 of 3 nodes with accelerators"


def test_a_node_whose_devices_a_driver_hands_out_is_one_with_accelerators(doctor: Doctor, server: str, tmp_path: Path) -> None:
    """Nothing is allocatable where DRA drivers do it; a network card's driver makes no node one of these."""
    dra = slices(("gpu.nvidia.com", "n3", 8), ("net.example.com", "cpu-1", 2), ("gpu.nvidia.com", "gone", 8))
    with cluster(tmp_path, nodes=nodes(N1, N2, node("n3", PCI), node("cpu-1")), slices=dra) as flags:
        told = doctor("--prometheus-url", server, *flags, "-o", "json", now=NOW)
    assert "reports them: n3 (8 gpu.nvidia.com);" in told.of("node_without_exporter")[0]["found"]
    assert told.of("hardware_without_driver") == []


def test_hardware_without_a_driver_is_told_of_a_cluster_alone(look: Look) -> None:
    bare = node("n4", PCI), node("n5", capacity=8, allocatable=0), node("cpu-1", {next(iter(PCI)): "false"})
    looked = look({**recorded_routes(), NODES: nodes(N1, *bare), SLICES: slices()})
    (row,) = looked.told.of("hardware_without_driver")
    assert (looked.told.code, row["status"]) == (4, "partial")
    assert ": n4 (nvidia), n5 (nvidia);" in row["found"]


def test_without_the_slices_nobody_says_that_a_node_has_no_driver(look: Look) -> None:
    """Its devices may be handed out by a DRA driver; only a capacity that is not allocatable tells without slices."""
    bare = node("n4", PCI), node("n5", capacity=8, allocatable=0)
    looked = look({**recorded_routes(), NODES: nodes(*bare), SLICES: forbidden})
    assert ": n5 (nvidia);" in looked.told.of("hardware_without_driver")[0]["found"]


def test_the_environment_names_the_cluster_for_this_moment_alone(doctor: Doctor, server: str, tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(kubeconfig(tmp_path, "http://127.0.0.1:1"))}
    assert doctor("--prometheus-url", server, now=NOW, environ=environ).code == 5
    assert doctor("--prometheus-url", server, "--no-kubernetes", now=NOW, environ=environ).code == 0
    told = doctor("--prometheus-url", server, "--date", str(NOW.date()), now=NOW, environ=environ)
    assert told.code == 0
    assert "127.0.0.1:1 " not in told.err


def test_names_are_written_as_kube_state_metrics_writes_them() -> None:
    assert as_exported("nvidia.com/mig-1g.5gb") == "nvidia_com_mig_1g_5gb"
    drivers = ["gpu.nvidia.com", "gpu.amd.com", "gaudi.intel.com", "compute-domain.nvidia.com", "dra.net"]
    assert [is_accelerator_driver(driver) for driver in drivers] == [True, True, True, False, False]
