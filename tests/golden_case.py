"""A golden case's samples.csv → OpenMetrics text → import, compute, report; and its expect.csv as typed rows."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from gpureport.cli import main

NOON = 1_795_176_000  # 2026-11-20T12:00:00Z: time_seconds of the cases counts from here
NOW = datetime(2026, 11, 22, tzinfo=UTC)
NOT_LABELS = ("metric", "time_seconds", "value")

Row = dict[str, Any]


def openmetrics(samples: Path) -> str:
    """The samples as OpenMetrics text, families in order; an empty cell is an absent label."""
    lines: dict[str, list[str]] = defaultdict(list)
    with samples.open(newline="") as file:
        for row in csv.DictReader(file):
            labels = ",".join(f'{name}="{text}"' for name, text in row.items() if text and name not in NOT_LABELS)
            seconds = NOON + float(row["time_seconds"])
            lines[row["metric"]].append(f"{row['metric']}{{{labels}}} {row['value']} {seconds:.3f}")
    families = [f"# TYPE {metric} unknown\n" + "\n".join(found) for metric, found in lines.items()]
    return "\n".join([*families, "# EOF\n"])


def run_case(case: Path, folder: Path) -> Path:
    """The case through the command line; the report's DuckDB file."""
    return run_cases([case], folder)


def run_cases(cases: Sequence[Path], folder: Path) -> Path:
    """Cases of one configuration through the command line, each as a cluster of its own; their report's DuckDB file."""
    config = ["--config", str(cases[0] / "gpureport.toml")] if (cases[0] / "gpureport.toml").exists() else []
    lake, out = str(folder / "lake"), folder / "out"
    for case in cases:
        text = folder / f"{case.name}.txt"
        text.write_text(openmetrics(case / "samples.csv"))
        gpureport(*config, "import", str(text), "--cluster", case.name, "--lake", lake)
    gpureport(*config, "compute", "--date", "2026-11-20", "--lake", lake)
    window = ("--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T13:00:00Z")
    gpureport(*config, "report", *window, "--lake", lake, "--out", str(out))
    return out / "gpureport.duckdb"


def gpureport(*arguments: str) -> None:
    """A command that must succeed."""
    assert main(list(arguments), environ={}, now=NOW) == 0


def expected_rows(path: Path) -> list[Row]:
    """Rows of an expect file; its first lines say why and are skipped."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# "), f"{path}: the first line says why, after '# '"
    return list(csv.DictReader(line for line in lines if not line.startswith("# ")))


def report_rows(database: Path, table: str) -> list[Row]:
    """All rows of a report table."""
    with duckdb.connect(str(database), read_only=True) as con:
        cursor = con.execute(f"from report.{table}")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
