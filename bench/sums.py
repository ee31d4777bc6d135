"""All sums of samples (saturation's and energy's) by compiled loops, against a bare sum of the columns that hold anything.

GPUS and ROUNDS as for bench.facts, whose lakes serve. CPU seconds of one thread; the loops are loaded before.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.facts import ROUNDS, SIZES, files, numbers, simulated_lake
from bench.measure import machine, measure, median, print_table
from gpureport.compute.intervals import INTERVALS, by_loops
from gpureport.compute.query import load

_CUTS = pa.table({"device_uuid": pa.array([], pa.string()), "start_at": pa.array([], pa.timestamp("us"))})


def main() -> None:
    """Measure in turns and print."""
    print(f"{machine()}; one thread")
    rows = []
    for gpus in SIZES:
        runs = [
            list(map(float, measure([sys.executable, "-m", "bench.sums", simulated_lake(gpus)]).stdout.split()))
            for _ in range(ROUNDS)
        ]
        scan, loops = (median([run[number] for run in runs]) for number in (0, 1))
        rows.append([gpus, scan, loops, loops / scan])
    print_table("Sums of samples, CPU time", ["GPUs", "bare sum CPU s", "loops CPU s", "loops / sum (≤ 3)"], rows)


def beside(lake: Path) -> None:
    """The CPU seconds of a bare sum and of the loops, in turns; of each the quicker of two runs."""
    _looped(files(lake)[:1])
    runs = [(_summed(lake), _looped(files(lake))) for _ in range(2)]
    print(*map(min, zip(*runs, strict=True)))


def _summed(lake: Path) -> float:
    with duckdb.connect() as con:
        con.execute("set threads = 1")
        begun = time.thread_time()
        sums = ", ".join(f"sum({column})" for column in numbers(lake))
        con.execute(f"select {sums} from read_parquet(?)", [files(lake)]).fetchall()
        return time.thread_time() - begun


def _looped(parts: list[str]) -> float:
    query = load()[INTERVALS]
    begun = time.thread_time()
    for part in parts:
        by_loops(Path(part), query, "bench", {"memory_threshold_ratio": 0.9}, {"day.ownership_interval": _CUTS})
    return time.thread_time() - begun


if __name__ == "__main__":
    beside(Path(sys.argv[1])) if len(sys.argv) == 2 else main()
