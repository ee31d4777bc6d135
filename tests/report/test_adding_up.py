"""What stands side by side adds up, or it is said by how much it does not; what is unknown says why where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from gpureport.figures import REASONS
from gpureport.query import load
from gpureport.report.drill_down import _together
from gpureport.report.first_screen import _closing, finding_lines
from gpureport.report.ground import read_ground
from gpureport.report.ledger import BUCKETS, Balance
from gpureport.report.panel_lists import LISTS, listing
from gpureport.report.results import Result
from gpureport.report.unknown import told_whys

FINDING = {
    "code": "GR401", "severity": "critical", "title": "GPU errors", "gpu_hours": None, "owner": "", "confidence": "high",
    "suppressed_until": None,
}  # fmt: skip
WAIT = {
    "gpu_model": "H100", "resource": "nvidia.com/gpu", "requested_units": 1.0, "placed_pod_count": 2,
    "placing_seconds_p50": 5.0, "placing_seconds_p90": 5.0, "placing_seconds_p95": 5.0, "waiting_pod_count": 0,
    "waiting_seconds_max": None,
}  # fmt: skip


def result(name: str, *rows: Mapping[str, Any], why: str = "", figure: str = "") -> Result:
    reasons = {"unknown_reasons": tuple({figure: why} for _ in rows)} if why else {}
    return Result(load()[f"report.{name}"], pl.DataFrame(list(rows), infer_schema_length=None), reasons)


def balance(**gpu_hours: float) -> Balance:
    return Balance("", 1, sum(gpu_hours.values()), 0.0, {bucket.name: gpu_hours.get(bucket.name, 0.0) for bucket in BUCKETS})


def test_shares_that_do_not_add_up_as_printed_say_so() -> None:
    assert _closing(balance(effective=1.0, free=1.0)).endswith("difference 0.")
    # A third is printed as 33.3 %.
    told = _closing(balance(effective=1.0, allocated_idle=1.0, free=1.0))
    assert told.endswith("Each share is rounded on its own, so those printed add up to 99.9 %.")


def test_teams_add_up_to_what_was_held_and_what_nobody_known_held_is_told() -> None:
    key = {"cluster": "c", "namespace": "lab", "pod": "a", "pod_uid": "u"}
    held = {"day": date(2026, 3, 1), "bucket": "effective", "gpu_hours": 4.0}
    rows = [{**key, **held}, {**key, **held, "bucket": "free"}, {**held, **dict.fromkeys(key, ""), "gpu_hours": 1.5}]
    container = result("container", {**key, "container": "main", "device_seconds": 60.0})
    named = read_ground({"container": container, "gpu_hour_ledger": result("gpu_hour_ledger", *rows[:2])}, {})
    assert _together(named) == "Together they held 4 GPU-h."
    partly = read_ground({"container": container, "gpu_hour_ledger": result("gpu_hour_ledger", *rows)}, {})
    assert _together(partly) == "Together they held 4 GPU-h, and holders without a name 1.5 GPU-h more."


def test_a_finding_without_hours_says_why_it_has_none() -> None:
    lines = finding_lines(result("finding", FINDING, why="not_collected", figure="gpu_hours"))
    assert lines[0].cells[4] == "—"
    assert told_whys(lines[0].cells) == REASONS["not_collected"]
    assert told_whys(finding_lines(result("finding", {**FINDING, "gpu_hours": 2.0}))[0].cells) == ""


def test_a_short_list_says_why_a_figure_is_unknown_once() -> None:
    found = listing(result("pod_wait", WAIT, WAIT, why="not_collected", figure="waiting_seconds_max"), LISTS["pod_wait"])
    assert found is not None
    assert found.rows[0][-1] == "—"
    assert found.why == REASONS["not_collected"]
