"""The objects under an address of an S3-compatible storage.

Conditional writes are asked for where a caller needs them; a storage that does not know them simply writes
(``gpureport.store.turn``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store

from gpureport.errors import StoreError
from gpureport.store.address import ObjectAddress, Reach
from gpureport.store.credentials import of_process, read_profile, settings_of
from gpureport.store.refusal import is_absent, store_errors

if TYPE_CHECKING:
    from obstore.store import ClientConfig

_CHUNK_BYTES = 8 << 20
"""Larger files go up in parts of this size."""
_PARTS_AT_ONCE = 2
_LONGEST_RETRY = timedelta(minutes=3)
_LONGEST_REQUEST = timedelta(minutes=10)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Found(NamedTuple):
    """An object's bytes, and the tag by which it can be replaced."""

    data: bytes
    etag: str


class Listed(NamedTuple):
    """An object of a list; its name is relative to the address, its time by the storage's clock."""

    name: str
    byte_count: int
    modified_at: datetime


@dataclass(frozen=True)
class Bucket:
    """The objects under an address; names are relative to it. Picklable. StoreError where the storage does not serve."""

    address: ObjectAddress

    def get(self, name: str) -> Found | None:
        """An object whole; None where there is none."""
        with store_errors(self.address):
            try:
                found = obstore.get(self._store, name)
                return Found(bytes(found.bytes()), found.meta["e_tag"] or "")
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

    def download(self, name: str, path: Path, sha256: str) -> None:
        """An object into a file, which appears whole; StoreError where it is not there, or not the bytes that were written."""
        with store_errors(self.address):
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as draft:
                try:
                    self._stream(name, draft, sha256)
                    Path(draft.name).replace(path)
                except BaseException:
                    Path(draft.name).unlink(missing_ok=True)
                    raise

    def _stream(self, name: str, target: IO[bytes], sha256: str) -> None:
        digest = hashlib.sha256()
        try:
            for chunk in obstore.get(self._store, name).stream():
                digest.update(chunk)
                target.write(chunk)
        except FileNotFoundError as error:
            if not is_absent(error):
                raise
            raise StoreError(f"{self.address}/{name} is gone; what was read is more than a day old, so run again") from None
        target.flush()
        if digest.hexdigest() != sha256:
            raise StoreError(f"{self.address}/{name} is not what was written there; restore it, or make that day again")

    def put(self, name: str, data: bytes, etag: str = "", is_new: bool = False) -> str | None:
        """Write an object; its tag. None, and nothing written, where it is not the one of ``etag``, or not new.

        A storage without conditional writes writes in any case.
        """
        with store_errors(self.address):
            try:
                if is_new:
                    done = obstore.put(self._store, name, data, mode="create")
                elif etag:
                    done = obstore.put(self._store, name, data, mode={"e_tag": etag})
                else:
                    done = obstore.put(self._store, name, data, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return None
            return done["e_tag"] or ""

    def upload(self, path: Path, name: str, content_type: str = "application/octet-stream") -> None:
        """Write a file's bytes as an object; it appears whole."""
        with store_errors(self.address):
            obstore.put(
                self._store,
                name,
                path,
                attributes={"Content-Type": content_type},
                chunk_size=_CHUNK_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def objects(self, prefix: str = "", after: str = "") -> Iterator[Listed]:
        """The objects in a folder, in order of their names, from behind ``after``."""
        with store_errors(self.address):
            for page in obstore.list(self._store, prefix or None, offset=after or None):
                for each in page:
                    yield Listed(each["path"], each["size"], each["last_modified"])

    def modified_at(self, name: str) -> datetime | None:
        """When an object was written, by the storage's clock; None where there is none."""
        with store_errors(self.address):
            try:
                return obstore.head(self._store, name)["last_modified"]
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        if chosen := list(names):
            with store_errors(self.address):
                obstore.delete(self._store, chosen)

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Do something with every item, several at a time; results in order."""
        with ThreadPoolExecutor(self.address.reach.max_concurrency) as pool:
            return list(pool.map(work, items))

    @cached_property
    def _store(self) -> S3Store:
        """Opened at the first use; not sent along with a pickle, for connections stay where they are."""
        return _open(self.address)

    def __getstate__(self) -> dict[str, object]:
        return {"address": self.address}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def _open(address: ObjectAddress) -> S3Store:
    reach = address.reach
    profile = read_profile(reach.environ)
    process = profile.get("credential_process") if "aws_access_key_id" not in profile else None
    provider = of_process(process, reach.environ) if process else None
    if provider:
        provider()  # what is wrong with it is said here; within a request it would be any refusal
    with store_errors(address):
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=settings_of(reach, profile),
            client_options=_client_options(reach),
            retry_config={"max_retries": reach.retries, "retry_timeout": _LONGEST_RETRY},
            credential_provider=provider,
        )


def _client_options(reach: Reach) -> ClientConfig:
    options: ClientConfig = {
        "allow_http": True,  # the endpoint's scheme decides
        "connect_timeout": timedelta(seconds=reach.connect_timeout_seconds),
        "read_timeout": timedelta(seconds=reach.read_timeout_seconds),
        "timeout": _LONGEST_REQUEST,
    }
    if reach.ca_file:
        options["root_certificate"] = Path(reach.ca_file).read_bytes()
    return options
