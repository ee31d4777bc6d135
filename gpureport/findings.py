"""What the report's findings are judged by: rules, thresholds, classes of XID errors, and what is not to be reported again.

The conditions are SQL (``queries/facts/finding_*.sql``); here is what these take as parameters.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from typing import Any

import duckdb
from pydantic import BaseModel, ConfigDict, Field, field_validator

from gpureport.errors import UsageError
from gpureport.resources import QUERIES

SEVERITIES = ("info", "warning", "critical")


class Thresholds(BaseModel):
    """From where something is worth a line; each name is that of a parameter of the SQL."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    findings_gpu_hours: float = Field(1.0, ge=0)
    observed_seconds_min: float = Field(600.0, ge=0)
    boundness_seconds_min: float = Field(60.0, ge=0)
    idle_ratio: float = Field(0.9, gt=0, le=1)
    unseen_ratio: float = Field(0.1, gt=0, le=1)
    busy_ratio: float = Field(0.8, gt=0, le=1)
    ineffective_sm_ratio: float = Field(0.5, gt=0, le=1)
    compute_sm_ratio: float = Field(0.8, gt=0, le=1)
    bandwidth_dram_ratio: float = Field(0.5, gt=0, le=1)
    io_pcie_bytes_per_second: float = Field(1e9, gt=0)
    io_sm_ratio: float = Field(0.3, gt=0, le=1)
    latency_engine_ratio: float = Field(0.4, gt=0, le=1)
    latency_sm_ratio: float = Field(0.25, gt=0, le=1)
    throttle_ratio: float = Field(0.05, ge=0, le=1)
    hw_throttle_ratio: float = Field(0.01, ge=0, le=1)


class Suppression(BaseModel):
    """A finding that is known and not to fail a run until a day; '' matches all, and ``*`` and ``?`` stand for letters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    until: date
    reason: str = Field(min_length=1)
    namespace: str = "*"
    pod: str = "*"
    node_name: str = "*"
    device_uuid: str = "*"

    @field_validator("code")
    @classmethod
    def _is_known(cls, code: str) -> str:
        if code not in rules():
            raise ValueError(f"{code} is no code of a finding")
        return code


@cache
def rules() -> Mapping[str, Mapping[str, str]]:
    """What each code means, by code: title, severity, rule, names of its thresholds, suggested action, SQL."""
    return {row["code"]: row for row in _rows("finding.csv")}


def parameters(
    thresholds: Thresholds, suppressions: Iterable[Suppression], memory_threshold_ratio: float = 0.9
) -> dict[str, Any]:
    """Values for the parameters of the queries that judge."""
    values = thresholds.model_dump()
    in_force = {**values, "memory_threshold_ratio": memory_threshold_ratio}
    told = [{**rule, "thresholds": _told(rule["thresholds"], in_force)} for rule in rules().values()]
    return {
        **values,
        "thresholds": json.dumps(values),
        "finding_rules": json.dumps(told),
        "xid_classes": json.dumps(_rows("xid.csv")),
        "suppressions": json.dumps([each.model_dump(mode="json") for each in suppressions], sort_keys=True),
    }


def failing(con: duckdb.DuckDBPyConnection, fail_on: str) -> dict[str, int]:
    """By code how many findings of ``report.finding`` are of a code, or of a severity or graver; suppressed ones do not count."""
    graver = SEVERITIES[SEVERITIES.index(fail_on) :] if fail_on in SEVERITIES else ()
    rows = con.execute(
        "select code, count(*) from report.finding where suppressed_until is null "
        "and (code = $code or list_contains($graver, severity)) group by code order by code",
        {"code": fail_on, "graver": list(graver)},
    ).fetchall()
    return dict(rows)


def check_fail_on(fail_on: str) -> None:
    """UsageError for what is neither '', a code nor a severity."""
    if fail_on not in ("", *SEVERITIES, *rules()):
        raise UsageError(f"--fail-on {fail_on!r} is no finding; give {', '.join(SEVERITIES)}, or a code such as GR101")


def _told(names: str, values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {values[name]:g}" for name in names.split())


def _rows(name: str) -> list[dict[str, str]]:
    with (QUERIES / "catalog" / name).open(newline="") as file:
        return list(csv.DictReader(file))
