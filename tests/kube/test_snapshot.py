"""gpureport snapshot: the real client over real sockets against replayed replies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.compute.query import load
from kube.api_server import (
    CLAIMS,
    PODS,
    api_server,
    header,
    kubeconfig,
    listing,
    query_of,
    recorded_routes,
    snapshot,
    version_routes,
)
from kube.decided import assert_decided
from kube.lake import RECORDING, everything, import_state, query

VERSIONS_OF_DRA = ("v1", "v1beta2", "v1beta1")


def test_a_snapshot_holds_what_the_scheduler_decided_and_what_an_import_of_the_same_replies_does(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "taken") == 0
    assert_decided(tmp_path / "taken")
    import_state(tmp_path / "imported", RECORDING)
    taken, imported = (everything(tmp_path / name, but=("observed_at",)) for name in ("taken", "imported"))
    assert taken.keys() == imported.keys()
    assert {name: rows for name, rows in taken.items() if name != "lake.source"} == {
        name: rows for name, rows in imported.items() if name != "lake.source"
    }


def test_a_pod_with_a_deadline_is_in_the_scope_that_an_import_of_the_same_reply_puts_it_in(tmp_path: Path) -> None:
    reply = json.loads((RECORDING / "pods.json").read_text())
    named = reply["items"][0]["metadata"]["name"]
    reply["items"][0]["spec"]["activeDeadlineSeconds"] = 3600
    with api_server(recorded_routes() | {PODS: listing(reply)}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    terminating = "select pod from lake.pod where list_contains(quota_scopes, 'Terminating')"
    assert query(tmp_path / "lake", terminating) == [(named,)]


def test_lists_are_read_in_pages_compressed_and_with_credentials(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    lists = [each for each in server.requests if each.path == PODS]
    assert [query_of(each) for each in lists] == [
        {"limit": "500"},
        {"limit": "500", "continue": "at-7"},
        {"limit": "500", "continue": "at-14"},
    ]
    assert {header(each, "Accept-Encoding") for each in lists} == {"gzip"}
    assert header(lists[0], "User-Agent").startswith("gpureport/")
    assert {each.method for each in server.requests} == {"GET"}


def test_of_events_those_of_failed_pods_are_asked_for_and_refusals_by_a_quota_kept(tmp_path: Path) -> None:
    messages = (
        "Error creating: exceeded quota: gpus, requested: pods=1, used: pods=3, limited: pods=3",
        "Error creating: denied",
    )
    events = [{"metadata": {"name": f"e{number}", "uid": f"e{number}"}, "message": each} for number, each in enumerate(messages)]
    routes = recorded_routes() | {"/api/v1/events": listing({"kind": "EventList", "apiVersion": "v1", "items": events})}
    with api_server(routes) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    [request] = [each for each in server.requests if each.path == "/api/v1/events"]
    assert query_of(request)["fieldSelector"] == "reason=FailedCreate"
    assert query(tmp_path / "lake", "select name from lake.quota where kind = 'events'") == [("e0",)]


def test_only_groups_that_the_server_serves_are_asked_for(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert not [each for each in server.requests if "scheduling.x-k8s.io" in each.path or "quota.koordinator.sh" in each.path]
    statement = (
        "select asked, reason from lake.source where asked in ('cohorts.kueue.x-k8s.io', 'elasticquotas.scheduling.x-k8s.io')"
    )
    assert dict(query(tmp_path / "lake", statement)) == {
        "cohorts.kueue.x-k8s.io": "the server has no cohorts.kueue.x-k8s.io",
        "elasticquotas.scheduling.x-k8s.io": "the server does not serve scheduling.x-k8s.io",
    }
    assert query(tmp_path / "lake", "select distinct kind, server from lake.source") == [("kubernetes", "Kubernetes v1.36.2")]


def test_every_version_of_dra_gives_the_same_rows(tmp_path: Path) -> None:
    found = []
    for version in VERSIONS_OF_DRA:
        with api_server(version_routes(version)) as server:
            assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / version) == 0
        found.append({name: rows for name, rows in everything(tmp_path / version).items() if name != "lake.source"})
        [(read,)] = query(tmp_path / version, "select read_path from lake.source where asked = 'resourceslices.resource.k8s.io'")
        assert read == f"resource.k8s.io/{version}"
    assert found[0] == found[1] == found[2]
    assert len(found[0]["lake.device"]) == 4
    assert len(found[0]["lake.claim"]) == 3


def test_the_newest_version_is_read_whatever_the_server_prefers(tmp_path: Path) -> None:
    with api_server(version_routes("v1beta1", "v1beta2", "v1")) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert {each.path.split("/")[3] for each in server.requests if "resource.k8s.io" in each.path} == {"v1"}


def test_a_version_of_another_shape_is_not_read(tmp_path: Path) -> None:
    with api_server(version_routes("v1alpha3")) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    statement = "select distinct reason from lake.source where asked like '%.resource.k8s.io'"
    assert query(tmp_path / "lake", statement) == [("the server serves resource.k8s.io only as v1alpha3, which is not read",)]


@pytest.fixture(scope="module")
def partitionable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions")
    with api_server(version_routes("v1")) as server:
        assert snapshot(kubeconfig(folder, server.url), folder / "lake") == 0
    return folder / "lake"


def test_an_extended_resource_and_its_claim_are_one_gpu_and_say_so(partitionable: Path) -> None:
    statement = "select requests, claims from lake.pod_container where pod = 'p-ext'"
    claim = {
        "claim": "p-ext-extended-resources-5cr8x",
        "pod_claim": "",
        "request": "container-0-request-0",
        "resource": "nvidia.com/gpu",
    }
    assert query(partitionable, statement) == [({"nvidia.com/gpu": 1}, [claim])]
    assert query(partitionable, "select claim from lake.claim where is_extended_resource") == [(claim["claim"],)]
    assert query(partitionable, "select extended_resource_claim from lake.pod where pod = 'p-ext'") == [(claim["claim"],)]
    assert query(partitionable, "select extended_resource from lake.device_class where device_class = 'gpu.nvidia.com'") == [
        ("nvidia.com/gpu",)
    ]
    assert query(partitionable, "select allocatable from lake.node") == [({"cpu": 64, "memory": 512 * 2**30},)]


def test_a_share_of_a_device_keeps_its_id_and_size(partitionable: Path) -> None:
    statement = "select device, share_id, consumed_capacity from lake.claim_device where claim = 'shared-slice'"
    assert query(partitionable, statement) == [("gpu-2", "0283bc3e-94c7-4f6d-8267-500a6ffeccb4", {"memory": 20 * 2**30})]
    consumers = query(partitionable, "select consumer from lake.claim_consumer where claim = 'shared-slice' order by all")
    assert consumers == [("p-shared-1",), ("p-shared-2",)]
    assert query(partitionable, "select device from lake.device where is_shareable") == [("gpu-2",)]
    part = f"select device, share_ratio, share_source from ({load()['day.claim_share'].sql})"
    assert query(partitionable, part) == [("gpu-2", 0.25, "consumed capacity")]  # 20Gi of the 80Gi that its slice offers


def test_partitions_stand_beside_their_gpu_without_a_uuid_of_their_own(partitionable: Path) -> None:
    statement = """
        select device, uuid, device_uuid, profile, pci_bus_id, capacities['memory'], consumed_counters
        from lake.device where device like 'gpu-0%' order by device
    """
    parent = "GPU-11111111-1111-1111-1111-111111111111"
    assert query(partitionable, statement) == [
        (
            "gpu-0",
            parent,
            parent,
            "",
            "0000:18:00.0",
            81559 * 2**20,
            {"gpu-0-counter-set/memory": 80 * 2**30, "gpu-0-counter-set/multiprocessors": 132},
        ),
        (
            "gpu-0-mig-1g10gb-19-0",
            "",
            parent,
            "1g.10gb",
            "",
            10 * 2**30,
            {"gpu-0-counter-set/memory": 10 * 2**30, "gpu-0-counter-set/multiprocessors": 16},
        ),
    ]
    assert query(partitionable, "select distinct is_pool_complete from lake.device") == [(True,)]


def test_the_alternative_that_was_taken_is_named_and_the_container_asks_for_the_request(partitionable: Path) -> None:
    statement = "select request, subrequest, device from lake.claim_device where claim = 'p-template-g-zf7kp'"
    assert query(partitionable, statement) == [("gpu", "full", "gpu-1")]
    claims = query(partitionable, "select container, claims from lake.pod_container where pod = 'p-template' order by container")
    used = {"claim": "p-template-g-zf7kp", "pod_claim": "g", "request": "gpu", "resource": ""}
    assert [found for _, found in claims] == [[used], []]


def test_a_null_where_a_list_belongs_does_not_lose_the_list(tmp_path: Path) -> None:
    routes = recorded_routes()
    odd = [
        {"metadata": {"name": "bare", "namespace": "ns", "uid": "bare"}, "spec": {"containers": None}, "status": None},
        {
            "metadata": {"name": "claims", "namespace": "ns", "uid": "claims"},
            "spec": {"containers": [{"name": "c", "resources": None}]},
        },
    ]
    recorded = json.loads((RECORDING / "pods.json").read_text())
    routes[PODS] = listing({**recorded, "items": [*odd, *recorded["items"]]})
    claims = json.loads((RECORDING / "resourceclaims.json").read_text())
    claims["items"][0]["spec"]["devices"]["requests"] = None
    routes[CLAIMS] = listing(claims)
    routes["/apis/resource.k8s.io/v1/resourceslices"] = listing({"kind": "ResourceSliceList", "apiVersion": "v1", "items": None})
    with api_server(routes) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(23,)]
    assert query(tmp_path / "lake", "select count(*) from lake.claim") == [(10,)]
    assert query(tmp_path / "lake", "select count(*) from lake.device") == [(0,)]
    statement = "select series_count, reason from lake.source where asked = 'resourceslices.resource.k8s.io'"
    assert query(tmp_path / "lake", statement) == [(0, "")]


def test_other_commands_do_not_wait_for_the_client() -> None:
    code = "import sys, gpureport.cli; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_help_names_where_a_kubeconfig_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["snapshot", "--help"], environ={})
    assert "KUBECONFIG" in capsys.readouterr().out
