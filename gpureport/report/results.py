"""Report tables as they leave the database: rows in the order of their grain, figures at nine significant digits.

Those of a large cluster lie in files that are mapped and not read: in memory is what somebody looks at, while he does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from gpureport.query import Query
from gpureport.runtime.spill import spill_folder

REASONS_COLUMN = "unknown_reasons"
"""The column that says of each figure that is null why it is."""
SIGNIFICANT_DIGITS = 9
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class Result:
    """One report table: its query, and its rows without the columns of maps, which are kept beside them row by row."""

    query: Query
    kept: pl.DataFrame | Path
    """The rows, or the Arrow file that holds them."""
    maps: Mapping[str, tuple[Mapping[str, Any], ...]]
    """By column; they are the table's last columns."""

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The rows; of a file what was looked at stays in memory as long as this object does."""
        if isinstance(self.kept, pl.DataFrame):
            return self.kept
        with pa.memory_map(str(self.kept)) as file:
            return pl.DataFrame(pl.from_arrow(pa.ipc.open_file(file).read_all(), rechunk=False))

    def anew(self) -> Result:
        """The same table, of which nothing is in memory yet."""
        return replace(self)

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.query.table.partition(".")[2]

    @cached_property
    def reasons(self) -> tuple[Mapping[str, str], ...]:
        """Row by row, why figures are null."""
        return self.maps.get(REASONS_COLUMN) or ({},) * self.rows.height

    def reason(self, row: int, column: str) -> str:
        """Why a figure is null; '' where it is not, or where null is a value like any other."""
        return self.reasons[row].get(column, "")

    def maps_of(self, row: int) -> dict[str, Mapping[str, Any]]:
        """The row's maps by column."""
        return {column: found[row] for column, found in self.maps.items()}


@contextmanager
def opened_results(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> Iterator[list[Result]]:
    """Every report table, by name; the rows of large ones lie in files as long as the block lasts."""
    with spill_folder() as folder:
        yield [_read(con, queries[table], folder / f"{table}.arrow") for table in sorted(queries)]


def read_results(con: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> list[Result]:
    """Every report table, by name, all in memory."""
    return [_read(con, queries[table]) for table in sorted(queries)]


def _read(con: duckdb.DuckDBPyConnection, query: Query, file: Path | None = None) -> Result:
    """Rows and maps, some at a time; rows that are many go into the file."""
    table = con.table(query.table)
    names = [name for name, kind in zip(table.columns, table.types, strict=True) if kind.id == "map"]
    entries = f" replace ({', '.join(f'map_entries({name}) as {name}' for name in names)})" if names else ""
    is_large = bool(con.execute(f"select 1 from {query.table} limit 1 offset {_ROWS_AT_ONCE}").fetchall())
    told = con.sql(f"select *{entries} from {query.table} order by {', '.join(query.grain)}").to_arrow_reader(_ROWS_AT_ONCE)
    maps = _Maps(names)
    frames = (rounded(pl.DataFrame(maps.taken_from(batch))) for batch in told)
    if file and is_large:
        _write(frames, file)
        return Result(query, file, maps.found())
    nothing = pa.schema([field for field in told.schema if field.name not in names]).empty_table()
    frame = pl.concat([rounded(pl.DataFrame(nothing)), *frames], rechunk=True)
    return Result(query, frame, maps.found())


def _write(frames: Iterable[pl.DataFrame], file: Path) -> None:
    """One frame or more into an Arrow file that can be mapped as Polars holds them."""
    tables = (frame.to_arrow(compat_level=pl.CompatLevel.newest()) for frame in frames)
    first = next(tables)
    with pa.ipc.new_file(file, first.schema) as written:
        for table in chain([first], tables):
            written.write_table(table)


class _Maps:
    """Columns of maps, which weigh more than the rows: equal maps are one object."""

    def __init__(self, names: Sequence[str]) -> None:
        self._found = {name: list[Mapping[str, Any]]() for name in names}
        self._one = dict[_Pairs, dict[str, Any]]()

    def taken_from(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The other columns of a batch, whose maps are kept."""
        for name, kept in self._found.items():
            kept += [self._one.setdefault(pairs, dict(pairs)) for pairs in map(_pairs, batch[name].to_pylist())]
        return batch.drop_columns(list(self._found))

    def found(self) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """By column, row by row."""
        return {name: tuple(kept) for name, kept in self._found.items()}


_Pairs = tuple[tuple[str, Any], ...]


def _pairs(entries: list[dict[str, Any]] | None) -> _Pairs:
    """A map with its keys in order, so that files are the same bytes."""
    return tuple(sorted((entry["key"], entry["value"]) for entry in entries or []))


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Floats at nine significant digits, sums of counts as integers."""
    return frame.with_columns(
        pl.selectors.float().round_sig_figs(SIGNIFICANT_DIGITS), pl.selectors.decimal().cast(pl.Int64, strict=True)
    )
