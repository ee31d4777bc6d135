"""Object storage: the objects under an address of S3, Google Cloud Storage or Azure Blob Storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store

from gpureport.store.credentials import of_process, read_profile, settings_of
from gpureport.store.storage import Found, Item, Listed, ObjectAddress, Reach, Result, is_absent, no_conditions, store_errors
from gpureport.values.errors import StoreError
from gpureport.values.runtime.stopping import abandoned_when_stopped

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion
    from obstore.store import ClientConfig, S3Config, S3Credential

_CHUNK_BYTES = 8 << 20
"""Part size for uploads of larger files."""
_PARTS_AT_ONCE, _FILES_AT_ONCE = 2, 8
_CONNECTING, _LONGEST_RETRY, _LONGEST_REQUEST = timedelta(seconds=10), timedelta(minutes=3), timedelta(minutes=10)
_MOST_BYTES, _MOST_OBJECTS, _PAGE_OBJECTS = 64 << 20, 5_000_000, 1000  # per whole read, per list, per page
_STORES = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_ENDPOINTS = {"gs": "google_base_url", "az": "azure_endpoint"}


@dataclass(frozen=True)
class Bucket:
    """Implementation of ``Storage``; names are relative to the address. StoreError where the storage fails.

    All objects but the root are immutable: several processes share the local copies, which can be deleted at any time.
    """

    place: ObjectAddress

    @property
    def folder(self) -> Path:
        """The folder for local copies of this place's objects alone."""
        return self.place.cache

    def get(self, name: str) -> Found | None:
        """Return an object as a whole; None where there is none."""
        with store_errors(self.place):
            try:
                found = obstore.get(self._store, name)
                if found.meta["size"] > _MOST_BYTES:
                    raise StoreError(f"{self.place / name} has {found.meta['size']:,} bytes and is nothing that gpureport wrote")
                tags = {"e_tag": found.meta["e_tag"], "version": found.meta["version"]}
                data = bytes(found.bytes())
                return Found(data, {name: tag for name, tag in tags.items() if tag}, found.meta["last_modified"])
            except FileNotFoundError as error:
                if is_absent(error):
                    return None
                raise

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        """See ``Storage``. StoreError where the storage has no conditional writes. The first object written tests that."""
        if old is not None:
            return self.put(name, data, cast("UpdateVersion", old.tags))
        is_written = self.put(name, data, "create")
        if is_written and (self.put(name, data, "create") or self.put(name, data, {"e_tag": f'"{"0" * 32}"', "version": "1"})):
            self.delete([name])
            raise no_conditions(self.place)
        return is_written

    def add(self, files: Mapping[str, Path]) -> None:
        """See ``Storage``. The files stay as local copies."""
        self.each(lambda item: self.upload(item[1], item[0]), files.items())
        with self.errors():
            for name, staged in files.items():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                staged.replace(self.folder / name)

    def fetch(self, name: str) -> Path:
        """See ``Storage``. The object is downloaded unless there is a local copy."""
        copy = self.folder / name
        with self.errors():
            if copy.exists():
                os.utime(copy)  # time of the last use, for ``delete_unused_copies``
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

    def delete_copy(self, name: str) -> bool:
        """See ``Storage``."""
        with self.errors():
            (self.folder / name).unlink(missing_ok=True)
        return True

    def delete_unused_copies(self, unused_seconds: float) -> None:
        """Delete local copies whose last use is this many seconds before the newest use."""
        copies = [(file, file.stat().st_mtime) for file in self.folder.glob("**/*.parquet")]
        newest = max((used for _, used in copies), default=0.0)
        for file, used in copies:
            if newest - used > unused_seconds:
                file.unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    file.parent.rmdir()

    def put(self, name: str, data: bytes, mode: PutMode = "overwrite") -> bool:
        """Write an object. Return False, without a write, where the tags in ``mode`` differ or the object already exists."""
        with store_errors(self.place):
            try:
                obstore.put(self._store, name, data, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def upload(self, path: Path, name: str, content_type: str = "application/octet-stream") -> None:
        """Upload a file as an object, which appears only when complete."""
        with store_errors(self.place):
            obstore.put(
                self._store,
                name,
                path,
                attributes={"Content-Type": content_type},
                chunk_size=_CHUNK_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def objects(self, prefix: str = "") -> Iterator[Listed]:
        """See ``Storage``. List all objects, or those under a prefix, sorted by name."""
        with store_errors(self.place):
            for number, page in enumerate(obstore.list(self._store, prefix or None, chunk_size=_PAGE_OBJECTS)):
                if number * _PAGE_OBJECTS > _MOST_OBJECTS:
                    raise StoreError(f"the list of {self.place} does not end; check the storage")
                for each in page:
                    yield Listed(each["path"], each["last_modified"])

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. A missing object is not an error."""
        chosen = list(names)
        with store_errors(self.place):
            for each in [chosen] if self.place.scheme == "s3" and chosen else chosen:  # S3 deletes in bulk, without errors
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, each)

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Call ``work`` for every item, several at a time. Return the results in the order of the items."""
        with abandoned_when_stopped(ThreadPoolExecutor(_FILES_AT_ONCE)) as pool:
            return list(pool.map(work, items))

    def reached(self, name: str) -> tuple[str, dict[str, str]]:
        """See ``Storage``. The option names are those of the Rust library object_store, which deltalake shares."""
        settings, provider = _settings(self.place)
        if provider:
            credentials = provider()
            settings |= {f"aws_{name}": str(credentials[name]) for name in ("access_key_id", "secret_access_key")}
            settings |= {"aws_session_token": str(credentials["token"])} if credentials.get("token") else {}
        return str(self.place / name), {"allow_http": "true", "aws_conditional_put": "etag", **settings}

    def errors(self) -> AbstractContextManager[None]:
        """See ``Storage``."""
        return store_errors(self.place)

    @cached_property
    def _store(self) -> S3Store | GCSStore | AzureStore:
        """The store, opened at first use. Pickles leave it out because connections cannot be pickled."""
        return _open(self.place)

    def __getstate__(self) -> dict[str, object]:
        return {"place": self.place}


def _settings(address: ObjectAddress) -> tuple[dict[str, str], Callable[[], S3Credential] | None]:
    """Return the library's settings and the credential_process provider of S3. For gs and az the library finds credentials."""
    reach = address.reach
    if name := _ENDPOINTS.get(address.scheme):
        return {name: reach.endpoint_url} if reach.endpoint_url else {}, None
    profile = read_profile(reach.environ)
    process = profile.get("credential_process") if "aws_access_key_id" not in profile else None
    return settings_of(reach, profile), of_process(process, reach.environ) if process else None


def _open(address: ObjectAddress) -> S3Store | GCSStore | AzureStore:
    reach = address.reach
    settings, provider = _settings(address)
    if provider:
        provider()  # its errors are reported here; within a request they would look like any refusal
    with store_errors(address):
        return cast("type[S3Store]", _STORES[address.scheme])(
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
        "connect_timeout": _CONNECTING,
        "read_timeout": timedelta(seconds=reach.read_timeout_seconds),
        "timeout": _LONGEST_REQUEST,
    }
    if reach.ca_file:
        options["root_certificate"] = Path(reach.ca_file).read_bytes()
    return options
