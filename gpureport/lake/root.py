"""The root of a lake: which files it is made of, how large they are, and their digests.

Files are ``<table>/cluster=<c>/date=<D>/<change>-NNNN.parquet``, unique and never written twice. Facts have the day as a column,
and so a folder ``<D>`` that no engine takes for a column too. A packed file of theirs holds several days: it is above those
folders, and its number is how many.
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
"""The one object that is ever replaced: it lists the files of the lake."""
_OWN_FILE = re.compile(r"(facts/)?\w+/cluster=[^/]+/((date=)?\d{4}-\d\d-\d\d/)?[0-9a-f]{16}-\d{4,}\.parquet")


def partition_folder(table: str, cluster: str, day: date) -> str:
    """A partition's folder, relative to the lake; UsageError for a cluster name that cannot be a folder."""
    if not re.fullmatch(CLUSTER_NAME, cluster):
        raise UsageError(f"{cluster!r} cannot name a cluster; use letters, digits, '.', '_' and '-', at most 100 of them")
    return f"{table}/cluster={cluster}/date={day.isoformat()}"


def file_name(table: str, cluster: str, day: date, change: str, number: int) -> str:
    """The name of a change's file."""
    folder = partition_folder(table, cluster, day)
    return f"{folder.replace('/date=', '/') if table.startswith(FACTS) else folder}/{change}-{number:04d}.parquet"


def packed_name(table: str, cluster: str, change: str, day_count: int) -> str:
    """The name of a file of several days."""
    return f"{table}/cluster={cluster}/{change}-{day_count:04d}.parquet"


def is_own(name: str) -> bool:
    """Whether the name is one that only a change makes."""
    return bool(_OWN_FILE.fullmatch(name))


def day_key(cluster: str, day: date) -> str:
    """A day of a cluster as the root names it."""
    return f"{cluster}/{day.isoformat()}"


def day_of(key: str) -> tuple[str, date]:
    """The cluster and day of a key."""
    cluster, _, day = key.partition("/")
    return cluster, date.fromisoformat(day)


MARKER = "gpureport-lake.json"
"""Marker of a lake before there was a root."""
_NUMBER = re.compile(r"-(\d{4,})\.parquet$")


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """A file of the lake."""

    name: str
    byte_count: int
    row_count: int
    sha256: str
    first_ms: int | None = None
    """Of snapshots: when the first one in it was taken, and the last one."""
    last_ms: int | None = None

    @property
    def is_observed(self) -> bool:
        """Whether it holds snapshots."""
        return self.first_ms is not None

    @property
    def is_dated(self) -> bool:
        """Whether it has a column with the day of each row; its folder has the day otherwise."""
        return "/date=" not in self.name

    @property
    def is_packed(self) -> bool:
        """Whether it holds several days: the root names it under each that counts, with that day's rows."""
        return self.name.rsplit("/", 2)[-2].startswith("cluster=")

    @property
    def number(self) -> int:
        """Number of the part of its day: the same number in another table means the same devices. Of a packed file: its days."""
        found = _NUMBER.search(self.name)
        return int(found[1]) if found and not self.is_observed else 0


class Replaced(msgspec.Struct, frozen=True, array_like=True):
    """Files that a change took out of the lake; the time is set by the next one, from the storage's clock."""

    names: tuple[str, ...]
    at_ms: int | None = None


Days = dict[str, tuple[Stored, ...]]
"""A table's files by ``<cluster>/<date>``, in the order in which they are read."""


class Root(msgspec.Struct, frozen=True):
    """The whole lake at an instant."""

    schema_version: int = SCHEMA_VERSION
    is_conditional: bool = True
    """Whether the storage has conditional writes; older versions wrote to others too."""
    changes: tuple[str, ...] = ()
    """The last ones, so that a writer whose answer was lost finds its own."""
    files: dict[str, Days] = {}
    notes: dict[str, dict[str, str]] = {}
    """Origin of a day's facts, by ``<cluster>/<date>``."""
    schemas: dict[str, bytes] = {}
    """Arrow schemas of facts that had no rows, for days without a file of them."""
    replaced: tuple[Replaced, ...] = ()

    def each(self) -> Iterator[tuple[str, str, Stored]]:
        """Every file with its table and day."""
        for table, days in self.files.items():
            for key, files in days.items():
                for stored in files:
                    yield table, key, stored

    def names(self) -> set[str]:
        """The names of all files."""
        return {stored.name for _, _, stored in self.each()}


class _Version(msgspec.Struct):
    schema_version: int


class FoundRoot(NamedTuple):
    """The root as it was read, and the object that it was read from."""

    root: Root
    found: Found


def read_root(storage: Storage) -> FoundRoot | None:
    """The root as it is now; None where there is none. LakeError where it is damaged or another version's."""
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
    """The root; ValueError where it names what is no day, or what is outside of the lake and might be removed there."""
    for key in {*root.notes, *(key for days in root.files.values() for key in days)}:
        day_of(key)
    for name in root.names().union(*(each.names for each in root.replaced)):
        if name.startswith("/") or "../" in name:
            raise ValueError(f"it names {name}")
    return root


def check_version(place: Place, schema_version: int, is_rooted: bool = True) -> None:
    """LakeError where another version's lake is at a place, or one in the form from before there was a root."""
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
    """The schema of a folder that an older version wrote; None where none did. LakeError where the marker is damaged."""
    marker = place / MARKER
    if not isinstance(marker, Path) or not marker.exists():
        return None
    try:
        return int(json.loads(marker.read_text(encoding="utf-8"))["schema_version"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise LakeError(f"{marker} cannot be read ({error}); restore it or export into a new lake") from error


def encode_root(root: Root) -> bytes:
    """The bytes of the root object; the same for the same root."""
    return gzip.compress(msgspec.json.encode(root), compresslevel=1, mtime=0)
