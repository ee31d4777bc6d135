"""What passes between queues of a tree of cohorts, from the terms and amounts that SQL has put together."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest

from gpureport.compute.quotas.kueue import quota_lending_table

NOON, ONE, TWO = (datetime(2026, 3, 1, hour) for hour in (12, 13, 14))


def cluster(places: list[tuple[object, ...]], steps: list[tuple[object, ...]]) -> dict[tuple[str, datetime], tuple[float, float]]:
    """By quota and step what it lent and what it could have back; places are cohorts, steps what queues have and hold."""
    with duckdb.connect() as con:
        con.execute(
            """create schema facts; create schema day; create schema period; create schema previous;
            create table day.quota_terms (cluster varchar, system varchar, is_parent boolean, resource varchar,
                quota varchar, parent varchar, start_at timestamp, end_at timestamp);
            create table day.quota_amount (cluster varchar, system varchar, resource varchar, flavor varchar, tree varchar,
                scopes varchar,
                namespaces varchar[], priority bigint, may_lend boolean, uid varchar, created_at timestamp, cap_native double,
                weight double, deserved_native double, borrowing_limit_native double, lending_limit_native double,
                quota varchar, parent varchar, is_parent boolean, guaranteed_native double, delivered_native double,
                start_at timestamp, end_at timestamp)"""
        )
        for row in places:
            con.execute("insert into day.quota_terms values ('c', 'kueue', true, '', ?, ?, ?, ?)", row)
        for row in steps:
            con.execute(
                "insert into day.quota_amount values ('c', 'kueue', 'gpu', 'f', '', null, [], null, true, '', null, null, 1, "
                "null, null, null, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        rows = quota_lending_table(con).to_pylist()
    return {(row["quota"], row["start_at"]): (row["lent_native"], row["others_borrowed_native"]) for row in rows}


def queues(start: datetime, end: datetime) -> list[tuple[object, ...]]:
    """a1 has 4 and holds 1, b1 has 2 and holds 5."""
    return [("a1", "cohort/a", False, 4, 1, start, end), ("b1", "cohort/b", False, 2, 5, start, end)]


def test_cohorts_without_quotas_of_the_flavor_hold_the_tree_together() -> None:
    """Neither cohort has terms of the flavor: both are under the root, so b1's 3 are those that a1 leaves."""
    places = [("cohort/a", "cohort/root", NOON, ONE), ("cohort/b", "cohort/root", NOON, ONE)]
    found = cluster(places, queues(NOON, ONE))
    assert found == {("a1", NOON): (pytest.approx(3), pytest.approx(3)), ("b1", NOON): (0, 0)}


def test_a_cohort_that_is_put_elsewhere_lends_there_from_then_on() -> None:
    places = [
        ("cohort/a", "cohort/root", NOON, TWO),
        ("cohort/b", "cohort/other", NOON, ONE),
        ("cohort/b", "cohort/root", ONE, TWO),
    ]
    found = cluster(places, [*queues(NOON, ONE), *queues(ONE, TWO)])
    assert (found["a1", NOON], found["a1", ONE]) == ((0, 0), (pytest.approx(3), pytest.approx(3)))


def test_queues_whose_cohorts_are_only_named_are_left_to_their_pool() -> None:
    assert cluster([], queues(NOON, ONE)) == {}
