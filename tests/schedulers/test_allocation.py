"""What quotas would hold of what they request: hand-made instants, and what holds for all of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.schedulers.allocation import ASSUMPTIONS, allocate, share_by_previous_use, water_fill
from tests.schedulers.made import holding


def nos(**demanded):
    """The seed's three quotas: A 40, B 10, C 30."""
    return [holding(name, demanded.get(name, 0), guaranteed=gb) for name, gb in {"a": 40, "b": 10, "c": 30}.items()]


def test_nos_goes_from_the_documents_t1_to_t2():
    at_t1 = allocate("nos", "gpu", nos(a=40, b=40), 80, {})
    assert at_t1 == {"a": 40, "b": 40, "c": 0}
    # A takes back 10 of the 15 that it is guaranteed over quota; B keeps 30, which is more than its 13.
    assert allocate("nos", "gpu", nos(a=50, b=40), 80, at_t1) == {"a": 50, "b": 30, "c": 0}


def test_nos_lends_nothing_beyond_the_sum_of_min_though_gpus_are_free():
    assert allocate("nos", "gpu", nos(a=500), 400, {}) == {"a": 80, "b": 0, "c": 0}


def test_a_lender_has_its_min_back_at_once():
    assert allocate("nos", "gpu", nos(a=99, b=99, c=30), 80, {"a": 50, "b": 30}) == {"a": 40, "b": 10, "c": 30}


def test_scheduler_plugins_leaves_what_is_over_to_those_who_hold_it():
    assert allocate("scheduler-plugins", "gpu", nos(a=50, b=40), 80, {"a": 40, "b": 40}) == {"a": 40, "b": 40, "c": 0}


def test_koordinator_lets_nobody_above_its_runtime():
    holdings = [holding("a", 90, guaranteed=20, cap=100), holding("b", 10, guaranteed=60, cap=60), holding("c", 50, cap=30)]
    # a starts at 20, b has its 10; 70 left by weights 100 and 30: c gets 16.2, a the rest.
    assert allocate("koordinator", "gpu", holdings, 100, {"a": 0, "b": 60, "c": 30}) == {"a": 74, "b": 10, "c": 16}


def test_volcano_never_lends_a_guarantee():
    holdings = [holding("a", 8, weight=1, guaranteed=0), holding("b", 0, weight=1, guaranteed=3)]
    assert allocate("volcano", "gpu", holdings, 8, {"a": 8}) == {"a": 5, "b": 0}


def test_volcano_with_deserved_lends_what_is_idle():
    holdings = [holding("a", 8, deserved=2), holding("b", 1, deserved=6)]
    assert allocate("volcano", "gpu", holdings, 8, {}) == {"a": 7, "b": 1}


def test_kai_lets_a_queue_without_weight_have_what_nobody_wants():
    holdings = [holding("a", 6, guaranteed=2, weight=0), holding("b", 1, guaranteed=2, weight=1)]
    assert allocate("kai", "gpu", holdings, 8, {}) == {"a": 6, "b": 1}


def test_kais_parent_has_a_limit_for_all_its_queues():
    holdings = [
        holding("team", 0, guaranteed=2, weight=0, cap=4, is_parent=True),
        holding("x", 9, guaranteed=1, weight=0, parent="team"),
        holding("y", 9, guaranteed=1, weight=0, parent="team"),
    ]
    assert allocate("kai", "gpu", holdings, 16, {}) == {"x": 2, "y": 2}  # 1 each by quota, and the 2 that are left of 4


def test_kueue_lends_within_both_limits():
    a, b = holding("a", 9, parent="c/all", guaranteed=5), holding("b", 1, parent="c/all", guaranteed=5, lending_limit=3)
    assert allocate("kueue", "gpu", [a, b], 99, {}) == {"a": 8, "b": 1}  # 3 of b's 4 idle ones
    shy = holding("a", 9, parent="c/all", guaranteed=5, borrowing_limit=1)
    assert allocate("kueue", "gpu", [shy, b], 99, {}) == {"a": 6, "b": 1}
    alone = [holding("a", 9, guaranteed=5), holding("b", 1, guaranteed=5)]
    assert allocate("kueue", "gpu", alone, 99, {}) == {"a": 5, "b": 1}  # without a cohort nobody lends


def test_kueues_borrowers_share_by_weight():
    holdings = [
        holding("a", 20, parent="all", guaranteed=2, weight=1),
        holding("b", 20, parent="all", guaranteed=2, weight=3),
        holding("c", 0, parent="all", guaranteed=8),
    ]
    assert allocate("kueue", "gpu", holdings, 99, {"a": 10}) == {"a": 4, "b": 8, "c": 0}  # 8 idle ones by 1:3


def test_kueues_child_cohort_serves_its_own_first_and_borrows_for_the_rest():
    holdings = [
        holding("child", 0, parent="root", is_parent=True, guaranteed=1, borrowing_limit=2),
        holding("a", 9, parent="child", guaranteed=2),
        holding("b", 1, parent="child", guaranteed=3),
        holding("c", 0, parent="root", guaranteed=10),
    ]
    # a: its 2, b's 2 idle ones, the cohort's own 1, and 2 borrowed of the root's.
    assert allocate("kueue", "gpu", holdings, 99, {}) == {"a": 7, "b": 1, "c": 0}


def test_a_cap_is_all_that_a_resource_quota_knows():
    holdings = [holding("a", 9, cap=4), holding("b", 9, cap=8)]
    assert allocate("kubernetes", "gpu", holdings, 10, {"a": 4, "b": 5}) == {"a": 4, "b": 6}


def test_where_guarantees_are_more_than_there_is_those_who_hold_keep():
    holdings = [holding("a", 6, guaranteed=6), holding("b", 6, guaranteed=6)]
    assert allocate("scheduler-plugins", "gpu", holdings, 8, {"a": 6}) == {"a": 6, "b": 2}


def test_water_reaches_one_level_per_weight():
    # 12 by 1:1:2 is 3, 3, 6; the first wants 1, so 11 go by 1:2: 3.67 and 7.33, and the last wants 7.
    assert water_fill(12, {"a": 1, "b": 9, "c": 7}, {"a": 1, "b": 1, "c": 2}) == {"a": 1, "b": 4, "c": 7}
    assert water_fill(12, {"a": 9, "b": 9}, {"a": 0, "b": 1}) == {"a": 0, "b": 9}


def test_what_was_held_comes_first_then_everybody_in_proportion():
    assert share_by_previous_use(10, {"a": 6, "b": 12}, {"a": 4}) == pytest.approx({"a": 4 + 2 * 6 / 14, "b": 12 * 6 / 14})


AMOUNT = st.integers(0, 40)
ROWS = st.lists(st.tuples(AMOUNT, AMOUNT, st.none() | AMOUNT, st.integers(0, 4), AMOUNT), min_size=1, max_size=5)


def made(system, rows):
    parent = "all" if system == "kueue" else ""
    return [
        holding(f"q{n}", demand, parent=parent, guaranteed=g, cap=None if cap is None else max(cap, g), weight=weight, uid=str(n))
        for n, (demand, g, cap, weight, _) in enumerate(rows)
    ]


@pytest.mark.parametrize("system", sorted(ASSUMPTIONS))
@settings(max_examples=40)
@given(ROWS, AMOUNT, st.randoms())
def test_nobody_holds_more_than_it_asks_for_its_cap_or_all_there_is(system, rows, capacity, random):
    holdings = made(system, rows)
    before = {f"q{n}": float(row[-1]) for n, row in enumerate(rows)}
    held = allocate(system, "gpu", holdings, capacity, before)
    for each in holdings:
        cap = each.quota.terms["gpu"].cap
        assert -1e-9 <= held[each.quota.name] <= min(each.demanded, each.demanded if cap is None else cap) + 1e-9
    assert sum(held.values()) <= capacity + 1e-6
    shuffled = allocate(system, "gpu", random.sample(holdings, len(holdings)), capacity, before)
    assert shuffled == pytest.approx(held, abs=1e-3)


@pytest.mark.parametrize("system", sorted(set(ASSUMPTIONS) - {"kubernetes"}))
@settings(max_examples=40)
@given(ROWS)
def test_nobody_is_short_of_its_guarantee_where_guarantees_fit(system, rows):
    holdings = made(system, rows)
    capacity = sum(row[1] for row in rows)
    held = allocate(system, "gpu", holdings, capacity, {f"q{n}": float(row[-1]) for n, row in enumerate(rows)})
    for each in holdings:
        assert held[each.quota.name] >= min(each.demanded, each.quota.terms["gpu"].guaranteed) - 1e-6


@pytest.mark.parametrize("system", ["nos", "scheduler-plugins", "kueue"])
@settings(max_examples=40)
@given(ROWS)
def test_no_more_is_borrowed_than_others_leave(system, rows):
    holdings = made(system, rows)
    held = allocate(system, "gpu", holdings, 10_000, {})
    minimum = {each.quota.name: each.quota.terms["gpu"].guaranteed for each in holdings}
    borrowed = sum(max(0, held[name] - minimum[name]) for name in held)
    assert borrowed <= sum(max(0, minimum[name] - held[name]) for name in held) + 1e-6
