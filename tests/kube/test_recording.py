"""The recording of a real API server, imported: every object as the real scheduler left it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from kube.decided import assert_decided
from kube.lake import RECORDING, import_state, query


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording") / "lake"
    import_state(folder, RECORDING)
    return folder


def test_every_object_is_as_the_scheduler_decided(lake: Path) -> None:
    assert_decided(lake)


def test_every_row_says_when_it_was_observed(lake: Path) -> None:
    for table in ("node", "namespace", "pod", "pod_container", "device", "claim", "claim_device", "quota", "koordinator_device"):
        times = query(lake, f"select distinct observed_at, date::varchar from lake.{table}")
        assert times == [(datetime(2026, 11, 21, 1, 46, 21), "2026-11-21")]


def test_pods_that_wait_say_why_and_since_when(lake: Path) -> None:
    rows = query(
        lake,
        """select pod, unschedulable_reason, unschedulable_at, scheduled_at, started_at,
                  unschedulable_message like '%Insufficient nvidia.com/gpu%',
                  unschedulable_message like '%cannot allocate all claims%'
           from lake.pod where phase = 'Pending' order by pod""",
    )
    assert rows == [
        ("monster-0", "Unschedulable", datetime(2026, 11, 21, 1, 46, 5), None, None, False, True),
        ("wants-3-0", "Unschedulable", datetime(2026, 11, 21, 1, 46, 7), None, None, True, False),
    ]
    assert query(lake, "select count(*) from lake.pod where unschedulable_reason <> ''") == [(2,)]


def test_instants_of_a_pod_that_runs(lake: Path) -> None:
    statement = "select created_at, scheduled_at, started_at, running_at, finished_at from lake.pod where pod = 'train-llm-0'"
    second = datetime(2026, 11, 21, 1, 45, 59)
    assert query(lake, statement) == [(second, second, second, datetime(2026, 11, 21, 1, 46, 18), None)]


def test_an_init_container_stands_beside_the_container_and_counts_once(lake: Path) -> None:
    statement = "select container, container_kind, requests['cpu'] from lake.pod_container where pod = 'mig-slice-1' order by all"
    assert query(lake, statement) == [("server", "app", 4), ("warm", "init", 8)]
    requests = query(lake, "select effective_requests from lake.pod where pod = 'mig-slice-1'")
    assert requests == [({"cpu": 8, "memory": 32 * 2**30, "nvidia.com/mig-3g.20gb": 1},)]


def test_the_container_without_the_claim_has_none(lake: Path) -> None:
    assert query(lake, "select claims from lake.pod_container where container = 'sidecar'") == [([],)]


def test_instances_of_one_gpu_are_parts_of_it(lake: Path) -> None:
    statement = "select count(distinct device_uuid), count(distinct uuid) from lake.device where node_name = 'gpu-node-2'"
    assert query(lake, statement) == [(2, 5)]
    parents = query(lake, "select distinct device_uuid from lake.device where device_type = 'mig'")
    assert parents == [("GPU-fb196fcb-1275-5cbd-ae1e-81a427b81e48",)]


def test_the_stale_slice_is_not_there(lake: Path) -> None:
    assert query(lake, "select count(*) from lake.device where device = 'gpu-9'") == [(0,)]


def test_nodes_offer_what_they_say_and_dra_nodes_nothing(lake: Path) -> None:
    rows = dict(query(lake, "select node_name, allocatable from lake.node where is_ready and not is_unschedulable"))
    assert {(row.pop("cpu"), row.pop("memory") / 2**30) for row in rows.values()} == {(96, 1056)}
    assert rows == {
        "gpu-node-0": {"nvidia.com/gpu": 4},
        "gpu-node-1": {},
        "gpu-node-2": {},
        "gpu-node-3": {
            "koordinator.sh/fpga": 100,
            "koordinator.sh/gpu-core": 300,
            "koordinator.sh/gpu-memory": 120 * 2**30,
            "koordinator.sh/gpu-memory-ratio": 300,
            "koordinator.sh/rdma": 100,
            "nvidia.com/gpu": 2,
            "nvidia.com/mig-1g.5gb": 7,
            "nvidia.com/mig-3g.20gb": 2,
        },
    }
    labels = "select labels['nvidia.com/gpu.count'], labels['nvidia.com/gpu.replicas'] from lake.node order by node_name"
    assert query(lake, labels) == [("1", "4"), ("8", None), ("2", None), ("4", None)]


def test_koordinators_devices_are_four_gpus_of_which_one_is_sick(lake: Path) -> None:
    rows = query(
        lake,
        "select device_type, minor, is_healthy, health_reason, numa_node, pci_bus_id from lake.koordinator_device order by all",
    )
    assert rows == [
        ("fpga", 0, True, "", None, ""),
        ("gpu", 0, False, "Xid79", 0, "0000:00:00.0"),
        ("gpu", 1, True, "", 0, "0000:01:00.0"),
        ("gpu", 2, True, "", 1, "0000:02:00.0"),
        ("gpu", 3, True, "", 1, "0000:03:00.0"),
        ("rdma", 0, True, "", None, ""),
    ]


def test_koordinators_pods_hold_what_their_annotation_says(lake: Path) -> None:
    statement = """
        select pod, minor, device_id, amounts['koordinator.sh/gpu-core'], amounts['koordinator.sh/gpu-memory'], node_name, source
        from lake.pod_device order by all
    """
    assert query(lake, statement) == [
        ("koord-half-0", 1, "GPU-c0d9ebaf-fc8f-5053-b3f5-330ea31a8d26", 50, 20 * 2**30, "gpu-node-3", "koordinator"),
        ("koord-two-0", 2, "GPU-6fff65fb-8d5d-559a-8f9b-53300748cb4d", 100, 40 * 2**30, "gpu-node-3", "koordinator"),
        ("koord-two-0", 3, "GPU-6d68008a-a735-5198-bddf-93c6a8d03cb2", 100, 40 * 2**30, "gpu-node-3", "koordinator"),
    ]


def test_namespaces_keep_their_teams(lake: Path) -> None:
    teams = dict(query(lake, "select namespace, labels['team'] from lake.namespace"))
    assert len(teams) == 9
    assert {name: team for name, team in teams.items() if team} == {
        "data": "data",
        "gpu-operator": "gpu-operator",
        "notebooks": "notebooks",
        "research": "research",
        "serving": "serving",
    }


def test_quota_objects_are_kept_as_they_are(lake: Path) -> None:
    statement = "select spec, status, api_version from lake.quota where name = 'quota-c'"
    assert query(lake, statement) == [
        (
            '{"max":{"nos.nebuly.com/gpu-memory":70},"min":{"nos.nebuly.com/gpu-memory":30},"namespaces":["data","notebooks"]}',
            '{"used":{"nos.nebuly.com/gpu-memory":"64"}}',
            "nos.nebuly.com/v1alpha1",
        )
    ]
    runtime = "annotations['quota.scheduling.koordinator.sh/runtime']"
    assert query(lake, f"select {runtime} from lake.quota where name = 'team-data'") == [('{"koordinator.sh/gpu-core": "250"}',)]


def test_what_the_folder_does_not_hold_is_said(lake: Path) -> None:
    absent = query(lake, "select asked from lake.source where reason <> '' order by all")
    assert [name for (name,) in absent] == [
        "cohorts.kueue.x-k8s.io",
        "elasticquotaprofiles.quota.koordinator.sh",
        "elasticquotas.scheduling.x-k8s.io",
        "events",
        "localqueues.kueue.x-k8s.io",
        "podgroups.scheduling.volcano.sh",
        "resourceflavors.kueue.x-k8s.io",
        "workloads.kueue.x-k8s.io",
    ]
    statement = "select server, read_path, series_count from lake.source where asked = 'resourceclaims.resource.k8s.io'"
    assert query(lake, statement) == [("Kubernetes v1.36.2", "resource.k8s.io/v1", 10)]
