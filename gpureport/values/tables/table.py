"""Tables of the lake: columns with types and meaning, and the grain of a row."""

from __future__ import annotations

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
