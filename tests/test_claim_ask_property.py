"""What pods ask for by claims against an oracle that goes look by look, on any claims, devices, pods and missed looks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, load

QUERY = load()["day.claim_request"]
LOOKS = {0: 5, 5: 10, 10: 15, 15: 30, 60: 65, 65: 80}
"""Minutes of the looks, and until when each stands: after the fourth nobody looked for a while."""
CLAIMS, PODS = ("a", "b"), ("p", "q")

Claims = dict[tuple[str, int], tuple[int, int]]
"""By claim and minute of a look that saw it: devices that it asks for, and those that it has; 0 where it is not allocated."""
Pods = dict[tuple[str, int], tuple[str, frozenset[str]]]
"""By pod and minute of a look that saw it: its node, and the claims that it names."""
Ask = tuple[str, str, str, float, float]
"""Pod and its uid, or the claim's; stage, effective and claim units."""

CHANGES = st.lists(st.integers(0, 2), min_size=len(LOOKS), max_size=len(LOOKS)).map(sorted)
MISSED = st.sets(st.sampled_from(sorted(LOOKS)), max_size=3)
STATE = st.tuples(st.sampled_from(["", "n1"]), st.frozensets(st.sampled_from(CLAIMS), min_size=1))


@st.composite
def claims(draw: st.DrawFn) -> Claims:
    found = {}
    for claim in CLAIMS:
        asked, missed = draw(st.integers(1, 3)), draw(MISSED)
        found |= {(claim, at): (asked, had) for at, had in zip(LOOKS, draw(CHANGES), strict=True) if at not in missed}
    return found


@st.composite
def pods(draw: st.DrawFn) -> Pods:
    found = {}
    for pod in PODS:
        states, missed = draw(st.tuples(STATE, STATE, STATE)), draw(MISSED)
        found |= {(pod, at): states[number] for at, number in zip(LOOKS, draw(CHANGES), strict=True) if at not in missed}
    return found


def expected(claims: Claims, pods: Pods, at: int) -> set[Ask]:
    """What is asked for at a look, by going through all that it saw."""
    parts: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for claim, (asked, had) in {claim: found for (claim, seen), found in claims.items() if seen == at}.items():
        named = [(node == "", pod) for (pod, seen), (node, names) in sorted(pods.items()) if seen == at and claim in names]
        units = had or asked
        for number, (is_waiting, pod) in enumerate(sorted(named)):
            parts[pod, pod, "unscheduled" if is_waiting else "placed"].append((0 if number else units, units))
        if had and not named:
            parts["", claim, "placed"].append((units, units))
    return {(*key, sum(first for first, _ in found), sum(each for _, each in found)) for key, found in parts.items()}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        seen = "cluster varchar default 'c', namespace varchar default 'ns', observed_at timestamp"
        request = "request varchar, subrequest varchar, device_class varchar, device_count bigint, is_admin_access boolean"
        request += ", capacities map(varchar, double)"
        amounts, device = "capacities map(varchar, double)", "driver varchar, pool varchar, device varchar"
        con.execute(
            f"""create schema day; create schema lake;
            create table day.state_snapshot (cluster varchar, kind varchar, observed_at timestamp, previous_at timestamp,
                stands_until_at timestamp, is_followed boolean, snapshot_number uinteger, run_number uinteger);
            create table lake.claim ({seen}, claim varchar, claim_uid varchar, is_allocated boolean, requests struct({request})[],
                is_extended_resource boolean default false);
            create table lake.claim_device ({seen}, claim_uid varchar, {device}, request varchar default 'r',
                subrequest varchar default '', share_id varchar default '',
                is_admin_access boolean default false);
            create table day.claim_share (cluster varchar, claim_uid varchar, {device}, share_id varchar, request varchar,
                share_ratio double);
            create table day.class_device (cluster varchar, device_class varchar, {device}, observed_at timestamp);
            create table lake.device ({seen}, {device}, node_name varchar, is_shareable boolean, {amounts});
            create table lake.pod ({seen}, pod varchar, pod_uid varchar, node_name varchar, phase varchar,
                unschedulable_at timestamp, unschedulable_reason varchar default '', resource_claims map(varchar, varchar))"""
        )
        run = 0
        for number, (before, at) in enumerate(pairwise([-60, *LOOKS]), start=1):
            is_next = at - before <= 15
            run += not is_next
            con.execute(
                "insert into day.state_snapshot values ('c', 'resourceclaims.resource.k8s.io', ?, ?, ?, ?, ?, ?)",
                [clock(at), clock(before) if is_next else None, clock(LOOKS[at]), LOOKS[at] in LOOKS, number, run],
            )
        yield con


def clock(minute: int) -> datetime:
    return datetime(2026, 3, 1) + timedelta(minutes=minute)


def fill(con: duckdb.DuckDBPyConnection, claims: Claims, pods: Pods) -> None:
    con.execute("delete from lake.claim; delete from lake.claim_device; delete from lake.pod")
    for (claim, at), (asked, had) in claims.items():
        requests = [
            {
                "request": "r",
                "subrequest": "",
                "device_class": "gpu",
                "device_count": asked,
                "is_admin_access": False,
                "capacities": {},
            }
        ]
        con.execute(
            "insert into lake.claim (observed_at, claim, claim_uid, is_allocated, requests) values (?, ?, ?, ?, ?)",
            [clock(at), claim, claim, had > 0, requests],
        )
        for device in range(had):
            con.execute(
                "insert into lake.claim_device (observed_at, claim_uid, device) values (?, ?, ?)", [clock(at), claim, str(device)]
            )
    for (pod, at), (node, names) in pods.items():
        con.execute(
            "insert into lake.pod (observed_at, pod, pod_uid, node_name, phase, resource_claims) "
            "values (?, ?, ?, ?, ?, map(?, ?))",
            [clock(at), pod, pod, node, "Running" if node else "Pending", sorted(names), sorted(names)],
        )


@settings(max_examples=25, deadline=None)
@given(claims=claims(), pods=pods())
def test_each_look_says_what_its_own_objects_say(con: duckdb.DuckDBPyConnection, claims: Claims, pods: Pods) -> None:
    fill(con, claims, pods)
    build(con, QUERY, {})

    found = con.execute(
        f"select pod, pod_uid, stage, effective_units, claim_units, start_at, end_at from {QUERY.table}"
    ).fetchall()
    for at, until in LOOKS.items():
        there = [row[:5] for row in found if row[5] < clock(until) and row[6] > clock(at)]
        assert len(there) == len(set(there))
        assert set(there) == expected(claims, pods, at)


def test_what_stays_the_same_is_one_row_however_often_it_is_looked_at(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, {("a", at): (1, 1) for at in (0, 5, 10, 15)}, {("p", at): ("n1", frozenset("a")) for at in (0, 5, 10, 15)})
    build(con, QUERY, {})

    assert con.execute(f"select start_at, end_at from {QUERY.table}").fetchall() == [(clock(0), clock(30))]
