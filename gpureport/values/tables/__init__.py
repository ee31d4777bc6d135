"""The lake's tables: columns, types, units, meaning. The contract between the sources and the SQL.

Every table lives at ``<lake>/<table>/cluster=<c>/date=<D>/*.parquet``; ``cluster`` (text) and ``date`` (UTC day)
are columns of every row, read from the path. Their texts are those of ``docs/schema.md``.
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
"""Raised when a table changes so that older code would misread it, or queries miss a column in older files (lake/migrate.py)."""

TABLE_BY_NAME = {
    name: DEVICE_SAMPLE if name == DEVICE_SAMPLE.name else table for name, table in DESCRIBED.items() if table.made_of != "rules"
}
TABLES = tuple(TABLE_BY_NAME.values())
STATE_TABLES = tuple(table for table in TABLES if table.made_of == "state")
