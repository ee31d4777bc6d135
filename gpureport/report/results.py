"""Report tables as they leave the database: rows in key order, figures at nine significant digits.

``finished`` writes them once, into the report's own file. SQL makes all other forms from that file, with only the rows that they
show: a month of a large cluster has hundreds of thousands of containers, too many for Python at once. In CSV, unknown is empty,
a time is RFC 3339, a list is separated by spaces, and a map (such as reasons) is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from gpureport.compute.query import Query
from gpureport.values.text.safe import csv_cell_sql, quoted

SIGNIFICANT_DIGITS = 9
MANY_ROWS = 100_000
_UPWARD = 1 + 1e-13
"""Factor that rounds halves away from zero. Sums in another order may be on the other side of the half."""
Maps = Mapping[str, tuple[Mapping[str, Any], ...]]
"""Maps of each column, one per row."""


@dataclass(frozen=True)
class Result:
    """A report table of a database. ``read`` returns chosen rows; ``rows`` and ``maps`` hold all rows in memory."""

    query: Query
    con: duckdb.DuckDBPyConnection

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.query.table.partition(".")[2]

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """SQL type of each column, in the table's order."""
        return {name: str(kind) for name, kind, *_ in self.con.execute(f"describe {self.query.table}").fetchall()}

    @cached_property
    def row_count(self) -> int:
        """Number of rows."""
        ((count,),) = self.con.execute(f"select count(*) from {self.query.table}").fetchall()
        return int(count)

    def read(
        self, columns: Sequence[str] = ("*",), *, where: str = "true", order: str = "", limit: int | None = None, **values: Any
    ) -> list[dict[str, Any]]:
        """Return rows by column (name or ``expression as name``); ``where`` and ``order`` are SQL, ``values`` their $parameters.

        Without ``order``, rows are in key order. A map is a dict.
        """
        keys, at_most = order or ", ".join(self.query.grain), "" if limit is None else f"limit {limit:d}"
        selected = f"select {', '.join(columns)} from {self.query.table} where {where} order by {keys} {at_most}"
        return fetched(self.con.execute(selected, values))

    @cached_property
    def _read(self) -> tuple[pl.DataFrame, Maps]:
        names = [name for name, kind in self.kinds.items() if kind.startswith("MAP(")]
        entries, keys = ", ".join(f"map_entries({name}) as {name}" for name in names), ", ".join(self.query.grain)
        rows = rounded_rows(self.kinds, f"from {self.query.table}", self.row_count > MANY_ROWS)
        all_ = self.con.sql(f"select * {f'replace ({entries})' if names else ''} from ({rows}) order by {keys}").to_arrow_table()
        frame = pl.DataFrame(all_.drop_columns(names))
        maps = {name: tuple(_maps(all_[name])) for name in names}
        return frame.with_columns(pl.selectors.decimal().cast(pl.Int64, strict=True)), maps

    @property
    def rows(self) -> pl.DataFrame:
        """All rows, without the columns of maps."""
        return self._read[0]

    @property
    def maps(self) -> Maps:
        """Columns of maps, which are the table's last."""
        return self._read[1]


def fetched(found: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the rows of an executed statement by column."""
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def rounded_rows(kinds: Mapping[str, str], rows: str, has_many: bool) -> str:
    """Return SQL for rows with floats at nine significant digits, other columns unchanged. Rounding twice changes nothing."""
    floats = [name for name, kind in kinds.items() if kind in ("DOUBLE", "FLOAT")]
    if has_many or not floats:
        cells, source = {name: _rounded(name) for name in floats}, f"({rows})"
    else:  # compiled once for all columns: a third of the time with few rows, a fifth more with many
        cells = {name: f"_figures[{number}]" for number, name in enumerate(floats, 1)}
        source = (
            f"(select *, list_transform([{', '.join(floats)}], lambda figure: {_rounded('figure')}) as _figures from ({rows}))"
        )
    return f"select {', '.join(f'{cells.get(name, name)} as {name}' for name in kinds)} from {source}"


def _rounded(name: str) -> str:
    digits = f"({SIGNIFICANT_DIGITS - 1} - floor(log10(abs({name}))))::integer"
    return f"if({name} = 0 or not isfinite({name}), {name} + 0, round({name} * {_UPWARD}, {digits}))"


def _maps(column: pa.ChunkedArray) -> Iterable[dict[str, Any]]:
    """Yield each map with its keys in order; equal maps are one object, because maps need more memory than the other columns."""
    one = dict[tuple[tuple[str, Any], ...], dict[str, Any]]()
    for entries in column.to_pylist():
        pairs = tuple(sorted((entry["key"], entry["value"]) for entry in entries or []))
        yield one.setdefault(pairs, dict(pairs))


def write_csv(results: Iterable[Result], folder: Path, rows_at_most: int) -> list[Path]:
    """Write ``<folder>/<table>.csv`` (RFC 4180, UTF-8, line feeds) of tables that are not too large; return paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in results:
        if result.row_count <= rows_at_most:
            path = folder / f"{result.name}.csv"
            result.con.execute(f"copy ({csv_select(result)}) to {quoted(path)} (format csv, header)")
            written.append(path)
    return written


def write_parquet(results: Iterable[Result], folder: Path) -> list[Path]:
    """Write ``<folder>/<table>.parquet`` of all tables; return paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in results:
        path = folder / f"{result.name}.parquet"
        result.con.execute(f"copy (from {result.query.table}) to {quoted(path)} (format parquet, compression zstd)")
        written.append(path)
    return written


def csv_select(result: Result) -> str:
    """Return SQL for the table as CSV has it, maps last."""
    names = sorted(result.kinds, key=lambda name: result.kinds[name].startswith("MAP("))
    texts = [name for name in names if result.kinds[name] == "VARCHAR"]
    if not result.row_count:  # usual in a small lake: no text to make safe
        return f"select {', '.join(names)} from {result.query.table}"
    cells = {name: _cell(name, result.kinds[name]) for name in names}
    cells |= {name: f"nullif(_texts[{number}], '')" for number, name in enumerate(texts, 1)}
    safe = f"list_transform([{', '.join(texts)}], lambda text: {csv_cell_sql('text')})"  # compiled once for all columns
    listed = ", ".join(f"{cell} as {name}" for name, cell in cells.items())
    return f"select {listed} from (select *, {safe} as _texts from {result.query.table})"


def _cell(name: str, kind: str) -> str:
    """Return SQL for a value as CSV has it."""
    if kind == "TIMESTAMP":
        whole, cut = (f"strftime({name}, '%Y-%m-%dT%H:%M:%S{rest}Z')" for rest in ("", ".%g"))
        return f"if(millisecond({name}) % 1000 = 0, {whole}, {cut})"
    if kind == "BOOLEAN":
        return f"if({name} is null, null, if({name}, 'True', 'False'))"
    if kind.endswith("[]"):
        joined = f"array_to_string({name}, ' ')"
        return f"nullif({csv_cell_sql(joined) if kind.startswith('VARCHAR') else joined}, '')"
    return f"coalesce(to_json({name}), '{{}}')" if kind.startswith("MAP(") else name
