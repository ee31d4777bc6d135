"""What attributing energy adds to the facts of a day, against a bare sum over the columns that it reads.

GPUS ("1000,10000") and ROUNDS (3) set the size, as for bench.facts, whose lakes serve. Time is CPU time: of the sum; and of the
queries that are there for the tables of energy and for nothing else. Its sums of samples are in bench.sums, writing is in
neither. Beside it the least that any attribution takes: the same sum per GPU and hour.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from bench.facts import CLUSTER, DAY, MEMORY_LIMIT, ROUNDS, SIZES, files, simulated_lake
from bench.measure import machine, measure, median, print_table
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.query import Query, build, load, needed, of_life
from gpureport.lake import open_lake

READ = (
    "energy_joules",
    "energy_joules_increase",
    "energy_joules_gap_increase",
    "power_watts",
    "gpu_util_ratio",
    "gr_engine_active_ratio",
    "sm_active_ratio",
    "pcie_tx_bytes_per_second",
    "pcie_rx_bytes_per_second",
    "held_seconds",
)


def main() -> None:
    """Measure in turns and print."""
    print(f"{machine()}; one thread, memory_limit {MEMORY_LIMIT}")
    rows, parts = [], []
    for gpus in SIZES:
        lake = simulated_lake(gpus)
        scans, queries = [], []
        for _ in range(ROUNDS):
            scans.append(_run("scan", lake) | _run("grouped", lake))
            queries.append(_run("compute", lake))
        scan, grouped = (median([found[what] for found in scans]) for what in ("scan", "grouped"))
        seconds = {table: median([found[table] for found in queries]) for table in queries[0]}
        energy = sum(seconds.values())
        rows.append([gpus, scan, grouped, energy, energy / scan, energy / grouped])
        parts += [[gpus, table, cpu, cpu / scan] for table, cpu in sorted(seconds.items(), key=lambda each: -each[1])[:8]]
    print_table(
        "Energy, CPU time", ["GPUs", "sum CPU s", "per GPU and hour", "energy CPU s", "energy / sum (≤ 1.5)", "/ per hour"], rows
    )
    print_table("The costliest of its queries", ["GPUs", "table", "CPU s", "/ sum"], parts)


def _run(what: str, lake: Path) -> dict[str, float]:
    told = measure([sys.executable, "-m", "bench.power", what, lake]).stdout
    return {table: float(seconds) for table, seconds in map(str.split, told.splitlines())}


def of_energy_alone() -> set[str]:
    """The queries that are there for the kept tables of energy and for no other that is kept."""
    queries = load()
    own = [table for table in of_life(queries, "facts") if queries[table].subject == "energy"]
    others = {query.table for query in needed(queries, [*{*of_life(queries, "facts")} - {*own}], own)}
    return {query.table for query in needed(queries, own)} - others


def scan(lake: Path) -> None:
    """A bare sum over the columns that energy is made of."""
    print("scan", _summed(lake, ""))


def grouped(lake: Path) -> None:
    """The same per GPU and hour."""
    print("grouped", _summed(lake, "group by device_uuid, gpu_instance_id, date_trunc('hour', seen_at)"))


def _summed(lake: Path, by: str) -> float:
    with duckdb.connect() as con:
        con.execute(f"set threads = 1; set memory_limit = '{MEMORY_LIMIT}'")
        before = time.process_time()
        con.execute(
            f"select {', '.join(f'sum({column})' for column in READ)} from read_parquet(?) {by}", [files(lake)]
        ).fetchall()
        return time.process_time() - before


def compute(lake: Path) -> None:
    """CPU seconds of each query of energy, in a whole computation of the day."""
    counted, seconds = of_energy_alone(), defaultdict[str, float](float)

    def timed(con: duckdb.DuckDBPyConnection, query: Query, params: Mapping[str, Any]) -> None:
        before = time.process_time()
        build(con, query, params)
        if query.table in counted:
            seconds[query.table] += time.process_time() - before

    # One worker of one thread: then the process' time is the query's.
    with patch("gpureport.compute.day.build", timed):
        compute_days(open_lake(lake), [(CLUSTER, DAY)], ComputeSettings(memory_limit=MEMORY_LIMIT, threads=1))
    for table, cpu in seconds.items():
        print(table, cpu)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"scan": scan, "grouped": grouped, "compute": compute}[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
