"""What was measured of holders themselves, against an oracle that looks at every second: copies are one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.compute.query import build, connection, load, needed
from gpureport.lake import open_lake, views
from gpureport.values.tables import TABLE_BY_NAME

MIDNIGHT = datetime(2026, 3, 1)
LAST_SECOND = 120
DEVICE = "'c' as cluster, 'GPU-a' as device_uuid, '' as gpu_instance_id"
WHO = f"{DEVICE}, 'ns' as namespace, 'a' as pod, '' as pod_uid, 'm' as container"
WHAT = "'DCGM_FI_DEV_FB_USED' as metric, 'fb_used_bytes' as signal, 'pod' as scope"
ROW = "'c' as cluster, $1 as seen_at, $2 as held_seconds, $3 as value"


class Sample(NamedTuple):
    """A value in force for some seconds from a second on."""

    start: int
    held: int
    value: int


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's and the facts' tables, empty."""
    with connection() as con:
        views(con, open_lake(tmp_path_factory.mktemp("lake"), create=True), TABLE_BY_NAME)
        for query in needed(load(), ["facts.ownership", "facts.device_hour"]):
            build(con, query, {"memory_threshold_ratio": 0.9})
        yield con


@st.composite
def a_series(draw: st.DrawFn) -> list[Sample]:
    """Samples of one series, in order, none reaching over the next."""
    starts = sorted(draw(st.sets(st.integers(0, LAST_SECOND - 1), max_size=8)))
    ends = [*starts, LAST_SECOND][1:]
    return [
        Sample(start, draw(st.integers(1, end - start)), draw(st.integers(0, 9))) for start, end in zip(starts, ends, strict=True)
    ]


@settings(max_examples=40)
@given(copies=st.lists(a_series(), min_size=1, max_size=3), end=st.integers(1, LAST_SECOND))
def test_each_second_counts_once_with_the_value_of_the_latest_copy(
    con: duckdb.DuckDBPyConnection, copies: Sequence[Sequence[Sample]], end: int
) -> None:
    assert measured(con, copies, end) == looked_at_every_second(copies, end)


def looked_at_every_second(copies: Sequence[Sequence[Sample]], end: int) -> tuple[float, float]:
    """Seconds known, and value x seconds: at each second the sample that began last, the largest of one instant."""
    seen = total = 0.0
    for second in range(end):
        begun = [sample for samples in copies for sample in samples if sample.start <= second]
        latest = max(begun, key=lambda sample: (sample.start, sample.value, sample.held), default=None)
        if latest and second < latest.start + latest.held:
            seen += 1
            total += latest.value
    return seen, total


def measured(con: duckdb.DuckDBPyConnection, copies: Sequence[Sequence[Sample]], end: int) -> tuple[float, float]:
    """The same by facts.pod_hour, the holder's time on the device ending at a second."""
    con.begin()
    try:
        con.execute(f"insert into facts.ownership by name select {WHO}, $1 as start_at, $2 as end_at", [MIDNIGHT, at(end)])
        for number, samples in enumerate(copies):
            con.execute(f"insert into lake.series by name select {WHO}, {number} as series_id, {WHAT}")
            for sample in samples:
                con.execute(
                    f"insert into lake.sample by name select {number} as series_id, {ROW}", [at(sample.start), *sample[1:]]
                )
        for table in ("day.pod_series", "day.pod_sum", "facts.pod_hour"):
            build(con, load()[table], {})
        found = con.execute("select fb_used_seen_seconds, fb_used_byte_seconds from facts.pod_hour").fetchall()
        return found[0] if found else (0.0, 0.0)
    finally:
        con.rollback()


def at(second: int) -> datetime:
    return MIDNIGHT + timedelta(seconds=second)
