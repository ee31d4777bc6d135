"""ResourceQuotas with scopes, from API objects to their use in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.collect.state import observation
from gpureport.values.tables import TABLE_BY_NAME
from quota.kueue_scene import FROM, GPU, Scene, amounts, named, node, pod, rows, scene
from quota.test_charges import claim, exactly

REQUESTS = f"requests.{GPU}"
ANYWHERE = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaceSelector": {}}]}
LIKED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}


def quota(name, used, *scopes, **classes):
    """``classes``: operator of the scope PriorityClass, with its values."""
    selected = [{"scopeName": "PriorityClass", "operator": operator, "values": values} for operator, values in classes.items()]
    spec = {"hard": {REQUESTS: "9"}, "scopes": list(scopes), "scopeSelector": {"matchExpressions": selected}}
    fields = {field: value for field, value in spec.items() if value not in ([], {"matchExpressions": []})}
    return {"metadata": named(name, "red"), "spec": fields, "status": {"hard": spec["hard"], "used": {REQUESTS: str(used)}}}


def scoped_pod(name, gpus, bound=0, only_gpus=False, qos="", **spec):
    found = pod(name, "red", gpus, 0, bound, "n0" if bound is not None else "")
    found["spec"] |= spec
    if only_gpus:
        found["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(gpus)}}
    if qos:
        found["status"]["qosClass"] = qos
    return found


QUOTAS = [
    quota("all", 10),
    quota("high", 1, In=["high", "top"]),
    quota("rest", 6, NotIn=["high"]),
    quota("named", 5, "PriorityClass"),
    quota("unnamed", 2, DoesNotExist=[]),
    quota("batch", 2, "Terminating"),
    quota("service", 5, "NotTerminating", "NotBestEffort"),
    quota("cheap", 2, "BestEffort"),
    quota("cheap-high", 0, "BestEffort", In=["high"]),
    quota("spread", 4, "CrossNamespacePodAffinity"),
]
PODS = [
    scoped_pod("a", 1, priorityClassName="high", affinity={"podAntiAffinity": LIKED}),
    scoped_pod("b", 2, only_gpus=True, activeDeadlineSeconds=3600),
    scoped_pod("c", 4, bound=None, only_gpus=True, qos="Burstable", priorityClassName="low", affinity={"podAffinity": ANYWHERE}),
]
LISTS = {
    "resourcequotas": QUOTAS,
    "deviceclasses": [{"metadata": named("gpu.nvidia.com"), "spec": {"extendedResourceName": GPU}}],
    "resourceclaims": [claim("d", "red", exactly(3))],
    "nodes": [node("n0")],
    "pods": PODS,
}
AGREED = "select object, snapshot_count, differing_snapshot_count from report.api_agreement where compared = 'quota use'"


@scene(lambda minute: LISTS)
def test_a_quota_counts_the_pods_in_its_scopes(found):
    """a: 1 GPU, class high. b: 2, no class, a deadline, no CPU: BestEffort. c: 4, class low, waits, near pods of any namespace.

    A claim's 3 devices are charged to the quota without scopes alone: all 1 + 2 + 4 + 3, held without c's 4.
    """
    assert amounts(found, "demanded", "delivered", resource=REQUESTS) == {
        ("red/all", ""): (10, 6),
        ("red/high", ""): (1, 1),
        ("red/rest", ""): (6, 2),
        ("red/named", ""): (5, 1),
        ("red/unnamed", ""): (2, 2),
        ("red/batch", ""): (2, 2),
        ("red/service", ""): (5, 1),
        ("red/cheap", ""): (2, 2),
        ("red/cheap-high", ""): (0, 0),
        ("red/spread", ""): (4, 0),
    }
    assert rows(found, AGREED) == [("", 4, 0)]


class OlderScene(Scene):
    """As an older version wrote it: classes of pods are known, deadlines are not."""

    def fill(self, folder: Path, lake: Path, cluster: str) -> None:
        pod = TABLE_BY_NAME["pod"]
        older = replace(pod, columns=tuple(each for each in pod.columns if each.name != "quota_scopes"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(observation._TABLE_BY_NAME, "pod", older)
            super().fill(folder, lake, cluster)


def with_a_silent_quota(_):
    silent = quota("silent", 1, "Terminating")
    del silent["status"]["used"]
    listed = [each for each in QUOTAS if each["metadata"]["name"] in ("all", "high", "batch", "cheap-high")]
    return {**LISTS, "resourcequotas": [*listed, silent]}


@scene(with_a_silent_quota, kind=OlderScene)
def test_where_the_pods_scopes_are_not_known_the_quota_itself_says_its_use(found):
    """A quota without reported use has no row."""
    query = "select quota, demanded_native_hours, delivered_native_hours, amount_source from report.quota_fair_share order by all"
    assert rows(found, query) == [
        ("red/all", 10, 6, "pods"),
        ("red/batch", None, 2, "status"),
        ("red/cheap-high", None, 0, "status"),
        ("red/high", 1, 1, "pods"),
    ]
    assert rows(found, AGREED) == [("", 4, 0)]


def changing(minute):
    changed = quota("high", 4, In=["low"]) if minute >= FROM + 30 else quota("high", 1, In=["high"])
    return {**LISTS, "resourcequotas": [changed]}


@scene(changing)
def test_a_selector_that_changes_within_the_day_leaves_what_the_quota_says(found):
    [(used, source)] = rows(found, "select round(delivered_native_hours, 3), amount_source from report.quota_fair_share")
    assert (used, source) == (pytest.approx(1 * 0.5 + 4 * 0.5), "status")
