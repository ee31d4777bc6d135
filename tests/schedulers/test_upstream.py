"""The schedulers' own test tables agree with the rules here, case by case, and docs/quota.md says so."""

from pathlib import Path

import pytest

from tests.schedulers.conformance import DIFFERENT, TABLES, cases, conforms, outcome, table

COUNTS = {
    "kai_tests": 90,
    "koordinator_tests": 38,
    "kueue_tests": 32,
    "kueue_fair_tests": 31,
    "nos_tests": 63,
    "scheduler_plugins_tests": 21,
    "volcano_tests": 22,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_case_of_upstreams_tests_agrees_or_is_told(name):
    found = cases(name)
    assert len(found) == COUNTS[name]
    assert [(case["id"], outcome(case)) for case in found if not conforms(case) and case["id"] not in DIFFERENT] == []


def test_the_document_shows_the_table():
    text = (Path(__file__).parents[2] / "docs" / "quota.md").read_text()
    assert table() in text, f"put this into docs/quota.md:\n{table()}"
