"""Report tables as they leave the database: rows in the order of their grain, figures at nine significant digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from gpureport.query import Query

REASONS_COLUMN = "unknown_reasons"
"""The column that says of each figure that is null why it is."""
SIGNIFICANT_DIGITS = 9
_ROWS_AT_ONCE = 2048


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
    """Rows and maps; of the maps, which weigh more than the rows, only some are in memory before equal ones are one."""
    table = con.table(query.table)
    maps = [name for name, kind in zip(table.columns, table.types, strict=True) if kind.id == "map"]
    entries = f" replace ({', '.join(f'map_entries({name}) as {name}' for name in maps)})" if maps else ""
    told = con.sql(f"select *{entries} from {query.table} order by {', '.join(query.grain)}").to_arrow_reader(_ROWS_AT_ONCE)
    schema = pa.schema([field for field in told.schema if field.name not in maps])
    batches, one, found = [], dict[_Pairs, dict[str, Any]](), {name: list[dict[str, Any]]() for name in maps}
    for batch in told:
        for name in maps:
            found[name] += [one.setdefault(pairs, dict(pairs)) for pairs in map(_pairs, batch[name].to_pylist())]
        batches.append(batch.drop_columns(maps))
    frame = rounded(pl.DataFrame(pa.Table.from_batches(batches, schema)))
    return Result(query, frame, {name: tuple(kept) for name, kept in found.items()})


_Pairs = tuple[tuple[str, Any], ...]


def _pairs(entries: list[dict[str, Any]] | None) -> _Pairs:
    """A map with its keys in order, so that files are the same bytes."""
    return tuple(sorted((entry["key"], entry["value"]) for entry in entries or []))


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Floats at nine significant digits, sums of counts as integers."""
    return frame.with_columns(
        pl.selectors.float().round_sig_figs(SIGNIFICANT_DIGITS), pl.selectors.decimal().cast(pl.Int64, strict=True)
    )
