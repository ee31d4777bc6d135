"""Kueue clusters as their API servers would list them every few minutes, from a few words about queues and workloads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from report_tables import Report

from gpureport.cli import main
from gpureport.collect.snapshot import import_folder
from gpureport.values.window import parse_instant

DAY = "2026-11-20"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
GPU = "nvidia.com/gpu"
MIDNIGHT = 1_795_132_800
FROM, UNTIL = 12 * 60, 13 * 60
"""The window, in minutes of the day; snapshots reach beyond it."""


def at(minute):
    return (datetime(2026, 11, 20, tzinfo=UTC) + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def named(name, namespace="", created=0, **more):
    return {"name": name, "namespace": namespace, "uid": f"u-{namespace}-{name}", "creationTimestamp": at(created), **more}


def flavor(name, **labels):
    return {"metadata": named(name), "spec": {"nodeLabels": {key.replace("__", "/"): value for key, value in labels.items()}}}


def queue(name, groups, cohort="all", **spec):
    """``groups``: flavor → resource → nominal quota, each a resource group of its own flavors."""
    listed = [
        {
            "coveredResources": sorted({resource for quotas in group.values() for resource in quotas}),
            "flavors": [
                {"name": name, "resources": [{"name": r, "nominalQuota": str(n)} for r, n in quotas.items()]}
                for name, quotas in group.items()
            ],
        }
        for group in groups
    ]
    return {"metadata": named(name), "spec": {"cohortName": cohort, "resourceGroups": listed, **spec}}


def node(name, gpus=8, **labels):
    amounts = {GPU: str(gpus), "cpu": "64", "memory": "512Gi"}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": at(0)}]
    written = {key.replace("__", "/"): value for key, value in labels.items()}
    return {
        "metadata": named(name, labels=written),
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": ready},
    }


def pod(name, queue, gpus, created, bound=None, on="", resource=GPU, selector=None, owner=""):
    """A pod of namespace ``queue`` that names the LocalQueue of the same name."""
    requests = {resource: str(gpus), "cpu": "4", "memory": "16Gi"}
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}], "nodeSelector": selector or {}}
    more = {"ownerReferences": [{"kind": owner, "name": name, "controller": True}]} if owner else {}
    metadata = named(name, queue, created, labels={"kueue.x-k8s.io/queue-name": queue}, **more)
    if bound is None:
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    state = {"running": {"startedAt": at(bound)}}
    return {
        "metadata": metadata,
        "spec": {**spec, "nodeName": on},
        "status": {
            "phase": "Running",
            "startTime": at(bound),
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}],
            "containerStatuses": [{"name": "main", "state": state}],
        },
    }


def workload(name, queue, gpus, created, reserved=None, evicted=None, finished=None, flavors=None, preemptor="", **more):
    """As it is after all of that; v1beta2 unless ``version`` is another."""
    requests = {GPU: str(gpus), "cpu": "4"}
    spec = {
        "queueName": queue,
        "priority": more.pop("priority", 0),
        "priorityClassRef": {"name": more.pop("priority_class", "")},
        "podSets": [
            {
                "name": "main",
                "count": more.pop("count", 1),
                "template": {
                    "spec": {
                        "containers": [{"name": "main", "resources": {"requests": requests}}],
                        "nodeSelector": more.pop("selector", {}),
                    }
                },
            }
        ],
    }
    conditions, status = [], {}

    def set_condition(kind, value, minute, reason="", message=""):
        condition = {"type": kind, "status": value, "lastTransitionTime": at(minute), "reason": reason, "message": message}
        conditions.append(condition)

    if reserved is None:
        set_condition("QuotaReserved", "False", created if evicted is None else evicted, "Pending", "insufficient unused quota")
    else:
        set_condition("QuotaReserved", "True", reserved)
        set_condition("Admitted", "True", reserved)
        count = spec["podSets"][0]["count"]
        usage = more.pop("usage", {resource: str(int(amount) * count) for resource, amount in requests.items()})
        status["admission"] = {
            "clusterQueue": queue,
            "podSetAssignments": [{"name": "main", "flavors": flavors or {}, "resourceUsage": usage, "count": count}],
        }
    if evicted is not None:
        message = f"Preempted to accommodate a workload (UID: {preemptor}, JobUID: j) due to reclamation within the cohort"
        set_condition("Evicted", "True", evicted, "Preempted", message)
        set_condition("Preempted", "True", evicted, "InCohortReclamation", message)
    if finished is not None:
        set_condition("Finished", "True", finished, "Succeeded")
    owner = [{"kind": "Job", "name": name, "controller": True}]
    return {
        "metadata": named(name, queue, created, ownerReferences=owner),
        "spec": spec,
        "status": {**status, "conditions": conditions},
    }


DRA, VOLCANO = "resource.k8s.io/v1", "scheduling.volcano.sh/v1beta1"
KINDS = {
    "pods": ("Pod", "v1"),
    "nodes": ("Node", "v1"),
    "namespaces": ("Namespace", "v1"),
    "resourcequotas": ("ResourceQuota", "v1"),
    "events": ("Event", "v1"),
    "resourceclaims": ("ResourceClaim", DRA),
    "deviceclasses": ("DeviceClass", DRA),
    "queues": ("Queue", VOLCANO),
    "podgroups": ("PodGroup", VOLCANO),
    "clusterqueues": ("ClusterQueue", ""),
    "localqueues": ("LocalQueue", ""),
    "cohorts": ("Cohort", ""),
    "resourceflavors": ("ResourceFlavor", ""),
    "workloads": ("Workload", ""),
    "elasticquotas": ("ElasticQuota", "nos.nebuly.com/v1alpha1"),
    "kai-queues": ("Queue", "scheduling.run.ai/v2"),
    "koordinator-quotas": ("ElasticQuota", "scheduling.sigs.k8s.io/v1alpha1"),
}
"""Kind and version; '' for Kueue's, which a scene chooses."""


def save(folder: Path, lists, version="v1beta2"):
    """One snapshot's replies."""
    folder.mkdir()
    for resource, items in lists.items():
        kind, api = KINDS[resource]
        body = {"kind": f"{kind}List", "apiVersion": api or f"kueue.x-k8s.io/{version}", "metadata": {}, "items": items}
        (folder / f"{resource}.json").write_text(json.dumps(body))


@dataclass(frozen=True)
class Scene:
    """A cluster as its API server lists it in the window: ``listed(minute)`` returns the lists of a snapshot of that minute."""

    listed: Callable[[int], Any]
    minutes: Sequence[int] = range(FROM, UNTIL, 15)
    metrics: str = ""
    version: str = "v1beta2"

    def fill(self, folder: Path, lake: Path, cluster: str) -> None:
        for minute in self.minutes:
            save(folder / f"{cluster}-{minute}", self.listed(minute), self.version)
            import_folder(lake, folder / f"{cluster}-{minute}", cluster, parse_instant(at(minute)), NOW)
        if self.metrics:
            series = folder / f"{cluster}.om"
            series.write_text(f"{self.metrics}# EOF\n")
            run("import", str(series), "--cluster", cluster, "--lake", str(lake))


def scene(listed, kind=Scene, **more):
    """Set the scene of a test. All scenes of a run are clusters of one lake, computed at once; ``found`` is the test's own."""

    def build(test):
        test.scene = kind(listed, **more)
        return test

    return build


@dataclass(frozen=True)
class Found:
    """A cluster's rows in the report of the window, which has all of them."""

    report: Report
    cluster: str


def run(*arguments):
    assert main(list(arguments), environ={}, now=NOW) == 0


def rows(found: Found, statement):
    found.report.tables.open_named(statement)
    own = re.sub(r"\b(report|period)\.\w+", r"(from \g<0> where cluster = $cluster)", statement)
    return found.report.con.execute(own, {"cluster": found.cluster}).fetchall()


def amounts(found: Found, *figures, resource=GPU):
    """Figures in GPU-hours over the hour, by queue and flavor."""
    columns = ", ".join(f"round({name}_native_hours, 6)" for name in figures)
    amounts_of = rows(
        found, f"select quota, flavor, {columns} from report.quota_fair_share where resource = '{resource}' and not is_parent"
    )
    return {(quota, flavor): tuple(values) for quota, flavor, *values in amounts_of}
