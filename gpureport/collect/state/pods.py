"""Conversion of pods to rows of ``pod`` and ``pod_container``. A pod's total request follows the scheduler's rules for init
containers, sidecars, pod-level requests and overhead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpureport.collect.state.fields import Object, Row, condition, instant, listed, mapping, objects, selected, text, texts, whole
from gpureport.values.quantity import amounts, base_units, nano_units

Requests = dict[str, int]
"""Billionths of the base unit by resource."""


def is_sidecar(init_container: Object) -> bool:
    """Whether an init container keeps running beside the pod's containers."""
    return init_container.get("restartPolicy") == "Always"


def effective_requests(spec: Object) -> dict[str, float | None]:
    """Return the pod's request in base units.

    All containers and sidecars run together. An init container runs alone, with the sidecars started before it. The larger of the
    two is used; a pod-level request replaces it; overhead is added.
    """
    running: Requests = {}
    for container in objects(spec.get("containers")):
        _add(running, requested(container))
    if spec.keys() & _RARE_FIELDS:
        _add_init_and_overhead(spec, running)
    return {name: base_units(nano) for name, nano in running.items()}


_RARE_FIELDS = frozenset({"initContainers", "resources", "overhead"})


def _add_init_and_overhead(spec: Object, running: Requests) -> None:
    """Add the rare parts of a pod's request to the sum of its containers."""
    sidecars: Requests = {}
    largest_step: Requests = {}
    for container in objects(spec.get("initContainers")):
        step = requested(container)
        if is_sidecar(container):
            _add(running, step)
            _add(sidecars, step)
            step = sidecars
        else:
            _add(step, sidecars)
        _raise(largest_step, step)
    _raise(running, largest_step)
    running |= requested(spec)
    _add(running, _nano(spec.get("overhead")))


def requested(container: Object) -> Requests:
    """Return a container's (or the pod's own) requests. A limit without a request is one."""
    resources = mapping(container.get("resources"))
    if not resources.get("limits"):
        return _nano(resources.get("requests"))
    return _nano(resources["limits"]) | _nano(resources.get("requests"))


def _nano(quantities: Any) -> Requests:
    found = ((name, nano_units(written)) for name, written in mapping(quantities).items())
    return {name: nano for name, nano in found if nano is not None}


def _add(total: Requests, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise(total: Requests, other: Mapping[str, int]) -> None:
    for name, nano in other.items():
        total[name] = max(total.get(name, 0), nano)


Expression = dict[str, Any]


def placement(spec: Object) -> str:
    """Return alternatives as JSON: lists of expressions on node labels that must all be true; '' where any node is allowed."""
    chosen = [_expression(name, "In", [value]) for name, value in sorted(texts(spec.get("nodeSelector")).items())]
    required = mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = objects(mapping(required).get("nodeSelectorTerms"))
    alternatives = [[*chosen, *map(_read, objects(term.get("matchExpressions")))] for term in terms or [{}]]
    return json.dumps(alternatives, separators=(",", ":")) if any(alternatives) else ""


def _read(found: Object) -> Expression:
    values = [each for each in listed(found.get("values")) if isinstance(each, str)]
    return _expression(text(found.get("key")), text(found.get("operator")), values)


def _expression(key: str, operator: str, values: list[str]) -> Expression:
    return {"key": key, "operator": operator, "values": values}


_FINISHED = ("Succeeded", "Failed")
_HASHES = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
    }
)
_ANNOTATIONS = (
    "scheduling.koordinator.sh/",
    "quota.scheduling.koordinator.sh/",
    "scheduling.k8s.io/",
    "scheduling.volcano.sh/",
    "volcano.sh/",
    "kueue.x-k8s.io/",
    "kai.scheduler/",
    "runai",
    "gpu-fraction",
    "gpu-memory",
    "pod-group-name",
    "nvidia.com/",
    "hami.io/",
    "nos.nebuly.com/",
)
_GROUPS = frozenset(
    # Labels of other schedulers for a pod's group: Volcano, coscheduling, Kueue, KAI.
    {
        "scheduling.k8s.io/group-name",
        "scheduling.x-k8s.io/pod-group",
        "pod-group.scheduling.sigs.k8s.io",
        "kueue.x-k8s.io/pod-group-name",
        "pod-group-name",
    }
)


def pod_identity(pod: Object) -> Row:
    """Return the columns that identify a pod."""
    metadata = mapping(pod.get("metadata"))
    return {"namespace": text(metadata.get("namespace")), "pod": text(metadata.get("name")), "pod_uid": text(metadata.get("uid"))}


def pod_row(pod: Object) -> Row:
    """Return the row of a pod."""
    metadata, spec, status = mapping(pod.get("metadata")), mapping(pod.get("spec")), mapping(pod.get("status"))
    labels, annotations = texts(metadata.get("labels")), mapping(metadata.get("annotations"))
    disrupted = condition(status.get("conditions"), "DisruptionTarget")
    return {
        **pod_identity(pod),
        "node_name": text(spec.get("nodeName")),
        "phase": text(status.get("phase")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "deletion_at": instant(metadata.get("deletionTimestamp")),
        **_owner(metadata),
        **_times(status),
        **_scheduling(status),
        "placement": placement(spec) if "nodeSelector" in spec or "affinity" in spec else "",
        "priority": whole(spec.get("priority")),
        "priority_class": text(spec.get("priorityClassName")),
        "scheduler": text(spec.get("schedulerName")),
        "scheduling_group": _group(spec, labels, annotations),
        "status_reason": text(status.get("reason") or (disrupted.get("status") == "True" and disrupted.get("reason"))),
        "effective_requests": effective_requests(spec),
        "quota_scopes": list(_quota_scopes(spec, text(status.get("qosClass")))),
        "resource_claims": claim_names(pod),
        "extended_resource_claim": text(mapping(status.get("extendedResourceClaimStatus")).get("resourceClaimName")),
        "labels": labels if labels.keys().isdisjoint(_HASHES) else {each: labels[each] for each in labels if each not in _HASHES},
        "annotations": selected(annotations, _ANNOTATIONS) if annotations else {},
    }


def _quota_scopes(spec: Object, qos_class: str) -> Iterator[str]:
    """Yield quota scopes by Kubernetes' rules. Only CPU and memory decide the QoS class where the server does not report it."""
    deadline = whole(spec.get("activeDeadlineSeconds"))
    yield "NotTerminating" if deadline is None or deadline < 0 else "Terminating"
    requesting = [spec] if spec.get("resources") else [*objects(spec.get("containers")), *objects(spec.get("initContainers"))]
    is_requested = any(requested(each).get(name) for each in requesting for name in ("cpu", "memory"))
    yield "NotBestEffort" if (qos_class or is_requested) and qos_class != "BestEffort" else "BestEffort"
    if any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in _pod_affinity(spec)):
        yield "CrossNamespacePodAffinity"


def _pod_affinity(spec: Object) -> Iterator[Object]:
    for name in ("podAffinity", "podAntiAffinity"):
        found = mapping(mapping(spec.get("affinity")).get(name))
        yield from objects(found.get("requiredDuringSchedulingIgnoredDuringExecution"))
        for each in objects(found.get("preferredDuringSchedulingIgnoredDuringExecution")):
            yield mapping(each.get("podAffinityTerm"))


def _owner(metadata: Object) -> Row:
    owners = objects(metadata.get("ownerReferences"))
    owner = next((each for each in owners if each.get("controller") is True), {})
    return {"owner_kind": text(owner.get("kind")), "owner_name": text(owner.get("name"))}


def _times(status: Object) -> Row:
    begun, ended = [], []
    for each in objects(status.get("containerStatuses")):
        starts = [found for run in _runs(each) if (found := instant(run.get("startedAt"))) is not None]
        if len(starts) > (whole(each.get("restartCount")) or 0):  # else there were earlier runs
            begun += starts
        ended += [found for run in _runs(each) if (found := instant(run.get("finishedAt"))) is not None]
    return {
        "started_at": instant(status.get("startTime")),
        "running_at": min(begun, default=None),
        "finished_at": max(ended, default=None) if status.get("phase") in _FINISHED else None,
    }


def _runs(container_status: Object) -> Iterator[Object]:
    """Yield the current run of a container, and the previous one after a restart."""
    for state in (container_status.get("state"), container_status.get("lastState")):
        if state:
            yield from (run for run in mapping(state).values() if isinstance(run, dict))


def _scheduling(status: Object) -> Row:
    scheduled = condition(status.get("conditions"), "PodScheduled")
    changed = instant(scheduled.get("lastTransitionTime"))
    is_refused = scheduled.get("status") == "False"
    return {
        "scheduled_at": changed if scheduled.get("status") == "True" else None,
        "unschedulable_at": changed if is_refused else None,
        "unschedulable_reason": text(scheduled.get("reason")) if is_refused else "",
        "unschedulable_message": text(scheduled.get("message")) if is_refused else "",
    }


def _group(spec: Object, labels: dict[str, str], annotations: Object) -> str:
    """Return the scheduling group: Kubernetes' own field (1.37, or 1.35's workload reference), else another scheduler's label."""
    if group := text(mapping(spec.get("schedulingGroup")).get("podGroupName")):
        return group
    if workload := mapping(spec.get("workloadRef")):
        return "/".join(filter(None, (text(workload.get("name")), text(workload.get("podGroup")))))
    for found in (labels, annotations):
        if not _GROUPS.isdisjoint(found):
            return min((name, text(found[name])) for name in _GROUPS & found.keys())[1]
    return ""


def claim_names(pod: Object) -> dict[str, str]:
    """Return ResourceClaims by their names in the pod: '' where one is not created yet; no entry where none is needed."""
    names = {text(each.get("name")): text(each.get("resourceClaimName")) for each in _claims(pod, "spec", "resourceClaims")}
    for each in _claims(pod, "status", "resourceClaimStatuses"):
        if made := text(each.get("resourceClaimName")):
            names[text(each.get("name"))] = made
        else:
            names.pop(text(each.get("name")), None)
    return names


def _claims(pod: Object, part: str, field: str) -> list[Object]:
    return objects(mapping(pod.get(part)).get(field))


def container_rows(pod: Object, names: Mapping[str, str]) -> Iterator[Row]:
    """Yield every container of a pod, init containers first. ``names`` are the pod's ``resource_claims``."""
    spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
    identity = pod_identity(pod)
    by_extended_resource = mapping(status.get("extendedResourceClaimStatus"))
    for kind, field, statuses in _CONTAINERS:
        if not spec.get(field):
            continue
        by_name = {text(each.get("name")): each for each in objects(status.get(statuses))}
        for container in objects(spec[field]):
            name = text(container.get("name"))
            resources = mapping(container.get("resources"))
            yield {
                **identity,
                "container": name,
                "container_kind": "sidecar" if kind == "init" and is_sidecar(container) else kind,
                "requests": {resource: base_units(nano) for resource, nano in requested(container).items()},
                "limits": amounts(resources.get("limits")),
                "claims": [*_used(resources, names), *_extended(name, by_extended_resource)],
                **_status_row(by_name.get(name) or {}),
            }


_CONTAINERS = (("init", "initContainers", "initContainerStatuses"), ("app", "containers", "containerStatuses"))


def _used(resources: Object, names: Mapping[str, str]) -> Iterator[Row]:
    for each in objects(resources.get("claims")):
        name = text(each.get("name"))
        yield {"claim": names.get(name, ""), "pod_claim": name, "request": text(each.get("request")), "resource": ""}


def _extended(container: str, status: Object) -> Iterator[Row]:
    """Yield the claim that the scheduler created for the container's extended resources."""
    for each in objects(status.get("requestMappings")):
        if each.get("containerName") == container:
            claim, request = text(status.get("resourceClaimName")), text(each.get("requestName"))
            yield {"claim": claim, "pod_claim": "", "request": request, "resource": text(each.get("resourceName"))}


def _status_row(status: Object) -> Row:
    """Return the container status from the kubelet."""
    state = mapping(status.get("state"))
    name = next((each for each in ("running", "terminated", "waiting") if isinstance(state.get(each), dict)), "")
    run = mapping(state.get(name))
    before = mapping(mapping(status.get("lastState")).get("terminated"))
    if name == "waiting":  # between two runs, the previous one is the last
        run = before | {"reason": run.get("reason")}
    return {
        "allocated_devices": list(_allocated(objects(status.get("allocatedResourcesStatus")))),
        "state": name,
        "reason": text(run.get("reason")),
        "started_at": instant(run.get("startedAt")),
        "finished_at": instant(run.get("finishedAt") or before.get("finishedAt")),
        "restart_count": whole(status.get("restartCount")),
        "exit_code": whole(run.get("exitCode")),
    }


def _allocated(statuses: Iterable[Object]) -> Iterator[Row]:
    for each in statuses:
        for device in objects(each.get("resources")):
            yield {
                "resource": text(each.get("name")),
                "device_id": text(device.get("resourceID")),
                "health": text(device.get("health")),
            }
