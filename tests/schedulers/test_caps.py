"""scheduler-plugins' elastic quotas and Kubernetes' ResourceQuota."""

from dataclasses import replace

import pytest

from gpureport.schedulers.allocation import allocate
from gpureport.schedulers.model import Holding, Quota, Terms
from gpureport.schedulers.scheduler_plugins import exposures, rejections
from tests.schedulers.made import pod, used

GPU = "nvidia.com/gpu"


def test_a_resource_that_min_does_not_name_is_not_guaranteed_and_max_does_not_limit_it():
    held = [used("a", {"cpu": 8}, {}, {"cpu": 8, "memory": 1e12}), used("b", {"cpu": 8, GPU: 1}, {})]
    assert rejections(pod("p", {GPU: 1}), held) == ()
    assert rejections(pod("p", {GPU: 2}), held) == ("sum of min",)
    assert rejections(pod("p", {"cpu": 9}), held) == ("max",)
    assert rejections(pod("p", {"ephemeral-storage": 1}), held) == ("max", "sum of min")  # compared always, and named by none


def test_within_its_min_a_pod_takes_from_quotas_above_theirs_without_a_label():
    held = [used("a", {GPU: 4}, {GPU: 1}), used("b", {GPU: 2}, {GPU: 5}), used("c", {GPU: 2}, {GPU: 2})]
    pods = [pod("a1", {GPU: 1}), pod("b1", {GPU: 2}, "b", priority=9), pod("b2", {GPU: 3}, "b"), pod("c1", {GPU: 2}, "c")]
    found = exposures([pod("new", {GPU: 1})], held, pods)
    assert [(each.pod_uid, each.condition, each.evidence) for each in found] == [
        ("uid-b1", "within min", f"{GPU} 5 > 2"),
        ("uid-b2", "within min", f"{GPU} 5 > 2"),
    ]


def test_above_its_min_only_less_important_pods_of_its_own_namespace():
    held = [used("a", {GPU: 1}, {GPU: 1}), used("b", {GPU: 1}, {GPU: 5})]
    pods = [pod("a1", {GPU: 1}), pod("b1", {GPU: 5}, "b")]
    found = exposures([pod("new", {GPU: 1}, priority=1)], held, pods)
    assert [(each.pod_uid, each.evidence) for each in found] == [("uid-a1", "priority 0 < 1")]
    assert list(exposures([pod("new", {GPU: 1}, "elsewhere")], held, pods)) == []


def test_of_several_resource_quotas_the_lowest_hard_counts_and_their_use_is_the_same():
    two = [
        Holding(Quota("kubernetes", f"ns/{name}", {"gpu": Terms(cap=cap)}, namespaces=("ns",)), 9, 4)
        for name, cap in (("a", 24), ("b", 8), ("c", None))
    ]
    other = Holding(Quota("kubernetes", "else/a", {"gpu": Terms(cap=5)}, namespaces=("else",)), 9, 2)
    # 8 of 9 requested under the lower cap; of 10 GPUs they hold 4 and 2, and 4 more go by 4:3 of what is requested.
    held = allocate("kubernetes", "gpu", [*two, other], 10, {"ns/a": 4, "ns/b": 4, "ns/c": 4, "else/a": 2})
    assert held == pytest.approx({"ns/a": 4 + 16 / 7, "ns/b": 4 + 16 / 7, "ns/c": 4 + 16 / 7, "else/a": 2 + 12 / 7})
    assert allocate("kubernetes", "gpu", two, 99, {}) == {"ns/a": 8, "ns/b": 8, "ns/c": 8}
    # Quotas of other scopes have other pods: each has what its own cap leaves.
    scoped = [each._replace(quota=replace(each.quota, scopes=each.quota.name[-1:])) for each in two]
    assert allocate("kubernetes", "gpu", scoped, 99, {}) == {"ns/a": 9, "ns/b": 8, "ns/c": 9}
