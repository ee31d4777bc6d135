"""Tables of the lake: columns with types and meaning, and the grain of a row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

INSTANT = pa.timestamp("ms")


@dataclass(frozen=True)
class Column:
    """A column: its Arrow type and one sentence, unit included."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False
    decimals: int | None = None
    """Places after the point with which files hold it: as whole numbers, exact and a third of the size; views give doubles."""


@dataclass(frozen=True)
class Table:
    """A lake table: what one row is (``grain``), in which order rows stand, and its columns."""

    name: str
    doc: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow and Parquet schema, without the partition columns."""
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


TEXTS = pa.map_(pa.string(), pa.string())
AMOUNTS = pa.map_(pa.string(), pa.float64())

OBSERVED = Column("observed_at", INSTANT, "UTC, when the state was looked at")
CREATED = Column("created_at", INSTANT, "UTC, when the object was created", True)


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
"""Columns of facts by the names that older versions gave them."""


def kind_of_fact(column: str) -> str:
    """The type of a column of facts, by its name."""
    return next((kind for pattern, kind in _KINDS if re.search(pattern, column)), "varchar")
