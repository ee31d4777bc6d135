"""A container or a device on a card: how it was used and strained, its course, what limits it, what to do, what it leads to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpureport import formats
from gpureport.report import charts
from gpureport.report.amount import amount
from gpureport.report.ground import AboveIdle, Ground, Told, hours_told, where
from gpureport.report.timelines import CONTAINER, DEVICE, Key
from gpureport.report.unknown import cell
from gpureport.report.use_strip import Strip, use_strip
from gpureport.report.workloads import workload_of

ROWS_OF_A_CARD = 8
_ACCELERATOR = ("cluster", "id", "gpu_instance_id")
"""A device, as report.accelerator names it."""
FINDINGS_OF_A_CARD = 4


@dataclass(frozen=True)
class Row:
    """A row of a small table: the first cell's link, '' for none, and the cells."""

    link: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A container or a device: what it is, how it was used and strained, its course, what it leads to."""

    anchor: str
    title: str
    above: str
    """The place of its team; '' for a device."""
    above_title: str
    facts: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    strips: tuple[Strip, ...]
    findings: tuple[tuple[str, str, str], ...]
    """Code and title, evidence, and what to do: what to ask for next time."""
    course: str
    rows: tuple[Row, ...]
    row_count: int
    """Of the table that ``rows`` begin."""


def container_card(ground: Ground, key: Key, points: Sequence[Mapping[str, Any]]) -> Card:
    """The card of a container (CONTAINER); ``points`` are its course."""
    devices = where(ground.tables["container_saturation"], CONTAINER, key)
    cycles = {_named(row, _ACCELERATOR): (row, why) for row, why in where(ground.tables.get("accelerator"), CONTAINER, key)}
    result, number = ground.tables["container"], ground.numbers[key]
    row = result.rows.row(number, named=True)
    return Card(
        anchor=ground.places.containers[key],
        title=f"{key[2]} / {key[4]}",
        above=ground.places.teams.get(key[:2], ""),
        above_title=key[1],
        facts=(
            *_made_by(ground, key[:4]),
            ("node", row["node_name"]),
            ("GPU", f"{row['device_count']:,} × {row['gpu_model'] or 'unknown model'}"),
            ("sharing", row["sharing_mode"]),
            ("seen", formats.duration(row["observed_seconds"])),
            ("coverage of its life", formats.percent(row["coverage_ratio"])),
            *hours_told(ground.hours.get(key[:4], {})),
            ("energy above idle", ground.joules.get(key, AboveIdle()).told),
        ),
        sentences=_boundness(ground, key),
        strips=use_strip(row, result.reasons[number]),
        findings=_findings(ground, CONTAINER[:4], key[:4], key[4]),
        course=charts.timeline(points) if points else "",
        rows=tuple(_device_of(ground, each, cycles.get(_named(each[0], DEVICE))) for each in devices[:ROWS_OF_A_CARD]),
        row_count=len(devices),
    )


def _made_by(ground: Ground, pod: Key) -> tuple[tuple[str, str], ...]:
    """The workload that its pod is of; nothing for a pod of its own."""
    found = workload_of(pod, ground.workloads)
    if not found.is_made and found.name == pod[2]:
        return ()
    return (("workload", f"{found.name} ({found.kind or 'by its name'})"),)


def _findings(ground: Ground, columns: Sequence[str], key: Key, container: str = "") -> tuple[tuple[str, str, str], ...]:
    """What was found of it or all of its pod and is not suppressed, the most GPU-hours first, what reads alike once."""
    if "finding" not in ground.tables:
        return ()
    found = [
        row
        for row, _ in where(ground.tables["finding"], columns, key)
        if row["container"] in ("", container) and row["suppressed_until"] is None
    ]
    found.sort(key=lambda row: (-(row["gpu_hours"] or 0.0), row["code"]))
    alike = Counter((f"{row['code']} {row['title']}", _sentence(row["evidence"]), row["action"]) for row in found)
    told = [(f"{title} ({times} times)" if times > 1 else title, *rest) for (title, *rest), times in alike.items()]
    return tuple((title, evidence, action) for title, evidence, action in told[:FINDINGS_OF_A_CARD])


def _sentence(evidence: str) -> str:
    return f"{evidence[:1].upper()}{evidence[1:].removesuffix('.')}."


def _boundness(ground: Ground, key: Key) -> tuple[str, ...]:
    """What limits it, a sentence for each thing that is said of any of its devices."""
    if "boundness" not in ground.tables:
        return ()
    return tuple(dict.fromkeys(row["boundness"] for row, _ in where(ground.tables["boundness"], CONTAINER, key)))


def _named(row: Mapping[str, Any], columns: Sequence[str]) -> Key:
    return tuple(row[column] for column in columns)


def _device_of(ground: Ground, told: Told, cycle: Told | None) -> Row:
    """A device as one of its holders sees it; ``cycle`` is its row of report.accelerator."""
    row = told[0]
    return Row(ground.places.of("device_uuid", row), (_device_name(row), row["node_name"], *_activity(told, cycle)))


def _holder_of(ground: Ground, told: Told, cycle: Told | None) -> Row:
    """A holder as its device sees it."""
    row = told[0]
    return Row(ground.places.of("pod", row), (row["pod"], row["namespace"], *_activity(told, cycle)))


def _activity(told: Told, cycle: Told | None) -> tuple[str, ...]:
    """How long it was seen, and what its holder got of it."""
    names = ("gpu_usage_avg", "sm_active_avg", "memory_used_ratio_max", "any_throttle_ratio", "xid_error_count")
    duty = cell(*cycle, "duty_cycle_percent") if cycle else formats.UNKNOWN
    seconds = told[0]["observed_seconds"]
    return (amount(formats.duration(seconds), seconds), duty, *(cell(*told, name) for name in names))


def _device_name(row: Mapping[str, Any]) -> str:
    short = formats.shortened("device_uuid", row["device_uuid"])
    return f"{short} instance {row['gpu_instance_id']}" if row["gpu_instance_id"] else short


def device_card(ground: Ground, key: Key, points: Sequence[Mapping[str, Any]]) -> Card:
    """The card of a device (DEVICE), with those that held it longest."""
    holders = where(ground.tables["container_saturation"], DEVICE, key)
    holders.sort(key=lambda told: -(told[0]["observed_seconds"] or 0.0))
    cycles = {_named(row, CONTAINER): (row, why) for row, why in where(ground.tables.get("accelerator"), _ACCELERATOR, key)}
    result = ground.tables["device"]
    number = result.rows.select(*DEVICE).rows().index(key)
    row = result.rows.row(number, named=True)
    return Card(
        anchor=ground.places.devices[key],
        title=_device_name(row),
        above="",
        above_title=row["node_name"],
        facts=(
            ("model", row["gpu_model"] or "unknown"),
            ("node", row["node_name"]),
            ("seen", formats.duration(row["observed_seconds"])),
            ("of that nobody held it", formats.duration(row["unheld_seconds"])),
            ("coverage of the window", formats.percent(row["coverage_ratio"])),
            ("energy", formats.energy(row["energy_joules"])),
            ("power, mean", f"{formats.value('power_watts_avg', row['power_watts_avg'])} W"),
            ("UUID", row["device_uuid"]),
        ),
        sentences=(),
        strips=use_strip(row, result.reasons[number]),
        findings=_findings(ground, DEVICE, key),
        course=charts.timeline(points) if points else "",
        rows=tuple(_holder_of(ground, each, cycles.get(_named(each[0], CONTAINER))) for each in holders[:ROWS_OF_A_CARD]),
        row_count=len(holders),
    )
