"""Who may preempt whom under nos, from the documents' two times t1 and t2 on; all pods request 10 GB."""

from gpureport.schedulers.nos import GPU_MEMORY, OVER_QUOTA, Used, labelled, rejections
from gpureport.schedulers.nos_preemption import Situation, exposures
from tests.schedulers.made import elastic, pod

TEN = {GPU_MEMORY: 10}
QUOTAS = {name: elastic(name, {GPU_MEMORY: gb}) for name, gb in {"a": 40, "b": 10, "c": 30}.items()}


def situation(counts, quotas=QUOTAS):
    """So many pods of 10 GB in each quota, labelled by the rules."""
    pods = [pod(f"{name}{n}", TEN, name, created=n) for name, count in counts.items() for n in range(count)]
    over = [
        each.pod.uid
        for q in quotas.values()
        for each in labelled(q, (p for p in pods if p.quota == q.name))
        if each.label == OVER_QUOTA
    ]
    held = [Used(quota, {GPU_MEMORY: 10.0 * counts.get(name, 0)}) for name, quota in quotas.items()]
    return Situation(held, pods, frozenset(over))


def waiting(quota, priority=0, namespace=None):
    return pod("new", TEN, quota, created=99, priority=priority, is_running=False, is_bound=False, namespace=namespace)


def who(found):
    return [each.pod_uid.removeprefix("uid-") for each in found]


T1 = situation({"a": 4, "b": 4})
T2 = situation({"a": 5, "b": 3})


def test_at_t1_a_may_take_from_b_what_is_over_its_fair_share():
    found = list(exposures([waiting("a")], T1))
    assert who(found) == ["b1", "b2", "b3"]  # b0 is in-quota: 10 of 10
    assert {(each.by_quota, each.condition, each.evidence) for each in found} == {
        ("a", "fair share", f"{GPU_MEMORY} 40 + 10 <= 40 + 15 and 40 > 10 + 3")
    }
    assert rejections(waiting("a"), T1.held) == ("sum of min",)  # so it needs a victim: 80 + 10 > 80


def test_at_t2_a_has_its_fair_share_and_may_take_no_more():
    assert list(exposures([waiting("a")], T2)) == []  # 50 + 10 > 40 + 15


def test_within_its_min_a_quota_takes_back_from_all_that_borrow_whatever_their_share_and_priority():
    found = list(exposures([waiting("c", priority=-5)], T2))
    assert who(found) == ["a4", "b1", "b2"]
    assert [each.condition for each in found] == ["within min"] * 3
    assert found[0].evidence == f"{GPU_MEMORY} 0 + 10 <= 30 and 50 > 40"


def test_above_its_min_a_pod_may_take_the_place_of_a_less_important_one_of_its_namespace():
    found = list(exposures([waiting("a", priority=1)], T2))
    assert who(found) == ["a0", "a1", "a2", "a3", "a4"]  # in-quota ones too
    assert {(each.condition, each.evidence) for each in found} == {("same namespace", "priority 0 < 1")}


def test_no_one_is_exposed_to_a_pod_that_max_keeps_out():
    limited = {**QUOTAS, "a": elastic("a", {GPU_MEMORY: 40}, {"cpu": 0, "memory": 0, GPU_MEMORY: 45})}
    assert list(exposures([waiting("a")], situation({"a": 4, "b": 4}, limited))) == []


def test_pods_outside_quotas_neither_take_nor_give():
    outside = Situation(T1.held, [*T1.pods, pod("x", TEN, "elsewhere")], T1.over_quota_uids | {"uid-x"})
    assert "x" not in who(exposures([waiting("c")], outside))
    assert list(exposures([waiting("elsewhere")], T1)) == []


def test_namespaces_of_one_composite_quota_do_not_take_from_each_other():
    quotas = {"team": elastic("team", {GPU_MEMORY: 20}, namespaces=("x", "y")), "idle": elastic("idle", {GPU_MEMORY: 30})}
    pods = [pod(f"p{n}", TEN, "team", namespace="xy"[n % 2]) for n in range(3)]
    held = [Used(quotas["team"], {GPU_MEMORY: 30}), Used(quotas["idle"], {GPU_MEMORY: 0})]
    now = Situation(held, pods, frozenset({"uid-p2"}))
    assert list(exposures([waiting("team", namespace="y")], now)) == []  # 30 + 10 <= 20 + 20, but 30 is within 40


def test_a_composite_quota_counts_once_in_who_is_exposed():
    # Σmin 50, available 30, the part of b floor(6) = 6: 40 > 16. The original has Σmin 80, available 60: floor(7.5) = 7.
    quotas = {
        "a": elastic("a", {GPU_MEMORY: 10}),
        "b": elastic("b", {GPU_MEMORY: 10}),
        "c": elastic("c", {GPU_MEMORY: 30}, namespaces=("c", "d")),
    }
    now = situation({"a": 1, "b": 4}, quotas)
    assert list(exposures([pod("new", {GPU_MEMORY: 7}, "a")], now)) == []  # 10 + 7 > 10 + 6
    found = list(exposures([pod("new", {GPU_MEMORY: 6}, "a")], now))
    assert {each.evidence for each in found} == {f"{GPU_MEMORY} 10 + 6 <= 10 + 6 and 40 > 10 + 6"}


def test_a_resource_that_min_does_not_name_is_reported_as_not_limited():
    quotas = {"a": elastic("a", {"x": 5}), "b": QUOTAS["b"], "c": QUOTAS["c"]}
    found = list(exposures([waiting("a")], situation({"b": 2}, quotas)))
    assert [each.evidence for each in found] == [f"{GPU_MEMORY} not limited and 20 > 10"]
