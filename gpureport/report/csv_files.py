"""Each report table as files that the database writes: Parquet, and CSV with SQL's column names and raw units.

In CSV unknown is empty, a time is RFC 3339, a list is separated by spaces, and a map (reasons among them) is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpureport.report.results import Result
from gpureport.values.text.safe import csv_cell_sql, quoted

_ROWS_AT_MOST = 100_000
"""Tables with more rows have no CSV; Parquet has them all."""


def write_csv(results: Iterable[Result], folder: Path, rows_at_most: int = _ROWS_AT_MOST) -> list[Path]:
    """Files ``<folder>/<table>.csv`` (RFC 4180, UTF-8, line feeds) of the tables that are not too large, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in results:
        if result.row_count <= rows_at_most:
            path = folder / f"{result.name}.csv"
            result.con.execute(f"copy ({csv_select(result)}) to {quoted(path)} (format csv, header)")
            written.append(path)
    return written


def write_parquet(results: Iterable[Result], folder: Path) -> list[Path]:
    """Files ``<folder>/<table>.parquet`` of all tables, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in results:
        path = folder / f"{result.name}.parquet"
        result.con.execute(f"copy (from {result.query.table}) to {quoted(path)} (format parquet, compression zstd)")
        written.append(path)
    return written


def csv_select(result: Result) -> str:
    """The table as CSV holds it, maps last."""
    names = sorted(result.kinds, key=lambda name: result.kinds[name].startswith("MAP("))
    texts = [name for name in names if result.kinds[name] == "VARCHAR"]
    cells = {name: _cell(name, result.kinds[name]) for name in names}
    cells |= {name: f"nullif(_texts[{number}], '')" for number, name in enumerate(texts, 1)}
    safe = f"list_transform([{', '.join(texts)}], lambda text: {csv_cell_sql('text')})"  # compiled once, not for each column
    listed = ", ".join(f"{cell} as {name}" for name, cell in cells.items())
    return f"select {listed} from (select *, {safe} as _texts from {result.query.table})"


def _cell(name: str, kind: str) -> str:
    """SQL for a value as CSV holds it."""
    if kind == "TIMESTAMP":
        whole, cut = (f"strftime({name}, '%Y-%m-%dT%H:%M:%S{rest}Z')" for rest in ("", ".%g"))
        return f"if(millisecond({name}) % 1000 = 0, {whole}, {cut})"
    if kind == "BOOLEAN":
        return f"if({name} is null, null, if({name}, 'True', 'False'))"
    if kind.endswith("[]"):
        joined = f"array_to_string({name}, ' ')"
        return f"nullif({csv_cell_sql(joined) if kind.startswith('VARCHAR') else joined}, '')"
    return f"coalesce(to_json({name}), '{{}}')" if kind.startswith("MAP(") else name
