"""Retention: whole days of whole tables are removed, and nothing that gpureport did not write.

Samples and state go first, facts later. ``source`` stays as long as either: it shows what they rest on, and is small.
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
    """Removed files, or those to remove: days of tables, and their bytes."""

    partition_count: int = 0
    byte_count: int = 0


def prune(lake: Lake, retention: Retention, today: date, is_rehearsal: bool = False) -> Pruned:
    """Remove what is older than is to be kept; nothing where no age is configured. LakeError where the disk refuses.

    Ages count from the day after the newest one that the lake holds, where the clock is beyond it: a clock that jumped would else
    empty the lake.
    """
    days = [each.date for each in (*lake.partitions("source"), *lake.computed_days())]
    if not days:
        return Pruned()
    doomed = list(_doomed(lake, retention, min(today, max(days) + timedelta(days=1))))
    if doomed and not is_rehearsal:
        lake.remove(doomed)
    return Pruned(len(doomed), sum(stored.byte_count for each in doomed for stored in each.stored))


def describe_pruned(pruned: Pruned, verb: str = "removed") -> list[str]:
    """Removed files as a line; empty where nothing was to be removed."""
    if not pruned.partition_count:
        return []
    return [f"{pruned.partition_count:,} days of tables, {pruned.byte_count / 1e6:,.1f} MB, {verb}: beyond their retention"]


def _doomed(lake: Lake, retention: Retention, today: date) -> Iterator[Partition]:
    """The days of tables that are over their age."""
    ages = (retention.keep_samples, retention.keep_facts)
    samples, facts = (age_ago(today, age) if age else date.min for age in ages)
    for table in lake.tables():
        before = facts if table.startswith("facts/") else min(samples, facts) if table == SOURCE.name else samples
        yield from (each for each in lake.partitions(table) if each.date < before)
