"""Whole pods through each scheduler's policy: hand-made hours, and what holds for all of them."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.schedulers import volcano
from gpureport.schedulers.change import Change, Setting
from gpureport.schedulers.kueue import policy_of
from gpureport.schedulers.model import Holding, Quota, Rules, Terms
from gpureport.schedulers.pods import Request
from gpureport.schedulers.replay import POLICIES, Step, replay

HOUR = 3_600_000


def request(uid, quota, amount, created=0, bound=None, ended=None, priority=0):
    """In hours."""
    at = [None if hour is None else int(hour * HOUR) for hour in (created, bound, ended)]
    return Request(uid, quota, amount, priority, at[0], at[1], at[2])


def replayed(system, quotas, requests, hours, change=None, capacity=999, rules=None):
    """What each quota holds in each hour."""
    steps = [
        Step(n * HOUR, (n + 1) * HOUR, [Holding(each, _demanded(each, requests, n), 0) for each in quotas], capacity)
        for n in range(hours)
    ]
    found = replay(system, "gpu", steps, change or Change(), requests, rules or Rules())
    return [{name: amount for name, amount in step.delivered.items() if amount} for step in found]


def _demanded(quota, requests, hour):
    at = hour * HOUR
    own = [each for each in requests if each.quota == quota.name and each.created_ms <= at]
    return sum(each.amount for each in own if each.ended_ms is None or each.ended_ms > at)


def quota(name, parent="", policy=None, **terms):
    return Quota("", name, {"gpu": Terms(**terms)}, parent, policy=policy_of(policy or {}))


NOS = [quota("a", guaranteed=64), quota("b", guaranteed=64), quota("c", guaranteed=32)]


def test_nos_lets_no_part_of_a_pod_in():
    # Σmin 160. b holds its 64 and borrows 64; a's two pods of 32 enter its min by taking b's two youngest, one after the other.
    held = [request(f"b{n}", "b", 32, bound=0) for n in range(4)]
    requests = [*held, request("a1", "a", 32, 1), request("a2", "a", 32, 2), request("a3", "a", 32, 3)]
    # With 160 - 128 free a1 just fits; a2 takes b3; a3 is above min: 96 <= 64 + floor(64/160 x 32) is not so.
    assert replayed("nos", NOS, requests, 4) == [{"b": 128}, {"a": 32, "b": 128}, {"a": 64, "b": 96}, {"a": 64, "b": 96}]
    # A min of 76 does not fit a third pod: 96 > 76, and of 172 - 160 nothing of 32 enters. 96 is: b2 goes too.
    for gb, last in ((76, {"a": 64, "b": 96}), (96, {"a": 96, "b": 96})):
        change = Change((Setting("a", "guaranteed", gb),))
        assert replayed("nos", NOS, requests, 4, change)[3] == last


def test_scheduler_plugins_takes_from_its_own_less_important_pods_above_min():
    quotas = [quota("a", guaranteed=2), quota("b", guaranteed=2)]
    requests = [
        request("a1", "a", 2, bound=0),
        request("b1", "b", 2, bound=0),
        request("a2", "a", 1, 1, priority=5),
        request("a3", "a", 1, 1),
    ]
    # a2 puts a1 out, a3 finds the other half of its place.
    assert replayed("scheduler-plugins", quotas, requests, 2) == [{"a": 2, "b": 2}, {"a": 2, "b": 2}]


def kueue(reclaim, **more):
    spec = {"preemption": {"reclaimWithinCohort": reclaim, **more}} if reclaim else {}
    return [quota("a", "cohort/all", spec, guaranteed=12), quota("b", "cohort/all", spec, guaranteed=4)]


BORROWED = [*(request(f"b{n}", "b", 4, bound=0) for n in range(4)), request("a1", "a", 8, 1), request("a2", "a", 4, 1)]


@pytest.mark.parametrize(
    ("reclaim", "last"),
    [
        ("", {"b": 16}),  # the object says nothing: Never
        ("Never", {"b": 16}),
        ("LowerPriority", {"b": 16}),  # all are of one priority
        ("Any", {"a": 12, "b": 4}),
    ],
)
def test_kueue_takes_back_only_as_the_queue_says(reclaim, last):
    assert replayed("kueue", kueue(reclaim), BORROWED, 2)[1] == last


def test_a_workload_of_kueue_is_let_in_as_a_whole():
    # Of 12 that are lent 8 come back with b2 and b3; a3 of 8 does not enter by the 4 that are left.
    requests = [*BORROWED[:4], request("a1", "a", 8, 1), request("a3", "a", 8, 1)]
    assert replayed("kueue", kueue("Any"), requests, 2)[1] == {"a": 8, "b": 8}


def test_kueues_strict_queue_waits_behind_its_head():
    strict = [quota("a", "", {"queueingStrategy": "StrictFIFO"}, guaranteed=4, cap=4)]
    requests = [request("a1", "a", 2, bound=0), request("a2", "a", 4, 1), request("a3", "a", 2, 1.5)]
    assert replayed("kueue", strict, requests, 3)[2] == {"a": 2}
    free = [quota("a", "", {}, guaranteed=4, cap=4)]
    assert replayed("kueue", free, requests, 3)[2] == {"a": 4}


def test_kueues_borrower_takes_from_lower_priorities_where_it_may():
    borrow = {"borrowWithinCohort": {"policy": "LowerPriority"}}
    requests = [*BORROWED[:3], request("a1", "a", 4, bound=0), request("b9", "b", 8, 1, priority=9)]
    # b holds 12 and wants 8 more beyond its 4: within the queue Never, from a (which borrows nothing) none.
    assert replayed("kueue", kueue("Any", **borrow), requests, 2)[1] == {"a": 4, "b": 12}
    within = {"withinClusterQueue": "LowerPriority"}
    assert replayed("kueue", kueue("Any", **within), requests, 2)[1] == {"a": 4, "b": 12}  # b9 in the place of two of 4


def test_who_had_to_go_takes_back_its_own_at_the_next_instant():
    # a1 needs all of b: after b1 b still borrows 1, and b1 finds no place beside a1. b1 alone is within b's 4, and c has only
    # borrowed: once a1 is in, b1 takes c1's place; c1's 3 do not enter by the 2 that are left.
    quotas = [
        quota(name, "cohort/all", {"preemption": {"reclaimWithinCohort": "Any"}}, guaranteed=own)
        for name, own in (("a", 6), ("b", 4), ("c", 0))
    ]
    held = [request("b0", "b", 5, -2, -2), request("b1", "b", 2, -1, -1), request("c1", "c", 3, -2, -2, priority=10)]
    requests = [*held, request("a1", "a", 6, 1)]
    assert replayed("kueue", quotas, requests, 4)[1:] == [{"a": 6, "c": 3}, {"a": 6, "b": 2}, {"a": 6, "b": 2}]


FAIR = [*(request(f"a{n}", "a", 1) for n in range(4)), *(request(f"b{n}", "b", 1, 0.5) for n in range(4))]


@pytest.mark.parametrize(
    ("is_fair", "weight", "last"),
    [
        (0, 3, {"a": 4}),  # a's are older
        (1, 1, {"a": 2, "b": 2}),
        (1, 3, {"a": 1, "b": 3}),  # b's third borrows 750 thousandths over 3, as much as a's first; a's second 500
        (1, 0, {"a": 4}),
    ],
)
def test_kueues_fair_sharing_lets_in_the_least_weighted_share(is_fair, weight, last):
    """Nobody has any of its own; c lends 4 once its own workload is over at 1:00."""
    quotas = [quota(name, "cohort/all", guaranteed=0, weight=each) for name, each in (("a", 1), ("b", weight))]
    requests = [*FAIR, request("c1", "c", 4, bound=0, ended=1)]
    shared = [*quotas, quota("c", "cohort/all", guaranteed=4)]
    assert replayed("kueue", shared, requests, 2, rules=Rules(fair_sharing=is_fair))[1] == last
    assert replayed("kueue", [replace(each, policy=policy_of({}, bool(is_fair))) for each in shared], requests, 2)[1] == last


def test_kueues_fair_sharing_goes_level_by_level():
    # Two queues of left borrow 1 each: it has 500 thousandths of the 4 with either's second, right's first 250.
    quotas = [
        *(
            quota(name, f"cohort/{above}", guaranteed=0, weight=1)
            for name, above in (("a", "left"), ("b", "left"), ("d", "right"))
        ),
        *(replace(quota(f"cohort/{each}", "cohort/root"), is_parent=True) for each in ("left", "right")),
        quota("c", "cohort/root", guaranteed=4),
    ]
    requests = [*FAIR, *(request(f"d{n}", "d", 1, 0.75) for n in range(4)), request("c1", "c", 4, bound=0, ended=1)]
    found = replayed("kueue", quotas, requests, 2, rules=Rules(fair_sharing=1))[1]
    assert {name: found[name] for name in "abd"} == {"a": 1, "b": 1, "d": 2}


def test_kueues_cohort_in_a_circle_admits_nothing():
    loop = [quota("x", "y"), quota("y", "x"), quota("a", "x", guaranteed=4)]
    for is_fair in (0, 1):
        assert replayed("kueue", loop, [request("a1", "a", 1)], 1, rules=Rules(fair_sharing=is_fair)) == [{}]


def test_volcano_takes_back_what_is_deserved():
    queues = [quota("a", deserved=4), quota("b", deserved=4)]
    requests = [*(request(f"a{n}", "a", 2, bound=0) for n in range(4)), request("b1", "b", 3, 1), request("b2", "b", 3, 2)]
    # b1 takes two of a's 2; b2 would make 6 of 4, and takes none.
    assert replayed("volcano", queues, requests, 3, capacity=8) == [{"a": 8}, {"a": 4, "b": 3}, {"a": 4, "b": 3}]
    kept = [replace(each, policy=volcano.policy_of({"reclaimable": each.name == "b"})) for each in queues]
    assert replayed("volcano", kept, requests, 3, capacity=8) == [{"a": 8}, {"a": 8}, {"a": 8}]


def test_kai_takes_back_the_fair_share_and_leaves_its_part_to_the_other():
    queues = [quota("a", guaranteed=2, weight=1), quota("b", guaranteed=2, weight=1)]
    requests = [*(request(f"a{n}", "a", 1, bound=0) for n in range(8)), *(request(f"b{n}", "b", 1, 1) for n in range(8))]
    assert replayed("kai", queues, requests, 2, capacity=8) == [{"a": 8}, {"a": 4, "b": 4}]


def test_koordinator_takes_nothing_back_unless_it_monitors():
    queues = [quota("a", guaranteed=4, cap=8), quota("b", guaranteed=4, cap=8)]
    requests = [*(request(f"a{n}", "a", 2, bound=0) for n in range(4)), request("b1", "b", 4, 1)]
    assert replayed("koordinator", queues, requests, 2, capacity=8)[1] == {"a": 8}
    assert replayed("koordinator", queues, requests, 2, capacity=8, rules=Rules(monitors_quotas=True))[1] == {"a": 4, "b": 4}


REQUESTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 6), st.integers(0, 5), st.integers(1, 6), st.integers(0, 2)), max_size=12
)


@pytest.mark.parametrize("system", sorted(POLICIES))
@settings(max_examples=40, deadline=None)
@given(REQUESTS, st.integers(0, 12), st.randoms())
def test_pods_are_in_whole_once_and_never_more_than_there_is(system, rows, capacity, chance):
    quotas = [quota(name, guaranteed=4, cap=9, weight=1, deserved=4 if system == "volcano" else None) for name in "ab"]
    requests = [
        request(f"p{n}", q, amount, created, None, created + runs, p) for n, (q, amount, created, runs, p) in enumerate(rows)
    ]
    found = replayed(system, quotas, requests, 8, capacity=capacity)
    for hour, held in enumerate(found):
        there = [each for each in requests if each.created_ms <= hour * HOUR < each.ended_ms]
        for name, amount in held.items():
            sums = {0}
            for each in there:
                if each.quota == name:
                    sums |= {one + each.amount for one in sums}
            assert amount in sums
            assert amount <= 9
        assert system == "kueue" or sum(held.values()) <= capacity
    shuffled = random.Random(chance.random()).sample(requests, len(requests))
    assert replayed(system, quotas, shuffled, 8, capacity=capacity) == found
