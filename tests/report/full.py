"""A report with more of everything than a page shows: every table, every panel, names as long as they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from gpureport.query import Query, load
from gpureport.report.first_screen import first_screen
from gpureport.report.html import write_html
from gpureport.report.ledger import BUCKETS, HELD
from gpureport.report.panel_lists import LISTS
from gpureport.report.results import Result

from .conftest import a_header

START = datetime(2026, 10, 1)
DAYS, MODELS, TEAMS, ROWS = 31, 6, 20, 24
NAMESPACES = [f"team-of-the-{number:02d}-laboratory" for number in range(TEAMS)]
MODEL_NAMES = [f"NVIDIA H{number}00 80GB HBM3" for number in range(1, MODELS + 1)]
_SIGNALS = (
    "gr_engine_active_ratio",
    "gr_engine_active_seen",
    "sm_active_ratio",
    "sm_active_seen",
    "memory_used_ratio",
    "memory_seen",
)
_HOURLY = ", ".join(f"{signal}_seconds double" for signal in _SIGNALS)
Row = dict[str, Any]


def write_full_report(folder: Path) -> Path:
    """Write ``report.html``; the folder."""
    queries = load()
    made = {name: _result(queries[f"report.{name}"], rows()) for name, rows in _TABLES.items()}
    others = {name: _result(queries[f"report.{name}"], _plain_rows(queries[f"report.{name}"])) for name in {*LISTS} - {*made}}
    tables = {**made, **others}
    with duckdb.connect() as con:
        con.execute("create schema facts")
        for table, key in (("container_hour", ("namespace", "pod", "pod_uid", "container")), ("device_hour", ())):
            keys = ", ".join(f"{name} varchar" for name in ("cluster", *key, "device_uuid", "gpu_instance_id"))
            con.execute(f"create table facts.{table} ({keys}, hour_start_at timestamp, {_HOURLY})")
        write_html(con, list(tables.values()), a_header(), first_screen(tables, a_header()), folder / "report.html")
    return folder


def _result(query: Query, rows: list[Row]) -> Result:
    """The rows, each column that none gives made up by its name."""
    whole = [{name: row.get(name, _value(name, number)) for name in query.columns} for number, row in enumerate(rows)]
    maps = {name: tuple({} for _ in rows) for name in ("unknown_reasons", "source_metrics") if name in query.columns}
    columns = [name for name in query.columns if name not in maps]
    return Result(query, pl.DataFrame(whole, infer_schema_length=None).select(columns), maps)


_AMOUNTS = ("_hours", "_seconds", "_joules", "_watts", "_bytes", "_units", "_percent", "_cost", "_p50", "_p90", "_p95")
_BY_ENDING: tuple[tuple[tuple[str, ...], Callable[[int], Any]], ...] = (
    (("_codes",), lambda _: [31, 79]),
    (("_at",), lambda _: START),
    (("suppressed_until",), lambda _: None),
    (("day",), lambda _: START.date()),
    (("is_parent",), lambda _: False),
    (("_count",), lambda number: number + 1),
    (("_ratio", "_avg", "_max", "_min"), lambda _: 0.5),
    (_AMOUNTS, lambda number: 12_345.678 + number),
    (("cluster",), lambda _: "lab"),
    (("gpu_model",), lambda number: MODEL_NAMES[number % MODELS]),
    (("",), lambda number: f"as-long-as-a-name-may-be-{number:04d}"),
)


def _value(name: str, number: int) -> Any:
    """Something that such a column may hold."""
    return next(make for endings, make in _BY_ENDING if name.endswith(endings))(number)


def _plain_rows(query: Query) -> list[Row]:
    worth = {"change": "new", "verdict": "fits", "horizon_day_count": 14}
    return [{name: value for name, value in worth.items() if name in query.columns} for _ in range(ROWS)]


def _buckets(hours: float) -> Row:
    return {f"{bucket.name}_gpu_hours": hours for bucket in BUCKETS} | {
        "capacity_gpu_hours": 9 * hours,
        "difference_gpu_hours": 0.0,
    }


def _balance() -> list[Row]:
    days = [(START + timedelta(days=number)).date().isoformat() for number in range(DAYS)]
    dimensions: Mapping[str, list[str]] = {"cluster": ["lab"], "day": days, "gpu_model": MODEL_NAMES}
    return [
        {"cluster": "lab", "dimension": dimension, "value": value, "device_count": 8, **_buckets(80_000.0 / len(values))}
        for dimension, values in dimensions.items()
        for value in values
    ]


def _course() -> list[Row]:
    named = ("usable_gpu_hours", "held_gpu_hours", "active_gpu_hours", "effective_gpu_hours", "unnamed_gpu_hours")
    hours = [START + timedelta(hours=hour) for hour in range(24 * DAYS)]
    return [{"hour_start_at": hour, **dict(zip(named, (1000.0, 800.0, 700.0, 300.0, 50.0), strict=True))} for hour in hours]


def _week() -> list[Row]:
    return [
        {
            **{"weekday": day, "hour_of_day": hour, "hour_count": 4},
            **{"usable_gpu_hours": 9.0, "unnamed_gpu_hours": 0.0, "allocated_idle_gpu_hours": float(day)},
        }
        for day in range(1, 8)
        for hour in range(24)
    ]


def _trend() -> list[Row]:
    ahead = dict.fromkeys(("low_gpu_hours", "expected_gpu_hours", "high_gpu_hours"), 5000.0)
    seen = {"kind": "observed", "held_gpu_hours": 4000.0, "usable_gpu_hours": 6000.0, **dict.fromkeys(ahead)}
    return [
        {
            "gpu_model": model,
            "day": date(2026, 10, 1) + timedelta(days=day),
            **(seen if day < 28 else {"kind": "forecast", **ahead}),
        }
        for model in MODEL_NAMES
        for day in range(42)
    ]


def _bridge() -> list[Row]:
    steps = ("before", "ended", "new", "grew", "shrank", "went", "came", "after")
    return [{"measure": "allocated", "step": step, "position": at, "gpu_hours": 1000.0} for at, step in enumerate(steps)]


def _quotas() -> list[Row]:
    return [{"quota": name, "resource": "nvidia.com/gpu", "is_parent": False} for name in NAMESPACES * 2]


def _findings() -> list[Row]:
    return [{"code": f"GR{100 + number}", "severity": ("critical", "warning", "info")[number % 3]} for number in range(ROWS)]


def _held() -> Iterator[Row]:
    for number, namespace in enumerate(NAMESPACES * 2):
        pod = f"train-the-largest-model-of-all-{number}"
        yield {"cluster": "lab", "namespace": namespace, "pod": pod, "pod_uid": f"u-{number}", "container": "trainer"}


def _on_devices(column: str = "device_uuid") -> list[Row]:
    return [{**row, column: f"GPU-{number:08d}", "gpu_instance_id": ""} for number, row in enumerate(_held())]


_TABLES: Mapping[str, Callable[[], list[Row]]] = {
    "gpu_hour_balance": _balance,
    "gpu_hour_course": _course,
    "hour_of_week": _week,
    "demand_trend": _trend,
    "gpu_hour_bridge": _bridge,
    "quota_fair_share": _quotas,
    "finding": _findings,
    "idle_by_holder": lambda: [{"namespace": name} for name in NAMESPACES],
    "container": lambda: list(_held()),
    "container_saturation": _on_devices,
    "container_power": _on_devices,
    "accelerator": lambda: _on_devices("id"),
    "device": _on_devices,
    "gpu_hour_ledger": lambda: [{**row, "bucket": HELD[number % 4]} for number, row in enumerate(_on_devices())],
}
