"""Report tables as they leave the database: rows in the order of their grain, figures at nine significant digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from gpureport.query import Query

REASONS_COLUMN = "unknown_reasons"
"""The column that says of each figure that is null why it is."""
SIGNIFICANT_DIGITS = 9


@dataclass(frozen=True)
class Result:
    """One report table: its query, and its rows without the reasons, which are kept beside them row by row."""

    query: Query
    rows: pl.DataFrame
    reasons: tuple[Mapping[str, str], ...]

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.query.table.partition(".")[2]

    def reason(self, row: int, column: str) -> str:
        """Why a figure is null; '' where it is not, or where null is a value like any other."""
        return self.reasons[row].get(column, "")


def read_results(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> list[Result]:
    """Every report table, by name."""
    return [_read(con, queries[table]) for table in sorted(queries)]


def _read(con: duckdb.DuckDBPyConnection, query: Query) -> Result:
    order = ", ".join(query.grain)
    has_reasons = REASONS_COLUMN in query.columns
    chosen = f"* replace (map_entries({REASONS_COLUMN}) as {REASONS_COLUMN})" if has_reasons else "*"
    frame = rounded(con.sql(f"select {chosen} from {query.table} order by {order}").pl())
    if not has_reasons:
        return Result(query, frame, tuple({} for _ in range(frame.height)))
    reasons = tuple(_pairs(entries) for entries in frame[REASONS_COLUMN].to_list())
    return Result(query, frame.drop(REASONS_COLUMN), reasons)


def _pairs(entries: list[dict[str, Any]] | None) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in entries or []}


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Floats at nine significant digits, sums of counts as integers."""
    return frame.with_columns(
        pl.selectors.float().round_sig_figs(SIGNIFICANT_DIGITS), pl.selectors.decimal().cast(pl.Int64, strict=True)
    )
