"""What each command does with a configuration. The only place where stages meet.

A stage's modules are imported when one of its functions is first asked for: an export must not wait for all that a report needs.
"""

from typing import TYPE_CHECKING, Any

from gpureport.runtime.garbage import imported

if TYPE_CHECKING:
    from gpureport.pipeline.asking import schema, sql, top
    from gpureport.pipeline.collecting import (
        clusters_by_label,
        describe_export,
        describe_unread,
        each_source,
        export,
        export_blocks,
    )
    from gpureport.pipeline.comparing import diff_reports, diff_windows, what_if
    from gpureport.pipeline.delivering import report_here
    from gpureport.pipeline.examining import LakeDay, Look, doctor, examine_files
    from gpureport.pipeline.observing import (
        Beside,
        describe_snapshot,
        import_files,
        import_state,
        snapshot_beside,
        take_snapshots,
    )
    from gpureport.pipeline.rehearsing import demo, demo_cluster, simulate
    from gpureport.pipeline.reporting import Reported, check, compute, default_window, has_facts, report

__all__ = [
    "Beside",
    "LakeDay",
    "Look",
    "Reported",
    "check",
    "clusters_by_label",
    "compute",
    "default_window",
    "demo",
    "demo_cluster",
    "describe_export",
    "describe_snapshot",
    "describe_unread",
    "diff_reports",
    "diff_windows",
    "doctor",
    "each_source",
    "examine_files",
    "export",
    "export_blocks",
    "has_facts",
    "import_files",
    "import_state",
    "report",
    "report_here",
    "schema",
    "simulate",
    "snapshot_beside",
    "sql",
    "take_snapshots",
    "top",
    "what_if",
]

_HOME = {
    "asking": ("schema", "sql", "top"),
    "collecting": ("clusters_by_label", "describe_export", "describe_unread", "each_source", "export", "export_blocks"),
    "comparing": ("diff_reports", "diff_windows", "what_if"),
    "delivering": ("report_here",),
    "examining": ("LakeDay", "Look", "doctor", "examine_files"),
    "observing": ("Beside", "describe_snapshot", "import_files", "import_state", "snapshot_beside", "take_snapshots"),
    "rehearsing": ("demo", "demo_cluster", "simulate"),
    "reporting": ("Reported", "check", "compute", "default_window", "has_facts", "report"),
}
_HOME_OF = {name: home for home, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(imported(f"{__name__}.{_HOME_OF[name]}"), name)
