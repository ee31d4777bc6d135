"""Requested changes, and recorded demand through the rules with them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.schedulers.allocation import ASSUMPTIONS
from gpureport.schedulers.change import Change, Pool, Setting, changed, doubts, parse_setting, resolved
from gpureport.schedulers.model import Terms
from gpureport.schedulers.replay import Step, replay
from gpureport.values.errors import UsageError
from tests.schedulers.made import holding


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("quota.team-a.min=20", Setting("team-a", "guaranteed", 20)),
        ("quota.research/quota-a.max=none", Setting("research/quota-a", "cap", None)),
        ("quota.my.queue.overQuotaWeight=2.5", Setting("my.queue", "weight", 2.5)),
        ("quota.cq.borrowingLimit = 0", None),
        ("quota.cq.borrowingLimit=0", Setting("cq", "borrowing_limit", 0)),
        ("quota.vol.deserved=none", Setting("vol", "deserved", None)),
        ("quota.ns/q.hard[requests.nvidia.com/gpu]=8", Setting("ns/q", "cap", 8, "requests.nvidia.com/gpu")),
    ],
)
def test_a_setting_is_quota_name_term_value(text, setting):
    if setting is None:
        with pytest.raises(UsageError, match="no 'borrowingLimit '"):
            parse_setting(text)
    else:
        assert parse_setting(text) == setting


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("team-a.min=20", "is not quota.NAME.TERM=VALUE"),
        ("quota.team-a.min", "is not quota.NAME.TERM=VALUE"),
        ("quota.min=20", "is not quota.NAME.TERM=VALUE"),
        ("quota.a.min[gpu=20", "is not quota.NAME.TERM=VALUE"),
        ("quota.team-a.minimum=20", "a quota has no 'minimum'; choose from min, max"),
        ("quota.team-a.min=many", "'many' is not a number"),
        ("quota.team-a.min=", "'' is not a number"),
        ("quota.team-a.min=-1", "-1 is not possible"),
        ("quota.team-a.min=nan", "nan is not possible"),
        ("quota.team-a.max=inf", "inf is not possible"),
        ("quota.team-a.min=none", "guaranteed cannot be none"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(text, why):
    with pytest.raises(UsageError, match=why) as caught:
        parse_setting(text)
    assert "\n" not in str(caught.value)


GPUS, GB, H100 = (
    Pool("c", "nos", "nvidia.com/gpu"),
    Pool("c", "nos", "nos.nebuly.com/gpu-memory"),
    Pool("c", "kueue", "nvidia.com/gpu", "h100"),
)
KNOWN = {
    GPUS: ["research/a", "serving/a"],
    GB: ["research/a", "serving/b"],
    H100: ["cq", "both"],
    Pool("d", "kai", "gpu"): ["both"],
}


def test_a_quota_is_found_by_its_name_or_by_its_name_in_a_namespace():
    change = Change((parse_setting("quota.b.min=1"), parse_setting("quota.cq.max=2")), ("serving/a",))
    assert resolved(change, KNOWN) == {
        GB: Change((Setting("serving/b", "guaranteed", 1),)),
        H100: Change((Setting("cq", "cap", 2),)),
        GPUS: Change(removed=("serving/a",)),
    }


def test_a_quota_is_found_by_its_namespace_where_that_has_one():
    known = {GB: ["research/q", "serving/q"]}
    assert resolved(Change((parse_setting("quota.serving.min=1"),)), known)[GB].settings[0].quota == "serving/q"
    with pytest.raises(UsageError, match="several quotas 'q'"):
        resolved(Change((parse_setting("quota.q.min=1"),)), known)


def test_a_quota_of_several_resources_wants_one_named():
    [(pool, change)] = resolved(Change((parse_setting("quota.research/a.min[nvidia.com/gpu]=1"),)), KNOWN).items()
    assert (pool, change.settings[0].value) == (GPUS, 1)
    assert list(resolved(Change((parse_setting("quota.cq.min[h100/nvidia.com/gpu]=1"),)), KNOWN)) == [H100]
    assert set(resolved(Change(removed=("research/a",)), KNOWN)) == {GPUS, GB}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("quota.a.min=1", "several quotas 'a': research/a, serving/a; name one of them in full"),
        ("quota.z.min=1", "no quota 'z' in the window; there are both, cq, research/a, serving/a, serving/b"),
        ("quota.both.min=1", "a quota 'both' in c and in d; choose one with --cluster"),
        ("quota.research/a.min=1", "several resources, nos.nebuly.com/gpu-memory, nvidia.com/gpu; name one"),
        ("quota.cq.min[cpu]=1", "'cq' has no 'cpu'; it has h100/nvidia.com/gpu"),
    ],
)
def test_what_is_not_clear_is_asked_for(text, why):
    with pytest.raises(UsageError) as caught:
        resolved(Change((parse_setting(text),)), KNOWN)
    assert why in str(caught.value)


def test_in_an_empty_window_there_are_no_quotas():
    with pytest.raises(UsageError, match="there are none at all"):
        resolved(Change(removed=("a",)), {})


def test_a_change_names_each_quota_once():
    assert Change((Setting("b", "cap", 1), Setting("b", "guaranteed", 1)), ("c",)).quotas() == ("b", "c")


def test_only_the_quota_that_is_named_changes_and_only_its_term():
    quota = holding("a", 0, guaranteed=1, cap=2, weight=3).quota
    assert changed(quota, "gpu", Change((Setting("a", "cap", 9), Setting("b", "cap", 7)))).terms == {"gpu": Terms(1, 9, 3)}
    assert changed(quota, "gpu", Change((Setting("b", "cap", 7),))) is quota
    assert changed(quota, "gpu", Change(removed=("a",))).terms == {}


def test_kueues_cap_follows_its_nominal_quota_and_borrowing_limit():
    alone, member = (holding("a", 0, system="kueue", parent=parent, guaranteed=5, cap=5).quota for parent in ("", "cohort/all"))
    more = Change((Setting("a", "guaranteed", 7),))
    assert changed(alone, "gpu", more).terms["gpu"].cap == 7
    assert changed(member, "gpu", more).terms["gpu"].cap is None
    limited = replace(more, settings=(*more.settings, Setting("a", "borrowing_limit", 2)))
    assert changed(member, "gpu", limited).terms["gpu"].cap == 9


def test_a_max_below_min_is_doubtful():
    quotas = [holding("a", 0, guaranteed=5, cap=2).quota, holding("b", 0, guaranteed=5, cap=5).quota]
    assert doubts(quotas, "gpu") == ["a: max 2 is below min 5"]


HOUR = 3_600_000


def steps(system, *instants, capacity=80):
    """Hours one after the other, of (demand, delivered) by quota; the seed's quotas A 40, B 10, C 30."""
    minimum = {"a": 40, "b": 10, "c": 30}
    return [
        Step(
            n * HOUR,
            (n + 1) * HOUR,
            [holding(name, *amounts, system=system, guaranteed=minimum[name]) for name, amounts in instant.items()],
            capacity,
        )
        for n, instant in enumerate(instants)
    ]


T1 = {"a": (40, 40), "b": (40, 40), "c": (0, 0)}
T2 = {"a": (50, 50), "b": (40, 30), "c": (0, 0)}


def held(found):
    return [each.delivered for each in found]


def test_the_documents_two_times_come_out_as_they_were():
    recorded = steps("nos", T1, T2)
    assert held(replay("nos", "gpu", recorded)) == held(recorded)


def test_a_higher_min_takes_back_what_is_borrowed():
    # B guaranteed 40: Σmin 110, but 80 GB are there. At t2 A has its 40 and B its 40; nothing is left to borrow.
    change = Change((Setting("b", "guaranteed", 40),))
    assert held(replay("nos", "gpu", steps("nos", T1, T2), change)) == [{"a": 40, "b": 40, "c": 0}, {"a": 40, "b": 40, "c": 0}]


def test_more_gpus_change_nothing_for_nos_until_a_min_is_raised():
    wants = {"a": (90, 40), "b": (40, 40), "c": (0, 0)}
    more, as_it_was = (held(replay("nos", "gpu", steps("nos", wants, capacity=gb))) for gb in (144, 80))
    assert more == as_it_was
    raised = Change((Setting("c", "guaranteed", 94),))
    assert sum(held(replay("nos", "gpu", steps("nos", wants, capacity=144), raised))[0].values()) == 130  # all that is requested


def test_pods_of_a_removed_quota_run_on_without_one_where_their_system_lets_them():
    # C's 30 lend no more: Σmin is 50. B's pods, without a quota, hold their 40 of 80, and A 40 of what is left.
    without_b = held(replay("nos", "gpu", steps("nos", T2), Change(removed=("b",))))
    assert without_b == [{"a": 40, "b": 40, "c": 0}]
    kai = held(replay("kai", "gpu", steps("kai", T2), Change(removed=("b",))))
    assert kai == [{"a": 50, "b": 0, "c": 0}]


def test_a_removed_parent_leaves_its_children_on_their_own():
    tree = [holding("p", 0, guaranteed=2, cap=2, is_parent=True), holding("k", 8, 2, parent="p", guaranteed=1, weight=1)]
    recorded = [Step(0, HOUR, tree, 8)]
    assert held(replay("kai", "gpu", recorded)) == [{"p": 2, "k": 2}]
    assert held(replay("kai", "gpu", recorded, Change(removed=("p",)))) == [{"p": 8, "k": 8}]


def test_after_a_gap_it_goes_on_from_what_was_held_then():
    # scheduler-plugins: who holds what is over keeps it. B held it in hour 0, A in hour 2; hour 1 is unknown.
    first, second = steps("scheduler-plugins", {**T1, "a": (70, 40)}, {"a": (70, 70), "b": (40, 10), "c": (0, 0)})
    together = held(replay("scheduler-plugins", "gpu", [first, second]))
    apart = held(replay("scheduler-plugins", "gpu", [first, replace(second, start_ms=2 * HOUR, end_ms=3 * HOUR)]))
    assert (together[1], apart[1]) == ({"a": 40, "b": 40, "c": 0}, {"a": 70, "b": 10, "c": 0})


AMOUNT = st.integers(0, 40)


@pytest.mark.parametrize("system", sorted(ASSUMPTIONS))
@settings(max_examples=25)
@given(st.lists(st.tuples(AMOUNT, AMOUNT, AMOUNT), min_size=1, max_size=5), st.integers(1, 59))
def test_cutting_a_step_in_two_changes_nothing(system, demands, minute):
    whole = steps(system, *({"a": (a, 0), "b": (b, 0), "c": (c, 0)} for a, b, c in demands))
    cut_at = whole[-1].start_ms + minute * 60_000
    cut = [*whole[:-1], replace(whole[-1], end_ms=cut_at), replace(whole[-1], start_ms=cut_at)]
    once, twice = held(replay(system, "gpu", whole)), held(replay(system, "gpu", cut))
    assert twice[-2] == pytest.approx(once[-1], abs=1e-6)
    assert twice[-1] == pytest.approx(twice[-2], abs=1e-3)
