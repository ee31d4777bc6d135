"""The page at 10,000 GPUs and 50,000 containers: how large, how long to write, how long until a browser has drawn it, and what
a reader finds how fast there and in the reports that are given as they are (SHOWN, default REPORT).

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
SHOWN = [Path(each) for each in os.environ.get("SHOWN", str(REPORT)).split(",")]
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
        shown = [("enlarged", *_shown(con, path))]
    print(f"{machine()}; {sizes['device']:,} devices, {sizes['container']:,} containers")
    told = (f"{median([each[number] for each in drawing]):.2f}" for number in (0, 1))
    names = ("MB", "CPU s to write", "s until the browser has drawn it", "of these CPU s of the page's thread")
    print_table(f"The page, median of {ROUNDS}", names, [(f"{megabytes:.2f}", f"{median(writing):.1f}", *told)])
    for folder in SHOWN:
        with duckdb.connect(folder / "gpureport.duckdb", read_only=True) as con:
            shown.append((folder.name, *_shown(con, folder / "report.html")))
    print_table("What a reader finds", _SHOWN, shown)


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


_SHOWN = ("report", "MB", "ms to the first paint", "answers within 900 px", "critical findings after one click",
          "hidden container", "ms of a search", "requests beside the page", "complaints")  # fmt: skip


def _shown(con: duckdb.DuckDBPyConnection, path: Path) -> tuple[str, ...]:
    """What a reader of a page finds: the six answers, every critical finding, a container that no row shows."""
    [(criticals,)] = con.execute("select count(*) from report.finding where severity = 'critical'").fetchall()
    [(pod,)] = con.execute("select pod from report.container order by observed_seconds, pod desc limit 1").fetchall()
    asked, complaints = list[str](), list[str]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program())
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.resolve().as_uri())
        page.wait_for_timeout(500)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        boxes = [page.locator(".six .answer .headline").nth(number).bounding_box() for number in range(6)]
        answers = sum(box is not None and box["y"] + box["height"] <= 900 for box in boxes)
        is_hidden = pod not in page.locator("body").inner_text()
        page.locator("a", has_text="All findings").first.click()
        page.locator("#findings tr[data-position]").first.wait_for()
        rows = page.locator("#findings tr[data-position]").all_inner_texts()
        first = sum(1 for row in rows[:criticals] if "critical" in row)
        page.locator("#find").fill("x")  # the first search unpacks the rows
        page.wait_for_timeout(1000)
        spent = page.evaluate(_SEARCH, pod)
        found = pod in page.locator("#hits").inner_text()
        browser.close()
    return (
        f"{path.stat().st_size / 1e6:.2f}",
        f"{paint:.0f}",
        f"{answers} of 6",
        f"{first} of {criticals} in {len(rows)} rows drawn",
        f"{'found' if found else 'not found'}, {'hidden' if is_hidden else 'shown'} before",
        f"{spent:.0f}",
        str(len(asked) - 1),
        "; ".join(complaints) or "none",
    )


_SEARCH = """async (text) => {
    const find = document.getElementById("find"), start = performance.now();
    find.value = text;
    find.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - start;
}"""


if __name__ == "__main__":
    main()
