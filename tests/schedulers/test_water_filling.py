"""What Koordinator, KAI and Volcano share out: the cases beside this file, trees, and what holds for all inputs."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.schedulers import kai, koordinator, volcano
from tests.schedulers.made import holding

CASES = Path(__file__).parent / "cases"


def cases(name):
    """The rows of each case of a file."""
    lines = [line for line in (CASES / name).read_text().splitlines() if not line.startswith("#")]
    found = defaultdict(list)
    for row in csv.DictReader(lines):
        found[row["case"]].append(row)
    return [pytest.param(rows, id=case) for case, rows in found.items()]


@pytest.mark.parametrize("rows", cases("koordinator.csv"))
@pytest.mark.parametrize("rounding", ["nearest", "largest-remainder"])
def test_koordinators_runtime(rows, rounding):
    siblings = [
        koordinator.Sibling(
            row["name"],
            int(row["request"]),
            int(row["minimum"]),
            int(row["weight"]),
            int(row["guaranteed"]),
            row["may_lend"] == "true",
        )
        for row in rows
    ]
    expected = {row["name"]: int(row[rounding.replace("-", "_")]) for row in rows}
    assert koordinator.redistribute(int(rows[0]["amount"]), siblings, rounding) == expected


@pytest.mark.parametrize("rows", cases("kai.csv"))
def test_kais_fair_share(rows):
    queues = [
        kai.Queue(
            row["name"],
            float(row["quota"]),
            float(row["request"]),
            float(row["weight"]),
            float(row["limit"]) if row["limit"] else None,
            int(row["priority"]),
            int(row["created"]),
        )
        for row in rows
    ]
    expected = kai.Division({row["name"]: float(row["fair_share"]) for row in rows}, float(rows[0]["remaining"]))
    amount = float(rows[0]["amount"])
    assert kai.divide(amount, queues) == kai.divide(amount, queues[::-1]) == expected


def test_kais_past_use_counts_against_a_queue_where_k_is_set():
    # 10 left, weights 1/2 each. Used 0.75 and 0.25 with k = 1: 0.5 - 0.25 = 0.25 and 0.5 + 0.25 = 0.75: 2.5 and 7.5, so 2 and 7;
    # of equal fractions the last one goes to the older.
    queues = [kai.Queue("a", 0, 10, 1, created_at_ms=1, usage_ratio=0.75), kai.Queue("b", 0, 10, 1, usage_ratio=0.25)]
    assert kai.divide(10, queues, k=1).fair_share == {"a": 2, "b": 8}
    assert kai.divide(10, queues).fair_share == {"a": 5, "b": 5}


@pytest.mark.parametrize("rows", cases("volcano.csv"))
def test_volcanos_proportion(rows):
    queues = [
        volcano.Queue(
            row["name"],
            {"gpu": float(row["request"])},
            float(row["weight"]),
            {"gpu": float(row["guarantee"])},
            {"gpu": float(row["capability"])} if row["capability"] else {},
        )
        for row in rows
    ]
    for each in (queues, queues[::-1]):
        found = volcano.proportion({"gpu": float(rows[0]["capacity"])}, each)
        assert {name: amounts["gpu"] for name, amounts in found.items()} == pytest.approx(
            {row["name"]: float(row["deserved"]) for row in rows}
        )


def test_volcano_is_met_only_when_it_has_all_resources():
    # a needs 2 GPUs of its 4, but more cpu than its 4: its 2 GPUs too many go to b in the second round.
    queues = [volcano.Queue("a", {"gpu": 2, "cpu": 8}), volcano.Queue("b", {"gpu": 8, "cpu": 2})]
    # In each later round half of what is left goes to the other; Volcano stops at less than 0.0001.
    found = volcano.proportion({"gpu": 8, "cpu": 8}, queues)
    assert found["a"] == pytest.approx({"gpu": 2, "cpu": 6}, abs=1e-4)
    assert found["b"] == pytest.approx({"gpu": 6, "cpu": 2}, abs=1e-4)


def fair(shares):
    return {name: share.fair_share for name, share in shares.items()}


def test_volcanos_configured_share_lies_between_guarantee_and_what_others_leave():
    holdings = [
        holding("a", 8, deserved=6, guaranteed=1),  # 8 - 5 - 1 + 1 = 3 real
        holding("b", 8, deserved=2, guaranteed=5),
        holding("c", 8, weight=9),  # says nothing of it and deserves nothing
    ]
    assert fair(volcano.shares("gpu", holdings, 8)) == {"a": 3, "b": 5, "c": 0}


def test_volcanos_queues_without_guarantee_deserve_a_part_where_guarantees_take_all():
    # 4 - 4 is nothing, which Volcano drops from the limits: b's 2 of the first round stay, though a has all 4.
    queues = [volcano.Queue("a", {"gpu": 4}, guarantee={"gpu": 4}), volcano.Queue("b", {"gpu": 4})]
    assert volcano.proportion({"gpu": 4}, queues) == {"a": {"gpu": 4}, "b": {"gpu": 2}}


def test_volcanos_tree_of_queues_deserves_what_it_says():
    # enableHierarchy: team's 6 is not cut to its capability of 4, x has its guarantee, and the root what its own queues say.
    holdings = [
        holding("root", 0, is_parent=True),
        holding("team", 0, parent="root", deserved=6, cap=4),
        holding("x", 9, parent="team", deserved=1, guaranteed=2),
        holding("y", 9, parent="team", deserved=5, cap=3),
        holding("other", 9, deserved=3),
    ]
    assert fair(volcano.shares("gpu", holdings, 8)) == {"root": 9, "team": 6, "x": 2, "y": 5, "other": 3}
    # Of 8 nobody is guaranteed any at the top; of team's 4, x keeps 2, so y may have 2.
    assert volcano.limits("gpu", holdings, 8) == {"team": 4, "x": 4, "y": 2, "other": 8}


def test_kais_lower_priority_shares_what_rounding_left_before_fractions_are_handed_out():
    # 2.5 each of 5 are 2 and 2; the one that is left is a whole share of the lower priority, and no fraction of a's.
    high = [kai.Queue(name, 0, 3, 1, priority=200, created_at_ms=n) for n, name in enumerate("ab")]
    assert kai.divide(5, [*high, kai.Queue("c", 0, 5, 1)]).fair_share == {"a": 2, "b": 2, "c": 1}
    # Of 5.5 the lower one has 1 too: 1.5 are left by 2.75 each; then the half goes to the highest, the older of equals.
    assert kai.divide(5.5, [*high, kai.Queue("c", 0, 5, 1)]).fair_share == {"a": 2.5, "b": 2, "c": 1}


def test_koordinators_mins_are_scaled_where_there_is_less():
    assert koordinator.scaled_minimums(100, {"a": 50, "b": 50, "c": 50}, frozenset({"a"})) == {"a": 50, "b": 25, "c": 25}
    assert koordinator.scaled_minimums(10, {"a": 5, "b": 5, "c": 5}) == {"a": 3, "b": 3, "c": 3}  # 3.33
    assert koordinator.scaled_minimums(40, {"a": 50, "b": 0, "c": 9}, frozenset({"a"})) == {"a": 50, "b": 0, "c": 0}


TREE = [
    holding("p", 0, guaranteed=60, cap=100, is_parent=True, parent="koordinator-root-quota"),
    holding("k1", 90, guaranteed=20, cap=100, parent="p"),
    holding("k2", 10, guaranteed=20, cap=100, parent="p"),
    holding("q", 50, guaranteed=40, cap=100, parent="koordinator-root-quota"),
    holding("koordinator-system-quota", 10, 10),
]


def test_koordinators_children_share_what_their_parent_got():
    # p requests its children's 100; 60 and 40 are all there is. k2 needs 10 of its 20, so 50 are left to k1.
    assert fair(koordinator.shares("gpu", TREE, 110)) == {"p": 60, "q": 40, "k1": 50, "k2": 10, "koordinator-system-quota": 10}


def test_koordinators_root_has_what_the_system_and_default_quotas_leave_and_its_children_share_it():
    """Its scheduler makes the object, without min, max or weight."""
    root = holding("koordinator-root-quota", 0, is_parent=True, may_lend=False)
    found = fair(koordinator.shares("gpu", [root, *TREE], 110))
    assert found == {**fair(koordinator.shares("gpu", TREE, 110)), "koordinator-root-quota": 100}


def test_koordinators_child_that_does_not_lend_keeps_its_min():
    stingy = [*TREE[:2], holding("k2", 10, guaranteed=20, cap=100, parent="p", may_lend=False), *TREE[3:]]
    assert fair(koordinator.shares("gpu", stingy, 110)) == {"p": 60, "q": 40, "k1": 40, "k2": 20, "koordinator-system-quota": 10}


def test_koordinator_counts_cpu_in_thousandths():
    assert fair(
        koordinator.shares("cpu", [holding("a", 3, resource="cpu", cap=9), holding("b", 3, resource="cpu", cap=9)], 1)
    ) == {"a": 0.5, "b": 0.5}


def test_kais_children_share_what_their_parent_got():
    # team has 4 of 6 by quota and both others by weight; x has its 3, y what is left of 6.
    holdings = [
        holding("team", 0, guaranteed=4, weight=1, is_parent=True),
        holding("x", 3, guaranteed=3, weight=1, parent="team"),
        holding("y", 9, guaranteed=1, weight=1, parent="team"),
        holding("other", 2, guaranteed=2, weight=0),
    ]
    assert fair(kai.shares("gpu", holdings, 8)) == {"team": 6, "other": 2, "x": 3, "y": 3}


AMOUNT = st.integers(0, 64)
SIBLINGS = st.lists(st.tuples(AMOUNT, AMOUNT, AMOUNT, st.booleans()), min_size=1, max_size=6).map(
    lambda rows: [koordinator.Sibling(f"q{n}", r, m, w, may_lend=lend) for n, (r, m, w, lend) in enumerate(rows)]
)


@given(SIBLINGS, AMOUNT, st.randoms())
def test_koordinator_gives_all_of_it_to_those_who_ask_and_no_more(siblings, amount, random):
    found = koordinator.redistribute(amount, siblings, "largest-remainder")
    floors = sum(each.floor if not each.may_lend else min(each.request, each.floor) for each in siblings)
    assert all(0 <= found[each.name] <= max(each.request, each.floor) for each in siblings)
    assert sum(found.values()) <= max(amount, floors)
    if any(found[each.name] < each.request and each.weight for each in siblings):
        assert sum(found.values()) >= amount
    assert koordinator.redistribute(amount, random.sample(siblings, len(siblings)), "largest-remainder") == found


@given(SIBLINGS, AMOUNT)
def test_koordinators_older_rounding_is_at_most_half_a_unit_off_for_each_round(siblings, amount):
    found = koordinator.redistribute(amount, siblings, "nearest")
    assert all(0 <= found[each.name] <= max(each.request, each.floor) for each in siblings)


QUEUES = st.lists(
    st.tuples(AMOUNT, AMOUNT, st.integers(0, 5), st.none() | AMOUNT, st.integers(1, 3)), min_size=1, max_size=6
).map(lambda rows: [kai.Queue(f"q{n}", q, r, w, limit, p, n, str(n)) for n, (q, r, w, limit, p) in enumerate(rows)])


@given(QUEUES, AMOUNT, st.randoms())
def test_kai_gives_whole_gpus_within_request_and_limit_and_loses_none(queues, amount, random):
    found = kai.divide(amount, queues)
    assert all(0 <= found.fair_share[each.name] <= each.requestable for each in queues)
    assert all(share == math.floor(share) for share in found.fair_share.values())
    by_quota = sum(min(each.quota, each.requestable) for each in queues)
    assert sum(found.fair_share.values()) + found.remaining == pytest.approx(max(amount, by_quota))
    assert kai.divide(amount, random.sample(queues, len(queues))).fair_share == found.fair_share
    if found.remaining >= 1:
        assert all(found.fair_share[each.name] == each.requestable for each in queues if each.weight)


@given(
    st.lists(st.tuples(st.integers(1, 9), AMOUNT, st.integers(0, 4), st.none() | AMOUNT), min_size=1, max_size=6),
    st.integers(32, 64),
    st.randoms(),
)
def test_volcano_shares_out_no_more_than_there_is_and_respects_capability_and_guarantee(rows, capacity, random):
    queues = [
        volcano.Queue(f"q{n}", {"gpu": r}, w, {"gpu": g}, {} if cap is None else {"gpu": max(cap, g)})
        for n, (w, r, g, cap) in enumerate(rows)
    ]
    found = {name: amounts["gpu"] for name, amounts in volcano.proportion({"gpu": capacity}, queues).items()}
    for each in queues:
        highest = max(min(each.request["gpu"], each.capability.get("gpu", capacity)), each.guarantee["gpu"])
        assert each.guarantee["gpu"] - 1e-9 <= found[each.name] <= highest + 1e-9
    assert sum(found.values()) <= capacity + sum(each.guarantee["gpu"] for each in queues) + 1e-6
    shuffled = volcano.proportion({"gpu": capacity}, random.sample(queues, len(queues)))
    assert {name: amounts["gpu"] for name, amounts in shuffled.items()} == pytest.approx(found, abs=1e-6)
