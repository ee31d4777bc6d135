"""What in a partition of a lake on disk is gpureport's, and what somebody else put there."""

from __future__ import annotations

import re
from pathlib import Path

from gpureport.lake.layout import Holdings, Lake, Partition

_OWN_FILE = re.compile(r"(part-\d{4,}|observed-\d{8}(T\d{9}Z)?)\.parquet")


def holdings_on_disk(lake: Lake, partition: Partition) -> Holdings:
    """What gpureport wrote of a partition, and what else lies there."""
    own = own_files(lake, partition)
    folder = partition.files[0].parent if partition.files else None
    foreign = [path for path in sorted(folder.iterdir()) if not _is_own(path)] if folder and _is_inside(lake, folder) else []
    return Holdings(len(own), sum(file.stat().st_size for file in own), tuple(path.relative_to(lake.path) for path in foreign))


def own_files(lake: Lake, partition: Partition) -> list[Path]:
    """The files that gpureport wrote; none of folders that are links, which lead elsewhere."""
    return [file for file in partition.files if _is_own(file) and _is_inside(lake, file.parent)]


def _is_inside(lake: Lake, folder: Path) -> bool:
    return folder.resolve().is_relative_to(lake.path.resolve())


def _is_own(file: Path) -> bool:
    return bool(_OWN_FILE.fullmatch(file.name)) and file.is_file() and not file.is_symlink()
