"""What each command does with a configuration. The only place where stages meet."""

from gpureport.pipeline.asking import schema, sql
from gpureport.pipeline.collecting import (
    Beside,
    clusters_by_label,
    describe_export,
    describe_snapshot,
    export,
    import_files,
    import_state,
    snapshot_beside,
    take_snapshot,
)
from gpureport.pipeline.comparing import diff_reports, diff_windows, what_if
from gpureport.pipeline.delivering import report_here
from gpureport.pipeline.examining import LakeDay, Look, doctor
from gpureport.pipeline.rehearsing import demo, demo_month, simulate
from gpureport.pipeline.reporting import compute, has_facts, report

__all__ = [
    "Beside",
    "LakeDay",
    "Look",
    "clusters_by_label",
    "compute",
    "demo",
    "demo_month",
    "describe_export",
    "describe_snapshot",
    "diff_reports",
    "diff_windows",
    "doctor",
    "export",
    "has_facts",
    "import_files",
    "import_state",
    "report",
    "report_here",
    "schema",
    "simulate",
    "snapshot_beside",
    "sql",
    "take_snapshot",
    "what_if",
]
