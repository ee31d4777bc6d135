"""From team to workload to container: names tell which pods are one workload."""

from __future__ import annotations

import pytest

from gpureport.report.drill_down import workload


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
