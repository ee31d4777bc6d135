"""Integrity check of lake files: size and SHA-256 of each, and the command that repairs a damaged one."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import NamedTuple

from gpureport.lake.root import Root, Stored, day_of
from gpureport.store import Storage
from gpureport.values.errors import LakeError


class DamagedError(LakeError):
    """A lake file differs from its entry in the root."""


class Damage(NamedTuple):
    """A file that is damaged or missing."""

    table: str
    key: str
    stored: Stored
    what: str
    is_copy: bool = False
    """Whether only the local copy was damaged. That copy has been fetched again."""

    @property
    def is_samples(self) -> bool:
        """Whether the file holds samples. Another export or import replaces them."""
        return not self.table.startswith("facts/") and not self.stored.is_observed


def checked(storage: Storage, table: str, key: str, stored: Stored) -> Path:
    """Return the local path of an intact file. DamagedError where the file is damaged or missing."""
    found = examined(storage, table, key, stored)
    if found and not found.is_copy:
        raise DamagedError(f"{place(storage, found)} {found.what}; {remedy(storage, found)}")
    return storage.folder / stored.name


def examined(storage: Storage, table: str, key: str, stored: Stored) -> Damage | None:
    """Return the damage of a file, or None. A damaged local copy of an object is fetched again."""
    what = damage(storage.fetch(stored.name), stored)
    if what and storage.delete_copy(stored.name):
        object_has = damage(storage.fetch(stored.name), stored)
        return Damage(table, key, stored, object_has or what, is_copy=not object_has)
    return Damage(table, key, stored, what) if what else None


def damaged_files(storage: Storage, root: Root) -> list[Damage]:
    """Return the damaged or missing files of a lake, one entry for each day of a file."""
    files = {stored.name: (table, key, stored) for table, key, stored in root.each()}  # a packed file has several days
    found = {each.stored.name: each for each in storage.each(lambda each: examined(storage, *each), files.values()) if each}
    return [found[each.name]._replace(key=key, stored=each) for _, key, each in root.each() if each.name in found]


def damage(path: Path, stored: Stored) -> str:
    """Return what is wrong with a file; '' where it is intact."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if size != stored.byte_count:
        return f"is damaged ({size:,} bytes instead of {stored.byte_count:,})"
    return "" if digest == stored.sha256 else "is damaged (its checksum differs)"


def place(storage: Storage, found: Damage) -> str:
    """Return the file's location with its table, cluster and day."""
    cluster, day = day_of(found.key)
    return f"{storage.place}/{found.stored.name} of {found.table}, {cluster}, {day}"


def remedy(storage: Storage, found: Damage) -> str:
    """Return the repair for a damaged file, as text for the error message."""
    cluster, day = day_of(found.key)
    lake = f"--lake {shlex.quote(str(storage.place))}"
    if found.is_copy:
        return "the copy was deleted and fetched again"
    if found.table.startswith("facts/"):
        return f"run 'gpureport compute --date {day} {lake}'"
    if found.stored.is_observed:
        return f"run 'gpureport doctor {lake} --repair', which removes it from the lake: its data cannot be fetched again"
    return f"export or import that day again (gpureport export --date {day} --cluster {cluster} {lake})"
