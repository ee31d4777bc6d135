"""scheduler-plugins' elastic quotas and Kubernetes' ResourceQuota."""

import pytest

from gpureport.fairshare.resource_quota import DeviceAsk, claim_charge, effective_caps, refused
from gpureport.fairshare.scheduler_plugins import exposures, rejections
from tests.fairshare.made import pod, used

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
    found = exposures(pod("new", {GPU: 1}), held, pods)
    assert [(each.pod_uid, each.condition, each.evidence) for each in found] == [
        ("uid-b1", "within min", f"{GPU} 5 > 2"),
        ("uid-b2", "within min", f"{GPU} 5 > 2"),
    ]


def test_above_its_min_only_less_important_pods_of_its_own_namespace():
    held = [used("a", {GPU: 1}, {GPU: 1}), used("b", {GPU: 1}, {GPU: 5})]
    pods = [pod("a1", {GPU: 1}), pod("b1", {GPU: 5}, "b")]
    found = exposures(pod("new", {GPU: 1}, priority=1), held, pods)
    assert [(each.pod_uid, each.evidence) for each in found] == [("uid-a1", "priority 0 < 1")]
    assert exposures(pod("new", {GPU: 1}, "elsewhere"), held, pods) == []


def test_of_several_resource_quotas_the_lowest_hard_counts():
    caps = effective_caps([{"requests.nvidia.com/gpu": 24, "pods": 9}, {"requests.nvidia.com/gpu": 8}])
    assert caps == {"requests.nvidia.com/gpu": 8, "pods": 9}
    assert refused({"requests.nvidia.com/gpu": 7, "pods": 99}, {"requests.nvidia.com/gpu": 2}, caps) == (
        "requests.nvidia.com/gpu",
    )
    assert refused({"requests.nvidia.com/gpu": 7}, {"requests.nvidia.com/gpu": 1, "cpu": 4}, caps) == ()


@pytest.mark.parametrize(
    ("alternatives", "charged"),
    [([2], 2), ([1, 2], 3), ([2, 1], 2), ([None], 32)],  # the larger comes later: added, not replaced
)
def test_a_claim_is_charged_its_largest_alternative_and_more_if_that_comes_later(alternatives, charged):
    key = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    request = [DeviceAsk("gpu.nvidia.com", count) for count in alternatives]
    assert claim_charge([request]) == {key: charged}
    assert claim_charge([request, request]) == {key: 2 * charged}
