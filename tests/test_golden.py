"""Cases worked out by hand: samples in, what the report must say out, through the whole program.

Cases of one folder and one configuration are clusters of one lake and have one report, for each costs what many cost.
Those of ``golden/opencost`` are the cases on which OpenCost's tests and experiments stand, with the values that the same
samples mean here; ``golden/ownership`` are labels that do not tell the truth of who held a device.
Only the columns that a case names are compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built_once import built_once
from golden_case import Row, expected_rows, report_rows, run_cases

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.rglob("samples.csv"))
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


@pytest.fixture
def database(case: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report that the case is in, with those of its group that this run looks at."""
    asked = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    group = group_of(case)
    cases = [each for each in CASES if each in asked and group_of(each) == group]
    folder = built_once(f"golden-{cases[0].name}", lambda folder: run_cases(cases, folder), request, tmp_path_factory)
    return folder / "out" / "gpureport.duckdb"


def group_of(case: Path) -> tuple[Path, str]:
    """The folder, and what the case configures."""
    config = case / "gpureport.toml"
    return case.parent, config.read_text() if config.exists() else ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(GOLDEN)))
def test_the_report_says_what_was_worked_out_by_hand(case: Path, database: Path) -> None:
    for file, table in TABLES.items():
        if (case / file).exists():
            found = [row for row in report_rows(database, table) if row["cluster"] == case.name]
            assert_rows(found, expected_rows(case / file), KEYS[table])


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
