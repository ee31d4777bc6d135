"""A folder that holds a lake: immutable files and one that is replaced. Each write is durable before it takes effect."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gpureport.store.storage import Found, Item, Listed, Result
from gpureport.values.errors import LakeError
from gpureport.values.runtime.stopping import abandoned_when_stopped

_LOCK = ".lock"
_THREADS = 4


@dataclass(frozen=True)
class Folder:
    """Implementation of ``Storage``. LakeError where the disk fails."""

    place: Path

    @property
    def folder(self) -> Path:
        """The lake's folder itself: there are no copies."""
        return self.place

    def get(self, name: str) -> Found | None:
        """See ``Storage``."""
        try:
            with (self.place / name).open("rb") as file:
                return Found(file.read(), {}, datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LakeError(f"{self.place / name} cannot be read ({error.strerror}); check the lake's folder") from error

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        """See ``Storage``. A lock makes concurrent writers wait a short time."""
        with self.errors(), locked(self.place / _LOCK):
            now = self.get(name)
            if (now and now.data) != (old and old.data):
                return False
            draft = self.place / f".{name}.draft"
            draft.write_bytes(data)
            sync(draft)
            draft.replace(self.place / name)
            sync(self.place)
            return True

    def add(self, files: Mapping[str, Path]) -> None:
        """See ``Storage``. The staged files are durable already; this method makes their new names and new folders durable."""
        with self.errors():
            changed = set[Path]()
            for name, staged in files.items():
                target = self.place / name
                changed |= {target.parent, *(each.parent for each in target.parents if not each.exists())}
                target.parent.mkdir(parents=True, exist_ok=True)
                os.utime(staged)  # ``delete_unused`` measures the file's age from here
                staged.replace(target)
            for folder in sorted(changed):
                sync(folder)

    def fetch(self, name: str) -> Path:
        """See ``Storage``."""
        return self.place / name

    def delete_copy(self, name: str) -> bool:
        """Return False: there are no copies."""
        return False

    def objects(self) -> Iterator[Listed]:
        """See ``Storage``. Symbolic links are omitted because they may lead out of the folder."""
        for folder, folders, names in os.walk(self.place):
            folders[:] = [each for each in folders if not each.startswith(".")]
            for path in (Path(folder, name) for name in names):
                with suppress(FileNotFoundError):
                    if not path.is_symlink():
                        at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                        yield Listed(path.relative_to(self.place).as_posix(), at)

    def delete(self, names: Iterable[str]) -> None:
        """See ``Storage``. Folders that become empty are deleted too."""
        with self.errors():
            for path in (self.place / name for name in names):
                path.unlink(missing_ok=True)
                for folder in path.parents:
                    if folder == self.place:
                        break
                    with suppress(OSError):  # not empty
                        folder.rmdir()

    def reached(self, name: str) -> tuple[str, dict[str, str]]:
        """See ``Storage``."""
        return str(self.place / name), {}

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """See ``Storage``."""
        with abandoned_when_stopped(ThreadPoolExecutor(_THREADS)) as pool:
            return list(pool.map(work, items))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn an error of the disk into a LakeError with a remedy."""
        try:
            yield
        except BlockingIOError:
            raise
        except PermissionError as error:
            raise LakeError(
                f"the lake at {self.place} cannot be written ({error.strerror}); give its folder write access"
            ) from error
        except OSError as error:
            why = error.strerror or error
            raise LakeError(f"writing to the lake at {self.place} failed: {why}; free space, then run again") from error


def sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, is_waiting: bool = True) -> Iterator[None]:
    """Hold an exclusive lock. BlockingIOError where another process holds it and ``is_waiting`` is false."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if is_waiting else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
