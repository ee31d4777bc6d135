"""report.json: the header, every table, and the containers in OpenCost's and cAdvisor's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from gpureport.report.allocation import accelerators, allocations
from gpureport.report.header import Header
from gpureport.report.results import Result

SCHEMA_VERSION = 1


def write_json(results: Sequence[Result], header: Header, path: Path) -> Path:
    """Write the file; keys in a fixed order, no clock in it."""
    by_name = {result.name: result for result in results}
    saturation, accelerator = by_name.get("container_saturation"), by_name.get("accelerator")
    document = {
        "schema_version": SCHEMA_VERSION,
        **header.as_dict(),
        "allocations": allocations(saturation) if saturation else [],
        "containers": accelerators(accelerator) if accelerator else [],
        "tables": {result.name: _rows(result) for result in results},
    }
    # Instants are UTC without a zone in SQL; in JSON they say so.
    instants = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | instants))
    return path


def _rows(result: Result) -> list[dict[str, Any]]:
    return [{**row, **result.maps_of(number)} for number, row in enumerate(result.rows.iter_rows(named=True))]
