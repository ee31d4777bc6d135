"""Sums of holders' own samples by the loop are what their SQL gives, bit for bit, whatever parts of the lake hold."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lake_rows import DAY, arrow, at

from gpureport.compute import intervals
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.intervals import OF_SERIES, create_tables, holders_by_loops
from gpureport.compute.query import build, connection, load
from gpureport.lake import open_lake, views
from gpureport.simulate import SimulationPlan, fill_lake
from gpureport.values.tables.telemetry import SAMPLE

SPANS = pa.schema([(name, pa.timestamp("us")) for name in ("start_at", "end_at")])
NUMBERS = pa.schema([(name, pa.int64()) for name in ("line_number", "holder_number", "series_id", "pod_owner_count")])
LINES = pa.schema([("cluster", pa.string()), *NUMBERS, *SPANS, ("is_alone", pa.bool_())])


def samples(random: Random, series: int) -> list[dict[str, Any]]:
    """Values over two hours, with holes, some over the full hour; whole numbers in any order."""
    start, rows, is_whole = random.choice([0, 1, 3_300_000]), list[dict[str, Any]](), random.random() < 0.3
    for _ in range(random.randrange(30)):
        held = random.choice([0, 1, 15_000, 30_000, 700_500])
        value = float(random.choice([0, 1, 7] if is_whole else [0, -1.5, 0.37, random.uniform(0, 1e11)]))
        found = {"value": value, "held_seconds": held / 1000}
        rows.append({"series_id": series, "seen_at": at(start / 1000), "is_carried": False, **found})
        start += max(held, 1) + random.choice([0, 0, 7_001])
    return random.sample(rows, len(rows)) if is_whole else rows


def lines(random: Random, ids: list[int], moments: list[int]) -> list[dict[str, Any]]:
    """Holders' times with some series each, cut anywhere, also at the samples' ends and between the lake's milliseconds."""
    found = []
    for number in range(6):
        measured = random.sample(ids, random.choice([1, 1, 2, 3]))
        edges = sorted(random.sample([*{*random.sample(range(5, 7_200_000), 3), *random.choices(moments, k=3), 2, 3, 4}], 4))
        for start, end in ((edges[0], edges[1]), (random.choice(edges[1:3]), edges[3])):
            span = {"start_at": at(start / 1000 + random.choice([0, 0.0004])), "end_at": at(end / 1000)}
            of = {"cluster": "c", "line_number": number, "is_alone": len(measured) == 1}
            of |= {"holder_number": len(found), "pod_owner_count": random.choice([1, 3])}
            found += [{**of, **span, "series_id": series} for series in measured]
    return found


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_every_sum_of_the_loop_is_that_of_the_sql(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    random = Random(seed)
    ids = sorted(random.sample(range(2**62), 5))
    rows = [row for series in ids for row in samples(random, series)]
    cut = random.randrange(len(rows) + 1)
    lake = open_lake(tmp_path_factory.mktemp("lake"), create=True)
    with lake.change() as change:
        for number, part in enumerate((rows[:cut], rows[cut:])):
            change.write("sample", "c", DAY, arrow(SAMPLE, part), number)
    moments = [round(1000 * ((row["seen_at"] - at(0)).total_seconds() + row["held_seconds"])) for row in rows]
    assert_same(lake.path, DAY, pa.Table.from_pylist(lines(random, [*ids, 7], [*moments, 1]), schema=LINES))
    assert_same(lake.path, DAY, LINES.empty_table())


def assert_same(path: Path, day: date, series: pa.Table) -> None:
    """The rows of all parts by the loop, and by the SQL."""
    lake = open_lake(path)
    [part] = lake.partitions("sample")
    for table in OF_SERIES:
        query = load()[table]
        with connection(has_functions=False) as con:
            views(con, lake, ["sample"])
            create_tables(con, {next(name for name in query.reads if name != "lake.sample"): series})
            build(con, query, {})
            columns, order = ", ".join(con.table(table).columns), ", ".join(query.grain)
            expected = con.sql(f"select {columns} from {table} order by {order}").fetchall()
            create_tables(con, {"day.looped": holders_by_loops(part.files, query, series)})
            assert con.sql(f"select {columns} from day.looped order by {order}").fetchall() == expected
            assert con.sql(f"select {columns} from day.looped").types == con.table(table).types


def test_a_day_of_shared_gpus_has_the_same_facts_by_loops_and_by_sql(tmp_path: Path) -> None:
    fill_lake(SimulationPlan(16, 1, DAY, sharing_share=0.8, step_seconds=300), tmp_path / "lake", "c")
    found = []
    for rows in (10**9, 0):
        with patch.object(intervals, "ROWS_WORTH_LOOPS", rows):
            compute_days(open_lake(tmp_path / "lake"), [("c", DAY)], ComputeSettings())
        found.append(facts_of(tmp_path / "lake"))
    assert found[0]["facts.pod_hour"]
    assert any("sm_util_share" in row for row in found[0]["facts.power_hour"])
    assert found[0] == found[1]


def facts_of(path: Path) -> dict[str, list[Any]]:
    lake = open_lake(path)
    with connection() as con:
        names = views(con, lake, [table for table in lake.tables() if table.startswith("facts/")])
        return {name: con.sql(f"from {name} order by all").fetchall() for name in names}
