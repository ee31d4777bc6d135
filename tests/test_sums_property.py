"""The loops over samples give what their SQL gives, bit for bit, whatever a part of the lake holds."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lake_rows import DAY, arrow, sample

from gpureport.compute.intervals import IDLE, OF_SAMPLES, by_loops, by_sql, schema_of
from gpureport.compute.query import Query, load
from gpureport.lake import open_lake
from gpureport.values.tables import DEVICE_SAMPLE
from gpureport.values.tables.telemetry import SIGNALS

QUERIES = [load()[table] for table in OF_SAMPLES]
PARAMS = {"memory_threshold_ratio": 0.5}
INSTANTS = ("hour_start_at", "start_at", "end_at")
OWNERSHIP = pa.schema(
    [("cluster", pa.string()), ("device_uuid", pa.string()), *((name, pa.timestamp("us")) for name in INSTANTS)]
)
RUNS = pa.schema([field for field in OWNERSHIP if field.name != "hour_start_at"])
INSTANCES = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "device_uuid", "gpu_instance_id", "signal")),
        *((name, pa.timestamp("us")) for name in INSTANTS),
        *((f"{name}_number", pa.uint32()) for name in ("instance", "interval")),
        *((name, pa.int64()) for name in ("instance_owner_count", "instance_count", "slice_count")),
        *((name, pa.float64()) for name in ("slice_share_ratio", "equal_share_ratio", "idle_share_ratio")),
        ("has_util", pa.bool_()),
    ]
)
AMOUNTS = ("measured_seconds", "idle_joules", "above_joules", "above_watts", "begun_joules")
STEPS = pa.schema(
    [
        ("cluster", pa.string()),
        ("interval_number", pa.uint32()),
        ("step_at", pa.timestamp("us")),
        ("is_board_active", pa.bool_()),
        *((name, pa.float64()) for name in ("observed_seconds", *AMOUNTS)),
    ]
)
TABLES = {
    "day.ownership_interval": OWNERSHIP, "day.allocated_run": RUNS, "day.mig_instance": INSTANCES, "day.power_step": STEPS,
}  # fmt: skip
NOTHING = {table: schema.empty_table() for table, schema in TABLES.items()}
NAMES = [name for signal in SIGNALS for name in (signal.name, signal.increase_name, signal.gap_increase_name)]
COLUMNS = [column for column in DEVICE_SAMPLE.columns if column.name in NAMES]


EDGES: dict[str, list[Any]] = {
    "throttle_reasons": [0, 1, 0x104, 0x1FF, -1],
    "xid_code": [0, 48],
    "_ratio": [0.0, 0.000999, 0.001, 0.5, 0.123457, 1.5, 2.0, -0.25],
    "fb_": [0.0, -1.0, 68_719_476_735.0, 6e17],
    "bytes_per_second": [0.0, 99_999_999.9, 1e8],
    "power_watts": [70.499, 70.5, 0.0, 411.123, 123_456_789.123],
    "energy_joules_increase": [0.0, 9_876.543211, 987_654_321.123456],
}
"""Values at the edges of rules, and some that no double holds to its last digit, by a part of the signal's name.

At the first two a GPU is idle."""


def value(random: Random, name: str, is_calm: bool) -> Any:
    """One of the values that a rule turns on, or any."""
    edges = next((edges for part, edges in EDGES.items() if part in name), [])
    return random.choice(edges[:2] if is_calm else edges) if edges else random.uniform(0, 1e6)


def device_rows(random: Random, device: str, instance: str) -> list[dict[str, Any]]:
    """Rows in turn over two hours, with holes; each has its own set of signals, and each signal its own nulls.

    Some devices and instances have the same times, but for rows that they lack.
    """
    known = [column for column in COLUMNS if random.random() < 0.8]
    times, is_calm = Random(random.choice("xy")), random.random() < 0.3
    start, rows = times.choice([0, 3_300_000]), []
    for _ in range(random.randrange(1, 40)):
        start += times.choice([0, 0, 0, 7_001])
        held = min(times.choice([0, 1, 15_000, 30_000, 30_000, 700_500]), 3_600_000 - start % 3_600_000)
        signals = {column.name: value(random, column.name, is_calm) for column in known if random.random() < 0.8}
        rows.append({**sample(device, start / 1000, held / 1000), "gpu_instance_id": instance, **signals})
        rows[-1]["is_carried"] = random.random() < 0.1
        start += max(held, 1)
    return [row for row in rows if random.random() < 0.9] or rows


def ownership(random: Random, device: str) -> list[dict[str, Any]]:
    """Cuts of some hours, also between the lake's milliseconds."""
    found = []
    for hour in range(3):
        at = datetime(DAY.year, DAY.month, DAY.day, hour)
        cuts = sorted({random.randrange(1, 3_600_000_000) for _ in range(random.choice([0, 1, 4]))})
        edges = [at, *(at + timedelta(microseconds=cut) for cut in cuts), at + timedelta(hours=1)]
        if cuts:
            found += [
                {"cluster": "c", "device_uuid": device, "hour_start_at": at, "start_at": start, "end_at": end}
                for start, end in itertools.pairwise(edges)
            ]
    return found


def runs(random: Random, device: str) -> list[dict[str, Any]]:
    """Times of allocation, some within a row's, some over several hours; also between the lake's milliseconds."""
    edges = sorted({random.randrange(7_200_000_000) for _ in range(2 * random.choice([0, 1, 8]))})
    times = [datetime(DAY.year, DAY.month, DAY.day) + timedelta(microseconds=edge) for edge in edges]
    return [
        {"cluster": "c", "device_uuid": device, "start_at": start, "end_at": end}
        for start, end in zip(times[::2], times[1::2], strict=False)
    ]


def mig(random: Random, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Instances of the intervals of GPUs, some without rows, and their steps: most as rows of the GPU begin, some later.

    One of the GPUs is of another part; some intervals have no steps.
    """
    instances: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    midnight, number = datetime(DAY.year, DAY.month, DAY.day), random.randrange(9)
    for device in ("GPU-a", "GPU-b", "GPU-d"):
        seen = {row["seen_at"].replace(tzinfo=None) for row in rows if row["device_uuid"] == device and random.random() < 0.7}
        hours = [midnight + timedelta(hours=hour) for hour in range(3)]
        cuts = [midnight + timedelta(milliseconds=random.randrange(7_200_000)) for _ in range(random.randrange(2))]
        cuts += random.sample(sorted(seen), random.randrange(min(len(seen) + 1, 6)))
        for start_at, end_at in itertools.pairwise(sorted({*hours, *cuts})):
            hour_at = start_at.replace(minute=0, second=0, microsecond=0)
            common, number = {"cluster": "c", "interval_number": number}, number + 1
            times = {"hour_start_at": hour_at, "start_at": start_at, "end_at": end_at}
            found = [instance for instance in "123" if random.random() < (0.2 if instance == "3" else 0.8)]
            signal = random.choice(["engine", "sm", "sm", "none"])
            instances += [
                {
                    **common, **times, "device_uuid": device, "gpu_instance_id": instance, "signal": signal,
                    "instance_number": len(instances) + 7 + place, "instance_owner_count": random.choice([0, 1, 2]),
                    "instance_count": len(found), "slice_count": random.choice([1, 3]), "has_util": False,
                    **{f"{name}_share_ratio": random.random() for name in ("slice", "equal", "idle")},
                }
                for place, instance in enumerate(found)
            ]  # fmt: skip
            known = [name for name in AMOUNTS if random.random() < 0.7]
            begun = {start_at, *seen, start_at + timedelta(milliseconds=random.randrange(60_000))}
            for step_at in sorted(at for at in begun if start_at <= at < end_at and random.random() < number % 4):
                amounts = {name: random.uniform(0, 1e5) for name in known if random.random() < 0.9}
                if {"above_joules", "begun_joules"} <= {*amounts}:
                    amounts["begun_joules"] *= amounts["above_joules"] / 1e5
                amounts |= {"observed_seconds": random.uniform(0, 700)}
                steps.append(
                    {**common, "step_at": step_at, "is_board_active": random.choice([None, False, False, True]), **amounts}
                )
    return instances, steps


def part(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A file of the lake with these rows."""
    lake = open_lake(path, create=True)
    with lake.change() as change:
        change.write("device_sample", "c", DAY, arrow(DEVICE_SAMPLE, rows))
    return lake.partitions("device_sample")[0].files[0]


def beside_of(query: Query, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Those that the query reads, in its order."""
    return {table: tables[table] for table in query.reads if table in tables}


def assert_same(file: Path, params: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    """The rows of one part by the loops, and by the SQL."""
    for query in QUERIES:
        beside = beside_of(query, tables)
        looped = by_loops(file, query, "c", params, beside)
        assert looped is not None
        keys = [(name, "ascending") for name in query.grain]
        expected, found = (table.sort_by(keys) for table in (by_sql(file, query, params, beside), looped))
        assert found.schema == schema_of(query)
        assert {name for name in query.columns if found[name].to_pylist() != expected[name].to_pylist()} <= {"cluster"}


def test_the_recording_has_the_same_sums(recorded: Path) -> None:
    [part] = open_lake(recorded / "lake").partitions("device_sample")
    assert_same(part.files[0], {"memory_threshold_ratio": 0.9}, NOTHING)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_every_sum_of_the_loops_is_that_of_the_sql(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    random = Random(seed)
    devices = [("GPU-a", ""), ("GPU-a", "2"), ("GPU-b", ""), ("GPU-b", "1"), ("GPU-b", "2"), ("GPU-c", "")]
    rows = [row for device, instance in devices[random.randrange(2) :] for row in device_rows(random, device, instance)]
    file = part(tmp_path_factory.mktemp("lake"), rows)
    of_devices = [[row for device in "abc" for row in made(random, f"GPU-{device}")] for made in (ownership, runs)]
    found = [*of_devices, *mig(random, rows)]
    tables = {
        table: pa.Table.from_pylist(made, schema=schema) for (table, schema), made in zip(TABLES.items(), found, strict=True)
    }
    assert_same(file, PARAMS, tables)
    held = pq.ParquetFile(file).read()
    lacking = [name for name in held.column_names if name in NAMES and held[name].null_count == held.num_rows]
    pq.write_table(held.drop_columns([*{*lacking, random.choice(COLUMNS).name}]), file)  # as an older version
    assert_same(file, PARAMS, tables)


def test_a_gpu_is_at_work_with_any_of_its_instances(tmp_path: Path) -> None:
    work = {("1", 60), ("2", 0)}
    times = [("", 0), ("", 60), ("", 120), *((instance, second) for instance in "12" for second in (0, 60, 120))]
    rows = [
        {**sample("GPU-a", at, 60, power_watts=70.0, sm_active_ratio=float((instance, at) in work)), "gpu_instance_id": instance}
        for instance, at in times
    ]
    idle = by_loops(part(tmp_path, rows), (query := load()[IDLE]), "c", PARAMS, beside_of(query, NOTHING))
    assert idle is not None and idle["idle_seconds"].to_pylist() == [60.0]


@pytest.mark.parametrize(
    "rows",
    [
        [sample("GPU-a", 0, 60, power_watts=1e13)],
        [{**sample(f"GPU-{device}", at, 60), "gpu_instance_id": "1"} for device, at in (("a", 0), ("b", 0), ("a", 60))],
    ],
    ids=["a decimal too large to be weighed as a whole number", "a device whose rows are apart"],
)
def test_what_the_loops_cannot_tell_is_left_to_the_sql(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    file = part(tmp_path, rows)
    assert [by_loops(file, query, "c", PARAMS, beside_of(query, NOTHING)) for query in QUERIES] == [None] * len(QUERIES)
