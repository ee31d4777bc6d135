"""The server and the rhythm of its samples: none of it costs a figure today, all of it may one day."""

from __future__ import annotations

from gpureport.doctor.evidence import Rhythm, ServerSeen
from gpureport.doctor.findings import Finding

STAIRCASE_BELOW_RATIO = 0.7
"""Fewer new power values than this share of the samples: the exporter renews them more slowly than it is scraped."""
LONG_STEP_SECONDS = 60.0
_PATHS = {
    "remote-read": "samples come by remote read",
    "victoria-metrics": "samples come by VictoriaMetrics' export",
    "openmetrics": "samples came from files",
    "simulation": "samples are made up by gpureport simulate",
    "matrix": "no remote read: samples come by raw queries, which is slower and subject to the server's query limits",
}


def server_findings(server: ServerSeen | None, backfill_days: int) -> list[Finding]:
    """Rows about the server."""
    if server is None:
        return []
    path = _PATHS.get(server.read_path, server.read_path)
    findings = [Finding("server", "ok" if server.read_path != "matrix" else "note", server.name, path)]
    kept = server.retention_days
    if kept is not None and kept < backfill_days + 1:
        text = f"samples are kept for {kept:g} days; export.backfill_days is {backfill_days}, so the oldest cannot be filled"
        findings.append(Finding("retention", "note", server.name, text))
    return findings


def rhythm_findings(rhythm: Rhythm) -> list[Finding]:
    """Rows about how samples came."""
    findings = []
    if rhythm.step_seconds is not None:
        findings.append(_interval(rhythm.step_seconds, rhythm.fresh_ratio))
    if rhythm.reset_count:
        text = f"was reset {rhythm.reset_count} times in what was looked at (driver reloaded); growth is counted on both sides"
        findings.append(Finding("counter_reset", "note", "energy_joules", text))
    return findings


def _interval(step_seconds: float, fresh_ratio: float | None) -> Finding:
    text = f"a sample every {step_seconds:g} s"
    if fresh_ratio is not None and fresh_ratio < STAIRCASE_BELOW_RATIO:
        renewed = step_seconds / fresh_ratio if fresh_ratio else float("inf")
        more = f", but a new value every {renewed:.0f} s only: scrape as often as the exporter collects"
        return Finding("scrape_interval", "note", "scrape", text + (more if fresh_ratio else ", all of them equal"))
    if step_seconds > LONG_STEP_SECONDS:
        return Finding("scrape_interval", "note", "scrape", f"{text}: what is shorter is seen only by chance, except in counters")
    return Finding("scrape_interval", "ok", "scrape", text)
