"""report.json: a summary of at most 5 MB for a report of any size, in the formats that other tools read; and summary.md.

It has the header, the answers, the ledger, teams, namespaces, findings and data coverage by signal. It has the largest containers
in the formats of OpenCost and cAdvisor, with their energy, and names the files of each table. Each list has a size limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from gpureport.report.header import Header
from gpureport.report.page import Written
from gpureport.report.page.answers import Answer
from gpureport.report.page.overview import since_text
from gpureport.report.results import Result, fetched
from gpureport.values.text import formats
from gpureport.values.text.safe import printable

_LINE_CHARACTERS = 1000
_MARKUP = re.compile(r"([\\`*_\[\]|#~!])")
_TAG = re.compile(r"<(?=\S)")


def write_summary(answers: Sequence[Answer], header: Header, whole: Sequence[str], path: Path) -> Path:
    """Write summary.md (Markdown, UTF-8), without the current time; ``whole`` names the other forms that have all rows."""
    path.write_text("\n".join(_lines(answers, header, whole)) + "\n", encoding="utf-8")
    return path


def _lines(answers: Sequence[Answer], header: Header, whole: Sequence[str]) -> list[str]:
    return [
        f"# GPU usage report: {escaped(', '.join(header.clusters))}, {since_text(header)} ({header.timezone})",
        "",
        *(f"- **{each.title}**: {escaped(each.line.removeprefix(f'{each.title}: '))}" for each in answers),
        *(f"- **Data missing.** {escaped(line)}" for line in header.lacks),
        *(f"- **Check failed.** {escaped(str(failure))}" for failure in header.failures[:1]),
        *(f"- **Control plane.** {escaped(line)}" for line in header.agreements),
        *(f"- {escaped(note)}" for note in header.notes),
        "",
        f"Data coverage {formats.percent(header.coverage_ratio)}. gpureport {header.version}, settings {header.config_hash}."
        f"{' All rows are in ' if whole else ''}{', '.join(whole)}{'.' if whole else ''}",
    ]


def escaped(text: str) -> str:
    """Return text as one line of limited length, without markup or control characters. "< 0.1" is no tag and stays."""
    line = printable(" ".join(text.split()))
    kept = line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} …"
    return _TAG.sub("&lt;", _MARKUP.sub(r"\\\1", kept))


CONTAINER = ("cluster", "namespace", "pod", "pod_uid", "container")
_VIOLATIONS = ("power", "thermal", "sync_boost", "board_limit")
_REASONS = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")
_FIGURES = {
    # OpenCost's name: our column
    "memoryUsedRatioAvg": "memory_used_ratio_avg",
    "memoryUsedRatioMax": "memory_used_ratio_max",
    "memoryPressureRatio": "memory_pressure_ratio",
    "xidErrorCount": "xid_error_count",
    "dramActiveAvg": "dram_active_avg",
    "dramActiveMax": "dram_active_max",
    "smActiveAvg": "sm_active_avg",
    "smOccupancyAvg": "sm_occupancy_avg",
    "pcieTxBytesAvg": "pcie_tx_bytes_per_second_avg",
    "pcieRxBytesAvg": "pcie_rx_bytes_per_second_avg",
    "nvlinkTxBytesAvg": "nvlink_tx_bytes_per_second_avg",
    "nvlinkRxBytesAvg": "nvlink_rx_bytes_per_second_avg",
}


def accelerators(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield an entry per container with its rows of ``_ACCELERATOR`` as cAdvisor's ``accelerators[]``, absent where unknown."""
    for names, found in groupby(rows, key=lambda row: tuple(row[name] for name in CONTAINER)):
        fields = ({name: each for name, each in row.items() if name not in CONTAINER and each not in (None, "")} for row in found)
        yield {**dict(zip(CONTAINER, names, strict=True)), "accelerators": [*fields]}


def _allocation(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of report.container_saturation; an unknown value is absent, and its reason is under ``coverage``."""
    saturation = {
        "throttleViolationRatios": _known({name: row[f"{name}_violation_ratio"] for name in _VIOLATIONS}) or None,
        "throttleReasonRatios": _known({name: row[f"{name}_ratio"] for name in _REASONS}) or None,
        **{name: row[column] for name, column in _FIGURES.items()},
    }
    gpu = {
        "gpuDevice": row["gpu_device"],
        "gpuModel": row["gpu_model"],
        "gpuUUID": row["device_uuid"],
        "gpuUsageAverage": row["gpu_usage_avg"],
        "saturation": _known(saturation),
    }
    return {
        **{name: row[name] for name in CONTAINER},
        "gpuInstanceId": row["gpu_instance_id"],
        "observedSeconds": row["observed_seconds"],
        "sharingMode": row["sharing_mode"],
        "gpuAllocation": _known(gpu),
        "coverage": dict(sorted(row["unknown_reasons"].items())),
    }


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in values.items() if found is not None}


SCHEMA_VERSION = 2
_ROWS_MAX, _CONTAINERS_MAX = 5000, 1000
_INSTANTS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
"""Times have no zone in SQL, where all are UTC; in JSON they are marked as UTC."""
_BYTES = {"sources": 500_000, "teams": 100_000, "findings": 1_000_000, "allocations": 1_000_000}
_OTHER_BYTES = 400_000
_NAMESPACES = """
    select cluster, namespace, map_from_entries(list((bucket, gpu_hours) order by bucket)) as gpu_hours
    from (
        select cluster, namespace, bucket, round(sum(gpu_hours), 6) as gpu_hours
        from report.gpu_hour_ledger where namespace <> '' group by all
    ) as part
    group by cluster, namespace order by sum(part.gpu_hours) desc, cluster, namespace
"""
_POWER = (
    *(*CONTAINER, "device_uuid", "gpu_instance_id", "energy_joules", "active_joules", "allocated_idle_joules", "idle_joules"),
    *("idle_watts", "idle_source", "method", "energy_method", "energy_accuracy_ratio", "unknown_reasons"),
)
_OF_ANSWERS = ("title", "headline", "detail", "confidence", "tone")
_ACCELERATOR = (
    *(
        *CONTAINER,
        "make",
        "model",
        "id",
        "gpu_instance_id",
        "memory_total_bytes as memory_total",
        "memory_used_bytes as memory_used",
    ),
    *("round(duty_cycle_percent)::int as duty_cycle", "memory_total_scope", "memory_scope", "duty_cycle_scope"),
)
"""cAdvisor's fields, and the scope of each figure: a figure of a shared device must not be summed over containers."""
_NODES_LAST = "dimension = 'node_name', cluster, dimension, value"
"""Order of rows with nodes last: many nodes of one cluster must not displace the totals of another."""
_FINDING_ORDER = "array_position(['critical', 'warning', 'info'], severity), gpu_hours desc nulls last"
_SIGNALS = """
    select
        cluster, signal, round(sum(expected_device_seconds), 3) as expected_device_seconds,
        round(sum(observed_device_seconds), 3) as observed_device_seconds,
        arg_max(reason, (unknown_device_seconds, reason)) as reason
    from report.coverage group by cluster, signal order by cluster, signal
"""


def write_json(results: Sequence[Result], header: Header, pages: Written, files: Iterable[Path], path: Path) -> Path:
    """Write report.json, with keys in a fixed order and without the current time. ``files`` are the files of the tables."""
    head = header.as_dict()
    lists = {"sources": head.pop("sources"), "teams": pages.teams, **_lists({result.name: result for result in results})}
    whole = ("sources", "teams", "namespaces", "signals")  # for other lists, "tables" has the count
    document = {
        "schema_version": SCHEMA_VERSION,
        **head,
        "answers": [{name: getattr(each, name) for name in _OF_ANSWERS} for each in pages.answers],
        **{name: _within_size(name, entries) for name, entries in lists.items()},
        "entry_counts": {name: len([*lists[name]]) for name in whole},
        "tables": _describe_tables(results, [file.relative_to(path.parent) for file in files]),
    }
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    return path


def _within_size(name: str, entries: Iterable[Mapping[str, Any]]) -> list[orjson.Fragment]:
    kept, space = [], _BYTES.get(name, _OTHER_BYTES)
    for entry in entries:
        text = orjson.dumps(entry, option=_INSTANTS)
        space -= len(text) + 6
        if space < 0:
            break
        kept.append(orjson.Fragment(text))
    return kept


def _lists(tables: Mapping[str, Result]) -> dict[str, Iterable[Mapping[str, Any]]]:
    """Return rows of each list; none where the report lacks the table."""
    finding = tables.get("finding")
    order = f"{_FINDING_ORDER}, {', '.join(finding.query.grain)}" if finding else ""
    return {
        "ledger": tables["gpu_hour_balance"].read(order=_NODES_LAST, limit=_ROWS_MAX) if "gpu_hour_balance" in tables else (),
        "namespaces": _rows(tables, "gpu_hour_ledger", _NAMESPACES),
        "findings": finding.read(["* exclude (sql)"], order=order, limit=_ROWS_MAX) if finding else (),
        "signals": _rows(tables, "coverage", _SIGNALS),
        "allocations": map(_allocation, _largest(tables.get("container_saturation"))),
        "containers": accelerators(_largest(tables.get("accelerator"), _ACCELERATOR)),
        "power": _largest(tables.get("container_power"), _POWER),
    }


def _largest(result: Result | None, columns: Sequence[str] = ("*",)) -> list[dict[str, Any]]:
    """Return the rows of the containers with the longest observed time on devices."""
    if result is None:
        return []
    keys, table = ", ".join(CONTAINER), result.query.table
    longest = f"select {keys} from {table} group by all order by sum(observed_seconds) desc, {keys} limit {_CONTAINERS_MAX}"
    order = f"sum(observed_seconds) over (partition by {keys}) desc, {', '.join(result.query.grain)}"
    return result.read(columns, where=f"({keys}) in ({longest})", order=order)


def _rows(tables: Mapping[str, Result], table: str, sql: str) -> list[dict[str, Any]]:
    """Return rows of SQL over a report table as dicts; [] where the report lacks the table."""
    return fetched(tables[table].con.execute(sql)) if table in tables else []


def _describe_tables(results: Sequence[Result], files: Sequence[Path]) -> dict[str, Any]:
    """Return the row count and the files of each table; gpureport.duckdb has all tables."""
    return {
        result.name: {
            "row_count": result.row_count,
            "files": sorted(each.as_posix() for each in files if each.stem == result.name),
        }
        for result in results
    }
