"""The objects of a lake on object storage, and the copies of them that are kept on this machine.

Objects but the root never change, so neither do copies: several processes can use them, and they can be removed at any time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpureport.errors import LakeError
from gpureport.lake.manifest import LAYOUT, ROOT, Day, Index, Root, decode_index, decode_root, encode_root
from gpureport.store import Bucket, Found, ObjectAddress
from gpureport.store.refusal import store_errors
from gpureport.store.turn import replace


@dataclass(frozen=True)
class FoundRoot:
    """The root as it was read, and the object that it was read from."""

    root: Root
    found: Found


@dataclass(frozen=True)
class Wanted:
    """A file that a reader asks for: the object's name, its digest, and where the file is to lie."""

    name: str
    sha256: str
    target: Path


@dataclass(frozen=True)
class Stock:
    """The objects of one lake. StoreError where the storage does not serve."""

    bucket: Bucket

    @property
    def address(self) -> ObjectAddress:
        """Where the lake lies."""
        return self.bucket.address

    def read_root(self) -> FoundRoot | None:
        """The root as it is now; None where there is none. LakeError where it cannot be understood."""
        found = self.bucket.get(ROOT)
        if found is None:
            return None
        try:
            root = decode_root(found.data)
        except ValueError as error:
            raise LakeError(f"{self.address}/{ROOT} cannot be read ({error}); restore it, or use another prefix") from error
        if root.layout > LAYOUT:
            raise LakeError(f"the lake at {self.address} has a layout newer than this gpureport's; upgrade gpureport")
        return FoundRoot(root, found)

    def replace_root(self, old: FoundRoot | None, root: Root) -> bool:
        """Put a root in place of the one that was read; False where it is another by now."""
        return replace(self.bucket, ROOT, old.found if old else None, encode_root(root), root.is_conditional)

    def read_index(self, day: Day) -> Index:
        """What a day holds; LakeError where that cannot be read."""
        copy = self._copy(day.index)
        with suppress(FileNotFoundError, ValueError):
            return decode_index(copy.read_bytes())
        found = self.bucket.get(day.index)
        if found is None:
            raise LakeError(f"{self.address}/{day.index} is gone; what was read is more than a day old, so run again")
        try:
            index = decode_index(found.data)
        except ValueError as error:
            raise LakeError(f"{self.address}/{day.index} cannot be read ({error}); restore it") from error
        with store_errors(self.address):
            copy.parent.mkdir(parents=True, exist_ok=True)
            draft = copy.with_name(f".{copy.name}.{os.getpid()}.{threading.get_ident()}")
            draft.write_bytes(found.data)
            draft.replace(copy)
        return index

    def bring(self, wanted: Iterable[Wanted]) -> None:
        """Have files lie where they are wanted, downloaded unless a copy is here."""
        self.bucket.each(self._bring, [each for each in wanted if not each.target.exists()])

    def _bring(self, wanted: Wanted) -> None:
        copy = self._copy(wanted.name)
        with store_errors(self.address):
            if not copy.exists():
                self.bucket.download(wanted.name, copy, wanted.sha256)
            os.utime(copy)  # used: see ``forget``
            wanted.target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another thread was first
                os.link(copy, wanted.target)

    def keep(self, file: Path, name: str) -> None:
        """Keep a file that was uploaded as the copy of its object."""
        copy = self._copy(name)
        with store_errors(self.address):
            copy.parent.mkdir(parents=True, exist_ok=True)
            file.rename(copy)

    def forget(self, unused_seconds: float) -> None:
        """Remove copies that nobody used for so long before the newest use."""
        copies = [(file, file.stat().st_mtime) for file in self.address.cache.glob("changes/**/*") if file.is_file()]
        newest = max((used for _, used in copies), default=0.0)
        for file, used in copies:
            if newest - used > unused_seconds:
                file.unlink(missing_ok=True)
        for folder in sorted(self.address.cache.glob("changes/**/"), reverse=True):
            with suppress(OSError):  # not empty
                folder.rmdir()

    def _copy(self, name: str) -> Path:
        return self.address.cache / name
