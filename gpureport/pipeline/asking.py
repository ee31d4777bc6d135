"""SQL over a lake and its report, and the documented schema."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

from duckdb import DuckDBPyConnection

from gpureport.compute import KEPT, connection
from gpureport.config import Config
from gpureport.documents.schema import render_schema
from gpureport.errors import LakeError
from gpureport.lake import Lake, open_lake, views
from gpureport.pipeline.reporting import open_report
from gpureport.query import load
from gpureport.row_printing import Output
from gpureport.sql_prompt import answer, prompt
from gpureport.tables import TABLES
from gpureport.window import Window, day_start


def sql(config: Config, statement: str | None, output: Output, now: datetime) -> None:
    """One statement's rows on standard output, or a prompt; report.* spans all days that have facts."""
    lake = open_lake(config.lake)
    with connection(config.compute.memory_limit, config.compute.threads) as con:
        _open_report_if_whole(con, config, lake, now)
        views(con, lake, [*(table.name for table in TABLES), *(table.replace(".", "/") for table in KEPT)])
        if statement:
            answer(con, statement, output, sys.stdout)
        else:
            prompt(con, output, sys.stdin, sys.stdout)


def _open_report_if_whole(con: DuckDBPyConnection, config: Config, lake: Lake, now: datetime) -> None:
    """report.* over all days that have facts; where they do not fit together, lake.* and facts.* must do, which is said."""
    days = [each.date for each in lake.partitions("facts/device_hour")]
    if not days:
        return
    try:
        open_report(con, config, lake, Window(day_start(min(days)), day_start(max(days)) + timedelta(days=1)), now)
    except LakeError as error:
        print(f"warning: no report.* here: {error}", file=sys.stderr)


def schema() -> str:
    """Every table's columns, types and meaning, as Markdown."""
    return render_schema(load())
