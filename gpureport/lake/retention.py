"""What is kept of a lake, and for how long: whole days of whole tables go, and nothing that gpureport did not write.

Samples and state go first, facts later. ``source`` stays as long as facts do: it says what they rest on, and is small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from gpureport.config import Retention
from gpureport.lake.change import remove_partitions
from gpureport.lake.layout import Lake, Partition
from gpureport.tables import SOURCE, TABLES
from gpureport.window import age_ago

_OWN_FILE = re.compile(r"(part-\d{4,}|observed-\d{8}(T\d{9}Z)?)\.parquet")


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be: days of tables, bytes; and what stands in such days and is not gpureport's."""

    partition_count: int = 0
    byte_count: int = 0
    left: tuple[Path, ...] = ()


def prune(lake: Lake, retention: Retention, today: date, is_rehearsal: bool = False) -> Pruned:
    """Remove what is older than is to be kept; nothing where no age is configured. LakeError where the disk refuses.

    Ages count from the day after the newest one that the lake holds, where the clock is beyond it: a clock that jumped would else
    empty the lake.
    """
    days = [each.date for table in ("device_sample", "facts/device_hour") for each in lake.partitions(table)]
    if not days:
        return Pruned()
    doomed = list(_doomed(lake, retention, min(today, max(days) + timedelta(days=1))))
    own = [(partition, [file for file in partition.files if _is_own(file)]) for partition in doomed]
    byte_count = sum(file.stat().st_size for _, files in own for file in files)
    left = tuple(path for partition in doomed for path in _foreign(lake, partition))
    if not is_rehearsal:
        remove_partitions(lake, [files for _, files in own if files])
    return Pruned(sum(bool(files) for _, files in own), byte_count, left)


def describe_pruned(pruned: Pruned, verb: str = "removed") -> list[str]:
    """What was removed and what stays, a line each; nothing where nothing was to be removed."""
    lines = [f"warning: {path} is not gpureport's, and stays" for path in pruned.left]
    if pruned.partition_count:
        lines.append(f"{pruned.partition_count:,} days of tables, {pruned.byte_count / 1e6:,.1f} MB, {verb}: over their age")
    return lines


def _doomed(lake: Lake, retention: Retention, today: date) -> Iterator[Partition]:
    """The days of tables that are over their age; folders that are links lead elsewhere, and are left alone."""
    for age, tables in (
        (retention.keep_samples, [table.name for table in TABLES if table.name != SOURCE.name]),
        (retention.keep_facts, [SOURCE.name, *_facts(lake)]),
    ):
        if not age:
            continue
        first_kept = age_ago(today, age)
        for table in tables:  # device_sample first: a day without it is not computed again from what is left of it
            yield from (each for each in lake.partitions(table) if each.date < first_kept and _is_inside(lake, each))


def _facts(lake: Lake) -> list[str]:
    return sorted(f"facts/{folder.name}" for folder in (lake.path / "facts").glob("*") if folder.is_dir())


def _is_inside(lake: Lake, partition: Partition) -> bool:
    """Whether the day lies in the lake itself, by no link."""
    folder = partition.files[0].parent if partition.files else None
    return folder is not None and folder.resolve().is_relative_to(lake.path.resolve())


def _is_own(file: Path) -> bool:
    return bool(_OWN_FILE.fullmatch(file.name)) and file.is_file() and not file.is_symlink()


def _foreign(lake: Lake, partition: Partition) -> list[Path]:
    folder = partition.files[0].parent
    return [path.relative_to(lake.path) for path in sorted(folder.iterdir()) if not _is_own(path)]
