"""DuckDB views over the lake's files: ``lake.<table>`` and ``facts.<table>``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from gpureport.errors import LakeError, first_line
from gpureport.lake.layout import Lake, Partition, is_observation
from gpureport.tables import TABLE_BY_NAME
from gpureport.tables.table import Table

if TYPE_CHECKING:
    import duckdb


def views(
    con: duckdb.DuckDBPyConnection,
    lake: Lake,
    tables: Iterable[str],
    clusters: Collection[str] | None = None,
    dates: Collection[date] | None = None,
    parts: Collection[str] | None = None,
) -> list[str]:
    """Create a view per table over the chosen clusters, days and parts; the names made, in order.

    Parts are of devices; an observation of the whole cluster belongs to every one of them. A lake table without files becomes
    an empty table of its schema; facts without files are left out. LakeError where a file is no Parquet.
    """
    con.execute("create schema if not exists lake; create schema if not exists facts")
    chosen = {table: [each for each in lake.partitions(table) if _is_chosen(each, clusters, dates)] for table in tables}
    lake.bring(partition for partitions in chosen.values() for partition in partitions)
    made = (_open(con, table, _files(partitions, parts)) for table, partitions in chosen.items())
    return [name for name in made if name]


def _files(partitions: Iterable[Partition], parts: Collection[str] | None) -> list[str]:
    found = (file for partition in partitions for file in partition.files)
    return [str(file) for file in found if parts is None or file.stem in parts or is_observation(file)]


def _open(con: duckdb.DuckDBPyConnection, table: str, files: list[str]) -> str:
    """The name under which a table of the lake stands now; '' for facts without files."""
    name = table.replace("/", ".") if table.startswith("facts/") else f"lake.{table}"
    if files:
        create_view(con, name, files, _doubles(TABLE_BY_NAME.get(table)))
    elif table in TABLE_BY_NAME:
        _create_empty(con, name, TABLE_BY_NAME[table].schema)
    else:
        return ""
    return name


def _is_chosen(partition: Partition, clusters: Collection[str] | None, dates: Collection[date] | None) -> bool:
    return (clusters is None or partition.cluster in clusters) and (dates is None or partition.date in dates)


def create_view(con: duckdb.DuckDBPyConnection, name: str, files: list[str], replaced: Mapping[str, str]) -> None:
    """Put a view over files, the columns named in ``replaced`` by an expression each; LakeError where a file is no Parquet."""
    import duckdb  # whoever writes a lake does without it

    instead = ", ".join(f"{expression} as {column}" for column, expression in replaced.items())
    columns = f"* replace ({instead})" if instead else "*"
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    try:
        con.execute(
            f"create or replace view {name} as select {columns} from read_parquet([{listed}], "
            "hive_partitioning = true, hive_types = {'cluster': varchar, 'date': date}, union_by_name = true)"
        )
    except duckdb.Error as error:
        raise LakeError(f"{name} cannot be read ({first_line(error)}); export or import that day again") from error


def _doubles(table: Table | None) -> dict[str, str]:
    """Decimals as doubles: whoever asks need not know how files hold a number."""
    names = [column.name for column in table.columns if column.decimals is not None] if table else []
    return {name: f"{name}::double" for name in names}


def _create_empty(con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
    full = pa.schema([*schema, pa.field("cluster", pa.string()), pa.field("date", pa.date32())])
    con.register("_empty", full.empty_table())
    con.execute(f"create or replace table {name} as select * from _empty")
    con.unregister("_empty")
