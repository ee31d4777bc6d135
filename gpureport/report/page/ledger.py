"""The ten categories of the GPU-hour ledger: names, words and order, the same on every bar, table and chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bucket:
    """A category of the ledger, as people read it."""

    name: str
    title: str
    meaning: str


BUCKETS = (
    Bucket("effective", "Effective", "allocated and active, SM activity of 50 % or more"),
    Bucket("underutilized", "Underutilized", "allocated and active, SM activity below 50 %"),
    Bucket("active_unmeasured", "Active, SM activity not measured", "allocated and active; no data for SM activity"),
    Bucket("allocated_unmeasured", "Allocated, use not measured", "allocated by requests or labels; no data on its use"),
    Bucket("allocated_idle", "Allocated, idle", "allocated to a container and not active"),
    Bucket("reserved_idle", "Reserved, idle", "reserved by a resource claim without a running container"),
    Bucket("fragmented", "Fragmented (unschedulable)", "unallocated, and no pending or usual request fits"),
    Bucket("free", "Free", "unallocated and schedulable"),
    Bucket("unavailable", "Unavailable", "node not ready or cordoned, or GPU unhealthy"),
    Bucket("unknown", "Unknown", "no data on allocation or use"),
)
ALLOCATED = ("effective", "underutilized", "active_unmeasured", "allocated_unmeasured", "allocated_idle")
IDLE = ("allocated_idle", "reserved_idle")


@dataclass(frozen=True)
class Hours:
    """GPU-hours by category."""

    by_bucket: Mapping[str, float]

    def of(self, *names: str) -> float:
        """GPU-hours of these categories together."""
        return sum(self.by_bucket.get(name, 0.0) for name in names)

    @property
    def capacity(self) -> float:
        """All of them."""
        return sum(self.by_bucket.values())

    def share(self, *names: str) -> float | None:
        """The share of capacity in these categories; None without capacity."""
        return self.of(*names) / self.capacity if self.capacity else None

    @property
    def effective_share(self) -> float | None:
        """The effective part of what was allocated; None where SM activity is not measured or nothing is allocated."""
        known = self.of("effective", "underutilized", "allocated_idle")
        unmeasured = self.of("active_unmeasured", "allocated_unmeasured")
        return self.of("effective") / self.of(*ALLOCATED) if known and unmeasured <= known else None


def hours_by(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, Hours]:
    """Rows of ``bucket`` and ``gpu_hours`` as hours by the value of a column, in the rows' order."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        buckets = found.setdefault(str(row[key]), {})
        buckets[row["bucket"]] = buckets.get(row["bucket"], 0.0) + (row["gpu_hours"] or 0.0)
    return {value: Hours(buckets) for value, buckets in found.items()}
