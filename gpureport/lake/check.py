"""Whether files are what was written: their sizes and digests, and who repairs the ones that are not."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import NamedTuple

from gpureport.lake.root import Root, Stored, day_of
from gpureport.store import Storage
from gpureport.values.errors import LakeError


class DamagedError(LakeError):
    """A file of the lake is not what was written there."""


class Damage(NamedTuple):
    """A file that is damaged or missing."""

    table: str
    key: str
    stored: Stored
    what: str
    is_copy: bool = False
    """Only its copy on this machine was, which has been fetched again."""

    @property
    def is_samples(self) -> bool:
        """Whether it holds samples, which another export or import brings."""
        return not self.table.startswith("facts/") and not self.stored.is_observed


def checked(storage: Storage, table: str, key: str, stored: Stored) -> Path:
    """A file at hand, as it was written. DamagedError where it is not."""
    found = examined(storage, table, key, stored)
    if found and not found.is_copy:
        raise DamagedError(f"{place(storage, found)} {found.what}; {remedy(storage, found)}")
    return storage.folder / stored.name


def examined(storage: Storage, table: str, key: str, stored: Stored) -> Damage | None:
    """Defect of a file; a damaged copy of an object is fetched again."""
    what = damage(storage.bring(stored.name), stored)
    if what and storage.forget(stored.name):
        object_has = damage(storage.bring(stored.name), stored)
        return Damage(table, key, stored, object_has or what, is_copy=not object_has)
    return Damage(table, key, stored, what) if what else None


def damaged_files(storage: Storage, root: Root) -> list[Damage]:
    """Every file of a lake that is not as it was written, for each of its days."""
    files = {stored.name: (table, key, stored) for table, key, stored in root.each()}  # a packed one is named under each day
    found = {each.stored.name: each for each in storage.each(lambda each: examined(storage, *each), files.values()) if each}
    return [found[each.name]._replace(key=key, stored=each) for _, key, each in root.each() if each.name in found]


def damage(path: Path, stored: Stored) -> str:
    """Defect of a file; '' for none."""
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
    """The file, and what it is of."""
    cluster, day = day_of(found.key)
    return f"{storage.place}/{found.stored.name} of {found.table}, {cluster}, {day}"


def remedy(storage: Storage, found: Damage) -> str:
    """Command that makes the file again."""
    cluster, day = day_of(found.key)
    lake = f"--lake {shlex.quote(str(storage.place))}"
    if found.is_copy:
        return "the copy was deleted and fetched again"
    if found.table.startswith("facts/"):
        return f"run 'gpureport compute --date {day} {lake}'"
    if found.stored.is_observed:
        return f"run 'gpureport doctor {lake} --repair', which takes it out of the lake: what it saw cannot be fetched again"
    return f"export or import that day again (gpureport export --date {day} --cluster {cluster} {lake})"
