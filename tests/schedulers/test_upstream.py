"""The schedulers' own test tables agree with the rules here, case by case."""

import pytest

from tests.schedulers.conformance import cases, conforms, outcome

TABLES = {
    "kai_tests": 90,
    "koordinator_tests": 38,
    "kueue_tests": 32,
    "nos_tests": 63,
    "scheduler_plugins_tests": 21,
}


@pytest.mark.parametrize(("table", "count"), TABLES.items())
def test_every_case_of_upstreams_tests_agrees(table, count):
    told = cases(table)
    assert len(told) == count
    assert [(case["id"], outcome(case)) for case in told if not conforms(case)] == []
