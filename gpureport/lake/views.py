"""DuckDB views over the lake's files: ``lake.<table>`` and ``facts.<table>``.

Samples are read in one pass: a column without values is a constant, and decimals stay decimals. Their products are integer
products, several times as fast as a cast to double, and their sums are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from gpureport.lake.lake import Lake, Partition
from gpureport.values.errors import LakeError, first_line
from gpureport.values.tables import TABLE_BY_NAME
from gpureport.values.tables.table import RENAMED_FACTS, RENAMED_VALUES, Table, kind_of_fact
from gpureport.values.text.safe import quoted

if TYPE_CHECKING:
    import duckdb
from collections.abc import Iterator

import pyarrow.parquet as pq

from gpureport.values.tables import DEVICE_SAMPLE
from gpureport.values.tables.table import Column

_LONGEST_MS = 3_600_000
"""The longest interval of a row: one hour."""
_LARGEST = 10**18
"""The smallest integer that does not fit into 18 decimal digits."""
_KINDS: dict[pa.DataType, str] = {}
"""DuckDB's names of Arrow types; to ask for one takes as long as to create a small table."""


def footer(file: Path) -> pq.FileMetaData:
    """Return a Parquet file's footer. LakeError where it cannot be read."""
    try:
        return pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise LakeError(f"{file} cannot be read ({error}); export or import that day again") from error


def scan_view(con: duckdb.DuckDBPyConnection, files: Collection[Path], rows: str = "") -> None:
    """Create the view ``lake.device_sample`` over some parts, or over the rows of a statement that reads them.

    Missing columns and columns without values are null. A column is cast to double, as in every other view, where a file has it
    as double or with a number too large for a product with milliseconds.
    """
    footers = [footer(file) for file in files]
    there = {name for each in footers for name in each.schema.names}
    replaced = {each.name: sql for each in DEVICE_SAMPLE.columns if each.name in there and (sql := _replacement(each, footers))}
    lacking = [each.name for each in DEVICE_SAMPLE.columns if each.name not in there]
    create_view(con, "lake.device_sample", rows or rows_in(files), replaced, lacking)


def _replacement(column: Column, footers: Sequence[pq.FileMetaData]) -> str:
    """Return the view's expression for the column; '' where the column is used unchanged."""
    if column.nullable and all(_is_null(chunk) for each in footers for chunk in _chunks(each, column.name)):
        return f"null::{'integer' if pa.types.is_integer(column.type) else 'double'}"
    if column.decimals is None or all(_can_be_weighed(chunk, column) for each in footers for chunk in _chunks(each, column.name)):
        return ""
    return f"{column.name}::double"


def _chunks(metadata: pq.FileMetaData, name: str) -> Iterator[pq.ColumnChunkMetaData]:
    if name in metadata.schema.names:
        index = metadata.schema.names.index(name)
        yield from (metadata.row_group(number).column(index) for number in range(metadata.num_row_groups))


def _is_null(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values


def _can_be_weighed(chunk: pq.ColumnChunkMetaData, column: Column) -> bool:
    """Whether values × milliseconds fit into a decimal. Joules always do: they are not multiplied by time."""
    statistics = chunk.statistics
    if statistics is None or statistics.logical_type.type != "DECIMAL":
        return False
    if "_joules" in column.name or _is_null(chunk):
        return True
    places = column.decimals or 0
    return bool(statistics.has_min_max and max(abs(statistics.min), abs(statistics.max)) * 10**places * _LONGEST_MS < _LARGEST)


def known_columns(metadata: pq.FileMetaData) -> set[str]:
    """Return the columns with at least one value in the file."""
    return {name for name in metadata.schema.names if not all(map(_is_null, _chunks(metadata, name)))}


def is_plain(metadata: pq.FileMetaData) -> bool:
    """Whether the product of each decimal with milliseconds fits into an integer. Otherwise only SQL sums the file."""
    held = [column for column in DEVICE_SAMPLE.columns if column.decimals is not None]
    return all(_can_be_weighed(chunk, column) for column in held for chunk in _chunks(metadata, column.name))


def views(
    con: duckdb.DuckDBPyConnection,
    lake: Lake,
    tables: Iterable[str],
    clusters: Collection[str] | None = None,
    dates: Collection[date] | None = None,
    wanted: Mapping[str, Collection[str]] = MappingProxyType({}),
    names: Mapping[str, Collection[tuple[str, date]]] = MappingProxyType({}),
) -> list[str]:
    """Create one view per table over the chosen clusters and days. Return the names of the views in order.

    A table without files becomes an empty table with its schema; facts that no day has are omitted. ``wanted`` columns that no
    file has are null. DamagedError where a file is damaged or missing.
    """
    con.execute("create schema if not exists lake; create schema if not exists facts")
    every = {table: lake.partitions(table) for table in tables}
    named = {table: [each for each in found if clusters is None or each.cluster in clusters] for table, found in every.items()}
    chosen = {table: [each for each in found if dates is None or each.date in dates] for table, found in named.items()}
    lake.fetch(partition for partitions in chosen.values() for partition in partitions)
    made = (_open(con, lake, table, rows_named(partitions, names), wanted) for table, partitions in chosen.items())
    return [name for name in made if name]


def rows_named(partitions: Sequence[Partition], names: Mapping[str, Collection[tuple[str, date]]]) -> str:
    """Return SQL for the rows of days. With names, each name is a cluster with the rows of its listed days."""
    if not names:
        return rows_of(partitions)
    rows, days = rows_of(partitions), [(name, *each) for name, found in names.items() for each in found]
    listed = ", ".join(f"({quoted(name)}, {quoted(cluster)}, date '{day}')" for name, cluster, day in days)
    named = f"(values {listed}) as named (_name, cluster, date)"  # a join reads each file once for any number of names
    return f"(select * exclude (_name) replace (_name as cluster) from {rows} join {named} using (cluster, date))" if rows else ""


def _open(con: duckdb.DuckDBPyConnection, lake: Lake, table: str, rows: str, wanted: Mapping[str, Collection[str]]) -> str:
    """Create a table's view and return its name; '' for facts that no day has and no schema describes."""
    name = table.replace("/", ".") if table.startswith("facts/") else f"lake.{table}"
    known, schema = TABLE_BY_NAME.get(table), lake.root.schemas.get(table)
    columns = wanted.get(name, [each.name for each in known.columns if each.nullable] if known else [])
    if rows:
        create_view(con, name, rows, _doubles(known), columns)
    elif known or schema or columns:
        found = known.schema if known else pa.ipc.read_schema(pa.py_buffer(schema)) if schema else pa.schema([])
        _create_empty(con, name, found, [column for column in columns if column not in (*found.names, "cluster", "date")])
    else:
        return ""
    return name


def create_view(
    con: duckdb.DuckDBPyConnection, name: str, rows: str, replaced: Mapping[str, str], wanted: Collection[str] = ()
) -> None:
    """Create a view over rows. ``replaced`` maps columns to expressions; ``wanted`` columns that the rows lack are null.

    Files of an older version may lack any nullable column. LakeError where a file is not Parquet.
    """
    import duckdb  # only readers need DuckDB

    try:
        there = {*con.sql(f"from {rows}").columns}
        replaced = {column: sql for column, sql in {**RENAMED_VALUES, **replaced}.items() if column in there}
        chosen = _chosen(con, name, there, replaced, wanted)
        replace_table(con, name, f"view {name} as select {chosen} from {rows}")
    except duckdb.Error as error:
        raise LakeError(f"{name} cannot be read ({first_line(error)}); export or import that day again") from error


def _chosen(
    con: duckdb.DuckDBPyConnection, name: str, there: set[str], replaced: Mapping[str, str], wanted: Collection[str]
) -> str:
    """Return the columns of a view as SQL: those of its rows under their present names, and the lacking ones."""
    old = {column: new for column, new in sorted(RENAMED_FACTS.items()) if column in there and new in wanted}
    both = {new: f"coalesce({new}, {column})" for column, new in old.items() if new in there}
    named = {new: column for column, new in old.items()}
    known = TABLE_BY_NAME.get(name.removeprefix("lake."))
    types = {field.name: field.type for field in known.schema} if known else {}
    kinds = {each: _kind(con, types[each]) if each in types else kind_of_fact(each) for each in wanted if each not in there}
    added = [f"{named.get(column) or f'null::{kind}'} as {column}" for column, kind in kinds.items()]
    instead = ", ".join(f"{sql} as {column}" for column, sql in {**replaced, **both}.items())
    kept = f"* exclude ({', '.join(old)})" if old else "*"
    return ", ".join([f"{kept} replace ({instead})" if instead else kept, *added])


def _kind(con: duckdb.DuckDBPyConnection, kind: pa.DataType) -> str:
    """Return DuckDB's name of an Arrow type."""
    if kind not in _KINDS:
        _KINDS[kind] = str(con.from_arrow(pa.schema([("column", kind)]).empty_table()).types[0])
    return _KINDS[kind]


def rows_of(partitions: Iterable[Partition]) -> str:
    """Return SQL for the rows of days; '' where there are no files. Other days of a packed file are filtered out."""
    packed: dict[tuple[Path, int], list[str]] = {}
    whole: dict[bool, list[Path]] = {True: [], False: []}
    for each in partitions:
        for stored, file in zip(each.stored, each.files, strict=True):
            if stored.is_packed:
                packed.setdefault((file, stored.number), []).append(f"date '{each.date}'")
            else:
                whole[stored.is_dated].append(file)
    reads = []
    for (file, day_count), days in packed.items():
        if len(days) == day_count:
            whole[True].append(file)
        else:
            reads.append(f"from {rows_in([file], is_dated=True)} where date in ({', '.join(days)})")
    reads += [f"from {rows_in(files, is_dated)}" for is_dated, files in whole.items() if files]
    return f"({' union all by name '.join(reads)})" if reads else ""


def rows_in(files: Iterable[Path], is_dated: bool = False) -> str:
    """Return SQL for the rows of files. DuckDB's hive_partitioning would make columns of folders above the lake too."""
    listed, names = ", ".join(map(quoted, files)), {"cluster": "varchar"} if is_dated else {"cluster": "varchar", "date": "date"}
    found = ", ".join(f"regexp_extract(filename, '.*/{name}=([^/]*)/', 1)::{kind} as {name}" for name, kind in names.items())
    read = f"read_parquet([{listed}], filename = true, hive_partitioning = false, union_by_name = true)"
    return f"(select * exclude (filename), {found} from {read})"


def _doubles(table: Table | None) -> dict[str, str]:
    """Return casts from decimals to doubles: queries do not depend on the storage type of a number."""
    names = [column.name for column in table.columns if column.decimals is not None] if table else []
    return {name: f"{name}::double" for name in names}


def _create_empty(con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, lacking: Iterable[str]) -> None:
    """Create an empty table with the name, the partition columns, and the facts that the schema lacks."""
    kinds = [(field.name, _kind(con, field.type)) for field in schema]
    kinds += [("cluster", "varchar"), ("date", "date"), *((column, kind_of_fact(column)) for column in lacking)]
    listed = ", ".join(f'"{column}" {kind}' for column, kind in kinds)
    replace_table(con, name, f"table {name} ({listed})")


def replace_table(con: duckdb.DuckDBPyConnection, name: str, made: str) -> None:
    """Create a view or table; one of the same name and the other kind is dropped, which DuckDB does not do itself."""
    import duckdb

    try:
        con.execute(f"create or replace {made}")
    except duckdb.CatalogException:
        drop_if_exists(con, name)
        con.execute(f"create or replace {made}")


def drop_if_exists(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drop the view or table of this name. DuckDB does not replace a table by a view, nor a view by a table."""
    import duckdb

    for kind in ("view", "table"):
        with suppress(duckdb.CatalogException):  # the name is of the other kind
            con.execute(f"drop {kind} if exists {name}")
