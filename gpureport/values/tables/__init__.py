"""The lake's tables: columns, types, units, meaning. The contract between the sources and the SQL.

Every table lives at ``<lake>/<table>/cluster=<c>/date=<D>/*.parquet``; ``cluster`` (text) and ``date`` (UTC day)
are columns of every row, read from the path. ``docs/schema.md`` is generated from this package.
"""

from __future__ import annotations

from gpureport.values.tables.state import STATE_TABLES
from gpureport.values.tables.table import Table
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
    "TABLES",
    "TABLE_BY_NAME",
    "Signal",
    "Table",
]

SCHEMA_VERSION = 3
"""Raised when a table changes so that older code would misread it, or queries miss a column in older files (lake/migrate.py)."""

TABLES: tuple[Table, ...] = (
    DEVICE_SAMPLE,
    SAMPLE,
    RAW_SAMPLE,
    SERIES,
    OWNER_LABEL,
    DEVICE_LABEL,
    DEVICE_SIGNAL,
    SOURCE,
    *STATE_TABLES,
)
TABLE_BY_NAME = {table.name: table for table in TABLES}
