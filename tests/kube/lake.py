"""Queries of a lake of state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from gpureport.cli import main
from gpureport.lake import open_lake, views
from gpureport.store import Place
from gpureport.values.tables import TABLES

FIXTURES = Path(__file__).parents[2] / "data" / "fixtures"
RECORDING = FIXTURES / "k8s-1.36-recording"
VERSIONS = FIXTURES / "k8s-dra-api-versions"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = "2026-11-21"


def query(lake: Place, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement over ``lake.*``; maps as dictionaries."""
    with duckdb.connect() as con:
        views(con, open_lake(lake), set(re.findall(r"lake\.(\w+)", statement)))
        return con.execute(statement).fetchall()


def everything(lake: Path, but: Sequence[str] = ()) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, without the named columns."""
    found = {}
    with duckdb.connect() as con:
        for name in views(con, open_lake(lake), [table.name for table in TABLES]):
            found[name] = con.sql(f"from {name}").to_arrow_table().to_pylist()
    return {name: [{key: row[key] for key in row if key not in but} for row in rows] for name, rows in found.items()}


def import_state(lake: Path, folder: Path, *more: str) -> None:
    """Import a folder; it must succeed."""
    arguments = ["import", "--kubernetes", str(folder), "--cluster", "lab", "--lake", str(lake), *more]
    assert main(arguments, environ={}, now=NOW) == 0
