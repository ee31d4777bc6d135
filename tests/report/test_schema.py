"""report.json keeps what its schema promises, and the schema would notice if it did not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gpureport.report
from gpureport.report.json_file import SCHEMA_VERSION

SCHEMA = json.loads((Path(gpureport.report.__file__).parent / "report.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.fixture
def document(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / "report.json").read_bytes())
    return found


def test_the_schema_is_one_and_of_the_version_that_is_written() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    assert SCHEMA["$id"].endswith(f":{SCHEMA_VERSION}")


@pytest.mark.parametrize("folder", ["out", "demo"])
def test_a_report_is_as_the_schema_says(folder: str, request: pytest.FixtureRequest) -> None:
    document = json.loads((request.getfixturevalue(folder) / "report.json").read_bytes())
    assert [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(document)] == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.pop("window"),
        lambda document: document["window"].update(start_at="2026-11-20 23:51:40"),
        lambda document: document["coverage"].update(unknown_ratio=-0.1),
        lambda document: document.update(another=1),
        lambda document: document["allocations"][0]["gpuAllocation"]["saturation"].update(xidErrorCount=0.5),
        lambda document: document["allocations"][0]["gpuAllocation"]["saturation"].update(smActiveAvg=None),
        lambda document: document["tables"]["device"].update(row_count=-1),
        lambda document: document["namespaces"][0].pop("gpu_hours"),
        lambda document: document["containers"][0]["accelerators"][0].pop("id"),
    ],
)
def test_the_schema_notices(spoil: Callable[[dict[str, Any]], Any], document: dict[str, Any]) -> None:
    spoil(document)
    assert not VALIDATOR.is_valid(document)
