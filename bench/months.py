"""The report of 1, 30 and 90 days: CPU seconds and peak memory of the whole command, at the default settings.

A lake of many days is made from one computed day (LAKE: made with `gpureport simulate` and `compute`; default: 1,000 GPUs): its
facts again for each day before it, times shifted, each day's pods others. GPUS (1000), DAYS (1,30,90), COMMANDS (report, sql).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.measure import CACHE, machine, measure, print_table
from gpureport.commands.work.reporting import compute
from gpureport.config import Config
from gpureport.lake import Lake, open_lake
from gpureport.simulate import SimulationPlan, fill_lake

GPUS = int(os.environ.get("GPUS", "1000"))
DAYS = [int(days) for days in os.environ.get("DAYS", "1,30,90").split(",")]
LAST = date(2026, 11, 20)
_DAY_MICROSECONDS = 86_400_000_000
_PODS = ("pod", "pod_uid")


def main() -> None:
    lake = CACHE / f"months-{GPUS}"
    make_lake(lake, GPUS, max(DAYS))
    print(machine())
    rows = [(f"{GPUS:,} × {days}", *_measured(lake, days)) for days in DAYS]
    print_table("Reports and one report table of a window", ("GPUs × days", "report CPU s", "MB", "one table CPU s", "MB"), rows)


def make_lake(path: Path, gpus: int, days: int) -> None:
    """A lake of facts of so many days up to ``LAST``; what is there stays."""
    if not path.exists():
        fill_lake(SimulationPlan(gpus=gpus, days=1, start_date=LAST), path, "default")
        compute(Config(lake=path), [LAST])
    lake = open_lake(path)
    held = {each.date for each in lake.partitions("facts/device_hour")}
    for back in range(1, days):
        if LAST - timedelta(days=back) not in held:
            copy_day(lake, back)


def copy_day(lake: Lake, back: int) -> None:
    """The facts of ``LAST`` as those of an earlier day."""
    day = LAST - timedelta(days=back)
    with lake.change() as change:
        for table in (each for each in lake.tables() if each == "source" or each.startswith("facts/")):
            for partition in (each for each in lake.partitions(table) if each.date == LAST):
                for number, file in enumerate(partition.files):
                    change.write(table, partition.cluster, day, _shifted(pq.ParquetFile(file).read(), back), number)
                change.note(partition.cluster, day, lake.note(partition.cluster, LAST))


def _shifted(rows: pa.Table, back: int) -> pa.Table:
    columns = [_column(name, rows[name], back) for name in rows.column_names]
    return pa.table(dict(zip(rows.column_names, columns, strict=True)))


def _column(name: str, column: pa.ChunkedArray, back: int) -> pa.ChunkedArray:
    """Times shifted by days, the names of pods with the number of days."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        steps = {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]
        return pc.subtract(column.cast(pa.int64()), back * _DAY_MICROSECONDS // steps).cast(kind)
    if pa.types.is_date32(kind):
        return pc.subtract(column.cast(pa.int32()), pa.scalar(back, pa.int32())).cast(kind)
    if name in _PODS:
        text = column.cast(pa.string())
        return pc.if_else(pc.equal(text, ""), text, pc.binary_join_element_wise(text, f"d{back}", "-"))
    return column


def _measured(lake: Path, days: int) -> Iterator[float]:
    window = ["--lake", lake, "--since", LAST - timedelta(days=days - 1), "--until", LAST + timedelta(days=1)]
    program = [sys.executable, "-m", "gpureport"]
    with TemporaryDirectory() as out:
        for command in (["report", *window, "--out", Path(out) / "report"], ["sql", "from report.fleet", *window]):
            told = measure([*program, *command])
            yield told.cpu_seconds
            yield told.process_mb
            shutil.rmtree(Path(out) / "report", ignore_errors=True)


if __name__ == "__main__":
    main()
