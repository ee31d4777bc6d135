"""The objects under an address of an S3-compatible storage.

Conditional writes are asked for where a caller needs them; a storage that does not know them simply writes
(``gpureport.store.turn``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store

from gpureport.runtime.stopping import left_when_stopped
from gpureport.store.address import ObjectAddress, Reach
from gpureport.store.credentials import of_process, read_profile, settings_of
from gpureport.store.refusal import is_absent, store_errors
from gpureport.store.storage import Found, Item, Listed, Result
from gpureport.store.turn import in_turn, probe

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Credential

_CHUNK_BYTES = 8 << 20
"""Larger files go up in parts of this size."""
_PARTS_AT_ONCE = 2
_LONGEST_RETRY = timedelta(minutes=3)
_LONGEST_REQUEST = timedelta(minutes=10)


@dataclass(frozen=True)
class Bucket:
    """See ``Storage``; names are relative to the address. StoreError where the storage does not serve.

    Objects but one never change, so neither do their copies: several processes can use them, and they can go at any time.
    """

    address: ObjectAddress

    @property
    def place(self) -> ObjectAddress:
        """See ``Storage``."""
        return self.address

    @property
    def folder(self) -> Path:
        """Copies of what lies here, and of nothing else."""
        return self.address.cache

    def get(self, name: str) -> Found | None:
        """An object whole; None where there is none."""
        with store_errors(self.address):
            try:
                found = obstore.get(self._store, name)
                return Found(bytes(found.bytes()), found.meta["e_tag"] or "", found.meta["last_modified"])
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

    def knows_conditions(self) -> bool:
        """See ``Storage``; it is asked with an object of our own."""
        return probe(self)

    def replace(self, name: str, old: Found | None, data: bytes, is_conditional: bool) -> bool:
        """See ``Storage``."""
        if is_conditional:
            return self.put(name, data, etag=old.etag if old else "", is_new=old is None) is not None
        return in_turn(self, lambda: self._replace_unless_changed(name, old, data))

    def _replace_unless_changed(self, name: str, old: Found | None, data: bytes) -> bool:
        now = self.get(name)
        if (now and now.data) != (old and old.data):
            return False
        self.put(name, data)
        return True

    def add(self, files: Mapping[str, Path]) -> None:
        """See ``Storage``; the files stay as copies."""
        self.each(lambda item: self.upload(item[1], item[0]), files.items())
        with self.errors():
            for name, staged in files.items():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                staged.replace(self.folder / name)

    def bring(self, name: str) -> Path:
        """See ``Storage``; downloaded unless a copy is here."""
        copy = self.folder / name
        with self.errors():
            if copy.exists():
                os.utime(copy)  # used: see ``forget_unused``
                return copy
            copy.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=copy.parent, prefix=".", suffix=".part", delete=False) as draft:
                try:
                    for chunk in obstore.get(self._store, name).stream():
                        draft.write(chunk)
                    draft.flush()
                    Path(draft.name).replace(copy)
                except BaseException as error:
                    Path(draft.name).unlink(missing_ok=True)
                    if not (isinstance(error, FileNotFoundError) and is_absent(error)):
                        raise
        return copy

    def forget(self, name: str) -> bool:
        """See ``Storage``."""
        with self.errors():
            (self.folder / name).unlink(missing_ok=True)
        return True

    def forget_unused(self, unused_seconds: float) -> None:
        """Remove copies that nobody used for so long before the newest use."""
        copies = [(file, file.stat().st_mtime) for file in self.folder.glob("**/*.parquet")]
        newest = max((used for _, used in copies), default=0.0)
        for file, used in copies:
            if newest - used > unused_seconds:
                file.unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    file.parent.rmdir()

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

    def objects(self, prefix: str = "") -> Iterator[Listed]:
        """See ``Storage``; all, or those in a folder, in order of their names."""
        with store_errors(self.address):
            for page in obstore.list(self._store, prefix or None):
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
        with left_when_stopped(ThreadPoolExecutor(self.address.reach.max_concurrency)) as pool:
            return list(pool.map(work, items))

    def reached(self, name: str, is_conditional: bool) -> tuple[str, dict[str, str]]:
        """See ``Storage``; the options' names are those of the library that it shares with others."""
        settings, provider = _settings(self.address.reach)
        if provider:
            given = provider()
            settings |= {f"aws_{name}": str(given[name]) for name in ("access_key_id", "secret_access_key")}
            settings |= {"aws_session_token": str(given["token"])} if given.get("token") else {}
        writing = {"aws_conditional_put": "etag"} if is_conditional else {"aws_s3_allow_unsafe_rename": "true"}
        return str(self.address / name), {"allow_http": "true", **settings, **writing}

    def errors(self) -> AbstractContextManager[None]:
        """See ``Storage``."""
        return store_errors(self.address)

    @cached_property
    def _store(self) -> S3Store:
        """Opened at the first use; not sent along with a pickle, for connections stay where they are."""
        return _open(self.address)

    def __getstate__(self) -> dict[str, object]:
        return {"address": self.address}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def _settings(reach: Reach) -> tuple[dict[str, str], Callable[[], S3Credential] | None]:
    """The library's settings, and what tells credentials where a command prints them."""
    profile = read_profile(reach.environ)
    process = profile.get("credential_process") if "aws_access_key_id" not in profile else None
    return settings_of(reach, profile), of_process(process, reach.environ) if process else None


def _open(address: ObjectAddress) -> S3Store:
    reach = address.reach
    settings, provider = _settings(reach)
    if provider:
        provider()  # what is wrong with it is said here; within a request it would be any refusal
    with store_errors(address):
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=cast("S3Config", settings),
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
