"""Pods that no rule distinguishes are one to it: the answer for each is that of each alone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.quotas import shares
from gpureport.compute.quotas.labels import Runs
from gpureport.compute.quotas.scene import Members, Scene
from gpureport.schedulers.model import DEFAULT_RULES
from gpureport.schedulers.nos import GPU_MEMORY, ORDER, OVER_QUOTA, labelled
from gpureport.schedulers.nos_preemption import Situation, exposures
from tests.schedulers.made import elastic, pod


def at(minute):
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minute)


def row(name, gb, quota="a", created=0, bound=None, ended=None, priority=0):
    return {
        **{"pod_uid": f"uid-{name}", "pod": name, "namespace": quota, "quota": quota, "priority": priority},
        **{"amounts": {GPU_MEMORY: gb}, "created_at": at(created), "created_at_ms": created},
        **{"bound_at": at(bound) if bound is not None else None, "running_at": at(bound) if bound is not None else None},
        "ended_at": at(ended) if ended is not None else None,
    }


def terms(minima, end=60):
    common = {"resource": GPU_MEMORY, "start_at": at(0), "end_at": at(end), "cap_native": None}
    return [{**common, "quota": name, "namespaces": [name], "guaranteed_native": gb} for name, gb in minima.items()]


def test_a_thousand_pods_alike_are_one_to_the_rules():
    pods = [pod(f"p{n}", {GPU_MEMORY: 10}) for n in range(1000)]
    members = Members(elastic("a", {GPU_MEMORY: 10}), pods, {each.uid: OVER_QUOTA for each in pods[1:]})
    assert [(each.requests, each.uid in members.over_quota_uids) for each in members.stand_ins] == [
        ({GPU_MEMORY: 10}, False),
        ({GPU_MEMORY: 9990}, True),
    ]


GB = st.integers(0, 40)
MINUTE = st.integers(0, 5)
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from((5, 10, 20)), MINUTE, st.none() | MINUTE, st.integers(0, 2)), max_size=9
)


@settings(max_examples=100)
@given(ROWS, st.fixed_dictionaries(dict.fromkeys("abc", GB)))
def test_who_is_exposed_is_who_the_rules_name_pod_by_pod(rows, minima):
    made = [
        row(f"p{n}", gb, quota, created, None if waited is None else created + waited, 12, priority)
        for n, (quota, gb, created, waited, priority) in enumerate(rows)
    ]
    watch = [{"start_at": at(2), "end_at": at(11)}]
    scene = Scene("nos", made, terms(minima), watch, ORDER)
    for now, _ in scene.steps():
        exposed = scene.exposures()
        alike = {uid: name for quota in minima for (uid,), name in scene.alike(quota).items()}
        found = {(uid, by, condition) for uid, name in alike.items() for of, by, condition in exposed if of == name}
        assert found == (one_by_one(made, minima, now) if at(2) <= now < at(11) else set())


def one_by_one(rows, minima, now):
    there = [each for each in rows if each["created_at"] <= now < each["ended_at"]]
    pods = {
        is_bound: [
            pod(each["pod"], each["amounts"], each["quota"], each["created_at_ms"], each["priority"])
            for each in there
            if is_bound == (each["bound_at"] is not None and each["bound_at"] <= now)
        ]
        for is_bound in (True, False)
    }
    members = [
        Members(elastic(name, {GPU_MEMORY: gb}), [each for each in pods[True] if each.quota == name], {})
        for name, gb in minima.items()
    ]
    over = {found.pod.uid for each in members for found in labelled(each.quota, each.pods) if found.label == OVER_QUOTA}
    situation = Situation([each.used for each in members], pods[True], frozenset(over))
    return {(each.pod_uid, each.by_quota, each.condition) for new in pods[False] for each in exposures([new], situation)}


def test_a_pod_counts_while_the_quota_has_its_namespace():
    before, after = terms({"a": 10}, 30)[0], {**terms({"a": 10})[0], "start_at": at(30), "namespaces": ["z"]}
    scene = Scene("nos", [row("p", 5, bound=0, ended=50)], [before, after], [{"start_at": at(0), "end_at": at(60)}], ORDER)
    found = {now: scene.labels("a") for now, _ in scene.steps()}
    assert found[at(0)] == {("uid-p",): "in-quota"}
    assert found[at(30)] == {}


def test_a_stretch_goes_on_while_its_value_stays_and_ends_with_it():
    runs = Runs()
    for minute, value in ((0, "in"), (1, "in"), (2, "over"), (3, None)):
        runs.put(("a",), at(minute), {("p",): value} if value else {})
    assert [row[2:] for row in runs.rows()] == [(at(0), at(2), "in"), (at(2), at(3), "over")]


def test_a_stretch_that_its_value_does_not_cut_keeps_the_first():
    runs = Runs(is_cut_by_value=False)
    for minute, value in ((0, "1 > 0"), (1, "2 > 0"), (3, None)):
        runs.put(("a",), at(minute), {("p",): value} if value else {})
    assert [row[2:] for row in runs.rows()] == [(at(0), at(3), "1 > 0")]


@pytest.mark.parametrize(
    ("resource", "gpus"),
    [
        ("nvidia.com/mig-3g.48gb", 3 / 7),
        ("nvidia.com/mig-2g.12gb", 2 / 4),  # A30
        ("nvidia.com/mig-4g.96gb", 4 / 4),  # RTX PRO 6000
        ("nvidia.com/mig-1c.3g.71gb", 1 / 7),  # a compute instance
    ],
)
def test_a_mig_instance_is_its_own_slices_of_those_of_its_model(resource, gpus):
    assert shares.gpu_units(resource, gb_per_gpu=32) == pytest.approx(gpus)


def amounts(system, quota, **values):
    """A quota of 8 GPUs in a step, with nothing but the values that are passed."""
    row = {"cluster": "c", "system": system, "quota": quota, "parent": "", "is_parent": False, "tree": "", "scopes": ""}
    row |= {"priority": None, "may_lend": True, "created_at_ms": 0, "uid": "u", "resource": "g", "flavor": "", "namespaces": []}
    row |= {"guaranteed_native": None, "cap_native": None, "weight": 1.0, "deserved_native": None}
    row |= {"borrowing_limit_native": None, "lending_limit_native": None, "demanded_native": None, "delivered_native": 1.0}
    return row | {"capacity_native": 8.0, "start_at": at(0), "end_at": at(60)} | values


def reckoned(*rows):
    """Fair share and reason of each quota of a step."""
    return {each["quota"]: (each["fair_share_native"], each["reason"]) for each in shares._Calculator(DEFAULT_RULES).step(rows)}


@pytest.mark.parametrize(("deserved", "share"), [(4.0, (4.0, "")), (None, (None, "demand_unknown"))])
def test_what_volcanos_queues_say_that_they_deserve_is_their_share_whatever_they_request(deserved, share):
    """Of 8 GPUs q deserves 4 by its own word, within its limit of 5; without it requests share out, which nobody knows."""
    assert reckoned(amounts("volcano", "q", cap_native=5.0, deserved_native=deserved)) == {"q": share}


def test_unknown_demand_in_a_tree_of_koordinators_says_nothing_of_the_others():
    """q requests 6 of the 8 GPUs, within its max, and is alone in its tree: 6. Nodes of the tree batch are unknown."""
    terms = {"guaranteed_native": 4.0, "cap_native": 8.0}
    q, t = amounts("koordinator", "q", **terms), amounts("koordinator", "t", tree="batch", **terms)
    assert reckoned(q | {"demanded_native": 6.0}, t) == {"q": (6.0, ""), "t": (None, "demand_unknown")}
    assert reckoned(q, t | {"demanded_native": 6.0}) == {"q": (None, "demand_unknown"), "t": (None, "capacity_unknown")}
