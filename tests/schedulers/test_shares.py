"""One question to all systems, and which holdings are under which."""

import pytest

from gpureport.schedulers.allocation import fair_shares
from gpureport.schedulers.model import below, children, leaves, roots
from tests.schedulers.made import holding

TWO = [holding("a", 8, guaranteed=2, weight=1, cap=8), holding("b", 8, guaranteed=2, weight=3, cap=8)]


@pytest.mark.parametrize(
    ("system", "shares"),
    [
        ("nos", [2, 2]),  # both use all of their min, so there is nothing beyond it
        ("koordinator", [3, 5]),  # 4 of 8 left, 1:3
        ("volcano", [2, 6]),
        ("kai", [3, 5]),
        ("kueue", [None, None]),
        ("scheduler-plugins", [None, None]),
        ("kubernetes", [None, None]),
    ],
)
def test_each_system_answers_by_its_own_rules(system, shares):
    used = [holding(each.quota.name, 8, 2, guaranteed=2, weight=w, cap=8) for each, w in zip(TWO, (1, 3), strict=True)]
    found = fair_shares(system, "gpu", used, 8)
    assert [found[name].fair_share for name in "ab"] == shares
    assert {share.reason for share in found.values()} == ({"no_such_notion"} if shares[0] is None else {""})


@pytest.mark.parametrize("system", ["koordinator", "volcano", "kai"])
def test_without_capacity_there_is_nothing_to_share_out(system):
    assert {share.reason for share in fair_shares(system, "gpu", TWO, None).values()} == {"capacity_unknown"}


def test_nos_needs_no_capacity():
    idle = [holding("a", 8, 2, guaranteed=2), holding("b", 0, 0, guaranteed=2)]
    assert {name: share.fair_share for name, share in fair_shares("nos", "gpu", idle, None).items()} == {"a": 3, "b": 3}


def test_another_tree_of_koordinators_has_nodes_of_its_own():
    found = fair_shares("koordinator", "gpu", [*TWO, holding("t", 8, cap=8, tree="batch")], 8)
    assert (found["a"].fair_share, found["t"].fair_share, found["t"].reason) == (3, None, "capacity_unknown")


FAMILY = [holding("p", 0), holding("q", 0, parent="p"), holding("r", 0, parent="q"), holding("s", 0, parent="gone")]


def names(holdings):
    return sorted(each.quota.name for each in holdings)


def test_who_stands_under_whom():
    assert names(leaves(FAMILY)) == ["r", "s"]
    assert names(roots(FAMILY)) == ["p", "s"]
    assert names(children("p", FAMILY)) == ["q"]
    assert names(below("p", FAMILY)) == ["q", "r"]
    assert names(leaves([holding("empty", 0, is_parent=True)])) == []


def test_a_circle_of_parents_ends():
    circle = [holding("x", 0, parent="y"), holding("y", 0, parent="x")]
    assert names(below("x", circle)) == ["x", "y"]
    assert roots(circle) == leaves(circle) == []
