"""What a ResourceQuota is charged for resource claims, Volcano's groups before their pods, and resources that are no GPUs."""

from __future__ import annotations

import pytest

from gpureport.compute.quotas.shares import gpu_units, native_requests
from quota.kueue_scene import FROM, GPU, amounts, at, flavor, named, node, pod, queue, rows, scene, workload


@pytest.mark.parametrize(
    ("resource", "gpus"),
    [
        ("koordinator.sh/gpu.shared", None),
        ("koordinator.sh/gpu-core", 0.01),
        ("koordinator.sh/gpu", 0.01),
        ("nvidia.com/gpu.shared", 1),
    ],
)
def test_devices_that_koordinators_percent_are_of_are_no_gpus_of_their_own(resource, gpus):
    """Its webhook writes gpu.shared: 1 beside 50 % of core and memory: half a GPU, not one."""
    assert gpu_units(resource, 32) == gpus


@pytest.mark.parametrize(
    ("resource", "gpus"),
    [
        ("requests.google.com/tpu", 1),
        ("huawei.com/Ascend910", 1),
        ("huawei.com/Ascend910-2c", None),
        ("volcano.sh/vgpu-number", 1),
        ("amd.com/spx_nps1", 1),
        ("amd.com/cpx_nps4", 1 / 8),
    ],
)
def test_quotas_count_the_accelerators_that_allocation_counts(resource, gpus):
    """A board of MI300X in CPX mode has eight parts."""
    assert gpu_units(resource, 32) == gpus


@pytest.mark.parametrize(
    ("requests", "gpus"),
    [
        ({"nvidia.com/mig-1g.10gb": 7.0}, 7),
        ({"nvidia.com/mig-3g.40gb": 2.0, "nvidia.com/gpu": 1.0}, 7),
        ({"nvidia.com/mig-1c.2g.10gb": 1.0, "nvidia.com/mig-1g.10gb.me": 1.0, "nvidia.com/gpu.shared": 1.0}, 0),
        ({"amd.com/gpu": 2.0, "cpu": 1.0}, 2),
        ({"gpu-fraction": 0.5, "koordinator.sh/gpu": 50.0}, 0.5),
    ],
)
def test_kai_counts_a_mig_instance_as_one_gpu_for_each_slice(requests, gpus):
    """As its GetGpusQuota: names that its pattern does not match as a whole count as none, and so do replicas."""
    assert native_requests("kai", requests, 32)["gpu"] == gpus


def claim(name, namespace, *requests, allocated=True):
    status = {"allocation": {"devices": {"results": []}, "allocationTimestamp": "2026-11-20T11:00:00Z"}} if allocated else {}
    return {"metadata": named(name, namespace), "spec": {"devices": {"requests": list(requests)}}, "status": status}


def exactly(count, device_class="gpu.nvidia.com"):
    return {"name": "r", "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}


def first_of(*counts):
    alternatives = [{"name": f"s{n}", "deviceClassName": "gpu.nvidia.com", "count": n} for n in counts]
    return {"name": "r", "firstAvailable": alternatives}


def charged(_):
    return {
        "resourcequotas": [
            {
                "metadata": named("gpus", ns),
                "spec": {"hard": {f"requests.{GPU}": "9"}},
                "status": {"hard": {f"requests.{GPU}": "9"}},
            }
            for ns in ("blue", "red")
        ],
        "deviceclasses": [{"metadata": named("gpu.nvidia.com"), "spec": {"extendedResourceName": GPU}}],
        "resourceclaims": [
            *(claim(f"c{n}", "blue", exactly(1), allocated=n > 0) for n in range(3)),
            claim("r1", "red", exactly(2)),
            claim("r2", "red", first_of(1, 2)),
            claim("other", "red", exactly(5, "net.example.com")),
        ],
        "nodes": [node("n0")],
        "pods": [pod("p", "red", 2, 0, 0, "n0")],
    }


@scene(charged)
def test_a_resource_quota_is_charged_for_claims_of_its_extended_resource(found):
    """blue: 1 + 1 + 1, of which one claim waits. red: a pod's 2, a claim's 2, and 1 + 2, for a larger alternative is added."""
    held = "select quota, demanded_native_hours, delivered_native_hours from report.quota_fair_share order by all"
    assert rows(found, held) == [("blue/gpus", 3, 2), ("red/gpus", 7, 7)]


def without_pods(_):
    group = {"queue": "v", "minResources": {GPU: "6", "cpu": "8"}}
    return {
        "queues": [{"metadata": named("v"), "spec": {"weight": 1, "capability": {GPU: "8"}}}],
        "podgroups": [{"metadata": named("g", "ns"), "spec": group, "status": {"phase": "Pending"}}],
        "nodes": [node("n0")],
        "pods": [],
    }


@scene(without_pods)
def test_a_group_of_volcano_asks_before_it_has_pods(found):
    assert amounts(found, "demanded", "delivered") == {("v", ""): (6, 0)}


DEVICES = ("aws.amazon.com/neuron", "cambricon.com/mlu", "nvidia.com/gpumem", "whole-gpus")


def of_devices(_):
    return {
        "clusterqueues": [queue("q", [{"f": {**dict.fromkeys(DEVICES, 4), "cpu": 8}}])],
        "resourceflavors": [flavor("f")],
        "localqueues": [],
        "nodes": [node("n0")],
        "pods": [],
        "workloads": [workload("w", "q", 0, FROM, FROM, usage={"whole-gpus": "3"}, flavors={"whole-gpus": "f"})],
    }


@scene(of_devices)
def test_every_device_resource_of_a_queue_has_its_row(found):
    columns = (
        "resource, guaranteed_native_hours, delivered_native_hours, delivered_gpu_hours, unknown_reasons['delivered_gpu_hours']"
    )
    assert rows(found, f"select {columns} from report.quota_fair_share order by all") == [
        (name, 4, 3 if name == "whole-gpus" else 0, None, "no_gpu_equivalent") for name in DEVICES
    ]


def refused(minute):
    hard = {f"requests.{GPU}": "4"}

    def event(kind, name, resource, amount, last):
        words = f"exceeded quota: gpus, requested: {resource}={amount}, used: {resource}=3, limited: {resource}=4"
        return {
            "metadata": named(f"{name}.{last}", "blue", FROM + 5),
            "involvedObject": {"kind": kind, "name": name},
            "reason": "FailedCreate",
            "message": f'Error creating: pods "{name}-x" is forbidden: {words}',
            "lastTimestamp": at(FROM + last),
        }

    quota = {
        "metadata": named("gpus", "blue"),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": {f"requests.{GPU}": "3"}},
    }
    failed = {"metadata": named("dead.1", "blue", 5), "message": "Error creating: admission webhook denied the request"}
    return {
        "resourcequotas": [quota],
        "nodes": [node("n0")],
        "pods": [pod("p", "blue", 3, 0, 0, "n0")],
        "events": [
            event("ReplicaSet", "over", f"requests.{GPU}", 2, min(minute - FROM, 35)),
            event("ReplicaSet", "web", "requests.cpu", 2, 35),
            failed,
        ],
    }


@scene(refused, minutes=range(FROM + 15, FROM + 60, 15))
def test_pods_that_a_quota_refused_are_demand_that_no_pod_tells_of(found):
    """over requests 2 while 3 of 4 are used: refused from 12:05 to 12:35, 2 x 0.5 h. Of web's pods none requests a GPU."""
    columns = "quota, resource, owner_kind, owner_name, refused_gpus, refused_gpu_hours, first_at::text, last_at::text"
    assert rows(found, f"select {columns} from report.quota_refusal") == [
        ("blue/gpus", f"requests.{GPU}", "ReplicaSet", "over", 2, 1, "2026-11-20 12:05:00", "2026-11-20 12:35:00")
    ]
    [(used, snapshots, differing)] = rows(
        found, "select compared, snapshot_count, differing_snapshot_count from report.api_agreement where compared = 'quota use'"
    )
    assert (used, snapshots, differing) == ("quota use", 3, 0)


def changed_the_day_before(minute):
    name, cohort = ("aaa", "zeta") if minute < -300 else ("bbb", "alpha")
    return {
        "elasticquotas": [{"metadata": named(name, "team"), "spec": {"min": {GPU: "8"}}}],
        "clusterqueues": [queue("q", [{"f": {GPU: 8}}], cohort)],
        "cohorts": [queue(each, [{"f": {GPU: 1}}], "") for each in ("alpha", "zeta")],
        "resourceflavors": [flavor("f")],
        "workloads": [workload("w", "q", 3, -700, -700, flavors={GPU: "f"})],
        "nodes": [node("n0")],
        "pods": [pod("p", "team", 4, -700, -700, "n0")],
    }


@scene(changed_the_day_before, minutes=[-600, -300, *range(FROM, FROM + 60, 15)])
def test_a_quota_of_the_day_before_governs_nothing(found):
    """bbb took aaa's place on the day before, and q went from zeta to alpha: aaa and zeta have nothing of what p and w hold."""
    held = "select quota, demanded_native_hours, delivered_native_hours from report.quota_fair_share order by all"
    assert rows(found, held) == [("cohort/alpha", 3, 3), ("cohort/zeta", 0, 0), ("q", 3, 3), ("team/bbb", 4, 4)]


SMALL, MEMORY = "nvidia.com/mig-1g.10gb", "nos.nebuly.com/gpu-memory"


def of_both_kinds(_):
    """n0 has no free GPU and 7 free MIG instances of 10 GB."""
    lists = {"elasticquotas": [{"metadata": named("q", ns), "spec": {"min": {MEMORY: "100"}}} for ns in ("whole", "small")]}
    n0 = node("n0", 1)
    n0["status"]["allocatable"] |= {SMALL: "7"}
    waiting = [pod("w", "whole", 1, FROM), *(pod(f"s{n}", "small", 1, FROM, resource=SMALL) for n in range(5))]
    return {**lists, "nodes": [n0], "pods": [pod("p", "none", 1, 0, 0, "n0"), *waiting]}


@scene(of_both_kinds)
def test_nos_free_mig_instances_cover_requests_for_instances_alone(found):
    """whole lacks 32 GB and small 5 x 10, for which 70 GB of instances are free."""
    assert amounts(found, "unmet", "violated", resource=MEMORY) == {("whole/q", ""): (32, 0), ("small/q", ""): (50, 50)}


def labelled(label, quota, *more, **named):
    found = pod(*more, **named)
    found["metadata"]["labels"] = {label: quota}
    return found


def instances_of_kai(_):
    """a has 2 of 7 instances by its quota and holds all; b has 5 and waits for one."""
    queues = {"a": 2, "b": 5}
    n0 = node("n0", 0)
    n0["status"]["allocatable"] |= {SMALL: "7"}
    terms = {name: {"gpu": {"quota": gpus, "overQuotaWeight": 1, "limit": -1}} for name, gpus in queues.items()}
    held = [labelled("kai.scheduler/queue", "a", f"p{n}", "ns", 1, 0, 0, "n0", resource=SMALL) for n in range(7)]
    waits = labelled("kai.scheduler/queue", "b", "w", "ns", 1, FROM, resource=SMALL)
    return {
        "kai-queues": [{"metadata": named(name), "spec": {"resources": each}} for name, each in terms.items()],
        "nodes": [n0],
        "pods": [*held, waits],
    }


@scene(instances_of_kai)
def test_instances_of_kais_queues_are_gpus_by_their_slices(found):
    """Of 7, a gets 2 and b its request of 1; the other 4 are a's too: 6, and one beyond. b could have what a borrows."""
    figures = ("delivered", "borrowed", "fair_share", "over_entitlement", "unmet", "violated")
    assert amounts(found, *figures, resource="gpu") == {("a", ""): (7, 5, 6, 1, 0, 0), ("b", ""): (0, 0, 1, 0, 1, 1)}


def below_koordinators_root(_):
    """The root's object has what its scheduler writes, and no terms. a holds 6 of 8 GPUs, and b waits for 6."""
    own = "quota.scheduling.koordinator.sh/"
    written = {f"{own}request": f'{{"{GPU}": "12"}}', f"{own}runtime": f'{{"{GPU}": "8"}}', f"{own}child-request": "null"}
    labels = {f"{own}is-parent": "true", f"{own}allow-lent-resource": "false"}
    root = {"metadata": named("koordinator-root-quota", "koordinator-system", annotations=written, labels=labels)}
    below = {f"{own}parent": "koordinator-root-quota"}
    spec = {"min": {GPU: "2"}, "max": {GPU: "8"}}
    return {
        "koordinator-quotas": [
            root | {"spec": {}, "status": {"used": {GPU: "6"}}},
            *({"metadata": named(name, "ns", labels=below), "spec": spec} for name in "ab"),
        ],
        "nodes": [node("n0")],
        "pods": [labelled(f"{own}name", "a", "p", "ns", 6, 0, 0, "n0"), labelled(f"{own}name", "b", "w", "ns", 6, 0)],
    }


@scene(below_koordinators_root)
def test_quotas_below_koordinators_root_share_the_capacity(found):
    """2 of the 8 each by min, and the other 4 in halves by max."""
    assert amounts(found, "fair_share", "delivered", "borrowed", "unmet") == {("a", ""): (4, 6, 4, 0), ("b", ""): (4, 0, 0, 2)}
