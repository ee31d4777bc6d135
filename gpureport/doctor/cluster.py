"""Nodes and kube-state-metrics: the cluster's state compared with the exporters' reports."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpureport.doctor import remedies
from gpureport.doctor.evidence import Evidence, Finding, KubeState, listed
from gpureport.values.text.formats import counted

LIFETIME_SERIES = ("kube_pod_info", "kube_pod_created", "kube_pod_status_phase")
REQUEST_SERIES = ("kube_pod_container_resource_requests", "kube_node_status_allocatable")
OUTAGE_SERIES = ("kube_node_status_condition", "kube_node_spec_unschedulable")
END_SERIES = "kube_pod_completion_time"
CLAIM_SERIES = "kube_pod_resourceclaim_info"
NODE_LABEL_SERIES = "kube_node_labels"
_LIFE = ("coverage_ratio",)
_NO_LIFE = "no series: lifetimes of pods, and so their time without data, are unknown"
_NO_REQUESTS = "no series: requests of pods and allocatable amounts of nodes are unknown"
_NO_STATE = "no series: whether nodes accept pods, and so free GPUs and the allocation of nodes without an exporter, are unknown"
_NO_ENDS = "no pod has ended, or the series is dropped: labels that outlive a pod cannot be cut at its end"
_EXPORTER_POD = re.compile(r"exporter.*-[a-z0-9]{5}$")


def cluster_findings(evidence: Evidence) -> list[Finding]:
    """Return findings on nodes and on kube-state-metrics."""
    kube = evidence.kube
    if not kube.series:
        text = "no series of kube-state-metrics: lifetimes and requests of pods are unknown"
        absent = Finding("kube_state_metrics", "missing", "Kubernetes state", text, _LIFE)
        if kube.has_snapshots:
            absent = Finding("kube_state_metrics", "note", "Kubernetes state", "snapshots instead of kube-state-metrics series")
        return [*_host_labels(evidence), *node_findings(evidence), absent]
    present = Finding("kube_state_metrics", "ok", "Kubernetes state", ", ".join(sorted(kube.series)))
    if kube.is_relabelled:
        text = "labels of the scrape replaced its own, which are in exported_pod, exported_namespace, exported_node"
        add = (remedies.honor_labels("kube-state-metrics"),)
        present = Finding("target_labels_win", "note", "kube-state-metrics", text, (), add)
    return [*_host_labels(evidence), *node_findings(evidence), present, *_absent_series(kube)]


def node_findings(evidence: Evidence) -> list[Finding]:
    """Return findings on nodes with accelerators, from kube-state-metrics or the API server, and on GPUs without data."""
    return [*_silent_nodes(evidence), *_no_driver(evidence.kube), *_lost_gpus(evidence.lost)]


def _absent_series(kube: KubeState) -> list[Finding]:
    findings = [
        Finding("kube_state_series", "missing" if costs else "note", metric, lost, costs, (remedies.allow_metrics([metric]),))
        for metrics, lost, costs in (
            (LIFETIME_SERIES, _NO_LIFE, _LIFE),
            (REQUEST_SERIES, _NO_REQUESTS, ()),
            (() if kube.has_snapshots else OUTAGE_SERIES, _NO_STATE, ()),
            ((END_SERIES,), _NO_ENDS, ()),
        )
        for metric in metrics
        if metric not in kube.series
    ]
    if NODE_LABEL_SERIES not in kube.series:
        text = "no node labels: hardware without a driver, and how GPUs are shared, are unknown"
        findings.append(Finding("node_labels", "note", NODE_LABEL_SERIES, text, (), (remedies.NODE_LABELS,)))
    if CLAIM_SERIES not in kube.series:
        text = "no pod with a resource claim, or kube-state-metrics before 2.20: no other series shows pods with claims"
        findings.append(Finding("claim_series", "note", CLAIM_SERIES, text))
    return findings


def _host_labels(evidence: Evidence) -> list[Finding]:
    """Find host labels that name no node: inside a pod, the operating system's host name is the pod's name."""
    nodes = evidence.kube.nodes
    hosts = {each.host for each in evidence.carried if each.exporter == remedies.DCGM and each.host}
    odd = sorted(host for host in hosts if host not in nodes and (_EXPORTER_POD.search(host) is not None))
    if not odd:
        return []
    text = f"Hostname is the exporter pod's name ({listed(odd)})"
    if all(each.node for each in evidence.carried if each.host in odd):
        return [Finding("host_label", "note", "Hostname", f"{text}; the scrape's node label is used", (), (remedies.NODE_NAME,))]
    text += ": the node name of devices changes with every restart of the exporter"
    return [Finding("host_label", "missing", "Hostname", text, ("node_name",), (remedies.NODE_NAME,))]


def _silent_nodes(evidence: Evidence) -> list[Finding]:
    """Find nodes that no exporter reports; only if every device's node is known by its Kubernetes name."""
    kube = evidence.kube
    reported = {each.host if each.host in kube.nodes else each.node for each in evidence.carried}
    silent = sorted(set(kube.allocatable) - reported)
    if not silent or not evidence.carried or reported - set(kube.nodes):
        return []
    counts = {node: ", ".join(f"{count} {name}" for name, count in sorted(kube.allocatable[node].items())) for node in silent}
    what = listed([f"{node} ({counted})" for node, counted in counts.items()])
    text = f"accelerators are allocatable, but no exporter reports them: {what}; check its pods there (taints, node selector)"
    return [Finding("node_without_exporter", "partial", "nodes", text, ("device.*",))]


def _no_driver(kube: KubeState) -> list[Finding]:
    bare = sorted(node for node in kube.hardware if node not in kube.allocatable)
    if not bare:
        return []
    what = listed([f"{node} ({kube.hardware[node]})" for node in bare])
    text = f"accelerators exist, but none is allocatable: {what}; check driver and device plugin"
    return [Finding("hardware_without_driver", "partial", "nodes", text, ("device.*",))]


def _lost_gpus(lost: Mapping[str, int]) -> list[Finding]:
    if not lost:
        return []
    what = listed([f"{node or 'unknown node'} ({counted(count, 'GPU')})" for node, count in sorted(lost.items())])
    text = f"data on the day before, none on this day: {what}; check the node, its exporter and its GPUs, unless they are removed"
    return [Finding("lost_gpu", "note", "nodes", text)]
