"""Kueue's Workloads → rows of ``workload``, for v1beta2 and v1beta1 alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpureport.collect.state.fields import Object, Row, condition, instant, mapping, objects, text, texts, whole
from gpureport.collect.state.pods import placement
from gpureport.collect.state.requests import effective_requests
from gpureport.values.quantity import amounts

_PREEMPTOR = re.compile(r"\(UID: ([^,)\s]+)")


def workload_row(found: Object) -> Row:
    """A workload: where it waits, what it requests, and what became of it."""
    metadata, spec, status = mapping(found.get("metadata")), mapping(found.get("spec")), mapping(found.get("status"))
    owners = objects(metadata.get("ownerReferences"))
    owner = next((each for each in owners if each.get("controller") is True), owners[0] if owners else {})
    admission = mapping(status.get("admission"))
    return {
        "namespace": text(metadata.get("namespace")),
        "workload": text(metadata.get("name")),
        "workload_uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "owner_kind": text(owner.get("kind")),
        "owner_name": text(owner.get("name")),
        "local_queue": text(spec.get("queueName")),
        "cluster_queue": text(admission.get("clusterQueue")),
        "priority": whole(spec.get("priority")),
        "priority_class": text(mapping(spec.get("priorityClassRef")).get("name")) or text(spec.get("priorityClassName")),
        "is_active": spec.get("active") is not False,
        **_events(status.get("conditions")),
        "requests": list(_requests(spec, status, admission)),
    }


def flavor_labels(flavor: Object) -> list[str]:
    """Names of the node labels by which a ResourceFlavor knows its nodes."""
    return list(texts(mapping(flavor.get("spec")).get("nodeLabels")))


def _events(conditions: Any) -> Row:
    reserved, evicted, preempted = (condition(conditions, kind) for kind in ("QuotaReserved", "Evicted", "Preempted"))
    finished = condition(conditions, "Finished")
    preemptor = _PREEMPTOR.search(f"{text(preempted.get('message'))} {text(evicted.get('message'))}")
    is_preempted = _is_true(evicted) and evicted.get("reason") == "Preempted"
    return {
        "reserved_at": _since(reserved),
        "released_at": instant(reserved.get("lastTransitionTime")) if reserved.get("status") == "False" else None,
        "admitted_at": _since(condition(conditions, "Admitted")),
        "evicted_at": _since(evicted),
        "eviction_reason": text(evicted.get("reason")) if _is_true(evicted) else "",
        "preemption_reason": text(preempted.get("reason")) if is_preempted else "",
        "preemptor_uid": preemptor[1] if is_preempted and preemptor else "",
        "finished_at": _since(finished),
        "finish_reason": text(finished.get("reason")) if _is_true(finished) else "",
        "waiting_message": "" if _is_true(reserved) else text(reserved.get("message")),
    }


def _is_true(found: Object) -> bool:
    return found.get("status") == "True"


def _since(found: Object) -> int | None:
    return instant(found.get("lastTransitionTime")) if _is_true(found) else None


def _requests(spec: Object, status: Object, admission: Object) -> Iterator[Row]:
    """By pod set and resource: what it reserved where it has quota, else what Kueue reckons with, else its template's pods."""
    assigned = {text(each.get("name")): each for each in objects(admission.get("podSetAssignments"))}
    reckoned = {text(each.get("name")): mapping(each.get("resources")) for each in objects(status.get("resourceRequests"))}
    done = {text(each.get("name")): whole(each.get("count")) or 0 for each in objects(status.get("reclaimablePods"))}
    for pod_set in objects(spec.get("podSets")):
        name, template = text(pod_set.get("name")) or "main", mapping(mapping(pod_set.get("template")).get("spec"))
        assignment = assigned.get(name, {})
        count = whole(assignment.get("count")) or whole(pod_set.get("count")) or 0
        left = max(0, count - done.get(name, 0)) / count if count else 0.0
        if usage := mapping(assignment.get("resourceUsage")) or reckoned.get(name):
            total = amounts(usage)
        else:
            total = {key: None if each is None else each * count for key, each in effective_requests(template).items()}
        flavors = mapping(assignment.get("flavors"))
        for resource, amount in total.items():
            yield {
                "pod_set": name,
                "pod_count": count,
                "resource": resource,
                "flavor": text(flavors.get(resource)),
                "amount": None if amount is None else amount * left,
                "placement": placement(template),
            }
