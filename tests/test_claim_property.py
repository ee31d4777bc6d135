"""Hours of resource claims against an oracle that goes minute by minute, on any overlaps of claims, pods and containers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, load

QUERY = load()["facts.claim_hour"]
MIDNIGHT = datetime(2026, 3, 1)
LAST_MINUTE = 150
CLAIMS, DEVICES = ("a", "b", "c"), ("gpu-0", "gpu-1")

Span = tuple[str, str, int, int]
"""Claim, device (of a reservation ''), from minute, until minute."""
Shares = dict[str, float | None]
"""By claim the part of a device that it takes; None where that is unknown."""


def spans(devices: tuple[str, ...]) -> st.SearchStrategy[list[Span]]:
    minutes = st.tuples(st.integers(0, LAST_MINUTE - 1), st.integers(1, LAST_MINUTE)).map(lambda pair: (min(pair), max(pair)))
    one = st.tuples(st.sampled_from(CLAIMS), st.sampled_from(devices), minutes.filter(lambda pair: pair[0] < pair[1]))
    return st.lists(one.map(lambda found: (found[0], found[1], *found[2])), max_size=6)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as con:
        key = "cluster varchar, namespace varchar, claim varchar, claim_uid varchar"
        device = "driver varchar, pool varchar, device varchar, share_id varchar, request varchar"
        span = "start_at timestamp, end_at timestamp"
        con.execute(
            f"""create schema facts; create schema day; create schema period; create schema previous;
            create table day.state_snapshot (cluster varchar, kind varchar, observed_at timestamp, stands_until_at timestamp);
            insert into day.state_snapshot values ('c', 'pods', '2026-03-01', 'infinity');
            create table facts.claim_device ({key}, {device}, device_type varchar, profile varchar, gpu_model varchar,
                is_admin_access boolean, share_ratio double, {span});
            create table facts.claim_use ({key}, {device}, {span});
            create table facts.claim_reservation ({key}, {span})"""
        )
        yield con


def oracle(held: list[Span], used: list[Span], reserved: list[Span], shares: Shares) -> dict[tuple[str, str, int], list[float]]:
    """By claim, device and hour the minutes allocated, reserved and used, and the GPU-minutes idle and allocated."""
    minutes: dict[tuple[str, str, int], list[float]] = defaultdict(lambda: [0.0] * 5)
    for minute in range(LAST_MINUTE):
        for device in DEVICES:
            at_once = [claim for claim, on, start, end in held if on == device and start <= minute < end]
            for claim in at_once:
                is_used = any(c == claim and on == device and start <= minute < end for c, on, start, end in used)
                is_reserved = any(c == claim and start <= minute < end for c, _, start, end in reserved)
                found = minutes[claim, device, minute // 60]
                asked = {each: 1 / len(at_once) if shares[each] is None else shares[each] or 0.0 for each in at_once}
                part = asked[claim] / max(1, sum(asked.values()))
                for number, value in enumerate((1, is_reserved or is_used, is_used, 0 if is_used else part, part)):
                    found[number] += value
    return minutes


def not_twice(held: list[Span]) -> list[Span]:
    """One allocation of a device to a claim at a time: that is what the claims' intervals are."""
    kept: list[Span] = []
    for claim, device, start, end in held:
        if not any(c == claim and d == device and start < e and s < end for c, d, s, e in kept):
            kept.append((claim, device, start, end))
    return kept


@settings(max_examples=60)
@given(
    held=spans(DEVICES).map(not_twice),
    used=spans(DEVICES),
    reserved=spans(("",)),
    shares=st.fixed_dictionaries(dict.fromkeys(CLAIMS, st.sampled_from((None, 0.25, 0.5, 1.0)))),
)
def test_hours_of_claims_are_those_of_the_oracle(
    con: duckdb.DuckDBPyConnection, held: list[Span], used: list[Span], reserved: list[Span], shares: Shares
) -> None:
    def rows(found: list[Span]) -> list[list[object]]:
        named = [] if found is reserved else ["d", "n", None, "", "gpu"]
        return [
            [
                *("c", "ns", claim, claim, *(device if part is None else part for part in named)),
                *(("gpu", "", "H100", False, shares[claim]) if found is held else ()),
                *(at(start), at(end)),
            ]
            for claim, device, start, end in found
        ]

    for table, values in (("claim_device", rows(held)), ("claim_use", rows(used)), ("claim_reservation", rows(reserved))):
        con.execute(f"delete from facts.{table}")
        if values:
            con.executemany(f"insert into facts.{table} values ({', '.join('?' * len(values[0]))})", values)
    build(con, QUERY, {})

    columns = "allocated_seconds, reserved_seconds, used_seconds, idle_gpu_seconds, allocated_gpu_seconds"
    told = con.execute(f"select claim, device, hour(hour_start_at), {columns} from facts.claim_hour").fetchall()
    expected = {
        key: pytest.approx([60 * value for value in values]) for key, values in oracle(held, used, reserved, shares).items()
    }
    assert {tuple(key): list(values) for *key, a, b, c, d, e in told for values in [(a, b, c, d, e)]} == expected


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)
