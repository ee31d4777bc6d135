"""Half-open UTC windows [start_at, end_at). Python has aware datetimes; the lake has integer milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo

from gpureport.values.errors import UsageError

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DayOrInstant = TypeVar("DayOrInstant", date, datetime)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCKS_DIFFER = timedelta(hours=1)
"""Tolerated difference between server clocks."""


def to_ms(instant: datetime) -> int:
    """Convert an aware datetime to milliseconds since the epoch, exactly."""
    return (instant - EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """Convert milliseconds since the epoch to an aware UTC datetime."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def plain(instant: datetime) -> datetime:
    """Return the time as DuckDB and Parquet store it: UTC without a zone."""
    return instant.astimezone(UTC).replace(tzinfo=None)


def local(instant: datetime, zone: str) -> datetime:
    """Return the local time in a time zone, without the zone."""
    return instant.astimezone(parse_zone(zone)).replace(tzinfo=None)


def day_start(day: date, zone: tzinfo = UTC) -> datetime:
    """Return the midnight at which the day begins, in UTC."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def parse_zone(name: str) -> tzinfo:
    """Return a time zone by its name. UsageError for an unknown name or an offset that is not in whole hours."""
    try:
        zone: tzinfo = UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(f"{name!r} is not a time zone; write a name such as Europe/Berlin, or UTC") from None
    offsets = [datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]
    if any(offset and offset % timedelta(hours=1) for offset in offsets):
        text = "Facts are by hours of UTC. Use a time zone that differs from UTC by whole hours."
        raise UsageError(f"the hours of {name} do not begin with those of UTC. {text}")
    return zone


def full_hour(instant: datetime) -> datetime:
    """Return the full hour at or before a time."""
    return instant.replace(minute=0, second=0, microsecond=0)


_YEARS = range(2000, 2200)
"""Accepted years: those of GPUs, with some margin."""


def parse_date(text: str) -> date:
    """Parse a calendar date. UsageError for anything else."""
    try:
        return _in_supported_years(date.fromisoformat(text))
    except ValueError:
        raise UsageError(f"{text!r} is not a date in {_YEARS[0]}-{_YEARS[-1]}; write it as 2026-11-20") from None


def parse_instant(text: str, zone: tzinfo = UTC, forms: str = "2026-11-20") -> datetime:
    """Parse an RFC 3339 time, or a date as its midnight. UsageError for anything else and for a time without a zone."""
    try:
        return day_start(_in_supported_years(date.fromisoformat(text)), zone)
    except ValueError:
        pass
    try:
        instant = _in_supported_years(datetime.fromisoformat(text))
    except ValueError:
        raise UsageError(f"{text!r} is not a time in {_YEARS[0]}-{_YEARS[-1]}; write {forms} or 2026-11-20T23:51:40Z") from None
    if instant.tzinfo is None:
        raise UsageError(f"{text!r} has no time zone; add Z for UTC, as in {text}Z")
    return instant.astimezone(UTC)


def _in_supported_years(day: DayOrInstant) -> DayOrInstant:
    if day.year not in _YEARS:
        raise ValueError(day)
    return day


_BACK = re.compile(r"([1-9]\d{0,3})([hdw])")
_WEEK, _MONTH = re.compile(r"\d{4}-?W\d{2}"), re.compile(r"\d{4}-\d{2}")
_NAMED_DAYS = {"today": 0, "yesterday": 1}


@dataclass(frozen=True)
class Window:
    """[start_at, end_at) in UTC; never empty."""

    start_at: datetime
    end_at: datetime

    def __post_init__(self) -> None:
        if self.end_at <= self.start_at:
            raise UsageError(
                f"the window {rfc3339(self.start_at)} … {rfc3339(self.end_at)} is empty; its end must be after its start"
            )

    @classmethod
    def of_day(cls, day: date) -> Window:
        """Return the 24 hours of a UTC day."""
        return cls(day_start(day), day_start(day) + timedelta(days=1))

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end_at - self.start_at).total_seconds()

    @property
    def start_ms(self) -> int:
        """Start in milliseconds since the epoch."""
        return to_ms(self.start_at)

    @property
    def end_ms(self) -> int:
        """End in milliseconds since the epoch, not part of the window."""
        return to_ms(self.end_at)

    @property
    def is_whole_hours(self) -> bool:
        """Whether the window starts and ends at full hours, as facts do."""
        return self.start_ms % HOUR_MS == 0 and self.end_ms % HOUR_MS == 0

    def over_by(self, now: datetime) -> Window:
        """Return the past part of the window, up to the last full hour where it continues. UsageError where that is empty."""
        if self.end_at <= now:
            return self
        end = full_hour(now)
        if end <= self.start_at:
            raise UsageError(f"no full hour of {self} is over; give an earlier start")
        return Window(self.start_at, end)

    def widened(self, margin: timedelta) -> Window:
        """Return the window with a margin on both sides."""
        return Window(self.start_at - margin, self.end_at + margin)

    def days(self) -> Iterator[date]:
        """Yield the UTC days that overlap the window, in order."""
        day = self.start_at.date()
        while day_start(day) < self.end_at:
            yield day
            day += timedelta(days=1)

    def __str__(self) -> str:
        return f"{rfc3339(self.start_at)} … {rfc3339(self.end_at)}"


def parse_period(text: str, now: datetime, zone: tzinfo = UTC) -> Window:
    """Parse a period: 2026-10, 2026-W41, 2026-10-07, an RFC 3339 time (one day from it), today, yesterday, 24h, 7d, 4w.

    Days, weeks and months are in the time zone. Past days and weeks end at the last midnight, past hours at the last full hour.
    """
    today = now.astimezone(zone).date()
    if found := _BACK.fullmatch(text):
        count = int(found[1])
        if found[2] == "h":
            end = full_hour(now)
            return Window(end - timedelta(hours=count), end)
        return _days(today - timedelta(days=count * (7 if found[2] == "w" else 1)), today, zone)
    if text in _NAMED_DAYS:
        day = today - timedelta(days=_NAMED_DAYS[text])
        return _days(day, day + timedelta(days=1), zone)
    if _WEEK.fullmatch(text):
        return _days(parse_date(text), parse_date(text) + timedelta(days=7), zone)
    if _MONTH.fullmatch(text):
        try:
            first = parse_date(f"{text}-01")
        except UsageError:
            raise UsageError(f"{text!r} is not a month; write it as 2026-10") from None
        return _days(first, (first + timedelta(days=31)).replace(day=1), zone)
    start = parse_instant(text, zone, "7d, yesterday, 2026-10, 2026-11-20")
    return Window(start, (start.astimezone(zone) + timedelta(days=1)).astimezone(UTC))


def _days(first: date, end: date, zone: tzinfo) -> Window:
    return Window(day_start(first, zone), day_start(end, zone))


def rfc3339(instant: datetime) -> str:
    """Format a time with Z; milliseconds appear only where they are not zero."""
    text = instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return text.replace(".000Z", "Z")


AGE = r"^([1-9]\d{0,3}d|[1-9]\d{0,2}w|[1-9]\d?y)?$"
"""Format of an age: days, weeks or years, as 30d, 8w, 2y; or empty."""


def age_ago(today: date, age: str) -> date:
    """Return the day that is some days, weeks or calendar years before today. 29 February becomes 28 February."""
    count, unit = int(age[:-1]), age[-1]
    if unit != "y":
        return today - timedelta(days=count * (7 if unit == "w" else 1))
    day = 28 if (today.month, today.day) == (2, 29) else today.day
    return date(today.year - count, today.month, day)
