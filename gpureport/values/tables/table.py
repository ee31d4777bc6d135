"""Tables that no query makes: their grains (``queries/catalog/table.csv``) and columns (``table_column.csv``).

State tables are append-only: each snapshot is a part file under the day of ``observed_at``, with several a day. Amounts are in
base units (cores, bytes, devices, or the resource's own unit); unreadable amounts are null. '' means that the object has no such
text; null means that it has no such time or number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from gpureport.values.runtime.resources import catalog_rows


@dataclass(frozen=True)
class Column:
    """A column: its Arrow type, and one sentence with its unit."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False
    decimals: int | None = None
    """Decimal places in files, which store integers: exact, and a third of the size. Views have doubles."""


@dataclass(frozen=True)
class Table:
    """A table: the meaning of one row (``grain``), the order of rows, and its columns."""

    name: str
    made_of: str
    """samples, state (reports of an API server and nodes at one time) or rules (of schedulers, not stored in a lake)."""
    grain: tuple[str, ...]
    doc: str
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow and Parquet schema, without the partition columns."""
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


_TYPES = {
    "text": pa.string(),
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "timestamp[ms]": pa.timestamp("ms"),
    "timestamp[us]": pa.timestamp("us"),
    "texts": pa.map_(pa.string(), pa.string()),
    "counts": pa.map_(pa.string(), pa.int64()),
    "amounts": pa.map_(pa.string(), pa.float64()),
}


def _type(name: str) -> pa.DataType:
    """Return the Arrow type of a catalog name: one of ``_TYPES``, a list (``text[]``) or a structure (``{claim: text, …}``)."""
    if name.endswith("[]"):
        return pa.list_(_type(name[:-2]))
    if name.startswith("{"):
        fields = (field.split(": ") for field in name[1:-1].split(", "))
        return pa.struct([(field, _type(kind)) for field, kind in fields])
    return _TYPES[name]


def _described() -> Iterator[Table]:
    columns = defaultdict[str, list[Column]](list)
    for row in catalog_rows("table_column.csv"):
        columns[row["table"]].append(Column(row["column"], _type(row["type"]), row["meaning"], row["nullable"] == "true"))
    for row in catalog_rows("table.csv"):
        yield Table(row["table"], row["made_of"], tuple(row["grain"].split()), row["meaning"], tuple(columns[row["table"]]))


DESCRIBED = {table.name: table for table in _described()}
"""All described tables by name. ``device_sample`` here lacks the signal columns."""


_KINDS = (
    ("^is_", "boolean"),
    ("_at$", "timestamp"),
    ("^day$", "date"),
    ("^(bins|bin_milliseconds|silent_hours|xid_codes)$", "bigint[]"),
    ("^((allocated|left_out)_devices|driver_versions|exposed_by|gpu_models|(other|source)_metrics|quota_scopes)$", "varchar[]"),
    ("^namespace_labels$", "map(varchar, varchar)"),
    ("^dropped$", "map(varchar, bigint)"),
    ("^resource_units$", "map(varchar, double)"),
    ("_((core|second|joule|watt|byte|hour|unit|gpu)s|ratio|percent|count)$", "double"),
    ("_(max|min|avg|once|native|code|kepler|unweighted)$", "double"),
    ("^(priority|minor|numa_node|socket_id)$", "double"),
)
RENAMED_FACTS = {
    **{"asked_as": "requested_as", "asked_by": "request_source", "given_devices": "allocated_devices", "is_held": "is_allocated"},
    **{f"held_{one}": f"allocated_{one}" for one in ("core_percent", "memory_bytes", "memory_ratio_percent")},
    **{"held_joules": "allocated_idle_joules", "held_idle_joules": "allocated_baseline_joules"},
    "untold_seconds": "unreported_seconds",
}
"""Old names of fact columns, each with its new name."""
RENAMED_VALUES = {"activity": "if(activity = 'untold', 'unreported', activity)"}
"""Fact columns whose values had other names, as SQL with the new names."""


def kind_of_fact(column: str) -> str:
    """Return the DuckDB type of a fact column by its name."""
    return next((kind for pattern, kind in _KINDS if re.search(pattern, column)), "varchar")
