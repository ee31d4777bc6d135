"""A lake that can be made anew at any time, as the demo's: one of an older schema is emptied, and nobody has to migrate it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path

from gpureport.lake.change import write_marker
from gpureport.lake.layout import MARKER, Lake, schema_version
from gpureport.tables import SCHEMA_VERSION


def renew(path: Path, cluster: str, days: Collection[date]) -> bool:
    """Empty a lake of an older schema that holds nothing but these days of this cluster; whether it was done.

    Everything else stays as it is: a lake of this schema or a newer one, one with anything else in it, a folder that is no lake.
    LakeError where the lake cannot be read or changed, LakeBusyError where somebody else changes it.
    """
    if not (path / MARKER).exists() or schema_version(path) >= SCHEMA_VERSION:
        return False
    lake = Lake(path)
    partitions = [partition for table in lake.tables() for partition in lake.partitions(table)]
    if any(each.cluster != cluster or each.date not in days or lake.holdings(each).foreign for each in partitions):
        return False
    lake.remove(partitions)
    write_marker(path)  # last: a run that is killed before it empties the lake again
    return True
