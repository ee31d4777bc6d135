"""Criteria of the report's findings: rules, thresholds, classes of XID errors, and suppressed findings.

The conditions are SQL (``queries/findings/period.finding_*.sql``); this module provides their parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from gpureport.config.section import Section
from gpureport.values.errors import UsageError
from gpureport.values.runtime.resources import catalog_rows

if TYPE_CHECKING:
    import duckdb

SEVERITIES = ("info", "warning", "critical")


Ratio = Annotated[float, Field(gt=0, le=1)]


class Thresholds(Section):
    """Limits from which findings are reported; each name is that of a parameter of the SQL."""

    findings_gpu_hours: float = Field(1.0, ge=0, description="GPU-hours at stake, at least, for a finding to be reported")
    idle_ratio: Ratio = Field(0.9, description="share of allocated time without activity at which a container counts as idle")
    workload_idle_ratio: Ratio = Field(0.5, description="the same share of all pods of a workload together")
    unseen_ratio: Ratio = Field(0.1, description="share of expected time without data from which a node is reported")
    busy_ratio: Ratio = Field(0.8, description="engine activity or GPU utilization at which low SM activity is ineffective")
    ineffective_sm_ratio: Ratio = Field(0.5, description="mean SM activity below which a busy container is ineffective")
    throttle_ratio: float = Field(0.05, ge=0, le=1, description="accepted share of time with power capping or thermal throttling")
    wait_hours_max: float = Field(4.0, ge=0, description="h of waiting for a node at which a wait counts as long")
    lead_time_days: float = Field(90.0, ge=0, description="days that it takes to get more GPUs; a shorter runway is a finding")
    fit_headroom_ratio: float = Field(0.2, ge=0, le=10, description="share by which a smaller GPU must exceed what was needed")


_HIDDEN_FROM_GUESTS = "power_watts power_limit_watts energy_joules gpu_temp_celsius memory_temp_celsius"
"""Power and temperature of the whole board (NVIDIA's vGPU management guide; gpu-operator 614, dcgm-exporter 236)."""


class Suppression(Section):
    """A known finding that does not fail a run until a day. '' matches everything; ``*`` and ``?`` are wildcards."""

    code: str
    until: date
    reason: str = Field(min_length=1)
    cluster: str = "*"
    namespace: str = "*"
    pod: str = "*"
    node_name: str = "*"
    device_uuid: str = "*"

    @field_validator("code")
    @classmethod
    def _is_known(cls, code: str) -> str:
        if code not in rules():
            raise ValueError(f"{code} is not the code of a finding")
        return code


@cache
def rules() -> Mapping[str, Mapping[str, str]]:
    """Return the rules by code: title, severity, rule, names of its thresholds, suggested action, SQL."""
    return {row["code"]: row for row in catalog_rows("finding.csv")}


def xid_classes() -> list[dict[str, str]]:
    """Return XID codes: NVIDIA's name and actions, class, severity, meaning, what to do, source and its date."""
    actions = {row["immediate_action"]: row["action"] for row in catalog_rows("xid_action.csv")}
    return [{**row, "action": actions.get(row["immediate_action"], "")} for row in catalog_rows("xid.csv")]


def mig_profiles() -> list[dict[str, str]]:
    """Return MIG profiles of GPU models: slices of compute and memory, most instances of a profile on a GPU, source."""
    return catalog_rows("mig_profile.csv")


def gpu_models() -> list[dict[str, str]]:
    """Return GPU models: power, memory and its bandwidth, dense FP16 tensor throughput, NVLink one way, signals they lack."""
    return catalog_rows("gpu_model.csv")


@cache
def not_on_model(gpu_model: str) -> frozenset[str]:
    """Return device signals that a GPU model cannot have under any configuration (an L4 has no NVLink); none for other models."""
    found = next((row for row in gpu_models() if fnmatchcase(gpu_model, row["gpu_model"])), None)
    return frozenset(found["lacks"].split()) if found else frozenset()


def virtual_gpus() -> list[dict[str, str]]:
    """Return virtual GPUs by their names in guests' drivers (NVIDIA A40-8Q, GRID V100D-32C), and signals that guests lack."""
    return [{"gpu_model": f"*-{'[0-9]' * digits}[ABCQ]", "lacks": _HIDDEN_FROM_GUESTS} for digits in (1, 2, 3)]


@cache
def hidden_from_guest(gpu_model: str) -> frozenset[str]:
    """Return device signals that the guest of a virtual GPU cannot read; none for physical GPUs."""
    return frozenset(name for row in virtual_gpus() if fnmatchcase(gpu_model, row["gpu_model"]) for name in row["lacks"].split())


@cache
def expectations() -> Mapping[str, str]:
    """Return parameters of the queries that know which signals a GPU should have."""
    lacking = [{**row, "cause": "not_on_model"} for row in gpu_models()] + [
        {**row, "cause": "virtual_gpu"} for row in virtual_gpus()
    ]
    return {"expected_signals": json.dumps(catalog_rows("expected_signal.csv")), "lacking_models": json.dumps(lacking)}


def parameters(
    thresholds: Thresholds, suppressions: Iterable[Suppression], memory_threshold_ratio: float = 0.9
) -> dict[str, Any]:
    """Return parameters of the queries that decide on findings."""
    values = thresholds.model_dump()
    in_force = {**values, "memory_threshold_ratio": memory_threshold_ratio}
    shown = [{**rule, "thresholds": _with_values(rule["thresholds"], in_force)} for rule in rules().values()]
    return {
        **values,
        "finding_rules": json.dumps(shown),
        "xid_classes": json.dumps(xid_classes()),
        "mig_profiles": json.dumps(mig_profiles()),
        "gpu_models": json.dumps(gpu_models()),
        **expectations(),
        "suppressions": json.dumps([each.model_dump(mode="json") for each in suppressions], sort_keys=True),
    }


def failing(con: duckdb.DuckDBPyConnection, fail_on: str) -> dict[str, int]:
    """Return by code the number of findings with this code, or of at least this severity; suppressed findings do not count."""
    graver = SEVERITIES[SEVERITIES.index(fail_on) :] if fail_on in SEVERITIES else ()
    rows = con.execute(
        "select code, count(*) from report.finding where suppressed_until is null "
        "and (code = $code or list_contains($graver, severity)) group by code order by code",
        {"code": fail_on, "graver": list(graver)},
    ).fetchall()
    return dict(rows)


def check_fail_on(fail_on: str) -> None:
    """Raise UsageError unless ``fail_on`` is '', a code or a severity."""
    if fail_on not in ("", *SEVERITIES, *rules()):
        raise UsageError(f"--fail-on {fail_on!r} is not a finding; give {', '.join(SEVERITIES)}, or a code such as GR101")


def _with_values(names: str, values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {values[name]:g}" for name in names.split())
