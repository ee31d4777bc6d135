"""What holds of nos' rules whatever the quotas and pods: amounts, labels, and who is exposed by a slow and obvious reading."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.schedulers.nos import (
    GPU_MEMORY,
    OVER_QUOTA,
    Used,
    available_over_quota,
    exceeds,
    fits,
    guaranteed_over_quota,
    labelled,
    sum_of_min,
)
from gpureport.schedulers.nos_preemption import Situation, exposures
from tests.schedulers.made import elastic, memory, pod

GB = st.integers(0, 60)
HELD = st.lists(st.tuples(GB, GB), min_size=1, max_size=6).map(
    lambda rows: [memory(f"q{n}", minimum, amount) for n, (minimum, amount) in enumerate(rows)]
)


@given(HELD, st.randoms())
def test_no_more_is_guaranteed_over_quota_than_is_available(held, random):
    available = available_over_quota(held)[GPU_MEMORY]
    parts = {name: part[GPU_MEMORY] for name, part in guaranteed_over_quota(held).items()}
    assert 0 <= available <= sum_of_min(held)[GPU_MEMORY]
    assert all(part >= 0 for part in parts.values())
    assert available - len(held) < sum(parts.values()) <= available or sum_of_min(held)[GPU_MEMORY] == 0
    shuffled = guaranteed_over_quota(random.sample(held, len(held)))
    assert {name: part[GPU_MEMORY] for name, part in shuffled.items()} == parts


AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory", GPU_MEMORY, "nvidia.com/gpu")), st.integers(0, 4))


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_what_fits_exceeds_nothing(used, request, bound):
    assert fits(used, request, bound) == (exceeds(used, request, bound) == ())


PODS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from((5, 10, 20)), st.integers(0, 3), st.integers(0, 2)), max_size=9)
MINIMA = st.fixed_dictionaries(dict.fromkeys("abc", GB))


def made(rows):
    return [pod(f"p{n}", {GPU_MEMORY: gb}, name, created, priority) for n, (name, gb, created, priority) in enumerate(rows)]


@given(PODS, GB, st.randoms())
def test_labels_are_in_quota_until_min_is_passed_and_over_quota_from_then_on(rows, minimum, random):
    pods = made(rows)
    found = labelled(elastic("a", {GPU_MEMORY: minimum}), pods)
    sums = [sum(each.pod.requests[GPU_MEMORY] for each in found[: n + 1]) for n in range(len(found))]
    assert [each.label == OVER_QUOTA for each in found] == [total > minimum for total in sums]
    assert labelled(elastic("a", {GPU_MEMORY: minimum}), random.sample(pods, len(pods))) == found


def obvious(waiting, minima, pods, over):
    """The two conditions as nos' documents put them, the second as its code has it; of gpu-memory alone."""
    used = {name: sum(each.requests[GPU_MEMORY] for each in pods if each.quota == name) for name in minima}
    unused = sum(max(0, minima[name] - used[name]) for name in minima)
    total = sum(minima.values())
    part = {name: int(unused * (minima[name] / total)) if total else 0 for name in minima}
    own, requested = waiting.quota, waiting.requests[GPU_MEMORY]
    found = set()
    for each in pods:
        same, other = each.namespace == waiting.namespace, each.quota
        if used[own] + requested <= minima[own]:
            takes = not same and each.uid in over and used[other] > minima[other]
        elif same:
            takes = each.priority < waiting.priority
        else:
            fits = used[own] + requested <= minima[own] + part[own]
            takes = each.uid in over and fits and used[other] > minima[other] + part[other]
        if takes:
            found.add(each.uid)
    freed = sum(each.requests[GPU_MEMORY] for each in pods if each.uid in found)
    return found if sum(used.values()) - freed + requested <= total else set()


@settings(max_examples=300)
@given(PODS, MINIMA, st.sampled_from("abc"), st.sampled_from((5, 10, 20)), st.integers(0, 2))
def test_who_is_exposed_is_who_the_conditions_name(rows, minima, name, gb, priority):
    pods = made(rows)
    quotas = {each: elastic(each, {GPU_MEMORY: minimum}) for each, minimum in minima.items()}
    over = frozenset(
        each.pod.uid
        for quota in quotas.values()
        for each in labelled(quota, (p for p in pods if p.quota == quota.name))
        if each.label == OVER_QUOTA
    )
    held = [
        Used(quota, {GPU_MEMORY: sum(p.requests[GPU_MEMORY] for p in pods if p.quota == key)}) for key, quota in quotas.items()
    ]
    waiting = pod("new", {GPU_MEMORY: gb}, name, created=9, priority=priority, is_running=False, is_bound=False)
    found = exposures([waiting], Situation(held, pods, over))
    assert {each.pod_uid for each in found} == obvious(waiting, minima, pods, over)
