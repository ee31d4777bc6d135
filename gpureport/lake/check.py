"""Whether files are what was written: their sizes and digests, and who repairs the ones that are not."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import NamedTuple

from gpureport.errors import LakeError
from gpureport.lake.paths import day_of
from gpureport.lake.root import Stored
from gpureport.store import Storage


class DamagedError(LakeError):
    """A file of the lake is not what was written there."""


class Damage(NamedTuple):
    """A file that is damaged or missing."""

    table: str
    key: str
    stored: Stored
    what: str


def checked(storage: Storage, table: str, key: str, stored: Stored) -> Path:
    """A file at hand, as it was written; a damaged copy of an object is fetched again. DamagedError where it is not."""
    path = storage.bring(stored.name)
    what = damage(path, stored)
    if what and storage.forget(stored.name):
        what = damage(storage.bring(stored.name), stored)
    if what:
        raise DamagedError(sentence(storage, Damage(table, key, stored, what)))
    return path


def damage(path: Path, stored: Stored) -> str:
    """What is wrong with a file; '' for nothing."""
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


def sentence(storage: Storage, found: Damage) -> str:
    """The file, its table, cluster and day, and the command that makes it again."""
    cluster, day = day_of(found.key)
    lake = f"--lake {shlex.quote(str(storage.place))}"
    if found.table.startswith("facts/"):
        repair = f"run 'gpureport compute --date {day} {lake}'"
    elif found.stored.is_observed:
        repair = f"run 'gpureport doctor {lake} --repair', which takes it out of the lake: what it saw cannot be asked for again"
    else:
        repair = f"export or import that day again (gpureport export --date {day} --cluster {cluster} {lake})"
    return f"{storage.place}/{found.stored.name} of {found.table}, {cluster}, {day} {found.what}; {repair}"
