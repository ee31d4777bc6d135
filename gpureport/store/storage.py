"""Places of a lake or a report: a folder or ``s3://BUCKET/PREFIX`` (``gs://``, ``az://``). One interface and its errors."""

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
    """Connection settings of the storage. '' leaves a setting to the environment and to the AWS shared files."""

    endpoint_url: str = ""
    ca_file: str = ""
    read_timeout_seconds: float = 60.0
    retries: int = 4
    cache: Path = Path(".cache/gpureport")
    """Folder for local copies of objects."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False, hash=False)
    """Environment variables for credentials (``gpureport.store.credentials``)."""


@dataclass(frozen=True)
class ObjectAddress:
    """A prefix of a bucket, or of an Azure container; as text ``s3://bucket/prefix``."""

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
        """The folder for local copies of this place's objects alone."""
        where = hashlib.sha256(f"{self.reach.endpoint_url}\n{self}".encode()).hexdigest()[:16]
        return self.reach.cache / where


Place = Path | ObjectAddress


def parse_place(text: str | Path | ObjectAddress) -> Place:
    """Return the folder or address of a text. UsageError for an unknown scheme and for an invalid address.

    The error does not quote an address, because it may hold a secret.
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
    """An object's bytes, its tags for a conditional replacement, and its write time by the storage's clock."""

    data: bytes
    tags: Mapping[str, str]
    modified_at: datetime


class Listed(NamedTuple):
    """An object in a list: its name relative to the place, and its write time by the storage's clock."""

    name: str
    modified_at: datetime


class Storage(Protocol):
    """Named objects at a place. A failure raises a GpureportError with one sentence. Picklable."""

    @property
    def place(self) -> Place:
        """Folder or address of the storage."""

    @property
    def folder(self) -> Path:
        """The local folder with the files that ``fetch`` returns."""

    def get(self, name: str) -> Found | None:
        """Return an object as a whole; None where there is none."""

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        """Write an object in place of ``old``. Return False, with nothing written, where the object has changed since."""

    def add(self, files: Mapping[str, Path]) -> None:
        """Move local files of ``folder`` in as objects with these new names. All are durable on return."""

    def fetch(self, name: str) -> Path:
        """Return the path of an object as a local file. The file is missing where the object does not exist."""

    def delete_copy(self, name: str) -> bool:
        """Delete the local copy of an object. Return False where there is none because ``fetch`` returns the object itself."""

    def objects(self) -> Iterator[Listed]:
        """List all objects."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. A missing object is not an error."""

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Call ``work`` for every item, several at a time. Return the results in the order of the items."""

    def reached(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the address of a name, and the options with which another library reads it."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn errors of the storage in the block into a GpureportError."""


_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]+)")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_NO_CONNECTION = re.compile(r"HTTP error|kind: (Connect|Timeout|Request|Interrupted|Decode)")


@contextmanager
def store_errors(address: ObjectAddress) -> Iterator[None]:
    """Turn errors of the storage, or of the disk with local copies, into a StoreError."""
    try:
        yield
    except BaseError as error:
        raise StoreError(_sentence(address, error)) from None
    except OSError as error:
        if error.errno is None:  # an object's error from the library, not the disk's
            raise StoreError(_sentence(address, error)) from None
        raise StoreError(_disk_error(address, error)) from error


def is_absent(error: FileNotFoundError) -> bool:
    """Whether the object is missing in an existing bucket. A missing bucket or local file is another error."""
    return error.errno is None and not any(code in str(error) for code in _NO_BUCKET)


def no_conditions(place: Place) -> StoreError:
    """Return the StoreError for a storage that cannot detect two concurrent writers."""
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


def _disk_error(address: ObjectAddress, error: OSError) -> str:
    return (
        f"copies of {address} cannot be kept in {address.reach.cache} ({error.strerror or error}); "
        "free space there, or set XDG_CACHE_HOME to another folder"
    )
