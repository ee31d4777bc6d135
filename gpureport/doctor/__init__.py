"""``gpureport doctor``: what is there and what is not, what each absence costs in the report, and the lines to add.

Evidence is gathered from a server (``prometheus``), from a lake (``lake``) or from an API server (``kubernetes``) into the same
plain values; the checks are pure functions from those to findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from gpureport.doctor.access import access_findings
from gpureport.doctor.cluster import cluster_findings, node_findings
from gpureport.doctor.evidence import Evidence
from gpureport.doctor.findings import Finding, Remedy, Status, verdict
from gpureport.doctor.kubernetes import beside, look_at_cluster
from gpureport.doctor.lake import look_at_lake
from gpureport.doctor.printing import print_findings
from gpureport.doctor.prometheus import look_at_server
from gpureport.doctor.scrape import rhythm_findings, server_findings
from gpureport.doctor.signals import signal_findings
from gpureport.doctor.workloads import replica_findings, workload_findings
from gpureport.values.catalog import Catalog

__all__ = [
    "Evidence",
    "Finding",
    "Remedy",
    "beside",
    "conclusion",
    "examine",
    "look_at_cluster",
    "look_at_lake",
    "look_at_server",
    "print_findings",
]


def examine(evidence: Evidence, catalog: Catalog, backfill_days: int) -> list[Finding]:
    """Every check's rows: what is missing everywhere first, then in places, then what is worth knowing, then what is well."""
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
    """The verdict in one sentence, with what was not read."""
    if evidence.has_telemetry:
        return verdict(findings, evidence.subject)
    return f"{verdict(findings, evidence.subject, 'the Kubernetes state')}; telemetry was not looked at (--prometheus-url)"
