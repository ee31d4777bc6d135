"""Conversion of all systems' quota objects to common ``quota_term`` rows, and of Kueue's Workloads to ``workload``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from gpureport.collect.state.fields import Object, Row, condition, instant, listed, mapping, noted, objects, text, texts, whole
from gpureport.collect.state.kinds import Kind
from gpureport.collect.state.pods import effective_requests, placement
from gpureport.schedulers.kai import DEFAULT_PRIORITY, gpus
from gpureport.values.quantity import amount, amounts

_KOORDINATOR = "quota.scheduling.koordinator.sh/"


def quota_term_rows(kind: Kind, found: Object) -> Iterator[Row]:
    """Yield a row per resource (and flavor) of a quota object; none for kinds that only refer to quotas."""
    reader = _READERS.get(kind.name)
    if reader is None:
        return
    metadata = mapping(found.get("metadata"))
    identity = {
        "system": kind.quota_system,
        "kind": kind.name,
        "namespace": text(metadata.get("namespace")),
        "name": text(metadata.get("name")),
        "uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "changed_at": _changed_at(metadata),
        "may_lend": True,
    }
    for row in reader(identity, found):
        yield {**identity, **row}


def _changed_at(metadata: Object) -> int | None:
    """Return the time of the latest write, except writes of the status alone; Koordinator's scheduler writes its own figures."""
    written = [
        instant(each.get("time"))
        for each in objects(metadata.get("managedFields"))
        if text(each.get("subresource")) != "status" and text(each.get("manager")) != "koord-scheduler"
    ]
    return max((each for each in written if each is not None), default=None)


def _own_namespace(identity: Row, found: Object) -> Iterator[Row]:
    yield from _elastic(identity, found, [identity["namespace"]])


def _composite(identity: Row, found: Object) -> Iterator[Row]:
    """Yield one row per resource. A namespace that is listed twice counts once."""
    names = [name for name in listed(mapping(found.get("spec")).get("namespaces")) if isinstance(name, str)]
    yield from _elastic(identity, found, list(dict.fromkeys(names)))


def _elastic(identity: Row, found: Object, namespaces: list[str]) -> Iterator[Row]:
    common = {"quota": f"{identity['namespace']}/{identity['name']}", "namespaces": namespaces}
    yield from _rows(common, guaranteed=_spec(found, "min"), cap=_spec(found, "max"), delivered=_status(found, "used"))


def _koordinator(identity: Row, found: Object) -> Iterator[Row]:
    """Yield Koordinator's terms. Its own figures are in annotations; without any weight, max is the weight."""
    metadata = mapping(found.get("metadata"))
    labels, annotations = texts(metadata.get("labels")), texts(metadata.get("annotations"))
    least, most = _spec(found, "min"), _spec(found, "max")
    kept, shared = _annotated(annotations, "guaranteed"), _annotated(annotations, "shared-weight")
    requested = _annotated(annotations, "request")
    if least and f"{_KOORDINATOR}child-request" in annotations:  # request is at least min where the quota does not lend
        requested = {**dict.fromkeys(requested, 0.0), **_annotated(annotations, "child-request")}
    common = {
        "quota": identity["name"],
        "parent": labels.get(f"{_KOORDINATOR}parent", ""),
        "is_parent": labels.get(f"{_KOORDINATOR}is-parent") == "true",
        "tree": labels.get(f"{_KOORDINATOR}tree-id", ""),
        "may_lend": labels.get(f"{_KOORDINATOR}allow-lent-resource") != "false",
        "namespaces": [name for name in listed(noted(annotations.get(f"{_KOORDINATOR}namespaces"))) if isinstance(name, str)],
    }
    yield from _rows(
        common,
        guaranteed={**kept, **{name: own if own is None else max(own, kept.get(name) or own) for name, own in least.items()}},
        cap=most,
        weight={**dict.fromkeys(most, 0.0), **shared} if any(shared.values()) else most,
        delivered=_status(found, "used"),
        demanded=requested,
        fair_share=_annotated(annotations, "runtime"),
    )


def _annotated(annotations: Mapping[str, str], name: str) -> dict[str, float | None]:
    return amounts(noted(annotations.get(f"{_KOORDINATOR}{name}")))


def _cluster_queue(identity: Row, found: Object) -> Iterator[Row]:
    """Yield Kueue's terms. ``cohort`` is v1beta1's name for ``cohortName``."""
    spec, status = mapping(found.get("spec")), mapping(found.get("status"))
    cohort = text(spec.get("cohortName")) or text(spec.get("cohort"))
    common = {"quota": identity["name"], "parent": f"cohort/{cohort}" if cohort else "", "weight": _fair_weight(spec)}
    reserved = {key: amount(each.get("total")) for key, each in _flavors(status.get("flavorsReservation"))}
    for key, each in _nominal(spec):
        row = {**common, **_limits(each), "resource": key[1], "flavor": key[0], "delivered": reserved.get(key)}
        nominal, borrowing = row["guaranteed"], row["borrowing_limit"]
        if not cohort:
            row["cap"] = nominal
        elif nominal is not None and borrowing is not None:
            row["cap"] = nominal + borrowing
        yield row


def _cohort(identity: Row, found: Object) -> Iterator[Row]:
    spec = mapping(found.get("spec"))
    parent = text(spec.get("parentName")) or text(spec.get("parent"))
    common = {
        "quota": f"cohort/{identity['name']}",
        "parent": f"cohort/{parent}" if parent else "",
        "is_parent": True,
        "weight": _fair_weight(spec),
    }
    yield {**common, "resource": "", "flavor": ""}  # its position in the tree, also for flavors without a quota
    for key, each in _nominal(spec):
        yield {**common, **_limits(each), "resource": key[1], "flavor": key[0]}


def _fair_weight(spec: Object) -> float | None:
    written = mapping(spec.get("fairSharing")).get("weight")
    return 1.0 if written is None else amount(written)


def _nominal(spec: Object) -> Iterator[tuple[tuple[str, str], Object]]:
    for group in objects(spec.get("resourceGroups")):
        yield from _flavors(group.get("flavors"))


def _flavors(flavors: Any) -> Iterator[tuple[tuple[str, str], Object]]:
    """Yield the terms of each flavor and resource."""
    for flavor in objects(flavors):
        for each in objects(flavor.get("resources")):
            yield (text(flavor.get("name")), text(each.get("name"))), each


def _limits(terms: Object) -> Row:
    return {
        "guaranteed": amount(terms.get("nominalQuota")),
        "borrowing_limit": amount(terms.get("borrowingLimit")),
        "lending_limit": amount(terms.get("lendingLimit")),
    }


def _volcano_queue(identity: Row, found: Object) -> Iterator[Row]:
    """Yield Volcano's terms. A queue without a guarantee guarantees 0, which is known. Its weight is for every resource."""
    spec = mapping(found.get("spec"))
    common = {
        "quota": identity["name"],
        "parent": text(spec.get("parent")),
        "priority": whole(spec.get("priority")),
        "weight": float(whole(spec.get("weight")) or 1),
    }
    yield {**common, "resource": "", "guaranteed": 0.0}
    for row in _rows(
        common,
        guaranteed=amounts(mapping(spec.get("guarantee")).get("resource")),
        cap=_spec(found, "capability"),
        deserved=_spec(found, "deserved"),
        delivered=_status(found, "allocated"),
    ):
        yield {**row, "guaranteed": row["guaranteed"] or 0.0}


def _kai_queue(identity: Row, found: Object) -> Iterator[Row]:
    """Yield KAI's terms. -1 means no limit; a missing limit allows nothing."""
    spec, status = mapping(found.get("spec")), mapping(found.get("status"))
    priority = whole(spec.get("priority"))
    common = {
        "quota": identity["name"],
        "parent": text(spec.get("parentQueue")),
        "display_name": text(spec.get("displayName")),
        "priority": DEFAULT_PRIORITY if priority is None else priority,
    }
    for name in ("gpu", "cpu", "memory"):
        limits = mapping(mapping(spec.get("resources")).get(name))
        quota, limit = amount(limits.get("quota")) or 0.0, amount(limits.get("limit")) or 0.0
        yield {
            **common,
            "resource": name,
            "guaranteed": inf if quota < 0 else quota,
            "cap": None if limit < 0 else limit,
            "weight": amount(limits.get("overQuotaWeight")) or 0.0,
            "delivered": _kai_amount(status.get("allocated"), name),
            "demanded": _kai_amount(status.get("requested"), name),
        }


def _kai_amount(quantities: Any, name: str) -> float | None:
    """Return an amount in KAI units: cpu in thousandths, memory in 10^6 bytes."""
    found = {key: value for key, value in amounts(quantities).items() if value is not None}
    if name == "gpu":
        return gpus(found)
    return found[name] * {"cpu": 1e3, "memory": 1e-6}[name] if name in found else None


def _resource_quota(identity: Row, found: Object) -> Iterator[Row]:
    """Yield a cap without a guarantee."""
    hard = amounts(mapping(found.get("status")).get("hard")) or _spec(found, "hard")
    common = {"quota": f"{identity['namespace']}/{identity['name']}", "namespaces": [identity["namespace"]]}
    yield from _rows(common, cap=hard, delivered=_status(found, "used"))


def _spec(found: Object, name: str) -> dict[str, float | None]:
    return amounts(mapping(found.get("spec")).get(name))


def _status(found: Object, name: str) -> dict[str, float | None]:
    return amounts(mapping(found.get("status")).get(name))


def _rows(common: Row, **terms: Mapping[str, float | None]) -> Iterator[Row]:
    """Yield a row for each resource in any of the terms: what is common to all, and the value of each term."""
    for resource in sorted({name for values in terms.values() for name in values}):
        yield {**common, "resource": resource, **{term: values.get(resource) for term, values in terms.items()}}


_READERS: dict[str, Callable[[Row, Object], Iterator[Row]]] = {
    "resourcequotas": _resource_quota,
    "elasticquotas.nos.nebuly.com": _own_namespace,
    "compositeelasticquotas.nos.nebuly.com": _composite,
    "elasticquotas.scheduling.x-k8s.io": _own_namespace,
    "elasticquotas.scheduling.sigs.k8s.io": _koordinator,
    "clusterqueues.kueue.x-k8s.io": _cluster_queue,
    "cohorts.kueue.x-k8s.io": _cohort,
    "queues.scheduling.volcano.sh": _volcano_queue,
    "queues.scheduling.run.ai": _kai_queue,
}

_PREEMPTOR = re.compile(r"\(UID: ([^,)\s]+)")


def workload_row(found: Object) -> Row:
    """Return the row of a workload: its queue, requests and result."""
    metadata, spec, status = mapping(found.get("metadata")), mapping(found.get("spec")), mapping(found.get("status"))
    owners = objects(metadata.get("ownerReferences"))
    owner = next((each for each in owners if each.get("controller") is True), owners[0] if owners else {})
    admission = mapping(status.get("admission"))
    needed = _needed_counts(spec, status)
    requests = list(_requests(spec, status, admission, needed))
    pod_counts = {each["pod_set"]: each["pod_count"] for each in requests}
    return {
        "namespace": text(metadata.get("namespace")),
        "workload": text(metadata.get("name")),
        "workload_uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "owner_kind": text(owner.get("kind")),
        "owner_name": text(owner.get("name")),
        "replaces": texts(metadata.get("annotations")).get("kueue.x-k8s.io/workload-slice-replacement-for", ""),
        "local_queue": text(spec.get("queueName")),
        "cluster_queue": text(admission.get("clusterQueue")),
        "priority": whole(spec.get("priority")),
        "priority_class": text(mapping(spec.get("priorityClassRef")).get("name")) or text(spec.get("priorityClassName")),
        "is_active": spec.get("active") is not False,
        **_events(status.get("conditions")),
        "waiting_counts": {name: needed[name] for name, admitted in pod_counts.items() if needed[name] > admitted},
        "requests": requests,
    }


def flavor_labels(flavor: Object) -> list[str]:
    """Return the names of the node labels that select a ResourceFlavor's nodes."""
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


def _needed_counts(spec: Object, status: Object) -> dict[str, int]:
    """Return the number of pods that each pod set still needs."""
    done = {text(each.get("name")): whole(each.get("count")) or 0 for each in objects(status.get("reclaimablePods"))}
    counts = {text(each.get("name")) or "main": whole(each.get("count")) or 0 for each in objects(spec.get("podSets"))}
    return {name: max(0, count - done.get(name, 0)) for name, count in counts.items()}


def _requests(spec: Object, status: Object, admission: Object, needed: Mapping[str, int]) -> Iterator[Row]:
    """Yield requests by pod set and resource: the reserved usage, else Kueue's own count, else the template's pods."""
    assigned = {text(each.get("name")): each for each in objects(admission.get("podSetAssignments"))}
    effective = {text(each.get("name")): mapping(each.get("resources")) for each in objects(status.get("resourceRequests"))}
    for pod_set in objects(spec.get("podSets")):
        name, template = text(pod_set.get("name")) or "main", mapping(mapping(pod_set.get("template")).get("spec"))
        assignment = assigned.get(name, {})
        count = whole(assignment.get("count")) or whole(pod_set.get("count")) or 0
        # Fewer pods may be admitted than needed, and more than still needed.
        left = min(count, needed[name]) / count if count else 0.0
        if usage := mapping(assignment.get("resourceUsage")):
            total = amounts(usage)
        elif usage := effective.get(name, {}):
            total, left = amounts(usage), 1.0
        else:
            total = {key: None if each is None else each * count for key, each in effective_requests(template).items()}
        flavors = mapping(assignment.get("flavors"))
        for resource, requested in total.items():
            yield {
                "pod_set": name,
                "pod_count": count,
                "resource": resource,
                "flavor": text(flavors.get(resource)),
                "amount": None if requested is None else requested * left,
                "placement": placement(template),
            }
