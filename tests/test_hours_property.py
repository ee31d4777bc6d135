"""Whatever was granted to whom, the hours of a GPU are shared out whole, by a slow and obvious reading of who has what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, load

QUERY = load()["day.allocated_interval"]
KEYS = "cluster varchar, device_uuid varchar, gpu_instance_id varchar"
WHO = "namespace varchar, pod varchar, pod_uid varchar, container varchar"
HOLDERS = [(pod, container) for pod in "pqr" for container in ("main", "side")]
EIGHTHS = st.none() | st.integers(0, 8)
GRANTS = st.dictionaries(st.tuples(st.sampled_from(HOLDERS), st.sampled_from("xyz")), EIGHTHS, max_size=8)
SPANS = st.dictionaries(st.sampled_from(HOLDERS), st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1)

Holder = tuple[str, str]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        found.execute("create schema facts; create schema day")
        found.execute(f"create table facts.ownership ({KEYS}, {WHO}, start_at timestamp, end_at timestamp)")
        found.execute(
            f"create table day.granted_share ({KEYS}, {WHO}, grant_key varchar, share_ratio double, is_relative boolean)"
        )
        outside = "cluster varchar, device_uuid varchar, start_at timestamp, end_at timestamp"
        for table in ("device_outage", "reservation", "fragmented_gpu"):
            found.execute(f"create table day.{table} ({outside})")
        found.execute(f"create table day.device_run ({KEYS}, start_at timestamp, end_at timestamp)")
        yield found


@settings(max_examples=60)
@given(SPANS, GRANTS)
def test_the_parts_of_a_gpus_hours_are_the_whole(
    con: duckdb.DuckDBPyConnection, spans: dict[Holder, tuple[int, int]], grants: dict[tuple[Holder, str], int | None]
) -> None:
    held = {who: (start, start + length) for who, (start, length) in spans.items()}
    fill(con, held, grants)
    rows = con.execute(
        "select start_at, pod, container, hours_ratio, allocated_part_ratio, hours_method from day.allocated_interval"
    ).fetchall()
    pieces: dict[datetime, dict[Holder, tuple[float, float, str]]] = {}
    for start_at, pod, container, *told in rows:
        pieces.setdefault(start_at, {})[pod, container] = (told[0], told[1], told[2])
    for start_at, found in pieces.items():
        at = (start_at - MIDNIGHT) // timedelta(minutes=10)
        assert sum(held for _, held, _ in found.values()) == pytest.approx(1)
        assert {method for *_, method in found.values()} == {method_of(found, grants)}
        for who, part in obvious({who for who, (start, end) in held.items() if start <= at < end}, grants).items():
            assert found[who][0] == pytest.approx(float(part))


MIDNIGHT = datetime(2026, 3, 1)


def fill(
    con: duckdb.DuckDBPyConnection, held: Mapping[Holder, tuple[int, int]], grants: Mapping[tuple[Holder, str], Any]
) -> None:
    """One GPU, held in steps of ten minutes, its grants in eighths."""
    con.execute("truncate facts.ownership; truncate day.granted_share")
    for (pod, container), (start, end) in held.items():
        times = [MIDNIGHT + timedelta(minutes=10 * step) for step in (start, end)]
        con.execute("insert into facts.ownership values ('c', 'g', '', 'ns', $1, $1, $2, $3, $4)", [pod, container, *times])
    for ((pod, container), key), eighths in grants.items():
        share = None if eighths is None else eighths / 8
        con.execute(
            "insert into day.granted_share values ('c', 'g', '', 'ns', $1, $1, $2, $3, $4, false)", [pod, container, key, share]
        )
    build(con, load()["day.ownership_interval"], {})
    build(con, QUERY, {})


def own(who: Holder, there: Any, grants: Mapping[tuple[Holder, str], int | None]) -> Fraction | None:
    """Its part of each grant that it has; None where it has none or one of unknown size."""
    keys = [key for holder, key in grants if holder == who]
    sizes = [grants[who, key] for key in keys]
    if not keys or None in sizes:
        return None
    sharers = [sum((other, key) in grants for other in there) for key in keys]
    return sum((Fraction(size or 0, 8 * count) for size, count in zip(sizes, sharers, strict=True)), Fraction(0))


def is_granted(there: Any, grants: Mapping[tuple[Holder, str], int | None]) -> bool:
    """Whether all parts are known, and they are not all of one grant of the whole."""
    parts = [own(who, there, grants) for who in there]
    behind = {tuple(sorted(key for holder, key in grants if holder == who)) for who in there}
    given = sum(part or 0 for part in parts)
    return None not in parts and given > 0 and (len(behind) > 1 or given < 1)


def method_of(there: Any, grants: Mapping[tuple[Holder, str], int | None]) -> str:
    """How the hours are shared out."""
    if is_granted(there, grants):
        return "granted_share"
    return "exclusive" if len(there) == 1 else "equal_share"


def obvious(there: set[Holder], grants: Mapping[tuple[Holder, str], int | None]) -> dict[Holder, Fraction]:
    """The part of each: by what it was given, else pods alike and containers of a pod alike."""
    if is_granted(there, grants):
        parts = {who: own(who, there, grants) or Fraction(0) for who in there}
        return {who: part / max(Fraction(1), sum(parts.values(), Fraction(0))) for who, part in parts.items()}
    pods = {pod for pod, _ in there}
    return {who: Fraction(1, len(pods) * sum(pod == who[0] for pod, _ in there)) for who in there}
