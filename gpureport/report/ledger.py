"""The GPU-hour ledger as the page tells it: nine buckets of one capacity, whole or by day, model and holder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from gpureport.report.results import Result


@dataclass(frozen=True)
class Bucket:
    """One of the nine, as people read it; the order of ``BUCKETS`` is the order on every bar."""

    name: str
    title: str
    meaning: str


BUCKETS = (
    Bucket("effective", "Effective", "held and active, with SM activity of 0.5 or more"),
    Bucket("allocated_busy", "Busy, depth unknown", "held and active; SM activity is not known"),
    Bucket("allocated_ineffective", "Ineffective", "held and active, with SM activity below 0.5"),
    Bucket("allocated_idle", "Held idle", "held by a container and not active"),
    Bucket("reserved_idle", "Reserved idle", "a claim has it and no container runs on it"),
    Bucket("stranded", "Stranded", "free, and nothing can be placed on it"),
    Bucket("free", "Free", "nobody has it"),
    Bucket("unavailable", "Unavailable", "the node or the GPU could not be used"),
    Bucket("unknown", "Unknown", "not seen, or not known what it did"),
)
HELD = ("effective", "allocated_busy", "allocated_ineffective", "allocated_idle")
_NOTABLE = 0.005
HOLDER = ("cluster", "namespace", "pod", "pod_uid")


@dataclass(frozen=True)
class Balance:
    """A capacity and what became of it, GPU-hours by bucket."""

    value: str
    device_count: int
    capacity_gpu_hours: float
    difference_gpu_hours: float
    gpu_hours: Mapping[str, float]

    def of(self, *names: str) -> float:
        """GPU-hours in these buckets together."""
        return sum(self.gpu_hours[name] for name in names)

    def share(self, *names: str) -> float | None:
        """The same as a share of capacity; None without capacity."""
        return self.of(*names) / self.capacity_gpu_hours if self.capacity_gpu_hours else None

    def shows(self, *names: str) -> bool:
        """Whether these buckets together are half a percent of capacity, so that other shares may be a point higher."""
        return (self.share(*names) or 0.0) >= _NOTABLE

    @property
    def is_depth_known(self) -> bool:
        """Whether SM activity tells of any active hour how effective it was; True also where nothing was active."""
        return self.of("effective", "allocated_ineffective") > 0 or not self.of("allocated_busy")


def balances(result: Result | None, dimension: str) -> list[Balance]:
    """``report.gpu_hour_balance`` along one dimension, clusters added, by value; [] without the table."""
    if result is None:
        return []
    chosen = [row for row in result.rows.iter_rows(named=True) if row["dimension"] == dimension]
    return [
        _balance(value, [row for row in chosen if row["value"] == value]) for value in sorted({row["value"] for row in chosen})
    ]


def total(parts: Sequence[Balance]) -> Balance | None:
    """Parts that do not overlap, as one; None of none."""
    if not parts:
        return None
    return Balance(
        "",
        sum(part.device_count for part in parts),
        sum(part.capacity_gpu_hours for part in parts),
        sum(part.difference_gpu_hours for part in parts),
        {bucket.name: sum(part.gpu_hours[bucket.name] for part in parts) for bucket in BUCKETS},
    )


def by_holder(result: Result | None) -> dict[tuple[str, ...], dict[str, float]]:
    """GPU-hours of each pod (``HOLDER``) by bucket, from ``report.gpu_hour_ledger``; what nobody holds is left out."""
    if result is None or result.rows.height == 0:
        return {}
    held = result.rows.filter(pl.col("namespace") != "")
    sums = held.group_by(*HOLDER, "bucket", maintain_order=True).agg(pl.col("gpu_hours").sum()).sort(*HOLDER, "bucket")
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for *holder, bucket, gpu_hours in sums.iter_rows():
        found.setdefault(tuple(holder), {})[bucket] = gpu_hours
    return found


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """GPU-hours by bucket of several holders together."""
    found: dict[str, float] = {}
    for part in parts:
        for bucket, gpu_hours in part.items():
            found[bucket] = found.get(bucket, 0.0) + gpu_hours
    return found


def _balance(value: str, rows: Sequence[Mapping[str, Any]]) -> Balance:
    def summed(column: str) -> float:
        return float(sum(row[column] for row in rows))

    hours = {bucket.name: summed(f"{bucket.name}_gpu_hours") for bucket in BUCKETS}
    devices = sum(row["device_count"] for row in rows)
    return Balance(value, devices, summed("capacity_gpu_hours"), summed("difference_gpu_hours"), hours)
