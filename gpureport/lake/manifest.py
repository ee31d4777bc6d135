"""What a lake on object storage holds: one root object, and for each day of a cluster an index of its files.

The root is all that is ever replaced; everything else is written once, under the name of the change that wrote it:

- ``gpureport-lake.json.gz``: the root, see ``Root``
- ``changes/<change>/<table>/cluster=<c>/date=<D>/<part>.parquet``: what a change wrote
- ``changes/<change>/index-<n>/<c>/<D>.json``: what a day held after it
- ``changes/<change>/dropped-<n>.json``: what nothing refers to after it, to be removed in time
"""

from __future__ import annotations

import gzip
from datetime import date

import msgspec

ROOT = "gpureport-lake.json.gz"
CHANGES = "changes"
LAYOUT = 1
"""Of these objects; not the schema of the tables."""


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """A file: the change that wrote it, how much it holds, and its digest."""

    change: str
    byte_count: int
    row_count: int
    sha256: str


Index = dict[str, dict[str, Stored]]
"""The files of a day by table and name."""


class Held(msgspec.Struct, frozen=True, array_like=True):
    """What a day holds of a table, without its index: numbers of files, of observations among them, and bytes."""

    file_count: int
    observation_count: int
    byte_count: int


class Day(msgspec.Struct, frozen=True):
    """A day of a cluster."""

    index: str
    """The object that lists its files."""
    replaced_by: str
    """The last change that took anything of the day's place; observations take nobody's."""
    tables: dict[str, Held]


class Root(msgspec.Struct, frozen=True):
    """The whole lake at a moment."""

    schema_version: int
    layout: int = LAYOUT
    generation: int = 0
    """How often it was replaced."""
    is_conditional: bool = True
    """Whether the storage knows conditional writes."""
    days: dict[str, Day] = {}
    """By ``<cluster>/<date>``."""
    changes: tuple[str, ...] = ()
    """Those that are part of the lake, as far back as ``swept_generation``."""
    swept_generation: int = 0
    """Changes begun before this generation are part of the lake, or were removed."""
    dropped: tuple[str, ...] = ()
    """Objects that list what is to be removed."""


def day_key(cluster: str, day: date) -> str:
    """Under what a day stands in the root."""
    return f"{cluster}/{day.isoformat()}"


def file_name(change: str, table: str, cluster: str, day: date, name: str) -> str:
    """The object that holds a file."""
    return f"{CHANGES}/{change}/{table}/cluster={cluster}/date={day.isoformat()}/{name}"


def encode_root(root: Root) -> bytes:
    """The bytes of the root object; the same for the same root."""
    return gzip.compress(msgspec.json.encode(root), mtime=0)


def decode_root(data: bytes) -> Root:
    """The root of an object's bytes; ValueError where they are none."""
    try:
        return msgspec.json.decode(gzip.decompress(data), type=Root)
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error


def encode_index(index: Index) -> bytes:
    """The bytes of a day's index."""
    return msgspec.json.encode(index)


def decode_index(data: bytes) -> Index:
    """A day's index; ValueError where the bytes are none."""
    try:
        return msgspec.json.decode(data, type=Index)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def encode_names(names: list[str]) -> bytes:
    """The bytes of a list of objects."""
    return msgspec.json.encode(names)


def decode_names(data: bytes) -> list[str]:
    """The names of a list of objects; ValueError where the bytes are none."""
    try:
        return msgspec.json.decode(data, type=list[str])
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
