"""The demand forecast against a slow count in fractions, and how often its interval holds what came."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction
from functools import cache
from statistics import median

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, connection, load

ONE, TENTH = timedelta(days=1), Fraction(1, 10)
Demand = Mapping[date, Fraction]
Forecast = tuple[Fraction | None, Fraction, Fraction | None]
"""Low, expected and high."""
START = date(2026, 1, 1)


def counted(con: duckdb.DuckDBPyConnection, demands: Mapping[str, Mapping[date, float]]) -> None:
    """Demand of models by day, and what is made of it."""
    con.execute("create schema period")
    con.execute(
        "create table period.demand_day (cluster varchar, gpu_model varchar, day date, device_count bigint, "
        "allocated_gpu_hours double, usable_gpu_hours double, is_counted boolean)"
    )
    rows = [(model, day, hours) for model, days in demands.items() for day, hours in days.items()]
    con.executemany("insert into period.demand_day values ('c', ?, ?, 5, ?, 120, true)", rows)
    for table in ("demand_profile", "demand_level", "demand_expectation", "demand_backtest"):
        build(con, load()[f"period.{table}"], {})


def quantile(values: list[Fraction], at: Fraction) -> Fraction:
    place = at * (len(values) - 1)
    below = sorted(values)[int(place) :]
    return below[0] if place == int(place) else below[0] + (place - int(place)) * (below[1] - below[0])


def slow(demand: Demand) -> dict[tuple[date, int], Forecast]:
    """By day of the forecast and days ahead."""
    week = {day: [day - number * ONE for number in range(7)] for day in demand}
    above = {day: demand[day] - sum(map(demand.get, week[day])) / 7 for day in demand if demand.keys() >= {*week[day]}}
    change = {day: demand[day] - demand[day - 7 * ONE] for day in demand if day - 7 * ONE in demand}
    found = dict[tuple[date, int], Forecast]()
    for origin in demand:
        by_weekday = [[more for day, more in above.items() if day <= origin and day.weekday() == each] for each in range(7)]
        changes = [more for day, more in change.items() if day <= origin]
        if not all(by_weekday) or len(changes) < 7:
            continue
        profile, daily = [median(each) for each in by_weekday], Fraction(median(changes)) / 7

        @cache
        def level(day: date, profile: list[Fraction] = profile, daily: Fraction = daily) -> Fraction:
            past = [(each, Fraction(1, 2 ** (day - each).days)) for each in week[day] if each in demand]
            told = [weight * (demand[each] - profile[each.weekday()] + daily * (day - each).days) for each, weight in past]
            return sum(told) / sum(weight for _, weight in past)

        def expected(day: date, lead: int, profile: list[Fraction] = profile, daily: Fraction = daily) -> Fraction:
            return level(day) + daily * lead + profile[(day + lead * ONE).weekday()]

        for lead in range(1, 91 if origin == max(demand) else 8):
            days = [day for day in demand if demand.keys() >= {day + lead * ONE} and -91 < (day - origin).days + lead <= 0]
            errors = [demand[day + lead * ONE] - expected(day, lead) for day in days]
            weeks, most = max(Fraction(2), Fraction(len(errors), 7)), max(Fraction(0), expected(origin, lead))
            low, high = (quantile(errors, at) * weeks / (weeks - 1) if errors else None for at in (TENTH, 1 - TENTH))
            found[origin, lead] = (
                None if low is None else max(Fraction(0), most + min(Fraction(0), low)),
                most,
                None if high is None else most + max(Fraction(0), high),
            )
    return found


@settings(max_examples=8, deadline=None)
@given(
    hours=st.lists(st.integers(0, 240), min_size=40, max_size=60),
    missing=st.sets(st.integers(0, 59), max_size=2),
    weekend=st.integers(-50, 0),
)
def test_expectation_and_interval_are_those_of_a_slow_count(hours: list[int], missing: set[int], weekend: int) -> None:
    days = {START + number * ONE: each for number, each in enumerate(hours) if number not in missing}
    demand = {day: Fraction(max(0, each + weekend * (day.weekday() > 4))) for day, each in days.items()}
    with connection() as con:
        counted(con, {"H100": {day: float(each) for day, each in demand.items()}})
        told = con.execute(
            "select origin_day, lead_day_count, low_gpu_hours, expected_gpu_hours, high_gpu_hours from period.demand_expectation"
        ).fetchall()
    found = {(origin, lead): rest for origin, lead, *rest in told}
    assert len(found) > 90
    # Nine digits of an expectation and of a level that errors of two weeks count twice.
    assert found == {key: pytest.approx([each and float(each) for each in row], abs=5e-9) for key, row in slow(demand).items()}


@pytest.mark.parametrize("day_count", [35, 61, 120])
def test_four_of_five_days_come_within_the_interval(day_count: int) -> None:
    """Twelve models with weekdays, a slow growth and noise, half of them with noise that lasts."""
    demands = {}
    for number in range(12):
        chance, noise, days = random.Random(f"{number} of {day_count}"), 0.0, dict[date, float]()
        weekdays = [chance.gauss(200, 20) for _ in range(7)]
        for age in range(day_count):
            noise = chance.gauss(0, 8) + (0.5 * noise if number % 2 else 0.0)
            days[START + age * ONE] = max(0.0, weekdays[age % 7] + 0.3 * age + noise)
        demands[f"model-{number}"] = days
    with connection() as con:
        counted(con, demands)
        [(share, count)] = con.execute("select avg(is_within::integer), count(*) from period.demand_backtest").fetchall()
    assert count > 1000
    assert 0.75 < share < 0.85
