"""Columns and types that the lake's state tables share."""

from __future__ import annotations

import pyarrow as pa

from gpureport.tables.table import INSTANT, Column

TEXTS = pa.map_(pa.string(), pa.string())
AMOUNTS = pa.map_(pa.string(), pa.float64())

OBSERVED = Column("observed_at", INSTANT, "UTC, when the state was looked at")
CREATED = Column("created_at", INSTANT, "UTC, when the object was created", True)
