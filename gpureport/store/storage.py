"""Places of a lake or a report, a folder or ``s3://BUCKET/PREFIX`` (``gs://``, ``az://``): one interface, and its errors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from gpureport.values.errors import StoreError, UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
SCHEMES = ("s3", "gs", "az")
_PREFIX = re.compile(r"[^\x00-\x1f\x7f\\?#@]*")


@dataclass(frozen=True)
class Reach:
    """Connection to the storage; '' leaves the setting to the environment and to AWS' shared files."""

    endpoint_url: str = ""
    ca_file: str = ""
    read_timeout_seconds: float = 60.0
    retries: int = 4
    cache: Path = Path(".cache/gpureport")
    """Folder for copies of objects."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False, hash=False)
    """Sources of credentials (``gpureport.store.credentials``)."""


@dataclass(frozen=True)
class ObjectAddress:
    """A prefix of a bucket, or of a container of Azure; as text ``s3://bucket/prefix``."""

    bucket: str
    prefix: str = ""
    reach: Reach = Reach()
    scheme: str = "s3"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    def __truediv__(self, name: str) -> ObjectAddress:
        return replace(self, prefix=f"{self.prefix}/{name}".lstrip("/"))

    @property
    def cache(self) -> Path:
        """The folder for copies of what is stored here, and of nothing else."""
        where = hashlib.sha256(f"{self.reach.endpoint_url}\n{self}".encode()).hexdigest()[:16]
        return self.reach.cache / where


Place = Path | ObjectAddress


def parse_place(text: str | Path | ObjectAddress) -> Place:
    """A folder, or the address that a text with a scheme means; UsageError for another scheme and for no address.

    What is wrong is not repeated where it may hold a secret.
    """
    scheme = _SCHEME.fullmatch(text) if isinstance(text, str) else None
    if scheme is None:
        return Path(text) if isinstance(text, str) else text
    if scheme[1].lower() not in SCHEMES:
        raise UsageError(
            f"{scheme[1]}:// is nothing that gpureport reads or writes; give a folder, or s3://BUCKET/PREFIX (gs://, az://)"
        )
    bucket, _, prefix = scheme[2].partition("/")
    parts = [part for part in prefix.split("/") if part]
    if not _BUCKET.fullmatch(bucket) or not _PREFIX.fullmatch(prefix) or {".", ".."}.intersection(parts):
        raise UsageError(
            "an address on object storage is s3://BUCKET/PREFIX (gs://, az://), of plain characters and without credentials; "
            "those come from the environment, a profile or a role"
        )
    return ObjectAddress(bucket, "/".join(parts), scheme=scheme[1].lower())


Item = TypeVar("Item")
Result = TypeVar("Result")


class Found(NamedTuple):
    """An object's bytes, the tags by which it can be replaced, and when it was written by the storage's clock."""

    data: bytes
    tags: Mapping[str, str]
    modified_at: datetime


class Listed(NamedTuple):
    """An object of a list; its name is relative to the place, its time by the storage's clock."""

    name: str
    byte_count: int
    modified_at: datetime


class Storage(Protocol):
    """Named objects at a place. GpureportError, one sentence, where it does not serve. Picklable."""

    @property
    def place(self) -> Place:
        """Place of the storage."""

    @property
    def folder(self) -> Path:
        """The folder of this machine below which ``bring`` puts everything."""

    def get(self, name: str) -> Found | None:
        """An object whole; None where there is none."""

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        """Write an object in place of what was read of it; False, and nothing written, where it is another by now."""

    def add(self, files: Mapping[str, Path]) -> None:
        """Move files of ``folder`` in as objects of these new names; all are durable when it returns."""

    def bring(self, name: str) -> Path:
        """An object as a file of ``folder``; it may not be there."""

    def forget(self, name: str) -> bool:
        """Remove the copy of an object; False where there is none, for ``bring`` names the object itself."""

    def objects(self) -> Iterator[Listed]:
        """Everything that is there."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Do something with every item, several at a time; results in order."""

    def reached(self, name: str) -> tuple[str, dict[str, str]]:
        """Address and options of another library for what is below a name."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn what is refused in the block into a sentence."""


_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]+)")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_NO_CONNECTION = re.compile(r"HTTP error|kind: (Connect|Timeout|Request|Interrupted|Decode)")


@contextmanager
def store_errors(address: ObjectAddress) -> Iterator[None]:
    """Turn what the storage, or the disk under its copies, refuses into a StoreError."""
    try:
        yield
    except BaseError as error:
        raise StoreError(_sentence(address, error)) from None
    except OSError as error:
        if error.errno is None:  # the library's, of an object
            raise StoreError(_sentence(address, error)) from None
        raise StoreError(_of_disk(address, error)) from error


def is_absent(error: FileNotFoundError) -> bool:
    """Whether there is no such object, in a bucket that there is; a file that is missing is another matter."""
    return error.errno is None and not any(code in str(error) for code in _NO_BUCKET)


def no_conditions(place: Place) -> StoreError:
    """Of a storage on which two writers cannot know that they are two."""
    return StoreError(
        f"the storage of {place} has no conditional writes, so a change could be lost; keep the lake on one that has them"
    )


def _sentence(address: ObjectAddress, error: Exception) -> str:
    where = address.reach.endpoint_url or f"the endpoint of {address.scheme}://"
    text = str(error)
    code = found[1] if (found := _CODE.search(text)) else ""
    status = found[1].strip() if (found := _STATUS.search(text)) else ""
    if code in _NO_BUCKET:
        return f"{where} has no bucket {address.bucket}; make it, or correct the address {address}"
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status[:3] in ("401", "403"):
        return (
            f"{where} refuses these credentials for {address} ({code or status or 'denied'}); check them, and that they may "
            "list, get, put and delete there"
        )
    if status:
        return f"{where} answered {status}{f' ({code})' if code else ''} for {address}; check the storage, then run again"
    if _NO_CONNECTION.search(text):
        why = "no answer in time" if "Timeout" in text else "no connection"
        return f"cannot reach {where} for {address} ({why}); check object_store.endpoint_url and the network, then run again"
    return f"{address} cannot be read or written ({text.splitlines()[0][:200]}); check object_store and the environment"


def _of_disk(address: ObjectAddress, error: OSError) -> str:
    return (
        f"copies of {address} cannot be kept in {address.reach.cache} ({error.strerror or error}); "
        "free space there, or set XDG_CACHE_HOME to another folder"
    )
