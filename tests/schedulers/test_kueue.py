"""Kueue's weighted share, borrowing and lending; numbers that upstream's tests assert, unless a comment works them out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.schedulers.kueue import MAX_WEIGHTED_SHARE, Cohorts, Node, cohorts, consumed
from gpureport.schedulers.model import Terms
from tests.schedulers.made import holding

GPU = ("default", "gpu")


def queue(name, nominal, usage=0, parent="all", weight=1, borrowing=None, lending=None):
    return Node(name, parent, {GPU: Terms(nominal, borrowing_limit=borrowing, lending_limit=lending)}, weight, {GPU: usage})


def share(nodes, name="a"):
    return Cohorts(nodes).weighted_share(name).as_status


@pytest.mark.parametrize(("weight", "expected"), [(1, 200), (2, 100), (0.5, 400), (0, MAX_WEIGHTED_SHARE)])
def test_two_borrowed_of_ten_is_200_over_the_weight(weight, expected):
    assert share([queue("a", 5, 7, weight=weight), queue("b", 5)]) == expected


@pytest.mark.parametrize(
    ("usage", "weight", "value", "expected"),
    [(501, 1, 2 / 3, 1), (800, 300, 2 / 3, 1), (500, 1, 0, 0)],  # (usage - 500) x 1000 / 1500 / weight, rounded up
)
def test_a_small_share_is_rounded_up_in_the_status(usage, weight, value, expected):
    nodes = [queue("a", 500, usage, weight=weight), queue("b", 1000)]
    assert Cohorts(nodes).weighted_share("a").value == pytest.approx(value)
    assert share(nodes) == expected


def test_the_flavors_of_a_resource_count_together():
    # 5 over 20 of on-demand; of spot 75 are free, which do not count against it; the cohort can lend 20 + 80 + 100.
    on_demand, spot, default = ("on-demand", "cpu"), ("spot", "cpu"), ("default", "cpu")
    a = Node("a", "all", {on_demand: Terms(20), spot: Terms(80)}, 1, {on_demand: 25, spot: 5})
    assert share([a, Node("b", "all", {default: Terms(100)})]) == 25


def test_a_resource_of_which_nothing_can_be_lent_is_left_out():
    gpu, cpu = ("default", "gpu"), ("default", "cpu")
    a = Node("a", "all", {gpu: Terms(0), cpu: Terms(2)}, 1, {gpu: 4, cpu: 5})
    found = Cohorts([a, Node("b", "all", {cpu: Terms(8)})]).weighted_share("a")
    assert (found.as_status, found.resource) == (300, "cpu")  # (5 - 2) x 1000 / 10


def test_what_passes_between_the_queues_of_a_tree_goes_through_its_cohorts():
    """Of a's members a1 leaves 3 and a2 borrows 1, so 2 are left over; b1 borrows 3, the root has 2 of its own.

    For b's 3 there are 2 + 2, so a lends 1.5 and the root 1.5. Of a1's 3 then 1 + 1.5 are lent; with the root's 1.5 that is
    the 4 that are borrowed.
    """
    nodes = [Node("root", "", {GPU: Terms(2)}), Node("a", "root"), Node("b", "root")]
    found = Cohorts([*nodes, queue("a1", 4, 1, "a"), queue("a2", 4, 5, "a"), queue("b1", 2, 5, "b")]).lending(GPU)
    assert {name: each.lent for name, each in found.items()} == {"root": 0, "a": 1.5, "b": 0, "a1": 2.5, "a2": 0, "b1": 0}
    # a1 may have back the 1 of a2, and the 1.5 that b has of a; b1 nothing, for nobody has anything of b.
    assert {name: each.others_borrowed for name, each in found.items()} == {
        "root": 0,
        "a": 3,
        "b": 0,
        "a1": 2.5,
        "a2": 1.5,
        "b1": 0,
    }
    # The root's queues hold 11 of 12: only b, whose have 5 of 2, borrows of what is above it.
    assert {name: each.borrowed for name, each in found.items()} == {"root": 0, "a": 0, "b": 3, "a1": 0, "a2": 1, "b1": 3}


def test_who_has_what_a_queue_might_have_back_is_told_by_queue():
    """As before, and beside b a cohort c of which two queues borrow 1 and 2.

    The root's members borrow 3 + 3, for which there are 2 + 2: 4 of 6 are served. Of these a lends 2: 1 to b1, 1 to c's queues.
    """
    nodes = [Node("root", "", {GPU: Terms(2)}), Node("a", "root"), Node("b", "root"), Node("c", "root")]
    others = [queue("b1", 2, 5, "b"), queue("c1", 0, 1, "c"), queue("c2", 0, 2, "c")]
    found = Cohorts([*nodes, queue("a1", 4, 1, "a"), queue("a2", 4, 5, "a"), *others]).lending(GPU)
    assert found["a1"].borrowers == pytest.approx({"a2": 1, "b1": 1, "c1": 1 / 3, "c2": 2 / 3})
    assert found["c1"].borrowers == {"c2": 2}
    assert (found["a"].lent, found["a1"].lent) == (2, pytest.approx(3))


def test_a_cohort_lends_no_more_than_its_limit():
    """As before, but a lends 1 at most: the root's own 2 and this 1 are b's 3; a1 lends 1 within a and 1 beyond."""
    nodes = [Node("root", "", {GPU: Terms(2)}), Node("a", "root", {GPU: Terms(lending_limit=1)}), Node("b", "root")]
    found = Cohorts([*nodes, queue("a1", 4, 1, "a"), queue("a2", 4, 5, "a"), queue("b1", 2, 5, "b")]).lending(GPU)
    assert (found["a"].lent, found["a1"].lent, found["a1"].others_borrowed) == (1, pytest.approx(2), 2)


def test_without_cohorts_above_it_is_one_pool():
    found = Cohorts([queue("a", 5, 7), queue("b", 5, 1), queue("alone", 5, 1, "")]).lending(GPU)
    assert {name: (each.lent, each.others_borrowed) for name, each in found.items()} == {
        "all": (0, 0),
        "a": (0, 0),
        "b": (2, 2),
        "alone": (0, 0),
    }


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9)), min_size=6, max_size=6),
    st.integers(0, 9),
)
def test_what_is_lent_is_what_is_borrowed_as_far_as_there_is(terms, own):
    """Two cohorts of two queues each under a third that has two of its own; nothing is lost between the levels."""
    names = ("q", "r", "a1", "a2", "b1", "b2")
    parents = ("root", "root", "a", "a", "b", "b")
    queues = [queue(name, n, u, up, lending=cut) for name, up, (n, u, cut) in zip(names, parents, terms, strict=True)]
    trees = Cohorts([Node("root", "", {GPU: Terms(own)}), Node("a", "root"), Node("b", "root"), *queues])
    found = trees.lending(GPU)
    lent = sum(found[name].lent for name in names)
    borrowed = sum(trees.borrowed(name, GPU) for name in names)
    members = [trees.borrowed(name, GPU) for name in ("q", "r", "a", "b")]
    stock = own + sum(trees.lendable(name, GPU) for name in ("q", "r", "a", "b"))
    by_root = own * min(1, sum(members) / stock) if stock else 0
    assert lent + by_root == pytest.approx(borrowed - max(0, sum(members) - stock))
    assert all(0 <= found[name].lent <= trees.lendable(name, GPU) + 1e-9 for name in (*names, "a", "b"))


def test_what_nobody_lends_is_no_share_also_without_weight():
    nodes = [queue("a", 2, 3, weight=0, lending=0), queue("b", 64, lending=0)]
    assert (share(nodes), Cohorts(nodes).weighted_share("a").resource) == (0, "")


def test_of_equal_shares_the_first_resource_is_told():
    x, y = ("f", "x"), ("f", "y")
    a = Node("a", "all", {y: Terms(1), x: Terms(1)}, 1, {x: 2, y: 2})
    assert Cohorts([a, Node("b", "all", {x: Terms(1), y: Terms(1)})]).weighted_share("a").resource == "x"


def tree(borrowing=None):
    """A child cohort without anything of its own; its queue uses what the root's other queue leaves."""
    child = Node("child", "root", {GPU: Terms(0, borrowing_limit=borrowing)}, 1 if borrowing else 2)
    return [child, queue("a", 0, 10 if borrowing else 5, parent="child"), queue("b", 50, parent="root")]


def test_a_cohort_borrows_for_its_queues():
    # 5 of 50, and the cohort's weight is 2.
    assert (share(tree(), "a"), share(tree(), "child")) == (100, 50)


def test_a_cohorts_borrowing_limit_is_all_that_its_queues_see():
    # All 10 of 10; for the cohort, of weight 1 here, 10 of 50.
    assert (share(tree(10), "a"), share(tree(10), "child")) == (1000, 200)


def test_without_cohort_or_without_borrowing_the_share_is_0():
    assert share([queue("a", 5, 7, parent="")]) == share([queue("a", 5, 5), queue("b", 5)]) == 0


def test_the_recorded_queues_borrow_2_of_9_lendable():
    # cq-serving lends 4 of its 5, so the cohort can lend 5 + 4: 2 x 1000 / 9 = 222.2, and the status says 223.
    assert share([queue("cq-research", 5, 7), queue("cq-serving", 5, 1, lending=4)], "cq-research") == 223


def test_what_is_available_respects_lending_and_borrowing_limits():
    nodes = [queue("a", 5, 3, borrowing=2), queue("b", 5, 0, lending=4), queue("c", 5, 0, lending=0)]
    found = Cohorts(nodes)
    # a: 5 + 2 at most, of which 3 are in use. b: 1 never lent, and of the 9 shared a has 3. c shares nothing and sees 9 - 3 too.
    assert [found.available(name, GPU) for name in "abc"] == [4, 1 + 6, 5 + 6]
    assert [found.potential(name, GPU) for name in "abc"] == [7, 1 + 9, 5 + 9]
    assert [found.local_quota(name, GPU) for name in "abc"] == [0, 1, 5]
    assert found.subtree_quota("all", GPU) == 9


def test_a_cohort_that_lost_quota_has_less_than_nothing_left():
    assert Cohorts([queue("a", 2, 7), queue("b", 1)]).available("b", GPU) == -4


def test_cohorts_in_a_circle_and_what_stands_under_them_are_left_out():
    nodes = [Node("x", "y"), Node("y", "x"), queue("a", 5, 7, parent="x"), queue("b", 5, 7)]
    assert sorted(Cohorts(nodes).nodes) == ["all", "b"]


def test_holdings_make_the_same_trees():
    holdings = [holding("a", 9, 7, parent="all", guaranteed=5), holding("b", 0, 0, parent="all", guaranteed=5, weight=0)]
    assert cohorts("gpu", holdings).weighted_share("a").as_status == 200


AMOUNT = st.integers(0, 20)
LIMIT = st.none() | AMOUNT


@given(st.lists(st.tuples(AMOUNT, AMOUNT, LIMIT, LIMIT), min_size=1, max_size=5), st.randoms())
def test_what_may_be_borrowed_is_never_more_than_others_lend(rows, random):
    nodes = [queue(f"q{n}", nominal, usage, "all", 1, borrow, lend) for n, (nominal, usage, borrow, lend) in enumerate(rows)]
    found = Cohorts(nodes)
    for node in nodes:
        lent = sum(
            min(*(x for x in (each.terms[GPU].guaranteed, each.terms[GPU].lending_limit) if x is not None), 99) for each in nodes
        )
        assert node.terms[GPU].guaranteed <= found.potential(node.name, GPU) <= node.terms[GPU].guaranteed + lent
    shuffled = Cohorts(random.sample(nodes, len(nodes)))
    assert all(shuffled.weighted_share(node.name) == found.weighted_share(node.name) for node in nodes)


def test_use_that_kueue_missed_is_told():
    """Kueue issue 15383: one cpu for 180 s and a half-life of 30 s are 469m half a minute later, not the 7m that it reported."""
    assert consumed(0, 0, 212, [(0, 180, 1)], 30) == pytest.approx(0.469, abs=1e-3)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=20), st.floats(0.5, 20), st.floats(0, 8))
def test_kueue_sampling_use_that_stays_is_the_integral(used, half_life, before):
    """Kueue adds 1 - 0.5^(sampling / half-life) of what is in use to what is left of what it had."""
    expected = before
    for amount in used:
        left = 0.5 ** (1 / half_life)
        expected = expected * left + amount * (1 - left)
    runs = [(at, at + 1, amount) for at, amount in enumerate(used)]
    assert consumed(before, 0, len(used), runs, half_life) == pytest.approx(expected)
