"""Cases worked out by hand: samples in, what the report must say out, through the whole program.

Cases whose configurations do not touch each other stand side by side in one cluster, their names marked, for a report costs the
same of one and of many.
Those of ``golden/opencost`` are the cases on which OpenCost's tests and experiments stand, with the values that the same
samples mean here; ``golden/ownership`` are labels that do not tell the truth of who held a device.
Only the columns that a case names are compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_case import CASES, GOLDEN, Row, expected_rows, marked_rows, told

TABLES = {
    "expect.csv": "container_saturation",
    "expect_device.csv": "device",
    "expect_container.csv": "container",
    "expect_accelerator.csv": "accelerator",
    "expect_power.csv": "container_power",
}
KEYS = {
    "container_saturation": ("pod", "pod_uid", "device_uuid"),
    "device": ("device_uuid", "gpu_instance_id"),
    "container": ("pod", "pod_uid"),
    "container_power": ("pod", "device_uuid", "gpu_instance_id"),
    "accelerator": ("pod", "container", "id", "gpu_instance_id"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(GOLDEN)))
def test_the_report_says_what_was_worked_out_by_hand(
    case: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = told(case, request, tmp_path_factory)
    for file, table in TABLES.items():
        if (case / file).exists():
            assert_rows(marked_rows(found.database, table)[found.mark], expected_rows(case / file), KEYS[table])


def assert_rows(found: list[Row], expected: list[Row], keys: tuple[str, ...]) -> None:
    """The same rows by key, and each expected cell in them."""
    keys = tuple(key for key in keys if key in expected[0])
    by_key = {tuple(row[key] for key in keys): row for row in found}
    assert len(by_key) == len(found)
    assert sorted(by_key) == sorted(tuple(row[key] for key in keys) for row in expected)
    for row in expected:
        actual = by_key[tuple(row[key] for key in keys)]
        wrong = {name: (cell(actual, name), text) for name, text in row.items() if not is_same(cell(actual, name), text)}
        assert not wrong, f"{[row[key] for key in keys]}: (reported, expected) = {wrong}"


def cell(row: Row, name: str) -> Any:
    """A column's value; ``unknown_reasons.<figure>`` is the reason of one figure."""
    column, _, entry = name.partition(".")
    return row[column].get(entry) if entry else row[column]


def is_same(value: Any, text: str) -> bool:
    """Whether a value is the one written: '' is null (or empty text), lists are a;b;c, integers exact, others to 9 digits."""
    if text == "" or value is None:
        return (value is None and text == "") or value == ""
    if isinstance(value, list):
        return ";".join(map(str, value)) == text.strip("[]")
    if isinstance(value, str):
        return value == text
    if isinstance(value, int):
        return bool(value == int(text))
    return bool(value == pytest.approx(float(text), rel=5e-9, abs=1e-12))


def test_every_case_says_why_and_expects_a_table_of_the_report() -> None:
    for case in CASES:
        found = {path.name for path in case.iterdir()}
        assert found & TABLES.keys()
        assert found <= {"samples.csv", "gpureport.toml", *TABLES}
