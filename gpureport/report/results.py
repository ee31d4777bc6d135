"""Report tables as they leave the database: rows in the order of their grain, figures at nine significant digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import polars as pl

from gpureport.query import Query

REASONS_COLUMN = "unknown_reasons"
"""The column that says of each figure that is null why it is."""
SIGNIFICANT_DIGITS = 9
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Result:
    """One report table: its query, and its rows without the columns of maps, which are kept beside them row by row."""

    query: Query
    rows: pl.DataFrame
    maps: Mapping[str, tuple[Mapping[str, Any], ...]]
    """By column; they are the table's last columns."""

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.query.table.partition(".")[2]

    @cached_property
    def reasons(self) -> tuple[Mapping[str, str], ...]:
        """Row by row, why figures are null."""
        return self.maps.get(REASONS_COLUMN) or tuple({} for _ in range(self.rows.height))

    def reason(self, row: int, column: str) -> str:
        """Why a figure is null; '' where it is not, or where null is a value like any other."""
        return self.reasons[row].get(column, "")

    def maps_of(self, row: int) -> dict[str, Mapping[str, Any]]:
        """The row's maps by column."""
        return {column: found[row] for column, found in self.maps.items()}


def read_results(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> list[Result]:
    """Every report table, by name."""
    return [_read(con, queries[table]) for table in sorted(queries)]


def _read(con: duckdb.DuckDBPyConnection, query: Query) -> Result:
    table = con.table(query.table)
    maps = [name for name, kind in zip(table.columns, table.types, strict=True) if kind.id == "map"]
    entries = f" replace ({', '.join(f'map_entries({name}) as {name}' for name in maps)})" if maps else ""
    frame = rounded(con.sql(f"select *{entries} from {query.table} order by {', '.join(query.grain)}").pl())
    return Result(query, frame.drop(maps), {name: tuple(_maps(frame[name])) for name in maps})


def _maps(entries: pl.Series) -> Iterator[dict[str, Any]]:
    """Row by row; equal maps are one, for of tens of thousands of rows most lack the same figures for the same reasons."""
    known: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}
    for part in entries.to_frame().iter_slices(_ROWS_AT_ONCE):
        for found in part.to_series().to_list():
            pairs = tuple(sorted((entry["key"], entry["value"]) for entry in found or []))
            yield known.setdefault(pairs, dict(pairs))


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Floats at nine significant digits, sums of counts as integers."""
    return frame.with_columns(
        pl.selectors.float().round_sig_figs(SIGNIFICANT_DIGITS), pl.selectors.decimal().cast(pl.Int64, strict=True)
    )
