"""A Delta log for each table: Spark, Trino, Athena, ClickHouse, Polars and DuckDB can read the lake's tables.

Each log is derived from the root and updated after a command changed the lake; after a crash, by the next command. Facts are
partitioned by cluster with the date as a column, because a packed file holds several days; others by cluster and date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gpureport.lake.lake import Lake, open_lake
from gpureport.lake.root import FACTS, Root, Stored, day_of
from gpureport.store import Place
from gpureport.store.folder import locked
from gpureport.values.errors import LakeError, UsageError, first_line

try:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
except ImportError:
    raise UsageError("lake_delta needs the package deltalake; install gpureport[delta], or set lake_delta to false") from None

Named = list[tuple[str, Stored]]
"""The root entries of one file, one for each of its days."""


def update_delta_logs(place: Place) -> Iterator[str]:
    """Update the Delta logs to the root. Yield a line for each table with files that no Delta log can list."""
    lake = open_lake(place)
    while True:
        with lake.storage.errors(), locked(lake.path / ".delta.lock"):
            lake = open_lake(place)
            lake.pack_facts(date.max, is_partial_only=True)
            replaced = {name.partition("/cluster=")[0] for each in lake.root.replaced for name in each.names}
            for table in sorted({*lake.tables(), *replaced}):
                try:
                    left_out = _update_delta_log(lake, table)
                except (DeltaError, OSError) as error:
                    raise LakeError(
                        f"the Delta log of {table} in {place} cannot be written ({first_line(error)}); the lake is whole, "
                        "and the next command that changes it tries again"
                    ) from error
                if left_out:
                    yield f"{left_out:,} files of {table} are not in its Delta log: damaged, or of an older version"
        if open_lake(place).root.changes == lake.root.changes:
            return


def _update_delta_log(lake: Lake, table: str) -> int:
    """Commit a table's missing and obsolete files together. Return the number of files that the log cannot list."""
    uri, options = lake.storage.reached(table)
    log = DeltaTable(uri, storage_options=options) if DeltaTable.is_deltatable(uri, options) else None
    held = set(pa.table(log.get_add_actions()).column("path").to_pylist()) if log else set()
    keys = ["cluster"] if table.startswith(FACTS) else ["cluster", "date"]
    known = {field.name: field for field in log.schema().fields} if log else {}
    schema = dict(known) or _fields(pa.schema({"cluster": pa.string(), "date": pa.date32()}))
    adds, left_out, named = [], 0, _files_with_days(lake.root, table)
    for path, days in sorted(named.items(), key=lambda each: each[1][-1][0], reverse=True):
        if path not in held:
            fields = _fields(pq.read_schema(lake.storage.fetch(days[0][1].name))) if _is_fit(path, days) else {}
            if fields and all(schema.get(name, field).type == field.type for name, field in fields.items()):
                schema = {**fields, **schema}
                adds.append(_added(path, days, keys))
            else:
                left_out += 1
    removes = [RemoveAction(path, True, 0) for path in sorted(held - named.keys())]
    if log is None and adds:
        create_table_with_add_actions(uri, Schema([*schema.values()]), adds, "error", keys, storage_options=options)
    elif log and (adds or removes):
        if new := [field for name, field in schema.items() if name not in known]:
            log.alter.add_columns(new)
        log.create_write_transaction([*adds, *removes], "append", log.schema(), keys)
    return left_out


def _files_with_days(root: Root, table: str) -> dict[str, Named]:
    """Return a table's files by path relative to the table's folder, each with its days in order."""
    found: dict[str, Named] = {}
    for key, files in sorted(root.files.get(table, {}).items()):
        for each in files:
            found.setdefault(each.name.removeprefix(f"{table}/"), []).append((key, each))
    return found


def _is_fit(path: str, days: Named) -> bool:
    """Whether all rows of the file are valid and its path has the form of this version."""
    stored = days[0][1]
    is_whole = not stored.is_packed or stored.number == len(days)
    return is_whole and path.startswith("cluster=") and stored.is_dated == stored.name.startswith(FACTS)


def _fields(schema: pa.Schema) -> dict[str, Field]:
    """Return the columns as Delta fields; empty where Delta has no type for one of them."""
    if any(pa.types.is_unsigned_integer(each.type) for each in schema):
        return {}
    plain = pa.schema([pa.field(each.name, _delta_type(each.type)) for each in schema])
    return {field.name: field for field in Schema.from_arrow(plain).fields}


def _delta_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    return pa.decimal128(kind.precision, kind.scale) if pa.types.is_decimal(kind) else kind


def _added(path: str, days: Named, keys: Sequence[str]) -> AddAction:
    cluster, first, last = day_of(days[0][0])[0], *(str(day_of(days[at][0])[1]) for at in (0, -1))
    stats: dict[str, Any] = {"numRecords": sum(stored.row_count for _, stored in days)}
    if "date" not in keys:
        stats |= {"minValues": {"date": first}, "maxValues": {"date": last}, "nullCount": {"date": 0}}
    values = dict(zip(keys, (cluster, first), strict=False))
    return AddAction(path, days[0][1].byte_count, values, 0, True, json.dumps(stats))
