"""The JSON lists and the series show the same pods, nodes, devices and times."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gpureport.simulate import SimulationPlan, write_kubernetes
from tests.simulate.conftest import Cluster

Lists = dict[str, list[dict[str, Any]]]

LAST_SCRAPE = datetime.fromisoformat("2026-11-19T23:59:00.250Z").timestamp()
"""Of kube-state-metrics: what happens in the last minute is in the lists alone."""


@pytest.fixture(scope="module")
def lists(plan: SimulationPlan, tmp_path_factory: pytest.TempPathFactory) -> Lists:
    folder = tmp_path_factory.mktemp("kubernetes")
    write_kubernetes(plan, folder)
    return {path.stem: json.loads(path.read_text())["items"] for path in folder.glob("*.json")}


def _pods(lists: Lists) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["uid"]: pod for pod in lists["pods"]}


def _state(pod: dict[str, Any]) -> dict[str, str]:
    """The container's times, as far as the last scrape could know them."""
    known = next(iter(pod["status"]["containerStatuses"][0]["state"].values()))
    return {name: text for name, text in known.items() if name.endswith("At") and _seconds(text) <= LAST_SCRAPE}


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _values(cluster: Cluster, metric: str) -> dict[str, set[float]]:
    found: dict[str, set[float]] = {}
    for each in cluster.of(metric):
        found.setdefault(each.labels["uid"], set()).update(each.values.tolist())
    return found


def test_the_lists_are_as_the_api_server_prints_them(plan: SimulationPlan, tmp_path: Path) -> None:
    paths = write_kubernetes(plan, tmp_path)
    kinds = {path.stem: json.loads(path.read_text())["kind"] for path in paths if path.suffix == ".json"}
    assert kinds == {
        "nodes": "NodeList",
        "pods": "PodList",
        "namespaces": "NamespaceList",
        "resourceclaims": "ResourceClaimList",
        "resourceslices": "ResourceSliceList",
    }
    assert (tmp_path / "observed_at.txt").read_text() == "2026-11-20T00:00:00Z\n"


def test_every_pod_of_the_series_is_listed_and_every_listed_pod_has_series(lists: Lists, cluster: Cluster) -> None:
    found = {
        (each.labels["uid"], each.labels["namespace"], each.labels["pod"], each.labels["node"])
        for each in cluster.of("kube_pod_info")
        if each.labels["node"]
    }
    listed = {
        (uid, pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"]["nodeName"])
        for uid, pod in _pods(lists).items()
        if _state(pod)
    }
    assert len(listed) > 50
    assert found == listed


def test_creation_completion_and_phase_agree_for_every_pod(lists: Lists, cluster: Cluster) -> None:
    created = _values(cluster, "kube_pod_created")
    completed = _values(cluster, "kube_pod_completion_time")
    phases: dict[str, str] = {}
    for each in cluster.of("kube_pod_status_phase"):
        if each.values[-1] == 1 and each.times[-1] == LAST_SCRAPE * 1000:
            phases[each.labels["uid"]] = each.labels["phase"]
    for uid, pod in _pods(lists).items():
        state = _state(pod)
        finished = {_seconds(state["finishedAt"])} if "finishedAt" in state else set()
        assert created[uid] == {_seconds(pod["metadata"]["creationTimestamp"])}
        assert completed.get(uid, set()) == finished
        assert phases[uid] == (pod["status"]["phase"] if finished else "Running" if state else "Pending")


def test_a_pod_is_placed_in_the_series_when_its_container_starts(lists: Lists, cluster: Cluster) -> None:
    placed: dict[str, int] = {}
    for each in cluster.of("kube_pod_info"):
        if each.labels["node"]:
            placed[each.labels["uid"]] = min(placed.get(each.labels["uid"], 1 << 62), int(each.times[0]))
    for uid, pod in _pods(lists).items():
        state = _state(pod)
        if not state:
            continue
        late = placed[uid] / 1000 - max(_seconds(state["startedAt"]), _seconds("2026-11-18T00:00:00Z"))
        assert 0 <= late <= 60


def test_pods_and_containers_of_the_device_series_are_those_listed(lists: Lists, cluster: Cluster) -> None:
    listed = {
        (pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]): pod
        for pod in lists["pods"]
    }
    for each in cluster.of("DCGM_FI_DEV_POWER_USAGE"):
        if "pod" not in each.labels:
            continue
        pod = listed[each.labels["namespace"], each.labels["pod"], each.labels["container"]]
        assert pod["spec"]["nodeName"] == each.labels["Hostname"]
        assert each.labels.get("pod_uid", pod["metadata"]["uid"]) == pod["metadata"]["uid"]
        state = next(iter(pod["status"]["containerStatuses"][0]["state"].values()))
        assert each.times[0] >= _seconds(state["startedAt"]) * 1000
        if "finishedAt" in state:
            assert each.times[-1] < _seconds(state["finishedAt"]) * 1000


def test_allocatable_of_nodes_and_requests_of_pods_agree(lists: Lists, cluster: Cluster) -> None:
    def named(resource: str) -> str:
        return resource.replace(".", "_").replace("/", "_").replace("-", "_")

    found = {
        (each.labels["node"], each.labels["resource"]): each.values[0] for each in cluster.of("kube_node_status_allocatable")
    }
    listed = {
        (node["metadata"]["name"], named(resource)): float(count)
        for node in lists["nodes"]
        for resource, count in node["status"]["allocatable"].items()
        if resource.startswith("nvidia.com/")
    }
    assert found == listed
    requested = {
        (each.labels["uid"], each.labels["resource"]): each.values[0]
        for each in cluster.of("kube_pod_container_resource_requests")
    }
    assert requested == {
        (uid, named(resource)): float(count)
        for uid, pod in _pods(lists).items()
        for resource, count in pod["spec"]["containers"][0]["resources"].get("limits", {}).items()
    }


def test_claims_are_allocated_to_the_devices_on_which_their_pods_are_seen(lists: Lists, cluster: Cluster) -> None:
    slices = {
        (slice_["spec"]["pool"]["name"], device["name"]): device["attributes"]["uuid"]["string"]
        for slice_ in lists["resourceslices"]
        for device in slice_["spec"]["devices"]
    }
    pods, allocated = _pods(lists), 0
    for claim in lists["resourceclaims"]:
        owner = pods[claim["metadata"]["ownerReferences"][0]["uid"]]
        seen = cluster.of("DCGM_FI_DEV_POWER_USAGE", pod=owner["metadata"]["name"])
        assert {each.labels["dra_claim_name"] for each in seen} <= {claim["metadata"]["name"]}
        assert (claim["status"] != {}) == (owner["status"]["phase"] == "Running")
        if claim["status"]:
            allocated += 1
            results = claim["status"]["allocation"]["devices"]["results"]
            assert {slices[result["pool"], result["device"]] for result in results} == {each.labels["UUID"] for each in seen}
            assert len(results) == claim["spec"]["devices"]["requests"][0]["exactly"]["count"]
            assert claim["status"]["reservedFor"][0]["uid"] == owner["metadata"]["uid"]
    assert allocated
    assert all(uuid.startswith("GPU-") for uuid in slices.values())


def test_every_namespace_of_a_pod_is_listed_with_its_team(lists: Lists) -> None:
    teams = {each["metadata"]["name"]: each["metadata"]["labels"]["team"] for each in lists["namespaces"]}
    assert {pod["metadata"]["namespace"] for pod in lists["pods"]} <= set(teams)
