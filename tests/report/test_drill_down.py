"""From team to workload to container: names tell which pods are one workload."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from gpureport.query import load
from gpureport.report.cards import container_card
from gpureport.report.drill_down import workload
from gpureport.report.ground import read_ground
from gpureport.report.results import Result


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ("web-7d9f8c6b5d-x2x9z", "web"),  # a Deployment's
        ("train-llm-0", "train-llm"),  # a StatefulSet's
        ("nightly-8kqzw", "nightly"),  # a Job's, a DaemonSet's
        ("sweep-3-8kqzw", "sweep"),  # an indexed Job's
        ("jupyter", "jupyter"),
        ("team-alpha", "team-alpha"),  # has vowels: nobody generated it
        ("-0", "-0"),
    ],
)
def test_a_workload_is_a_pods_name_without_what_its_controller_put_behind_it(pod: str, expected: str) -> None:
    assert workload(pod) == expected


KEY = {"cluster": "c", "namespace": "lab", "pod": "train-0", "pod_uid": "u", "container": "main"}
HELD = {"node_name": "n", "device_count": 1, "gpu_model": "H100", "sharing_mode": "exclusive", "observed_seconds": 60.0}
FINDING = {
    **KEY, "container": "", "code": "GR101", "title": "Held and idle", "evidence": "idle for 2 of 2 GPU-hours.",
    "action": "Ask the owner.", "gpu_hours": 2.0, "suppressed_until": None,
}  # fmt: skip


def test_a_containers_card_says_what_to_do_next_time_but_for_what_is_suppressed_or_anothers() -> None:
    others = [{**FINDING, "code": "GR301", "suppressed_until": date(2026, 4, 1)}, {**FINDING, "code": "GR302", "pod": "other"}]
    device = {"device_uuid": "GPU-1", "gpu_instance_id": "", "node_name": "n", "observed_seconds": 60.0}
    figures = dict.fromkeys(("gpu_usage_avg", "sm_active_avg", "memory_used_ratio_max", "any_throttle_ratio", "xid_error_count"))
    rows = {
        "container": [{**KEY, **HELD, "device_seconds": 60.0, "coverage_ratio": 1.0}],
        "container_saturation": [{**KEY, **device, **figures}],
        "finding": [FINDING, *others],
    }
    tables = {name: Result(load()[f"report.{name}"], pl.DataFrame(found), {}) for name, found in rows.items()}
    card = container_card(read_ground(tables), tuple(KEY.values()), [])
    assert card.findings == (("GR101 Held and idle", "idle for 2 of 2 GPU-hours.", "Ask the owner."),)
    assert [row.cells[0] for row in card.rows] == ["GPU-1"]
