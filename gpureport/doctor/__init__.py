"""``gpureport doctor``: what exists and what is missing, what each gap costs in the report, and the lines to add.

Evidence comes from a server (``prometheus``), a lake (``lake``) or an API server (``kubernetes``), as the same plain values.
The checks are pure functions from evidence to findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TextIO, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpureport.doctor.cluster import cluster_findings, node_findings
from gpureport.doctor.evidence import Evidence, Finding, Status, verdict
from gpureport.doctor.kubernetes import access_findings, combine_evidence, examine_cluster
from gpureport.doctor.lake import examine_lake
from gpureport.doctor.prometheus import examine_server
from gpureport.doctor.signals import rhythm_findings, server_findings, signal_findings
from gpureport.doctor.workloads import replica_findings, workload_findings
from gpureport.values.catalog import Catalog
from gpureport.values.text.rows import Output, print_rows
from gpureport.values.text.safe import printable, to_json

COLUMNS = ("status", "code", "subject", "found", "costs")
_STYLES: Mapping[str, str] = {"ok": "green", "missing": "bold red", "partial": "yellow", "note": "cyan"}
_UNWRAPPED = 10_000
"""Width of the table in a pipe or file, so that a row is always one line."""


def print_findings(found: Mapping[str, Sequence[Finding]], output: Output, out: TextIO) -> None:
    """Print the findings of each cluster, with a column for its name if there are several.

    Only the table prints each line to add once, grouped by its place.
    """
    shown = found if len(found) > 1 else {"": next(iter(found.values()))}
    if output == "json":
        rows = [{**({"cluster": name} if name else {}), **asdict(finding)} for name, each in shown.items() for finding in each]
        out.write(f"{to_json(rows, indent=1)}\n")
    elif output in ("csv", "md"):
        lines = [[*_cells(name, each), "\n".join(_remedy_lines(each))] for name, findings in shown.items() for each in findings]
        print_rows([*_columns(shown), "add"], lines, output, out)
    else:
        _print_table(shown, out)


def _remedy_lines(finding: Finding) -> list[str]:
    return [line for remedy in finding.add for line in (f"{remedy.place}:", *remedy.lines)]


def _print_table(shown: Mapping[str, Sequence[Finding]], out: TextIO) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _columns(shown):
        table.add_column(Text(column), overflow="fold", no_wrap=not out.isatty())
    for name, findings in shown.items():
        for finding in findings:
            table.add_row(*(Text(printable(cell), _STYLES.get(cell, "")) for cell in _cells(name, finding)))
    console = Console(file=out, width=None if out.isatty() else _UNWRAPPED, highlight=False, markup=False)
    console.print(table)
    for name, findings in shown.items():
        for place, lines in lines_to_add(findings).items():
            console.print(Text(f"\nTo add{f' in {name}' if name else ''}, {place}:\n"))
            # Written without wrapping: a terminal's width must not break a line that is to be copied.
            out.write("".join(f"{printable(line)}\n" for line in lines))


def _columns(shown: Mapping[str, object]) -> tuple[str, ...]:
    return COLUMNS if "" in shown else ("cluster", *COLUMNS)


def _cells(name: str, finding: Finding) -> tuple[str, ...]:
    cells = (finding.status, finding.code, finding.subject, finding.found, " ".join(finding.costs))
    return (name, *cells) if name else cells


def lines_to_add(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Return place → lines to add; each block appears once."""
    blocks = dict.fromkeys(remedy for finding in findings for remedy in finding.add)
    found: dict[str, list[str]] = {}
    for remedy in blocks:
        found.setdefault(remedy.place, []).extend(remedy.lines)
    return found


__all__ = [
    "Evidence",
    "Finding",
    "combine_evidence",
    "conclusion",
    "examine",
    "examine_cluster",
    "examine_lake",
    "examine_server",
    "print_findings",
]


def examine(evidence: Evidence, catalog: Catalog, backfill_days: int) -> list[Finding]:
    """Return the findings of all checks: first missing on all devices, then missing on some, then notes, then ok."""
    found = _of_telemetry(evidence, catalog, backfill_days) if evidence.has_telemetry else node_findings(evidence)
    findings = [*found, *access_findings(evidence)]
    return sorted(findings, key=lambda finding: get_args(Status).index(finding.status))


def _of_telemetry(evidence: Evidence, catalog: Catalog, backfill_days: int) -> list[Finding]:
    return [
        *signal_findings(evidence, catalog),
        *workload_findings(evidence, catalog),
        *cluster_findings(evidence),
        *server_findings(evidence.server, backfill_days),
        *replica_findings(evidence.labels, catalog),
        *rhythm_findings(evidence.rhythm),
    ]


def conclusion(findings: Iterable[Finding], evidence: Evidence) -> str:
    """Return the verdict in one sentence, with a note if telemetry was not read."""
    if evidence.has_telemetry:
        return verdict(findings, evidence.subject)
    return f"{verdict(findings, evidence.subject, 'the Kubernetes state')}; telemetry was not read (--prometheus-url)"
