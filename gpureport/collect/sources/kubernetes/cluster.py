"""An API server, or a folder of its raw replies: its API versions, and its lists page by page."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import orjson

from gpureport.collect.sources.kubernetes.connection import (
    SERVICE_ACCOUNT,
    Connection,
    Decode,
    ExpiredError,
    MissingError,
    NotListedError,
    OutOfScopeError,
    open_client,
)
from gpureport.collect.state import Kind
from gpureport.collect.state.fields import Object, mapping, objects, text, whole
from gpureport.collect.state.kinds import NAMESPACES
from gpureport.config import Kubernetes as KubernetesSettings
from gpureport.values.errors import SourceError, UsageError
from gpureport.values.runtime.stopping import abandoned_when_stopped
from gpureport.values.window import parse_instant

_PAGE_OBJECTS = 500
"""Objects per request."""


@dataclass(frozen=True)
class Page:
    """Raw objects of one kind, and the reply's information on the rest of the list."""

    kind: str
    api_version: str
    items: list[Object]
    continue_token: str = ""
    remaining_count: int = 0
    is_start: bool = True
    """Whether the list starts here. After a second start, earlier pages of the list are invalid."""
    is_consistent: bool = True
    """Whether all of the list is from one time."""

    @property
    def group(self) -> str:
        """API group; '' for the core group."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


def as_page(reply: Any) -> Page | None:
    """Return the reply as a page; items may be null. None where the reply is not a list."""
    found = mapping(reply)
    kind = text(found.get("kind"))
    if not kind.endswith("List") or "items" not in found:
        return None
    metadata = mapping(found.get("metadata"))
    return Page(
        kind=kind.removesuffix("List"),
        api_version=text(found.get("apiVersion")),
        items=objects(found["items"]),
        continue_token=text(metadata.get("continue")),
        remaining_count=whole(metadata.get("remainingItemCount")) or 0,
    )


class _Metadata(TypedDict, total=False):
    name: Any
    namespace: Any
    uid: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    labels: Any
    annotations: Any
    ownerReferences: Any


class _Container(TypedDict, total=False):
    name: Any
    resources: Any
    restartPolicy: Any


class _PodSpec(TypedDict, total=False):
    nodeName: Any
    nodeSelector: Any
    affinity: Any
    containers: list[_Container] | None
    initContainers: list[_Container] | None
    resources: Any
    overhead: Any
    resourceClaims: Any
    activeDeadlineSeconds: Any
    priority: Any
    priorityClassName: Any
    schedulerName: Any
    schedulingGroup: Any
    workloadRef: Any


class _Pod(TypedDict, total=False):
    metadata: _Metadata
    spec: _PodSpec | None
    status: Any


class _Managed(TypedDict, total=False):
    time: Any
    manager: Any
    subresource: Any


class _ObjectMetadata(_Metadata, total=False):
    managedFields: list[_Managed] | None


class _Object(TypedDict, total=False):
    kind: Any
    apiVersion: Any
    metadata: _ObjectMetadata
    spec: Any
    status: Any
    involvedObject: Any
    message: Any
    lastTimestamp: Any


Item = TypeVar("Item")


class _List(TypedDict, Generic[Item], total=False):
    kind: Any
    apiVersion: Any
    metadata: Any
    items: list[Item] | None


_PODS = msgspec.json.Decoder(_List[_Pod])
_OBJECTS = msgspec.json.Decoder(_List[_Object])


def decode_list(body: bytes | bytearray, resource: str) -> Any:
    """Decode a list's JSON to dictionaries without unused fields (managed fields, environments, volumes): most of a pod's size.

    A reply of another structure is decoded completely. orjson.JSONDecodeError where it is not JSON.
    """
    try:
        return (_PODS if resource == "pods" else _OBJECTS).decode(body)
    except msgspec.MsgspecError:
        return orjson.loads(body)


OBSERVED_AT = "observed_at.txt"
_CHECKPOINTS = "kubelet_internal_checkpoint*"


_NO_FOLDER = "{} is not a folder; give one with replies of the API server, such as pods.json"


@dataclass(frozen=True)
class FileReply:
    """One file: its lists (several where kubectl mixed kinds), or the reply itself where it is not a list."""

    file: Path
    pages: tuple[Page, ...]
    other: Object


def read_folder(folder: Path) -> Iterator[FileReply]:
    """Yield every JSON file and kubelet checkpoint of the folder by name, one in memory at a time.

    SourceError where the folder is missing or empty, or a file is not JSON.
    """
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    files = sorted({*folder.glob("*.json"), *folder.glob(_CHECKPOINTS)})
    if not files:
        raise SourceError(f"{folder} has no JSON; save replies there, as in: kubectl get --raw /api/v1/pods > pods.json")
    for file in files:
        reply = _parsed(file)
        pages = tuple(_pages(reply))
        yield FileReply(file, pages, {} if pages else mapping(reply))


def _parsed(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes().removeprefix(BOM_UTF8))
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}); check the folder") from error
    except orjson.JSONDecodeError as error:
        raise SourceError(f"{file} is not JSON ({error}); it may have been cut off: save it again") from None


def _pages(reply: Any) -> Iterator[Page]:
    """Yield the reply's list. kubectl's own ``List`` has objects of any kind: one page per kind and version."""
    page = as_page(reply)
    if page is None or page.kind:
        yield from [page] if page else []
        return
    kinds = dict.fromkeys((text(item.get("kind")), text(item.get("apiVersion"))) for item in page.items)
    for kind, version in kinds:
        chosen = [item for item in page.items if (item.get("kind"), item.get("apiVersion")) == (kind, version)]
        yield replace(page, kind=kind, api_version=version, items=chosen)


def read_observed_at(folder: Path) -> datetime:
    """Return the time of the saved replies. UsageError where ``observed_at.txt`` has no time; SourceError without the folder."""
    file = folder / OBSERVED_AT
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    try:
        written = file.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        raise UsageError(
            f"{folder} has no time of its snapshot; give --observed-at 2026-11-21T01:46:21Z, or write that into {OBSERVED_AT}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read ({error}); give --observed-at") from error
    return parse_instant(written)


RESTARTS = 2
"""Number of times that an expired list is read again from its start."""
_LONGEST_TAIL = 50
"""Number of times that the rest of a list may expire before the read fails."""

_MOST_PAGES, _MOST_OBJECTS = 5_000, 160_000
"""Kubernetes itself is designed for 150,000 pods."""

GetPage = Callable[[str], Page]
"""Function that returns the page of a continue token; '' is the first page."""


def list_pages(get_page: GetPage) -> Iterator[Page]:
    """Yield every page of a list. An expired list is read again, and in the end with the server's inconsistent rest.

    A page with ``is_start`` starts the list, also a second time. SourceError where the list does not end.
    """
    expired_count, is_start, is_consistent = 0, True, True
    with abandoned_when_stopped(ThreadPoolExecutor(1, "kubernetes-list")) as prefetcher:
        next_token, next_reply = "", prefetcher.submit(get_page, "")
        while True:
            try:
                page = next_reply.result()
            except ExpiredError as expired:
                expired_count += 1
                if expired_count > RESTARTS + _LONGEST_TAIL or (expired_count > RESTARTS and not expired.token):
                    raise
                is_start = expired_count <= RESTARTS
                is_consistent = is_start
                next_token = "" if is_start else expired.token
                next_reply = prefetcher.submit(get_page, next_token)
                continue
            if is_start:
                seen, object_count = set[str](), 0
            object_count += len(page.items)
            if token := page.continue_token:
                if token in seen:
                    raise SourceError("the server returns the same page again and again; check any proxy in between")
                seen.add(token)
                if len(seen) > _MOST_PAGES or object_count > _MOST_OBJECTS:
                    raise SourceError(
                        f"a list does not end after {len(seen):,} pages and {object_count:,} objects; check the server"
                    )
                next_token, next_reply = token, prefetcher.submit(get_page, token)
            yield replace(page, is_start=is_start, is_consistent=is_consistent)
            is_start = False
            if not token:
                return


class Cluster:
    """The lists of one API server. SourceError or a subclass where an answer is incomplete."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._connection.url

    @property
    def waited_seconds(self) -> float:
        """Seconds between attempts: the answers are later than the first request by this time."""
        return sum(self._connection.waits)

    @cached_property
    def name(self) -> str:
        """Name of the server with its version, if known."""
        try:
            return f"Kubernetes {text(mapping(self._connection.get('/version')).get('gitVersion'))}".strip()
        except NotListedError:
            return "Kubernetes"

    def pages(self, kind: Kind) -> Iterator[Page]:
        """Yield all objects of a kind by page, in its first version that is served. NotListedError where none is."""
        failure: SourceError = MissingError(f"the server has no {kind.name}")
        for prefix in self._prefixes(kind):
            try:
                yield from self._pages(prefix, kind)
                return
            except MissingError:
                continue
            except NotListedError:
                raise
            except SourceError as error:  # for example, where the webhook that converts to this version is down
                failure = error
        raise failure

    def first(self, kind: Kind) -> Page:
        """Return at most one object of a kind, to test the access and version. NotListedError where access is denied."""
        for prefix in self._prefixes(kind):
            try:
                return self._first(prefix, kind)
            except MissingError:
                continue
        raise MissingError(f"the server has no {kind.name}")

    def versions(self, group: str) -> Sequence[str]:
        """Return the served versions of a group, the preferred first; none where it is unknown. NotListedError if not allowed."""
        return self._versions.get(group, [])

    def _pages(self, prefix: str, kind: Kind) -> Iterator[Page]:
        if kind == NAMESPACES and self._namespaces:
            yield self._own_namespaces(prefix)
        elif self._namespaces:
            yield from self._pages_by_namespace(prefix, kind)
        else:
            yield from self._list(f"{prefix}/{kind.resource}", kind)

    def _pages_by_namespace(self, prefix: str, kind: Kind) -> Iterator[Page]:
        """Yield one list from several. A namespace's pages wait until all are read, because a list that expires starts again."""
        is_start = True
        for namespace in self._namespaces:
            whole: list[Page] = []
            for page in self._list(f"{prefix}/namespaces/{namespace}/{kind.resource}", kind):
                whole = [page] if page.is_start else [*whole, page]
            for page in whole:
                yield replace(page, is_start=is_start)
                is_start = False

    def _own_namespaces(self, prefix: str) -> Page:
        """Return the configured namespaces that exist, read one by one: access to one rarely includes a list of all."""
        found = list[Object]()
        for namespace in self._namespaces:
            with suppress(MissingError):
                found.append(mapping(self._connection.get(f"{prefix}/namespaces/{namespace}")))
        if not found:
            raise MissingError("the server has none of kubernetes.namespaces")
        return Page(NAMESPACES.kind, "v1", found)

    def _list(self, path: str, kind: Kind) -> Iterator[Page]:
        yield from list_pages(partial(self._get_page, path, partial(decode_list, resource=kind.resource), fields=kind.fields))

    def _first(self, prefix: str, kind: Kind) -> Page:
        if not self._namespaces:
            path = f"{prefix}/{kind.resource}"
        elif kind == NAMESPACES:
            return self._own_namespaces(prefix)
        else:
            path = f"{prefix}/namespaces/{self._namespaces[0]}/{kind.resource}"
        return self._get_page(path, partial(decode_list, resource=kind.resource), "", limit=1)

    def _get_page(self, path: str, decode: Decode, token: str, limit: int = 0, fields: str = "") -> Page:
        size = limit or _PAGE_OBJECTS
        query: dict[str, str | int] = {"limit": size, **({"fieldSelector": fields} if fields else {})}
        if token:
            query["continue"] = token
        page = as_page(self._connection.get(path, decode, **query))
        if page is None:
            raise SourceError(f"{self.url}{path} did not answer with a list; is this the address of an API server?")
        if page.continue_token and len(page.items) > 2 * size:  # one page for the whole list is allowed, oversized pages are not
            raise SourceError(f"{self.url}{path} answers with pages of {len(page.items):,} objects; {size:,} were requested")
        return page

    @property
    def _namespaces(self) -> tuple[str, ...]:
        return self._connection.settings.namespaces

    def _prefixes(self, kind: Kind) -> list[str]:
        """Return the path of each served version of the kind's group, the best first."""
        if kind.system and kind.system not in self._connection.settings.systems:
            raise OutOfScopeError(f"left out, because kubernetes.systems does not name {kind.system}")
        if self._namespaces and not (kind.is_namespaced or kind == NAMESPACES):
            raise OutOfScopeError("left out, because it belongs to no namespace and kubernetes.namespaces is set")
        if not kind.group:
            return ["/api/v1"]
        served = self._versions.get(kind.group)
        if not served:
            raise MissingError(f"the server does not serve {kind.group}")
        chosen = [version for version in kind.versions if version in served] if kind.versions else served
        if not chosen:
            raise MissingError(f"the server serves {kind.group} only as {', '.join(served)}, which is not read")
        return [f"/apis/{kind.group}/{version}" for version in chosen]

    @cached_property
    def _versions(self) -> Mapping[str, list[str]]:
        """Served versions of each API group, the server's preferred one first."""
        groups = objects(mapping(self._connection.get("/apis")).get("groups"))
        return {text(group.get("name")): _preferred_first(group) for group in groups}


def _preferred_first(group: Object) -> list[str]:
    preferred = text(mapping(group.get("preferredVersion")).get("version"))
    versions = [text(each.get("version")) for each in objects(group.get("versions"))]
    return list(dict.fromkeys(filter(None, [preferred, *versions])))


def open_cluster(settings: KubernetesSettings, environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Cluster:
    """Return the configured cluster. ``open_client`` lists the errors of the configuration."""
    return Cluster(Connection(open_client(settings, environ, service_account), settings))
