"""Facts of a day against a bare sum over the same columns, at two sizes, in turns.

GPUS ("1000,10000") and ROUNDS (3) set the size; the lakes are made once and kept.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import CACHE, Measured, fingerprint, machine, measure, median, print_table
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.query import Query, build, load, needed
from gpureport.lake import open_lake, views
from gpureport.simulate import SIGNALS_14, SimulationPlan, fill_lake

OF_SATURATION = ("facts.ownership", "facts.device_hour", "facts.container_hour", "facts.xid_event")
"""Saturation facts with memory ratio and throttle bits, and who held what when: without ledger, energy, quotas and writing."""
DAY = date(2026, 11, 20)
CLUSTER = "bench"
THREADS = 2
MEMORY_LIMIT = "1GB"
SIZES = [int(text) for text in os.environ.get("GPUS", "1000,10000").split(",")]
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def main() -> None:
    """Measure in turns and print."""
    print(f"{machine()}; threads {THREADS}, memory_limit {MEMORY_LIMIT}")
    lakes = {gpus: simulated_lake(gpus) for gpus in SIZES}
    runs: dict[tuple[int, str], list[Measured]] = {}
    for _ in range(ROUNDS):
        for gpus, lake in lakes.items():
            for what in ("scan", "view", "compute"):
                child = [sys.executable, "-m", "bench.facts", what, lake]
                runs.setdefault((gpus, what), []).append(measure(child))
    seconds = {key: median([float(run.stdout.split()[0]) for run in found]) for key, found in runs.items()}
    cpu = {key: median([float(run.stdout.split()[1]) for run in found]) for key, found in runs.items()}
    memory = {key: max(run.process_mb for run in found) for key, found in runs.items()}
    rows, costs = [], []
    for gpus, lake in lakes.items():
        scan, view, facts = (seconds[gpus, what] for what in ("scan", "view", "compute"))
        rows.append([gpus, *_size(lake), scan, view, facts, facts / scan, facts / view])
        scan, view, facts = (cpu[gpus, what] for what in ("scan", "view", "compute"))
        costs.append([gpus, scan, view, facts, facts / scan, facts / view, memory[gpus, "scan"], memory[gpus, "compute"]])
    title = f"Facts of 24 h at 30 s, 14 signals, median of {ROUNDS}"
    print_table(
        title,
        ["GPUs", "rows", "sampled values", "sum s", "sum of view s", "facts s", "facts / sum (≤ 2.5)", "facts / view"],
        rows,
    )
    columns = [
        "GPUs",
        "sum CPU s",
        "of view CPU s",
        "facts CPU s",
        "facts / sum",
        "facts / view",
        "sum peak MB",
        "facts peak MB (≤ 1,500)",
    ]
    print_table("The same by CPU time, which other work on the machine disturbs less, and memory", columns, costs)
    if len(SIZES) > 1:
        few, many = min(SIZES), max(SIZES)
        slope = seconds[many, "compute"] / seconds[few, "compute"] / (many / few)
        print(f"\nslope {few:,} → {many:,} GPUs: {slope:.2f} x linear (1 = in proportion)")


def simulated_lake(gpus: int) -> Path:
    """A simulated day of so many GPUs, made once."""
    plan = SimulationPlan(gpus, 1, DAY, signals=SIGNALS_14, kube_state_step_seconds=0)
    path = CACHE / f"lake-{gpus}-gpus-{fingerprint(plan)}"
    if not (path / "filled").exists():
        print(f"filling {path} (once) …", flush=True)
        begun = time.perf_counter()
        samples = fill_lake(plan, path, CLUSTER)
        seconds = time.perf_counter() - begun
        print(f"simulate --lake: {samples:,} raw samples of {gpus:,} GPUs in {seconds:.0f} s")
        (path / "filled").touch()
    return path


def files(lake: Path) -> list[str]:
    """Files of its device samples."""
    return [str(file) for each in open_lake(lake).partitions("device_sample") for file in each.files]


def numbers(lake: Path) -> list[str]:
    """Columns of numbers in which the lake holds anything."""
    metadata = pq.read_metadata(files(lake)[0])
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    schema = pq.read_schema(files(lake)[0])
    return [
        field.name
        for index, field in enumerate(schema)
        if (pa.types.is_floating(field.type) or pa.types.is_integer(field.type) or pa.types.is_decimal(field.type))
        and any(group.column(index).statistics.null_count < group.num_rows for group in groups)
    ]


def _size(lake: Path) -> tuple[int, int]:
    """Rows, and values of the fourteen signals."""
    from gpureport.values.catalog import load_catalog

    metrics = load_catalog().metrics
    counted = " + ".join(f"count({metrics[metric][0].signal})" for metric in SIGNALS_14)
    row = duckdb.execute(f"select count(*), {counted} from read_parquet(?)", [files(lake)]).fetchone()
    assert row
    return int(row[0]), int(row[1])


def scan(lake: Path) -> None:
    """A bare sum over every column of numbers, as the files hold them."""
    sums = ", ".join(f"sum({column})" for column in numbers(lake))
    with duckdb.connect() as con, told():
        con.execute(f"set threads = {THREADS}; set memory_limit = '{MEMORY_LIMIT}'")
        con.execute(f"select {sums} from read_parquet(?)", [files(lake)]).fetchall()


def view(lake: Path) -> None:
    """The same sum as a user writes it, over ``lake.device_sample``: decimals come as doubles."""
    sums = ", ".join(f"sum({column})" for column in numbers(lake))
    with duckdb.connect() as con, told():
        con.execute(f"set threads = {THREADS}; set memory_limit = '{MEMORY_LIMIT}'")
        views(con, open_lake(lake), ["device_sample"])
        con.execute(f"select {sums} from lake.device_sample").fetchall()


def compute(lake: Path) -> None:
    """All facts of the day, written."""
    with told():
        compute_days(open_lake(lake), [(CLUSTER, DAY)], ComputeSettings(memory_limit=MEMORY_LIMIT, threads=THREADS))


def saturation(lake: Path) -> None:
    """The queries behind ``OF_SATURATION`` alone, in a whole computation of one thread: the process' time is the query's."""
    counted, seconds = {query.table for query in needed(load(), OF_SATURATION)}, [0.0]

    def timed(con: duckdb.DuckDBPyConnection, query: Query, params: Mapping[str, Any]) -> None:
        before = time.process_time()
        build(con, query, params)
        if query.table in counted:
            seconds.append(time.process_time() - before)

    with patch("gpureport.compute.day.build", timed):
        compute_days(open_lake(lake), [(CLUSTER, DAY)], ComputeSettings(memory_limit=MEMORY_LIMIT, threads=1))
    print("saturation", sum(seconds))


@contextmanager
def told() -> Iterator[None]:
    """Print the wall and CPU seconds of the block; imports are left out."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    print(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"scan": scan, "view": view, "compute": compute, "saturation": saturation}[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
