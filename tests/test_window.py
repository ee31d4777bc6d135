"""Windows: half-open, UTC, never empty; times without a zone are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lake_rows import arrow

from gpureport.commands.work.reporting import _owners, default_window
from gpureport.compute.look_back import window_before
from gpureport.compute.query import connection
from gpureport.config import load_config
from gpureport.lake import open_lake
from gpureport.values.errors import UsageError
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.window import Window, from_ms, parse_date, parse_instant, parse_period, parse_zone, plain, rfc3339, to_ms

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_day_is_half_open() -> None:
    window = Window.of_day(date(2026, 11, 20))
    assert (rfc3339(window.start_at), rfc3339(window.end_at), window.seconds) == (
        "2026-11-20T00:00:00Z",
        "2026-11-21T00:00:00Z",
        86400,
    )
    assert list(window.days()) == [date(2026, 11, 20)]


def test_a_window_that_touches_midnight_from_both_sides_has_two_days() -> None:
    window = Window(NOON, NOON + timedelta(hours=13))
    assert list(window.days()) == [date(2026, 11, 20), date(2026, 11, 21)]


@pytest.mark.parametrize("end", [NOON, NOON - timedelta(seconds=1)])
def test_an_empty_window_is_refused(end: datetime) -> None:
    with pytest.raises(UsageError, match="is empty"):
        Window(NOON, end)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        ("2026-11-20T23:51:40Z", "2026-11-20T23:51:40Z"),
        ("2026-11-21T01:30:00+02:00", "2026-11-20T23:30:00Z"),
        ("2026-11-20T23:51:40.575Z", "2026-11-20T23:51:40.575Z"),
    ],
)
def test_times_are_read_as_utc(text: str, instant: str) -> None:
    assert rfc3339(parse_instant(text)) == instant


@pytest.mark.parametrize(
    ("text", "words"), [("2026-11-20T12:00:00", "no time zone"), ("yesterday", "not a time"), ("", "not a time")]
)
def test_other_times_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_instant(text)


@pytest.mark.parametrize("text", ["2026-13-01", "20.11.2026", ""])
def test_other_dates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a date"):
        parse_date(text)


@given(st.integers(-(10**12), 4 * 10**12))
def test_milliseconds_survive_the_way_there_and_back(milliseconds: int) -> None:
    assert to_ms(from_ms(milliseconds)) == milliseconds


def test_plain_is_utc_whatever_the_zone() -> None:
    berlin = timezone(timedelta(hours=1))
    assert plain(datetime(2026, 11, 20, 13, tzinfo=berlin)) == datetime(2026, 11, 20, 12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-10", "2026-10-01T00:00:00Z … 2026-11-01T00:00:00Z"),
        ("2026-12", "2026-12-01T00:00:00Z … 2027-01-01T00:00:00Z"),
        ("2026-W43", "2026-10-19T00:00:00Z … 2026-10-26T00:00:00Z"),
        ("yesterday", "2026-11-21T00:00:00Z … 2026-11-22T00:00:00Z"),
        ("today", "2026-11-22T00:00:00Z … 2026-11-23T00:00:00Z"),
        ("7d", "2026-11-15T00:00:00Z … 2026-11-22T00:00:00Z"),
        ("2w", "2026-11-08T00:00:00Z … 2026-11-22T00:00:00Z"),
        ("3h", "2026-11-22T02:00:00Z … 2026-11-22T05:00:00Z"),
        ("2026-11-20T23:51:40Z", "2026-11-20T23:51:40Z … 2026-11-21T23:51:40Z"),
    ],
)
def test_a_period_has_a_name(text: str, expected: str) -> None:
    assert str(parse_period(text, datetime(2026, 11, 22, 5, 42, 7, tzinfo=UTC))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Clocks go back on 25 October: that day has 25 hours.
        ("2026-10-25", "2026-10-24T22:00:00Z … 2026-10-25T23:00:00Z"),
        ("2026-10", "2026-09-30T22:00:00Z … 2026-10-31T23:00:00Z"),
        ("2026W43", "2026-10-18T22:00:00Z … 2026-10-25T23:00:00Z"),
        ("yesterday", "2026-11-20T23:00:00Z … 2026-11-21T23:00:00Z"),
        ("1w", "2026-11-14T23:00:00Z … 2026-11-21T23:00:00Z"),
        ("2026-10-24T22:00:00Z", "2026-10-24T22:00:00Z … 2026-10-25T23:00:00Z"),
    ],
)
def test_days_of_a_time_zone_are_its_own(text: str, expected: str) -> None:
    now = datetime(2026, 11, 22, 5, 42, 7, tzinfo=UTC)
    assert str(parse_period(text, now, parse_zone("Europe/Berlin"))) == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Asia/Kolkata", "the hours of Asia/Kolkata do not begin with those of UTC"),
        ("Australia/Lord_Howe", "whole hours"),
        ("Berlin", "is not a time zone"),
        ("../etc/passwd", "is not a time zone"),
    ],
)
def test_a_zone_whose_hours_are_not_those_of_utc_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_zone(name)


def test_a_week_whose_sunday_goes_on_is_not_the_last_complete_one(tmp_path: Path) -> None:
    """Facts from Monday 2 to Sunday 15 November, those of the last day by a run of today."""
    with open_lake(tmp_path, create=True).change() as change:
        for number in range(14):
            day = date(2026, 11, 2) + timedelta(days=number)
            change.write("facts/pod_wait", "lab", day, pa.table({"pod": ["p"]}))
            change.note("lab", day, {"sample_rows": "1"})
    config = load_config(None, {}, {"lake": str(tmp_path)})[0]
    midnight = datetime(2026, 11, 16, tzinfo=UTC)
    assert str(default_window(config, midnight)) == "2026-11-09T00:00:00Z … 2026-11-16T00:00:00Z"
    assert str(default_window(config, midnight - timedelta(hours=9))) == "2026-11-02T00:00:00Z … 2026-11-09T00:00:00Z"


def test_a_week_of_a_zone_ahead_of_utc_needs_the_utc_day_in_which_it_begins(tmp_path: Path) -> None:
    """Facts begin with Monday 9 November in UTC: of that day in Tokyo, 9 of 24 hours have none. A day earlier is enough."""
    config = load_config(None, {}, {"lake": str(tmp_path), "report__timezone": "Asia/Tokyo"})[0]
    lake, now = open_lake(tmp_path, create=True), datetime(2026, 11, 16, tzinfo=UTC)
    for first, expected in (
        (9, "2026-11-09T15:00:00Z … 2026-11-15T15:00:00Z"),
        (8, "2026-11-08T15:00:00Z … 2026-11-15T15:00:00Z"),
    ):
        with lake.change() as change:
            for day in (date(2026, 11, number) for number in range(first, 16)):
                change.write("facts/pod_wait", "lab", day, pa.table({"pod": ["p"]}))
                change.note("lab", day, {"sample_rows": "1"})
        assert str(default_window(config, now)) == expected


def test_the_team_of_a_namespace_is_that_of_the_end_of_the_period(tmp_path: Path) -> None:
    """The label of ml is ana on the 20th and ben at noon of the 21st. Of new, only the 21st has labels: the first counts."""
    labels = [("ml", NOON, "ana"), ("ml", NOON + timedelta(days=1), "ben")]
    labels += [("new", NOON + timedelta(days=1, hours=number), team) for number, team in ((1, "cleo"), (2, "dan"))]
    empty = pa.table({"namespace": ["none"], "namespace_labels": pa.array([[]], pa.map_(pa.string(), pa.string()))})
    with open_lake(tmp_path, create=True).change() as change:
        change.write("facts/pod_workload", "lab", NOON.date(), empty)
    for name, at, team in labels:
        row = {"namespace": name, "namespace_uid": "", "observed_at": plain(at), "labels": {"team": team}}
        with open_lake(tmp_path).change() as change:
            change.observe("lab", at, {"namespace": arrow(TABLE_BY_NAME["namespace"], [row])})
    config = load_config(None, {}, {"lake": str(tmp_path), "report__by": "team"})[0]
    with connection() as con:
        owners = _owners(con, config, open_lake(tmp_path), Window.of_day(NOON.date()))
    assert owners == {("lab", "ml"): "ana", ("lab", "new"): "cleo"}


@pytest.mark.parametrize(
    ("period", "zone", "start"),
    [
        ("2026-W43", "Europe/Berlin", "2026-10-11T22:00:00Z"),  # 169 hours, after 168: from Monday, 12 October
        ("2026-W44", "Europe/Berlin", "2026-10-18T22:00:00Z"),
        ("2026-10-25", "Europe/Berlin", "2026-10-23T22:00:00Z"),
        ("2026-03-29", "Europe/Berlin", "2026-03-27T23:00:00Z"),
        ("2026-11", "Europe/Berlin", "2026-10-01T22:00:00Z"),  # 30 days, as November has: from 2 October
        ("2026-W43", "UTC", "2026-10-12T00:00:00Z"),
        ("2026-10-25T12:00:00Z", "Europe/Berlin", "2026-10-24T12:00:00Z"),
    ],
)
def test_the_previous_period_of_whole_local_days_has_as_many(period: str, zone: str, start: str) -> None:
    window = parse_period(period, NOON, parse_zone(zone))
    previous = window_before(window, zone)
    assert (rfc3339(previous.start_at), previous.end_at) == (start, window.start_at)
