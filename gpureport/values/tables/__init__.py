"""The lake's tables: columns, types, units and meanings, as the contract between sources and SQL.

Tables are stored at ``<lake>/<table>/cluster=<c>/date=<D>/*.parquet``. Every row has the columns ``cluster`` (text) and ``date``
(UTC day), read from the path. ``docs/schema.md`` has the same texts.
"""

from __future__ import annotations

from gpureport.values.tables.table import DESCRIBED, Table
from gpureport.values.tables.telemetry import (
    DEVICE_LABEL,
    DEVICE_SAMPLE,
    DEVICE_SIGNAL,
    DROP_REASONS,
    OWNER_LABEL,
    RAW_SAMPLE,
    SAMPLE,
    SERIES,
    SIGNAL_BY_NAME,
    SIGNALS,
    SOURCE,
    Signal,
)

__all__ = [
    "DEVICE_LABEL",
    "DEVICE_SAMPLE",
    "DEVICE_SIGNAL",
    "DROP_REASONS",
    "OWNER_LABEL",
    "RAW_SAMPLE",
    "SAMPLE",
    "SCHEMA_VERSION",
    "SERIES",
    "SIGNALS",
    "SIGNAL_BY_NAME",
    "SOURCE",
    "STATE_TABLES",
    "TABLES",
    "TABLE_BY_NAME",
    "Signal",
    "Table",
]

SCHEMA_VERSION = 3
"""Raised when older code would misread a table, or when queries need a column that older files lack (lake/migrate.py)."""

TABLE_BY_NAME = {
    name: DEVICE_SAMPLE if name == DEVICE_SAMPLE.name else table for name, table in DESCRIBED.items() if table.made_of != "rules"
}
TABLES = tuple(TABLE_BY_NAME.values())
STATE_TABLES = tuple(table for table in TABLES if table.made_of == "state")
