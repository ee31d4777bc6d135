"""The page at 10,000 GPUs and 50,000 containers: how large, how long to write, how long until a browser has drawn it.

A report that is there (REPORT, default out/demo) is repeated under other names until it is as large; GPUS (10,000),
CONTAINERS (50,000): whichever takes more copies.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from playwright.sync_api import sync_playwright

from bench.measure import machine, median, print_table
from gpureport.compute.query import Query, load
from gpureport.report.header import Header, read_header
from gpureport.report.page import write_pages
from gpureport.values.window import Window, parse_instant

sys.path.insert(0, "tests")
from chromium import chromium_program

GPUS = int(os.environ.get("GPUS", "10000"))
CONTAINERS = int(os.environ.get("CONTAINERS", "50000"))
REPORT = Path(os.environ.get("REPORT", "out/demo"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
_LIMITS = {"memory_limit": "4GB"}
"""The hourly facts of so many copies are more than memory holds: they lie in a file."""
_NAMES = ("device_uuid", "id", "pod", "node_name", "namespace")
"""Columns that get another value in each copy; namespaces in every twentieth, so that teams grow too."""


def main() -> None:
    with TemporaryDirectory() as folder, duckdb.connect(Path(folder) / "large.duckdb", config=_LIMITS) as con:
        header, queries = _enlarged(con)
        sizes = {name: con.table(f"report.{name}").shape[0] for name in ("device", "container")}
        path = Path(folder) / "report.html"
        writing = [_seconds(lambda: write_pages(con, queries, header, Path(folder))) for _ in range(ROUNDS)]
        megabytes = path.stat().st_size / 1e6
        drawing = [_drawn(path) for _ in range(ROUNDS)]
    print(f"{machine()}; {sizes['device']:,} devices, {sizes['container']:,} containers")
    told = (f"{median([each[number] for each in drawing]):.2f}" for number in (0, 1))
    names = ("MB", "CPU s to write", "s until the browser has drawn it", "of these CPU s of the page's thread")
    print_table(f"The page, median of {ROUNDS}", names, [(f"{megabytes:.2f}", f"{median(writing):.1f}", *told)])


def _enlarged(con: duckdb.DuckDBPyConnection) -> tuple[Header, Mapping[str, Query]]:
    """The report's tables and the facts that the page reads, so many times that they tell of GPUS GPUs and of CONTAINERS."""
    con.execute(
        f"attach '{REPORT / 'gpureport.duckdb'}' as small (read_only); "
        "create schema report; create schema facts; create schema period; create schema lake"
    )
    ((gpus,),) = con.execute("select count(*) from small.report.device where gpu_instance_id = ''").fetchall()
    ((containers,),) = con.execute("select count(*) from small.report.container").fetchall()
    copies = max(-(-GPUS // gpus), -(-CONTAINERS // containers))
    tables = con.execute(
        "select schema_name, table_name from duckdb_tables() where database_name = 'small' and schema_name <> 'main'"
    )
    for schema, name in tables.fetchall():
        columns = [row[0] for row in con.execute(f"describe small.{schema}.{name}").fetchall()]
        _copy(con, f"{schema}.{name}", columns, copies)
    con.execute("create table lake.source (cluster varchar, date date, server varchar, read_path varchar, series_count bigint, "
                "sample_count bigint, warnings varchar[], kind varchar, catalog_version varchar)")  # fmt: skip
    ((told,),) = con.execute("select value from small.main.meta where name = 'window'").fetchall()
    found = con.execute("select $told::json ->> 'start_at', $told::json ->> 'end_at'", {"told": told}).fetchall()[0]
    header = read_header(con, Window(*map(parse_instant, found)), datetime(2026, 1, 1, tzinfo=UTC), "bench", (), {})
    queries = load()
    there = {
        f"report.{row[0]}"
        for row in con.execute("select table_name from duckdb_tables() where schema_name = 'report'").fetchall()
    }
    return header, {table: query for table, query in queries.items() if table in there}


def _copy(con: duckdb.DuckDBPyConnection, table: str, columns: list[str], copies: int) -> None:
    named = [name for name in _NAMES if name in columns]
    if not named or table == "report.finding_change":
        con.execute(f"create table {table} as from small.{table}")
        return
    step = {name: "copy // 20" if name == "namespace" and len(named) > 1 else "copy" for name in named}
    replaced = ", ".join(f"if({name} = '', '', {name} || '-' || ({step[name]})) as {name}" for name in named)
    distinct = "distinct " if named == ["namespace"] else ""
    repeated = f"select {distinct}* exclude (copy) replace ({replaced}) from small.{table}, range({copies}) copies (copy)"
    con.execute(f"create table {table} as {repeated}")


def _seconds(do: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    do()
    return time.process_time() - start


def _drawn(path: Path) -> tuple[float, float]:
    """Seconds from asking for the page to its first frame after everything is loaded, and CPU seconds of the page's thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program())
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        taken = time.perf_counter() - start
        found = {each["name"]: each["value"] for each in metrics.send("Performance.getMetrics")["metrics"]}
        browser.close()
    return taken, found["TaskDuration"]


if __name__ == "__main__":
    main()
