"""A replay remembers who could not be let in and what its trees have; it must not matter."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.schedulers.kueue import Cohorts, KueuePolicy
from gpureport.schedulers.model import Holding, Quota, Rules, Terms
from gpureport.schedulers.pods import Replay, Request, Situation
from gpureport.schedulers.replay import POLICIES

GPU, NAMES = "gpu", ("a", "b", "c", "d")


class Forgetful(Replay):
    """Tries everybody at every step."""

    def _admit_pending(self) -> None:
        self._failed.clear()
        super()._admit_pending()


class ForgetfulKueue(KueuePolicy):
    """Reckons its trees anew whenever it reads them."""

    def _now(self, now: Situation) -> Cohorts:
        self._trees.clear_usage_cache()
        return self._trees


ANSWER = st.sampled_from(["Never", "Any", "LowerPriority"])
POLICY = st.fixed_dictionaries(
    {
        "queueingStrategy": st.sampled_from(["StrictFIFO", "BestEffortFIFO"]),
        "reclaimWithinCohort": ANSWER,
        "withinClusterQueue": st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "borrowWithinCohort": st.sampled_from(["Never", "LowerPriority"]),
        "maxPriorityThreshold": st.just("Never"),
    }
)
LIMIT = st.one_of(st.none(), st.integers(0, 4).map(float))
TERMS = st.builds(lambda own, borrow, lend: Terms(float(own), None, 1.0, None, borrow, lend), st.integers(0, 6), LIMIT, LIMIT)
REQUEST = st.tuples(
    st.sampled_from(NAMES), st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.integers(0, 1), st.integers(0, 20), st.integers(1, 12)
)


@st.composite
def queues(draw: st.DrawFn) -> list[Quota]:
    """Four queues under two cohorts, of which one is in the other."""
    parents = dict(zip(NAMES, ("cohort/x", "cohort/x", "cohort/y", "cohort/y"), strict=True))
    own = [Quota("kueue", name, {GPU: draw(TERMS)}, parent, policy=draw(POLICY)) for name, parent in parents.items()]
    above = Quota("kueue", "cohort/x", {GPU: draw(TERMS)}, is_parent=True)
    within = Quota("kueue", "cohort/y", {GPU: draw(TERMS)}, draw(st.sampled_from(["", "cohort/x"])), is_parent=True)
    return [*own, above, within]


def held(replay: Replay, quotas: list[Quota], requests: list[Request]) -> list[dict[str, float]]:
    """By queue at every instant."""
    found = []
    for at in range(40):
        there = [each for each in requests if each.created_ms <= at and (each.ended_ms or 0) > at]
        wanted = {name: sum(each.amount for each in there if each.quota == name) for name in NAMES}
        holdings = [Holding(quota, wanted.get(quota.name, 0.0), 0.0) for quota in quotas]
        go_on = replay.step if at else lambda *now: replay.restart(*now, is_changed=True)
        go_on(at, holdings, 12.0)
        found.append({name: replay.now.used[name] for name in NAMES})
    return found


def requested(drawn: list[tuple[str, float, int, int, int]]) -> list[Request]:
    """Requests that come and end, admitted when they came as recorded."""
    return [
        Request(f"u{number:02}", quota, amount, priority, at, at, at + lasts)
        for number, (quota, amount, priority, at, lasts) in enumerate(drawn)
    ]


@settings(max_examples=150)
@given(queues(), st.lists(REQUEST, min_size=1, max_size=25), st.booleans())
def test_kueue_remembering_lets_in_whom_it_would_otherwise(quotas, drawn, is_fair):
    requests, rules = requested(drawn), Rules(fair_sharing=is_fair)
    quick, slow = Replay(KueuePolicy(), GPU, requests, rules), Forgetful(ForgetfulKueue(), GPU, requests, rules)
    assert held(quick, quotas, requests) == held(slow, quotas, requests)


@pytest.mark.parametrize("system", sorted(set(POLICIES) - {"kueue"}))
@settings(max_examples=40)
@given(drawn=st.lists(REQUEST, min_size=1, max_size=25))
def test_no_other_scheduler_lets_in_another_for_it(system, drawn):
    requests = requested(drawn)
    quotas = [Quota(system, name, {GPU: Terms(3.0, math.inf if system == "kai" else 8.0, 1.0)}) for name in NAMES]
    found = [held(each(POLICIES[system](), GPU, requests, Rules()), quotas, requests) for each in (Replay, Forgetful)]
    assert found[0] == found[1]
