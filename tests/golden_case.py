"""Golden cases: samples.csv as OpenMetrics text through import, compute and report; expect.csv as typed rows."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import duckdb
import pytest
from built_once import built_once

from gpureport.cli import main

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.rglob("samples.csv"))

NOON = 1_795_176_000  # 2026-11-20T12:00:00Z: time_seconds of the cases counts from here
NOW = datetime(2026, 11, 22, tzinfo=UTC)
DEMO_AT = datetime(2026, 11, 21, 5, tzinfo=UTC)
MINUTES = ("--since", "2026-11-20T23:51:40Z", "--until", "2026-11-20T23:59:40Z")
"""The window of the H200's recording."""
NOT_LABELS = ("metric", "time_seconds", "value")
# Names of a single case: they get the case's mark, so that many cases fit into one cluster.
MARKED = (
    *("UUID", "device_uuid", "accelerator_id", "acc_id", "serial_number", "Hostname", "hostname", "node"),
    *("namespace", "dra_claim_namespace", "uid", "pod_uid", "job"),
)

Row = dict[str, Any]


def openmetrics(samples: Mapping[str, Path]) -> str:
    """Samples as OpenMetrics text, sorted by family, each file's names with its mark; an empty cell is an absent label."""
    lines: dict[str, list[str]] = defaultdict(list)
    for mark, path in samples.items():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                names = {name: text for name, text in row.items() if text and name not in NOT_LABELS}
                labels = ",".join(f'{name}="{text}{mark if name in MARKED else ""}"' for name, text in names.items())
                seconds = NOON + float(row["time_seconds"])
                lines[row["metric"]].append(f"{row['metric']}{{{labels}}} {row['value']} {seconds:.3f}")
    families = [f"# TYPE {metric} unknown\n" + "\n".join(found) for metric, found in lines.items()]
    return "\n".join([*families, "# EOF\n"])


class Told(NamedTuple):
    """The folder of the report that contains a case, and the case's mark there."""

    folder: Path
    mark: str

    @property
    def database(self) -> Path:
        """The report's DuckDB file."""
        return self.folder / "gpureport.duckdb"


def told(case: Path, request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Told:
    """The case's report, which it shares with those cases of this run that fit into one report."""
    given = (item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec"))
    asked = {case, *(each for each in given if isinstance(each, Path))}  # other tests have cases of other kinds
    group = [each for each in CASES if each in asked and company(each) == company(case)]
    cases = {f"~{number}": each for number, each in enumerate(group)}
    name = f"golden-{crc32(repr(group).encode()):x}"
    folder = built_once(name, lambda folder: run_cases(cases, folder), request, factory)
    return Told(folder / "out", f"~{group.index(case)}")


def company(case: Path) -> str:
    """The same text for cases that fit into one cluster: those without a configuration, or with metrics and models of their own;
    and those that configure the same settings."""
    return "as others have it" if any(word in configuration(case) for word in ("[saturation]", "[links", "DCGM_")) else ""


def configuration(case: Path) -> str:
    """The case's configuration."""
    file = case / "gpureport.toml"
    return file.read_text() if file.exists() else ""


def joined(configurations: Iterable[str]) -> str:
    """All configurations as one; keys without a table come first, as TOML requires."""
    return "\n".join(sorted(set(configurations), key=lambda text: text.startswith("[")))


def run_cases(cases: Mapping[str, Path], folder: Path) -> None:
    """Run cases, by mark, as one cluster through the command line, into a lake and a report."""
    file = folder / "gpureport.toml"
    file.write_text(joined(map(configuration, cases.values())))
    config = ["--config", str(file)]
    text, lake, out = folder / "metrics.txt", str(folder / "lake"), folder / "out"
    text.write_text(openmetrics({mark: case / "samples.csv" for mark, case in cases.items()}))
    window = ("--since", "2026-11-20T12:00:00Z", "--until", "2026-11-20T13:00:00Z")
    gpureport(*config, "import", str(text), "--cluster", "golden", "--lake", lake)
    gpureport(*config, "compute", "--date", "2026-11-20", "--lake", lake)
    gpureport(*config, "report", *window, "--lake", lake, "--out", str(out))


def gpureport(*arguments: str | Path) -> None:
    """Run a command that must succeed."""
    assert main(list(map(str, arguments)), environ={}, now=NOW) == 0


def expected_rows(path: Path) -> list[Row]:
    """Rows of an expect file, without its first lines, which explain it."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# "), f"{path}: the first line says why, after '# '"
    return list(csv.DictReader(line for line in lines if not line.startswith("# ")))


def report_rows(database: Path, table: str) -> list[Row]:
    """All rows of a report table."""
    with duckdb.connect(str(database), read_only=True) as con:
        return rows_of(con.execute(f"from {table if '.' in table else f'report.{table}'}"))


def rows_of(cursor: duckdb.DuckDBPyConnection) -> list[Row]:
    """Rows of a statement's result, by column."""
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@cache
def marked_rows(database: Path, table: str) -> dict[str, list[Row]]:
    """Rows of a table by mark, for a report that does not change."""
    return by_mark(report_rows(database, table))


def by_mark(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by the mark in their names, which is removed; all rows under ''."""
    found = defaultdict[str, list[Row]](list)
    for row in rows:
        found[""].append(row)
        for mark in {f"~{cell.rpartition('~')[2]}" for cell in row.values() if isinstance(cell, str) and "~" in cell}:
            found[mark].append({name: cell.removesuffix(mark) if isinstance(cell, str) else cell for name, cell in row.items()})
    return found
