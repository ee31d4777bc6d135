"""Sums of samples over intervals, and time by value and by idle power, part by part of the lake: the basis of a day's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.compute.query import Query, build
from gpureport.lake import Partition, scan_view
from gpureport.values.runtime.parallel import Threads

INTERVALS, VALUES, IDLE, MIG = OF_SAMPLES = ("day.sample_sum", "day.value_time", "day.idle_power", "day.power_activity")
POD_SUMS, READINGS = "day.pod_sum", "day.util_reading"
OF_SERIES = (POD_SUMS, READINGS)
"""Each is made from the holders' own samples and one other table."""
ROWS_WORTH_LOOPS = 500_000
"""Row count from which compiled loops are used: to load them takes as long as DuckDB takes for these rows."""
_IN_ORDER = {"day.power_step": "semi join day.mig_instance using (interval_number) order by interval_number, step_at"}
_OF_STEP = ("step_at", "seconds", "active_seconds", "active_joules", "active_joules_unweighted", "active_joules_kepler")


def interval_sums(
    con: duckdb.DuckDBPyConnection, query: Query, days: Sequence[Partition], params: Mapping[str, Any], folder: Path, threads: int
) -> None:
    """Make a table of samples: by its SQL where rows are few, else by loops, with a file in the folder for each part."""
    samples, *others = days
    is_without = query.table == MIG and not con.table("day.mig_instance").limit(1).fetchall()
    if others or is_without or samples.row_count < ROWS_WORTH_LOOPS:
        build(con, query, params)
        return
    orders = {table: _IN_ORDER.get(table, "order by device_uuid, start_at") for table in query.reads if "lake." not in table}
    inputs = {table: con.sql(f"from {table} {order}").to_arrow_table() for table, order in orders.items()}
    made = partial(_part, query=query, samples=samples, params=params, inputs=inputs, folder=folder)
    files = Threads(threads).each(made, list(samples.files))
    listed = ", ".join(f"'{file}'" for file in files)
    con.execute(f"create view {query.table} as from read_parquet([{listed}])")


def holder_sums(
    con: duckdb.DuckDBPyConnection, query: Query, days: Sequence[Partition | None], params: Mapping[str, Any]
) -> None:
    """Make a table of the holders' own samples: by its SQL where rows are few, else by a loop over each part."""
    samples, *others = days
    if others or samples is None or samples.row_count < ROWS_WORTH_LOOPS:
        build(con, query, params)
        return
    [series] = (con.table(table).to_arrow_table() for table in query.reads if table != "lake.sample")
    create_tables(con, {query.table: holders_by_loops(samples.files, query, series)})


def holders_by_loops(files: Sequence[Path], query: Query, series: pa.Table) -> pa.Table:
    """The table's rows from all parts, for the series and holders in ``series``."""
    from gpureport.compute.sums.holders import pod_sums, util_readings

    return pod_sums(files, series) if query.table == POD_SUMS else util_readings(files, series)


def _part(
    file: Path, query: Query, samples: Partition, params: Mapping[str, Any], inputs: dict[str, pa.Table], folder: Path
) -> Path:
    rows = by_loops(file, query, samples.cluster, params, inputs)
    if rows is None:
        rows = by_sql(file, query, params, inputs).cast(schema_of(query))
    path = folder / f"{query.table}-{file.stem}.parquet"
    pq.write_table(
        rows, path, compression="none", use_dictionary=[field.name for field in rows.schema if field.type == pa.string()]
    )
    return path


def by_loops(file: Path, query: Query, cluster: str, params: Mapping[str, Any], inputs: dict[str, pa.Table]) -> pa.Table | None:
    """The table's rows from one part; None where only SQL can count: a number too large for int64, or rows in another order."""
    if query.table == MIG:
        from gpureport.compute.sums.mig import mig_energy

        return mig_energy(file, inputs["day.mig_instance"], inputs["day.power_step"], schema_of(query))
    [rows] = inputs.values()
    if query.table == VALUES:
        from gpureport.compute.sums.saturation import value_times

        return value_times(file, cluster, rows, schema_of(query))
    if query.table == IDLE:
        from gpureport.compute.sums.idle import idle_power

        return idle_power(file, cluster, rows, schema_of(query))
    from gpureport.compute.sums.saturation import saturation_sums

    return saturation_sums(file, cluster, rows, params["memory_threshold_ratio"], schema_of(query))


def by_sql(file: Path, query: Query, params: Mapping[str, Any], inputs: dict[str, pa.Table]) -> pa.Table:
    """The same rows by the table's SQL, which defines them; devices of other parts are deleted from the first input first."""
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; set threads = 1; create schema lake")
        scan_view(con, [file])
        create_tables(con, inputs)
        con.execute(f"delete from {next(iter(inputs))} where device_uuid not in (select device_uuid from lake.device_sample)")
        build(con, query, params)
        return con.table(query.table).to_arrow_table()


def schema_of(query: Query) -> pa.Schema:
    """Columns of one of the tables: keys, counts of samples, and sums or bins."""
    return pa.schema([(name, _type(name)) for name in query.columns])


def _type(name: str) -> pa.DataType:
    if name in ("cluster", "device_uuid", "gpu_instance_id", "signal", "method"):
        return pa.string()
    if name.endswith("_at"):
        return pa.timestamp("us")
    if name.startswith("is_"):
        return pa.bool_()
    if name in ("bins", "bin_milliseconds"):
        return pa.list_(pa.int32())
    if name == "steps":
        return pa.list_(pa.struct([(part, _type(part)) for part in _OF_STEP]))
    is_whole = name.endswith(("sample_count", "owner_count", "slice_count", "clamped_count", "bin_watts"))
    return pa.int64() if is_whole else pa.float64()


def create_tables(con: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Copy Arrow tables into the database under their names."""
    for name, rows in tables.items():
        con.register("_given", rows)
        con.execute(f"create schema if not exists {name.partition('.')[0]}; create table {name} as from _given")
        con.unregister("_given")
