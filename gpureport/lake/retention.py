"""Retention: whole days of tables are removed, and only files that gpureport wrote.

Samples and state are removed first, facts later. ``source`` is kept as long as either: it is small and shows their origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from gpureport.config import Retention
from gpureport.lake.lake import Lake, Partition
from gpureport.values.tables import SOURCE
from gpureport.values.window import age_ago


@dataclass(frozen=True)
class Pruned:
    """Partitions removed, or to be removed, and their bytes."""

    partition_count: int = 0
    byte_count: int = 0


def prune(lake: Lake, retention: Retention, today: date, is_rehearsal: bool = False) -> Pruned:
    """Remove partitions older than their retention; none where no retention is configured. LakeError where the disk fails.

    Ages count from today, but at most from the day after the lake's newest day. Else a wrong clock could empty the lake.
    """
    days = [each.date for each in (*lake.partitions("source"), *lake.computed_days())]
    if not days:
        return Pruned()
    expired = list(_expired(lake, retention, min(today, max(days) + timedelta(days=1))))
    if expired and not is_rehearsal:
        lake.remove(expired)
    return Pruned(len(expired), sum(stored.byte_count for each in expired for stored in each.stored))


def describe_pruned(pruned: Pruned, verb: str = "removed") -> list[str]:
    """Return the removed files as one line; an empty list where nothing was removed."""
    if not pruned.partition_count:
        return []
    return [f"{pruned.partition_count:,} days of tables, {pruned.byte_count / 1e6:,.1f} MB, {verb}: beyond their retention"]


def _expired(lake: Lake, retention: Retention, today: date) -> Iterator[Partition]:
    """Yield the partitions beyond their retention."""
    ages = (retention.keep_samples, retention.keep_facts)
    samples, facts = (age_ago(today, age) if age else date.min for age in ages)
    for table in lake.tables():
        before = facts if table.startswith("facts/") else min(samples, facts) if table == SOURCE.name else samples
        yield from (each for each in lake.partitions(table) if each.date < before)
