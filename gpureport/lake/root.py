"""The root object of a lake: the lake's files with their sizes and digests.

Files are ``<table>/cluster=<c>/date=<D>/<change>-NNNN.parquet``; names are unique and files immutable. Facts have the day as a
column, so their folder is ``<D>``, which no engine reads as a second date column. A packed file of facts holds several days: it
is in the folder above, and its number is the number of days.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpureport.config.section import CLUSTER_NAME
from gpureport.store import Found, Place, Storage
from gpureport.values.errors import LakeError, UsageError
from gpureport.values.tables import SCHEMA_VERSION

FACTS = "facts/"
ROOT = "gpureport-lake.json.gz"
"""The only object that is replaced: it lists the lake's files."""
_OWN_FILE = re.compile(r"(facts/)?\w+/cluster=[^/]+/((date=)?\d{4}-\d\d-\d\d/)?[0-9a-f]{16}-\d{4,}\.parquet")


def partition_folder(table: str, cluster: str, day: date) -> str:
    """Return a partition's folder relative to the lake. UsageError where the cluster's name cannot name a folder."""
    if not re.fullmatch(CLUSTER_NAME, cluster):
        raise UsageError(f"{cluster!r} cannot name a cluster; use letters, digits, '.', '_' and '-', at most 100 of them")
    return f"{table}/cluster={cluster}/date={day.isoformat()}"


def file_name(table: str, cluster: str, day: date, change: str, number: int) -> str:
    """Return the name of a change's file."""
    folder = partition_folder(table, cluster, day)
    return f"{folder.replace('/date=', '/') if table.startswith(FACTS) else folder}/{change}-{number:04d}.parquet"


def packed_name(table: str, cluster: str, change: str, day_count: int) -> str:
    """Return the name of a packed file."""
    return f"{table}/cluster={cluster}/{change}-{day_count:04d}.parquet"


def is_own(name: str) -> bool:
    """Whether the name has the form of a file that a change wrote."""
    return bool(_OWN_FILE.fullmatch(name))


def day_key(cluster: str, day: date) -> str:
    """Return the root's key of a cluster and day."""
    return f"{cluster}/{day.isoformat()}"


def day_of(key: str) -> tuple[str, date]:
    """Return the cluster and day of a key."""
    cluster, _, day = key.partition("/")
    return cluster, date.fromisoformat(day)


MARKER = "gpureport-lake.json"
"""Marker file of lakes from before the root object."""
_NUMBER = re.compile(r"-(\d{4,})\.parquet$")


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """Root entry of a file."""

    name: str
    byte_count: int
    row_count: int
    sha256: str
    first_ms: int | None = None
    """Time of the first snapshot in the file, as ``last_ms`` is of the last; None for a file without snapshots."""
    last_ms: int | None = None

    @property
    def is_observed(self) -> bool:
        """Whether the file holds snapshots."""
        return self.first_ms is not None

    @property
    def is_dated(self) -> bool:
        """Whether the file has a date column. Otherwise its folder has the date."""
        return "/date=" not in self.name

    @property
    def is_packed(self) -> bool:
        """Whether the file holds several days. The root names it under each valid day, with that day's rows."""
        return self.name.rsplit("/", 2)[-2].startswith("cluster=")

    @property
    def number(self) -> int:
        """Number of the part: equal numbers mean the same devices in every table. For a packed file, its number of days."""
        found = _NUMBER.search(self.name)
        return int(found[1]) if found and not self.is_observed else 0


class Replaced(msgspec.Struct, frozen=True, array_like=True):
    """Files that a change removed from the lake. The next change sets the time, by the storage's clock."""

    names: tuple[str, ...]
    at_ms: int | None = None


Days = dict[str, tuple[Stored, ...]]
"""A table's files by ``<cluster>/<date>``, in reading order."""


class Root(msgspec.Struct, frozen=True):
    """The content of a lake at one time."""

    schema_version: int = SCHEMA_VERSION
    is_conditional: bool = True
    """Whether the storage has conditional writes. Older versions also wrote to storage without them."""
    changes: tuple[str, ...] = ()
    """The latest changes. A writer whose response was lost finds its change here."""
    files: dict[str, Days] = {}
    notes: dict[str, dict[str, str]] = {}
    """Notes on the origin of a day's facts, by ``<cluster>/<date>``."""
    schemas: dict[str, bytes] = {}
    """Arrow schemas of facts without rows, for days without a file."""
    replaced: tuple[Replaced, ...] = ()

    def each(self) -> Iterator[tuple[str, str, Stored]]:
        """Yield every file with its table and day."""
        for table, days in self.files.items():
            for key, files in days.items():
                for stored in files:
                    yield table, key, stored

    def names(self) -> set[str]:
        """Names of all files."""
        return {stored.name for _, _, stored in self.each()}


class _Version(msgspec.Struct):
    schema_version: int


class FoundRoot(NamedTuple):
    """A root and the object that it was read from."""

    root: Root
    found: Found


def read_root(storage: Storage) -> FoundRoot | None:
    """Read the current root; None where there is none. LakeError where it is damaged or of another version."""
    found = storage.get(ROOT)
    if found is None:
        return None
    place = storage.place
    try:
        unpacked = zlib.decompressobj(wbits=31)
        data = unpacked.decompress(found.data, 1 << 28)
        if not unpacked.eof:
            raise ValueError("not whole, or more than 256 MiB")
        version = msgspec.json.decode(data, type=_Version)
        check_version(place, version.schema_version)
        return FoundRoot(_within(msgspec.json.decode(data, type=Root)), found)
    except (OSError, EOFError, ValueError, zlib.error, msgspec.MsgspecError) as error:
        raise LakeError(f"{place}/{ROOT} is damaged ({error}); restore it from a backup, or use another lake") from error


def _within(root: Root) -> Root:
    """Return the root. ValueError for a key without a valid day, or for a file outside of the lake, which is unsafe to delete."""
    for key in {*root.notes, *(key for days in root.files.values() for key in days)}:
        day_of(key)
    for name in root.names().union(*(each.names for each in root.replaced)):
        if name.startswith("/") or "../" in name:
            raise ValueError(f"it names {name}")
    return root


def check_version(place: Place, schema_version: int, is_rooted: bool = True) -> None:
    """Raise LakeError where the lake has another version's schema, or has no root object."""
    if schema_version > SCHEMA_VERSION:
        raise LakeError(
            f"the lake at {place} has schema {schema_version}, newer than this gpureport's {SCHEMA_VERSION}; "
            "upgrade gpureport, or use another lake"
        )
    if schema_version < SCHEMA_VERSION or not is_rooted:
        raise LakeError(
            f"the lake at {place} has schema {schema_version}, as an older gpureport wrote it; "
            f"run 'gpureport migrate --lake {shlex.quote(str(place))}' once"
        )


def old_version(place: Place) -> int | None:
    """Return the schema of a folder that an older version wrote; None for any other. LakeError where its marker is damaged."""
    marker = place / MARKER
    if not isinstance(marker, Path) or not marker.exists():
        return None
    try:
        return int(json.loads(marker.read_text(encoding="utf-8"))["schema_version"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise LakeError(f"{marker} cannot be read ({error}); restore it or export into a new lake") from error


def encode_root(root: Root) -> bytes:
    """Return the bytes of the root object. Equal roots have equal bytes."""
    return gzip.compress(msgspec.json.encode(root), compresslevel=1, mtime=0)
