"""Conversion of nodes and namespaces to rows of ``node`` and ``namespace``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpureport.collect.state.fields import Object, Row, condition, instant, mapping, selected, taints, text, texts
from gpureport.values.quantity import amount

_LABELS = (
    "nvidia.com/",
    "amd.com/",
    "beta.amd.com/",
    "gpu.intel.com/",
    "intel.feature.node.kubernetes.io/",
    "habana.ai/",
    "feature.node.kubernetes.io/pci-",
    "nos.nebuly.com/",
    "node.koordinator.sh/",
    "kai.scheduler/",
    "runai/",
    "run.ai/",
    "hami.io/",
    "topology.kubernetes.io/",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "node-role.kubernetes.io/",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-gpu",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
    "karpenter.k8s.aws/instance-gpu-name",
)
_ANNOTATIONS = ("nos.nebuly.com/", "hami.io/", "node.koordinator.sh/")


def node_row(node: Object) -> Row:
    """Return the row of a node: all labels, resources with a domain in their names, and allocatable CPU and memory."""
    metadata, status = mapping(node.get("metadata")), mapping(node.get("status"))
    spec = mapping(node.get("spec"))
    ready = condition(status.get("conditions"), "Ready")
    return {
        "node_name": text(metadata.get("name")),
        "node_uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "is_ready": ready.get("status") == "True" if ready else None,
        "ready_changed_at": instant(ready.get("lastTransitionTime")),
        "is_unschedulable": spec.get("unschedulable") is True,
        "taints": taints(spec.get("taints")),
        "capacity": _amounts(status.get("capacity")),
        "allocatable": _amounts(status.get("allocatable"), "cpu", "memory"),
        "labels": texts(metadata.get("labels")),
        "annotations": selected(metadata.get("annotations"), _ANNOTATIONS),
    }


def kept_labels(labels: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
    """Return the labels that describe a node, and those in ``named``."""
    return {name: value for name, value in labels.items() if name in named or name.startswith(_LABELS)}


def _amounts(resources: Any, *named: str) -> dict[str, float | None]:
    return {name: amount(written) for name, written in mapping(resources).items() if "/" in name or name in named}


def namespace_row(namespace: Object) -> Row:
    """Return the row of a namespace with all labels: one of them may name the team."""
    metadata = mapping(namespace.get("metadata"))
    return {
        "namespace": text(metadata.get("name")),
        "namespace_uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "labels": texts(metadata.get("labels")),
    }
