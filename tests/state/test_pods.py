"""Pods of shapes that no recording holds."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gpureport.collect.state.pods import claim_names, pod_row
from gpureport.collect.state.pods import container_rows as rows_of_containers


def pod(spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": "p", "uid": "u", **metadata}, "spec": spec, "status": status}


def container_rows(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return list(rows_of_containers(pod, claim_names(pod)))


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_a_pod_of_nulls_is_a_row_of_unknowns() -> None:
    row = pod_row({"metadata": {"name": "p"}, "spec": None, "status": None})
    assert (row["phase"], row["node_name"], row["scheduled_at"], row["priority"]) == ("", "", None, None)
    assert container_rows(pod({"containers": None})) == []


@pytest.mark.parametrize(
    ("reason", "is_true", "found"),
    [
        (None, "True", "PreemptionByScheduler"),
        ("Evicted", "True", "Evicted"),
        (None, "False", ""),
        ("Evicted", "False", "Evicted"),
    ],
)
def test_a_condition_names_the_reason_of_a_pod_that_the_scheduler_preempts(reason: Any, is_true: str, found: str) -> None:
    """The scheduler writes DisruptionTarget and deletes the pod; status.reason is the kubelet's."""
    conditions = [{"type": "DisruptionTarget", "status": is_true, "reason": "PreemptionByScheduler"}]
    assert pod_row(pod(None, {"phase": "Running", "reason": reason, "conditions": conditions}))["status_reason"] == found


def test_a_claim_is_named_by_the_spec_or_where_it_was_made_by_the_status() -> None:
    claims = [
        {"name": "own", "resourceClaimName": "shared"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "waiting", "resourceClaimTemplateName": "t"},
        {"name": "needless", "resourceClaimTemplateName": "t"},
    ]
    statuses = [{"name": "made", "resourceClaimName": "p-made-x7"}, {"name": "needless"}]
    assert claim_names(pod({"resourceClaims": claims}, {"resourceClaimStatuses": statuses})) == {
        "own": "shared",
        "made": "p-made-x7",
        "waiting": "",
    }


def test_a_claim_that_no_container_uses_is_the_pods_alone() -> None:
    found = pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "parked"}], "containers": [{"name": "main"}]})
    assert pod_row(found)["resource_claims"] == {"gpu": "parked"}
    [container] = container_rows(found)
    assert container["claims"] == []


def test_times_are_those_of_the_first_start_and_the_last_end() -> None:
    ended = {"startedAt": "2026-11-20T10:05:00Z", "finishedAt": "2026-11-20T11:00:00Z", "exitCode": 0, "reason": "Completed"}
    before = {"startedAt": "2026-11-20T10:00:00Z", "finishedAt": "2026-11-20T10:04:00Z", "exitCode": 137, "reason": "OOMKilled"}
    other = {"startedAt": "2026-11-20T10:01:00Z", "finishedAt": "2026-11-20T10:30:00Z"}
    statuses = [
        {"name": "a", "state": {"terminated": ended}, "lastState": {"terminated": before}, "restartCount": 1},
        {"name": "b", "state": {"terminated": other}},
    ]
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    status = {"phase": "Succeeded", "startTime": "2026-11-20T09:59:00Z", "containerStatuses": statuses}
    row = pod_row(pod(spec, status))
    assert row["started_at"] == ms("2026-11-20T09:59:00")
    assert row["running_at"] == ms("2026-11-20T10:00:00")
    assert row["finished_at"] == ms("2026-11-20T11:00:00")
    assert pod_row(pod(spec, status | {"phase": "Running"}))["finished_at"] is None
    first, second = container_rows(pod(spec, status))
    assert (first["state"], first["reason"], first["restart_count"], first["exit_code"]) == ("terminated", "Completed", 1, 0)
    assert (second["finished_at"], second["restart_count"]) == (ms("2026-11-20T10:30:00"), None)


def test_the_first_start_is_unknown_where_a_container_had_more_runs_than_its_status_shows() -> None:
    """A status shows the present run and the one before; another container that runs since 10:00 tells when the pod began."""
    now, before = (
        {"startedAt": "2026-11-20T21:55:00Z"},
        {"startedAt": "2026-11-20T21:50:00Z", "finishedAt": "2026-11-20T21:51:00Z"},
    )
    looping = {"name": "a", "state": {"running": now}, "lastState": {"terminated": before}, "restartCount": 40}
    steady = {"name": "b", "state": {"running": {"startedAt": "2026-11-20T10:00:00Z"}}, "restartCount": 0}
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    found = [pod_row(pod(spec, {"phase": "Running", "containerStatuses": each})) for each in ([looping], [looping, steady])]
    assert [row["running_at"] for row in found] == [None, ms("2026-11-20T10:00:00")]


def test_a_container_between_two_runs_shows_the_one_before_and_why_it_waits() -> None:
    last = {"startedAt": "2026-11-20T10:00:00Z", "finishedAt": "2026-11-20T10:04:00Z", "exitCode": 1, "reason": "Error"}
    reported = {
        "name": "a",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": last},
        "restartCount": 4,
    }
    [row] = container_rows(pod({"containers": [{"name": "a"}]}, {"containerStatuses": [reported]}))
    assert (row["state"], row["reason"], row["exit_code"]) == ("waiting", "CrashLoopBackOff", 1)
    assert row["finished_at"] == ms("2026-11-20T10:04:00")


def test_init_containers_and_sidecars_are_told_apart_and_come_first() -> None:
    spec = {"initContainers": [{"name": "warm"}, {"name": "proxy", "restartPolicy": "Always"}], "containers": [{"name": "main"}]}
    status = {"initContainerStatuses": [{"name": "warm", "state": {"terminated": {"exitCode": 0}}}]}
    assert [(row["container"], row["container_kind"], row["state"]) for row in container_rows(pod(spec, status))] == [
        ("warm", "init", "terminated"),
        ("proxy", "sidecar", ""),
        ("main", "app", ""),
    ]


def test_what_the_kubelet_allocated_keeps_its_health() -> None:
    resources = [{"resourceID": "GPU-a", "health": "Healthy"}, {"resourceID": "GPU-b", "health": "Unhealthy"}]
    reported = {"name": "a", "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": resources}]}
    [row] = container_rows(pod({"containers": [{"name": "a"}]}, {"containerStatuses": [reported]}))
    assert row["allocated_devices"] == [
        {"resource": "nvidia.com/gpu", "device_id": "GPU-a", "health": "Healthy"},
        {"resource": "nvidia.com/gpu", "device_id": "GPU-b", "health": "Unhealthy"},
    ]


@pytest.mark.parametrize(
    ("spec", "metadata", "group"),
    [
        ({"schedulingGroup": {"podGroupName": "own"}}, {"labels": {"pod-group.scheduling.sigs.k8s.io": "other"}}, "own"),
        ({"workloadRef": {"name": "train", "podGroup": "workers"}}, {}, "train/workers"),
        ({}, {"annotations": {"scheduling.k8s.io/group-name": "volcano"}}, "volcano"),
        ({}, {"labels": {"kueue.x-k8s.io/pod-group-name": "kueue"}}, "kueue"),
        ({}, {}, ""),
    ],
)
def test_a_group_is_read_wherever_schedulers_write_it(spec: Any, metadata: Any, group: str) -> None:
    assert pod_row(pod(spec, {}, **metadata))["scheduling_group"] == group


def test_the_controller_is_the_owner_and_its_hashes_are_no_labels() -> None:
    owners = [{"kind": "Node", "name": "n"}, {"kind": "Job", "name": "j", "controller": True}]
    row = pod_row(pod({}, {}, ownerReferences=owners, labels={"app": "a", "pod-template-hash": "5d9c"}))
    assert (row["owner_kind"], row["owner_name"], row["labels"]) == ("Job", "j", {"app": "a"})


def test_a_gated_pod_says_so() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "blocked"}
    row = pod_row(pod({}, {"phase": "Pending", "conditions": [gated]}))
    assert (row["unschedulable_reason"], row["unschedulable_at"], row["scheduled_at"]) == ("SchedulingGated", None, None)
