"""Where things lie in a lake: ``<lake>/<table>/cluster=<c>/date=<D>/<part>.parquet``, and its schema version.

A part is ``part-0000`` and on, or an observation: ``observed-20261121T014621000Z``, what was seen of Kubernetes at that time;
``observed-20261121`` holds those of a day that is over.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpureport.errors import LakeError, UsageError
from gpureport.store import ObjectAddress, Place
from gpureport.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from gpureport.lake.change import Change

MARKER = "gpureport-lake.json"
OBSERVED = "observed-"
PLACING = ".placing"
"""Where a change waits that is complete and not yet in its place."""
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def partition_folder(table: str, cluster: str, day: date) -> Path:
    """A partition's folder, relative to the lake; UsageError for a cluster name that cannot be a folder."""
    if not _CLUSTER_NAME.fullmatch(cluster):
        raise UsageError(f"{cluster!r} cannot name a cluster; use letters, digits, '.', '_' and '-', at most 100 of them")
    return Path(table) / f"cluster={cluster}" / f"date={day.isoformat()}"


def observation_part(observed_at: datetime) -> str:
    """The name of an observation's parts: its time in UTC, to the millisecond."""
    return f"{OBSERVED}{observed_at.astimezone(UTC):%Y%m%dT%H%M%S}{observed_at.microsecond // 1000:03}Z"


def packed_part(day: date) -> str:
    """The name of the part that holds all observations of a day that is over."""
    return f"{OBSERVED}{day:%Y%m%d}"


def is_observation(file: Path) -> bool:
    """Whether the file is a part of an observation, or of several."""
    return file.name.startswith(OBSERVED)


@dataclass(frozen=True)
class Partition:
    """One day of one cluster in one table."""

    table: str
    cluster: str
    date: date
    files: tuple[Path, ...]

    @property
    def observation_count(self) -> int:
        """How many of its files are observations."""
        return sum(map(is_observation, self.files))


class FileSize(NamedTuple):
    """How much a file of a partition holds."""

    name: str
    byte_count: int
    row_count: int


class Holdings(NamedTuple):
    """What a lake holds of a partition: gpureport's own files and their bytes, and what is not gpureport's."""

    file_count: int
    byte_count: int
    foreign: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Lake:
    """A lake on disk, of a schema that this version reads."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def tables(self) -> list[str]:
        """The tables that it holds; one of facts is named ``facts/<table>``."""
        folders = {folder.parent for pattern in ("*/cluster=*", "facts/*/cluster=*") for folder in self.path.glob(pattern)}
        return sorted(folder.relative_to(self.path).as_posix() for folder in folders)

    def partitions(self, table: str) -> list[Partition]:
        """Every partition of a table, by cluster and day; a table of facts is named ``facts/<table>``."""
        folders = sorted((self.path / table).glob("cluster=*/date=*"))
        return [partition for folder in folders if (partition := _partition(table, folder)).files]

    def partition(self, table: str, cluster: str, day: date) -> Partition | None:
        """The one of a cluster and day; None where the table has none."""
        return next((each for each in self.partitions(table) if (each.cluster, each.date) == (cluster, day)), None)

    def bring(self, partitions: Iterable[Partition]) -> None:
        """Have the files of partitions at hand before they are read one after the other; on disk they are."""

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Stage new partitions; they replace the old ones when the block ends, and an exception leaves all as it was."""
        from gpureport.lake.change import staged_change

        with staged_change(self) as change:
            yield change

    @contextmanager
    def observation(self) -> Iterator[Change]:
        """Stage an observation's parts; they are added when the block ends, also while another process changes the lake."""
        from gpureport.lake.change import staged_observation

        with staged_observation(self) as change:
            yield change

    def pack_observations(self, before: date) -> int:
        """Join the observations of every day before this one, a file a table and day; how many files were joined."""
        from gpureport.lake.change import pack_observations

        return pack_observations(self, before)

    def sizes(self, partition: Partition) -> list[FileSize]:
        """The files of a partition in order of their names, without reading their rows. LakeError where one is no Parquet."""
        from gpureport.lake.scan import footer

        return [FileSize(file.name, file.stat().st_size, footer(file).num_rows) for file in partition.files]

    def holdings(self, partition: Partition) -> Holdings:
        """What gpureport wrote of a partition, and what else lies there; nothing of either where a link leads elsewhere."""
        from gpureport.lake.own_files import holdings_on_disk

        return holdings_on_disk(self, partition)

    def tidy(self) -> int:
        """Remove what nobody needs any more beside the lake's files; how much it was. On disk there is nothing."""
        return 0

    def remove(self, partitions: Sequence[Partition]) -> None:
        """Remove what gpureport wrote of partitions; a reader finds all of a partition, or nothing."""
        from gpureport.lake.change import remove_partitions
        from gpureport.lake.own_files import own_files

        remove_partitions(self, [own for each in partitions if (own := own_files(self, each))])


def _partition(table: str, folder: Path) -> Partition:
    cluster = folder.parent.name.removeprefix("cluster=")
    try:
        day = date.fromisoformat(folder.name.removeprefix("date="))
    except ValueError:
        raise LakeError(f"{folder} is not a day of a lake; move it elsewhere") from None
    return Partition(table, cluster, day, tuple(sorted(folder.glob("*.parquet"))))


def open_lake(place: Place, create: bool = False) -> Lake:
    """The lake at a place; LakeError where there is none (unless to be created) or a newer gpureport wrote it."""
    if isinstance(place, ObjectAddress):
        from gpureport.lake.remote import open_remote_lake

        return open_remote_lake(place, create)
    return _open_folder(place, create)


def _open_folder(path: Path, create: bool) -> Lake:
    """The lake on disk, settled."""
    from gpureport.lake.placing import settle

    if not path.exists() and not create:
        raise LakeError(f"there is no lake at {path}; fill one with 'gpureport export' or 'gpureport import'")
    if path.exists() and not path.is_dir():
        raise LakeError(f"{path} is a file, not a lake; give a folder with --lake")
    marker = path / MARKER
    if marker.exists():
        check_version(path, schema_version(path))
        settle(path)
    elif create and path.is_dir() and any(not each.name.startswith(".") for each in path.iterdir()):
        raise LakeError(f"{path} holds files but is not a gpureport lake (it has no {MARKER}); give a new or empty folder")
    elif not create:
        raise LakeError(f"{path} is not a gpureport lake (it has no {MARKER}); give the lake's folder with --lake")
    return Lake(path)


def schema_version(path: Path) -> int:
    """The version of the schema in which the lake was written; LakeError where nothing says it."""
    marker = path / MARKER
    if not marker.exists():
        raise LakeError(f"{path} is not a gpureport lake (it has no {MARKER}); give the lake's folder with --lake")
    try:
        return int(json.loads(marker.read_text(encoding="utf-8"))["schema_version"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise LakeError(f"{marker} cannot be read ({error}); restore it or export into a new lake") from error


def check_version(place: Path | str, version: int) -> None:
    """LakeError where the lake at a place has another schema than this version's."""
    if version > SCHEMA_VERSION:
        raise LakeError(
            f"the lake at {place} has schema {version}, newer than this gpureport's {SCHEMA_VERSION}; "
            "upgrade gpureport, or use another lake"
        )
    if version < SCHEMA_VERSION:
        raise LakeError(
            f"the lake at {place} has schema {version}, older than this gpureport's {SCHEMA_VERSION}; "
            f"run 'gpureport migrate --lake {shlex.quote(str(place))}' once"
        )
