"""nos' quotas: every number of its documents and tests, and what its code does where those say nothing or otherwise."""

import pytest

from gpureport.schedulers.model import Terms
from gpureport.schedulers.nos import (
    GPU_MEMORY,
    OVER_QUOTA,
    available_over_quota,
    gpu_memory_gb,
    guaranteed_over_quota,
    in_order,
    labelled,
    mig_memory_gb,
    rejections,
    share_ratios,
    shares,
    sum_of_min,
    uncounted,
    with_gpu_memory,
)
from gpureport.values.errors import UsageError
from tests.schedulers.made import elastic, holding, memory, pod, used

GPU = "nvidia.com/gpu"
ONE_G = "nvidia.com/mig-1g.10gb"


@pytest.mark.parametrize(
    ("gb_per_gpu", "requests", "gb"),
    [
        (8, {GPU: 2, "foo/1g32gb": 2, "nvidia.com/mig-2g.32gb": 3}, 112),  # 2 x 8 + 3 x 32; the second is no MIG name
        (32, {ONE_G: 1, GPU: 1}, 42),  # the documents' example: 10 + 32
        (16, {"cpu": 1, GPU: 3, "nvidia.com/mig-1g.1gb": 1}, 49),  # 3 x 16 + 1
        (32, {"nvidia.com/gpu-10gb": 2, "nvidia.com/gpu.shared": 4}, 0),  # its own MPS slices and time slices count nothing
        (32, {"cpu": 4}, 0),
    ],
)
def test_gpu_memory_of_a_request(gb_per_gpu, requests, gb):
    assert gpu_memory_gb(requests, gb_per_gpu) == gb


@pytest.mark.parametrize(
    ("resource", "gb"),
    [
        (ONE_G, 10),
        ("nvidia.com/mig-7g.79gb", 79),
        ("nvidia.com/mig-1g.5gb.me", 5),
        ("example.org/nvidia.com/mig-1g.5gb", 5),  # searched, not matched
        ("nvidia.com/mig-1g.1gb15gb", 0),  # two sizes: an error that is swallowed
        ("nvidia.com/mig-1c.2g.10gb", 0),  # a compute instance
        ("nvidia.com/gpu-10gb", 0),
    ],
)
def test_a_mig_name_counts_the_gb_that_it_names(resource, gb):
    assert mig_memory_gb(resource) == gb


def test_what_holds_memory_and_counts_nothing_is_named():
    requests = {GPU: 1, ONE_G: 1, "nvidia.com/gpu-10gb": 1, "nvidia.com/gpu.shared": 1, "nvidia.com/mig-1c.2g.10gb": 0, "cpu": 1}
    assert uncounted(requests) == ("nvidia.com/gpu-10gb", "nvidia.com/gpu.shared")


def test_a_pod_without_gpus_has_no_gpu_memory():
    assert with_gpu_memory({"cpu": 1}) == {"cpu": 1}


DOCUMENTED = [memory("a", 40, 40), memory("b", 10, 40), memory("c", 30, 0)]


def guaranteed(name, held, resource=GPU_MEMORY):
    return guaranteed_over_quota(held)[name][resource]


def test_the_documents_example_is_available_30_and_guaranteed_15_3_and_11():
    # 40/80 x 30 = 15; 10/80 x 30 = 3.75; 30/80 x 30 = 11.25: one GB goes to nobody.
    assert available_over_quota(DOCUMENTED) == {GPU_MEMORY: 30}
    assert [guaranteed(name, DOCUMENTED) for name in "abc"] == [15, 3, 11]


@pytest.mark.parametrize(
    ("resource", "held", "expected"),
    [
        ("cpu", [(10, 5), (30, 35), (20, 10)], 2),  # floor(10/60 x (5 + 0 + 10)) = floor(2.5)
        ("example.org/pods", [(10, 5), (30, 5), (0, 0)], 7),  # floor(10/40 x (5 + 25)) = floor(7.5)
        (GPU, [(5, 0), (3, 0)], 5),  # 5/8 x 8
        (GPU_MEMORY, [(64, 10), (24, 10)], 49),  # floor(64/88 x (54 + 14)) = floor(49.45)
        (GPU, [(3, 1), (None, 0)], 2),  # the second does not name it: 3/3 x 2
    ],
)
def test_guaranteed_over_quota_of_the_first(resource, held, expected):
    named = [
        used(str(number), {} if minimum is None else {resource: minimum}, {resource: amount})
        for number, (minimum, amount) in enumerate(held)
    ]
    if resource == "cpu":  # the case counts thousandths, which are the scheduler's unit
        named = [used(each.quota.name, {"cpu": m / 1000}, {"cpu": u / 1000}) for each, (m, u) in zip(named, held, strict=True)]
    assert guaranteed("0", named, resource) == expected


def test_the_product_is_rounded_as_doubles_are():
    # 29/100 x 100 is 28.999999999999996 in doubles, which the original floors.
    assert guaranteed("a", [memory("a", 29, 0), memory("b", 71, 0)]) == 28


@pytest.mark.parametrize(
    ("minima", "share"), [((50, 30, 20), 0.5), ((10, 30, 60), 0.1), ((10, 30, 0), 0.25), ((0, 0, 0), 0), ((7,), 1)]
)
def test_a_share_is_min_over_the_sum_of_min(minima, share):
    held = [memory(str(number), minimum, 0) for number, minimum in enumerate(minima)]
    assert share_ratios(held[0].quota, sum_of_min(held))[GPU_MEMORY] == share


def test_what_is_unused_adds_up_and_never_below_zero():
    held = [used(str(n), {GPU: 5, "memory": 200}, {GPU: g, "memory": m}) for n, (g, m) in enumerate([(10, 250), (0, 0), (1, 10)])]
    assert available_over_quota(held) == {GPU: 9, "memory": 390}  # 0 + 5 + 4; 0 + 200 + 190


def test_a_composite_quota_counts_once():
    three = [memory("a", 40, 40), memory("b", 10, 40, namespaces=("x", "y", "z")), memory("c", 30, 0)]
    assert [guaranteed(name, three) for name in "abc"] == [15, 3, 11]


def test_a_quota_may_have_its_min_and_its_guaranteed_over_quota():
    holdings = [
        holding(each.quota.name, 99, each.amounts[GPU_MEMORY], resource=GPU_MEMORY, guaranteed=terms)
        for each, terms in zip(DOCUMENTED, (40, 10, 30), strict=True)
    ]
    assert {name: share.fair_share for name, share in shares(GPU_MEMORY, holdings).items()} == {"a": 55, "b": 13, "c": 41}


LETS_IN = {"memory": 1000, GPU_MEMORY: 40}
AT_MOST = {"memory": 2000, GPU_MEMORY: 48}


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"memory": 500, GPU: 1}, ()),  # 32 + 8 = 40 and 800
        ({"memory": 1800}, ("max", "sum of min")),  # 300 + 1800 > 2000
        ({GPU: 2}, ("sum of min",)),  # 32 + 16 = 48 is max itself, and above 40
        ({"cpu": 0.01}, ("max", "sum of min")),  # cpu is compared always, and neither bound names it
    ],
)
def test_a_pod_is_let_in_below_max_and_the_sum_of_min(request_, why):
    held = [used("a", LETS_IN, {"memory": 300, GPU_MEMORY: 32}, AT_MOST)]
    assert rejections(pod("p", with_gpu_memory(request_, 8)), held) == why


def test_nobody_borrows_more_than_others_leave_unused():
    held = [memory("a", 40, 32), memory("b", 8, 8)]
    assert rejections(pod("p", with_gpu_memory({GPU: 2}, 8), "b"), held) == ("sum of min",)  # 40 + 16 > 48


def test_reaching_max_is_allowed_and_a_pod_without_quota_is_not_asked():
    full = [memory("a", 100, 50, maximum={"cpu": 0, "memory": 0, GPU_MEMORY: 100})]
    assert rejections(pod("p", {GPU_MEMORY: 50}), full) == ()
    assert rejections(pod("p", {GPU_MEMORY: 51}), full) == ("max", "sum of min")
    assert rejections(pod("p", {GPU_MEMORY: 999}, quota="elsewhere"), full) == ()


def labels(quota, pods, **more):
    return [(each.pod.name, each.label) for each in labelled(quota, pods, **more)]


def test_after_the_first_pod_over_quota_all_are_though_they_would_fit():
    requests = [{GPU: 1}, {ONE_G: 1}, {GPU: 1}, {ONE_G: 1}]  # 32, 42, 74, 84 of 64; the last alone would make 52
    pods = [pod(f"p{n}", with_gpu_memory(request), created=n) for n, request in enumerate(requests, 1)]
    found = labelled(elastic("a", {GPU_MEMORY: 64}), pods)
    assert [each.label for each in found] == ["in-quota", "in-quota", "over-quota", "over-quota"]
    requested = [each.pod.requests[GPU_MEMORY] for each in found]
    over = [each.pod.requests[GPU_MEMORY] for each in found if each.label == OVER_QUOTA]
    assert (sum(requested), sum(over), sum(requested) - 64) == (84, 42, 20)  # by label 42, by use beyond min 20


def test_two_gpus_and_three_of_64_gb_are_in_and_over_until_the_first_ends():
    first, second = (pod(f"p{n}", with_gpu_memory({GPU: n}, 16), created=n) for n in (2, 3))  # 32, then 80
    quota = elastic("a", {GPU_MEMORY: 64})
    assert labels(quota, [second, first]) == [("p2", "in-quota"), ("p3", "over-quota")]
    assert labels(quota, [second]) == [("p3", "in-quota")]


def test_a_lower_min_puts_the_younger_over_quota():
    pods = [pod(f"p{n}", with_gpu_memory({GPU: 2}, 16), created=n) for n in (1, 2)]
    assert labels(elastic("a", {GPU_MEMORY: 64}), pods) == [("p1", "in-quota"), ("p2", "in-quota")]
    assert labels(elastic("a", {GPU_MEMORY: 32}), pods) == [("p1", "in-quota"), ("p2", "over-quota")]


def test_only_resources_of_min_are_asked_and_only_running_pods():
    quota = elastic("a", {GPU_MEMORY: 64}, {"cpu": 1})
    pods = [pod("p", {"cpu": 9, GPU_MEMORY: 64}), pod("waits", {GPU_MEMORY: 64}, is_running=False)]
    assert labels(quota, pods) == [("p", "in-quota")]
    assert labels(elastic("a", {}), pods) == [("p", "in-quota")]


def test_sums_of_fractions_are_exact():
    pods = [pod(f"p{n}", {"cpu": 0.1}) for n in range(3)]
    assert {label for _, label in labels(elastic("a", {"cpu": 0.3}), pods)} == {"in-quota"}


def names(pods, *order):
    return [each.name for each in (in_order(pods, order) if order else in_order(pods))]


def test_the_lower_priority_is_counted_first():
    pods = [pod("p100", {}, priority=100), pod("p10", {}, priority=10), pod("p50", {}, priority=50)]
    assert names(pods) == ["p10", "p50", "p100"]


def test_older_comes_before_lower_priority_before_smaller_before_the_name():
    pods = [
        pod("b", {GPU: 1}, created=2),
        pod("a", {GPU: 1}, created=2),
        pod("large", {GPU: 2}, created=2),
        pod("urgent", {}, created=2, priority=1),
        pod("old", {GPU: 8}, created=1, priority=9),
    ]
    assert names(pods) == ["old", "a", "b", "large", "urgent"]


def test_another_order_can_be_asked_for():
    pods = [pod("old", {GPU: 1}, created=1), pod("new", {GPU: 1}, created=2), pod("big", {GPU: 2}, created=3)]
    assert names(pods, "-request", "-creation") == ["big", "new", "old"]
    with pytest.raises(UsageError, match="'age' does not order pods"):
        in_order(pods, ["age"])


def test_requests_of_which_neither_is_smaller_go_by_name():
    pods = [pod("b", {"x": 1, "y": 2}), pod("a", {"x": 2, "y": 1})]
    assert names(pods) == names(pods[::-1]) == ["a", "b"]


def test_terms_without_min_are_no_resource_of_min():
    quota = elastic("a", {GPU_MEMORY: 1})
    assert quota.terms == {GPU_MEMORY: Terms(1, None)}
