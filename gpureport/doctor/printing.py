"""Findings as a table with the lines to add below it, as JSON or as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpureport.doctor.findings import Finding, Status

Output = Literal["table", "json", "csv"]
COLUMNS = ("status", "code", "subject", "found", "costs")
_STYLES: dict[Status, str] = {"ok": "green", "missing": "bold red", "partial": "yellow", "note": "cyan"}
_UNWRAPPED = 10_000
"""Columns of a pipe or file: a row is a line there, however long."""


def print_findings(findings: Sequence[Finding], output: Output, out: TextIO) -> None:
    """Print the rows; the table alone has the lines to add once each, by the place where they go."""
    if output == "json":
        json.dump([asdict(finding) for finding in findings], out, indent=1, ensure_ascii=False)
        out.write("\n")
    elif output == "csv":
        _print_csv(findings, out)
    else:
        _print_table(findings, out)


def _print_csv(findings: Sequence[Finding], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "add"])
    for finding in findings:
        add = [line for remedy in finding.add for line in (f"{remedy.place}:", *remedy.lines)]
        writer.writerow([*_cells(finding), "\n".join(add)])


def _print_table(findings: Sequence[Finding], out: TextIO) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        table.add_column(Text(name), overflow="fold", no_wrap=not out.isatty())
    for finding in findings:
        status, *cells = _cells(finding)
        table.add_row(Text(status, _STYLES[finding.status]), *(Text(cell) for cell in cells))
    console = Console(file=out, width=None if out.isatty() else _UNWRAPPED, highlight=False, markup=False)
    console.print(table)
    for place, lines in lines_to_add(findings).items():
        console.print(Text(f"\nTo add, {place}:\n"))
        # Written as they are: a terminal's width must not break a line that is to be copied.
        out.write("".join(f"{line}\n" for line in lines))


def _cells(finding: Finding) -> tuple[str, ...]:
    return finding.status, finding.code, finding.subject, finding.found, " ".join(finding.costs)


def lines_to_add(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Place → lines, each block once."""
    blocks = dict.fromkeys(remedy for finding in findings for remedy in finding.add)
    found: dict[str, list[str]] = {}
    for remedy in blocks:
        found.setdefault(remedy.place, []).extend(remedy.lines)
    return found
