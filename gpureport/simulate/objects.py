"""Kubernetes objects of the simulated cluster, in the format of the API server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gpureport.simulate.exporter import CLAIM_REQUEST, DRA_DRIVER, allocatable, claim_name
from gpureport.simulate.inventory import DRIVER_VERSION, SHARING_REPLICAS, Gpu, Node, stable_uuid
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.workload import Pod
from gpureport.values.window import from_ms, rfc3339

Object = dict[str, Any]
_CLUSTER_AGE = timedelta(days=30)
_IMAGE = "registry.example/gpu:1"
_FIELDS: Object = {f'k:{{"name":"VARIABLE_{number}"}}': {".": {}, "f:name": {}, "f:value": {}} for number in range(30)}
_MANAGED = [
    {"manager": name, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:containers": _FIELDS}}}
    for name in ("kube-controller-manager", "kube-scheduler", "kubelet")
]
"""Managed fields of a pod: about 6 kB that an API server sends and reports do not use."""


def _time(second: int) -> str:
    return rfc3339(from_ms(second * 1000))


def _cluster_created_at(plan: SimulationPlan) -> str:
    """Return the creation time of the cluster, well before the plan."""
    return rfc3339(plan.window.start_at - _CLUSTER_AGE)


def _metadata(name: str, uid: str, created: str, **more: object) -> Object:
    return {"name": name, "uid": uid, "resourceVersion": "1", "creationTimestamp": created, **more}


def namespace(plan: SimulationPlan, name: str) -> Object:
    """Return a namespace with its team label."""
    labels = {"kubernetes.io/metadata.name": name, "team": name}
    metadata = _metadata(name, stable_uuid(plan, "namespace", name), _cluster_created_at(plan), labels=labels)
    return {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def elastic_quota(plan: SimulationPlan, namespace: str, gpus: int) -> Object:
    """Return a quota with guaranteed GPUs for a namespace, in the format of nos and scheduler-plugins."""
    metadata = _metadata("gpus", stable_uuid(plan, "quota", namespace), _cluster_created_at(plan), namespace=namespace)
    return {"metadata": metadata, "spec": {"min": {"nvidia.com/gpu": str(gpus)}}}


def node(plan: SimulationPlan, node: Node) -> Object:
    """Return a node with its allocatable resources; it is always ready."""
    plain = {"cpu": "192", "ephemeral-storage": "3500Gi", "memory": "2048Gi", "pods": "250"}
    resources = plain | {name: str(count) for name, count in allocatable(node).items()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": _cluster_created_at(plan)}
    ready["lastHeartbeatTime"] = rfc3339(plan.window.end_at)
    system = {"kernelVersion": "6.8.0", "osImage": "Ubuntu 24.04", "operatingSystem": "linux", "architecture": "amd64"}
    versions = {"containerRuntimeVersion": "containerd://2.1.0", "kubeletVersion": "v1.36.2"}
    return {
        "metadata": _metadata(node.name, node.uid, _cluster_created_at(plan), labels=_node_labels(node)),
        "spec": {},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready], "nodeInfo": system | versions},
    }


def _node_labels(node: Node) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": node.name,
        "node.kubernetes.io/instance-type": node.instance_type,
        "nvidia.com/gpu.count": str(len(node.gpus)),
        "nvidia.com/gpu.memory": str(node.model.memory_mib),
        "nvidia.com/gpu.product": node.model.name.replace(" ", "-"),
    }
    if any(gpu.instances for gpu in node.gpus):
        labels["nvidia.com/mig.strategy"] = "mixed"
    if any(gpu.is_shared for gpu in node.gpus):
        labels |= {"nvidia.com/gpu.replicas": str(SHARING_REPLICAS), "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    return labels


def pod(plan: SimulationPlan, pod: Pod) -> Object:
    """Return a pod of a job: running, or finished and still listed."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": pod.name, "uid": stable_uuid(plan, "job", pod.name)}
    owner = [job | {"controller": True, "blockOwnerDeletion": True}]
    more = {"labels": {"app": pod.kind.stem}, "ownerReferences": owner, "managedFields": _MANAGED}
    return {
        "metadata": _metadata(pod.name, pod.uid, _time(pod.life.created), namespace=pod.namespace, **more),
        "spec": _pod_spec(pod),
        "status": _pod_status(plan, pod),
    }


def _pod_spec(pod: Pod) -> Object:
    requests: Object = {"cpu": "8", "memory": "64Gi"}
    resources: Object = {"requests": requests}
    spec: Object = {"restartPolicy": "Never", "nodeName": pod.node.name, "schedulerName": "default-scheduler"}
    if pod.node.is_dra:
        resources["claims"] = [{"name": "gpus"}]
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": f"gpus-{len(pod.slot.rows)}"}]
    else:
        count = {pod.slot.resource: str(len(pod.slot.rows))}
        resources |= {"limits": count, "requests": requests | count}
    container = {"name": pod.kind.container, "image": _IMAGE, "resources": resources}
    return spec | {"containers": [container]}


def _pod_status(plan: SimulationPlan, pod: Pod) -> Object:
    end = pod.end(plan)
    started, is_running = _time(pod.life.start), end is None
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": started}
    container = {
        "name": pod.kind.container,
        "state": {"running": {"startedAt": started}} if end is None else _terminated(pod, end),
        "lastState": {},
        "ready": is_running,
        "restartCount": 0,
        "image": _IMAGE,
        "imageID": "",
        "started": is_running,
    }
    phase = "Running" if is_running else "Failed" if pod.life.is_failed else "Succeeded"
    status = {"phase": phase, "conditions": [scheduled], "startTime": started, "containerStatuses": [container]}
    if pod.node.is_dra:
        status["resourceClaimStatuses"] = [{"name": "gpus", "resourceClaimName": claim_name(pod)}]
    return status | {"qosClass": "Burstable"}


def _terminated(pod: Pod, end: int) -> Object:
    how = {"exitCode": 1, "reason": "Error"} if pod.life.is_failed else {"exitCode": 0, "reason": "Completed"}
    return {"terminated": how | {"startedAt": _time(pod.life.start), "finishedAt": _time(end)}}


def claim(plan: SimulationPlan, pod: Pod) -> Object:
    """Return the resource claim of a pod; allocated and reserved while the pod runs."""
    exactly = {"deviceClassName": DRA_DRIVER, "allocationMode": "ExactCount", "count": len(pod.slot.rows)}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    metadata = _metadata(
        claim_name(pod),
        stable_uuid(plan, "claim", pod.uid),
        _time(pod.life.created),
        namespace=pod.namespace,
        generateName=f"{pod.name}-gpus-",
        annotations={"resource.kubernetes.io/pod-claim-name": "gpus"},
        ownerReferences=[owner],
    )
    return {
        "metadata": metadata,
        "spec": {"devices": {"requests": [{"name": CLAIM_REQUEST, "exactly": exactly}]}},
        "status": {} if pod.end(plan) is not None else _allocation(pod),
    }


def _allocation(pod: Pod) -> Object:
    pool = {"request": CLAIM_REQUEST, "driver": DRA_DRIVER, "pool": pod.node.name}
    results = [pool | {"device": f"gpu-{pod.node.rows[row].gpu.index}"} for row in pod.slot.rows]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pod.node.name]}]}]
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": terms},
            "allocationTimestamp": _time(pod.life.start),
        },
        "reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}],
    }


def slice_of(plan: SimulationPlan, node: Node) -> Object:
    """Return the ResourceSlice that the DRA driver publishes for a node's GPUs."""
    metadata = _metadata(f"{node.name}-{DRA_DRIVER}", stable_uuid(plan, "slice", node.index), _cluster_created_at(plan))
    pool = {"name": node.name, "generation": 1, "resourceSliceCount": 1}
    devices = [_device(gpu) for gpu in node.gpus]
    return {"metadata": metadata, "spec": {"driver": DRA_DRIVER, "pool": pool, "nodeName": node.name, "devices": devices}}


def _device(gpu: Gpu) -> Object:
    # A semantic version has no leading zeros: 580.159.04 is published as 580.159.4.
    driver = ".".join(str(int(part)) for part in DRIVER_VERSION.split("."))
    return {
        "name": f"gpu-{gpu.index}",
        "attributes": {
            "architecture": {"string": gpu.model.architecture},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": gpu.model.compute_capability},
            "driverVersion": {"version": driver},
            "productName": {"string": gpu.model.name},
            "type": {"string": "gpu"},
            "uuid": {"string": gpu.uuid},
        },
        "capacity": {"memory": {"value": f"{gpu.model.memory_mib}Mi"}},
    }
