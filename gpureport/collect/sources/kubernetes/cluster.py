"""An API server, or a folder of its raw replies: versions that it serves, and its lists, page by page."""

from __future__ import annotations

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
from gpureport.values.runtime.stopping import left_when_stopped
from gpureport.values.window import parse_instant

_PAGE_OBJECTS = 500
"""Objects of a request."""


@dataclass(frozen=True)
class Page:
    """Objects of one kind as they came, and what the reply shows of the rest of the list."""

    kind: str
    api_version: str
    items: list[Object]
    continue_token: str = ""
    remaining_count: int = 0
    is_start: bool = True
    """The list begins here, perhaps again: what came of it before does not count."""
    is_consistent: bool = True
    """All of the list is of one instant."""

    @property
    def group(self) -> str:
        """API group, '' for the core."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


def as_page(reply: Any) -> Page | None:
    """The reply as a page, also where null stands for no items; None for what is no list."""
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
    """A list's JSON as dictionaries without what nobody reads (pods' managed fields, environments, volumes): most of a pod.

    A reply of another shape is decoded whole; orjson.JSONDecodeError for what is no JSON.
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
    """One file: its lists (several where kubectl mixed kinds), or the reply itself where it is no list."""

    file: Path
    pages: tuple[Page, ...]
    other: Object


def read_folder(folder: Path) -> Iterator[FileReply]:
    """Every JSON file of the folder and kubelet checkpoints, in order of name, one in memory at a time.

    SourceError where the folder is not there, holds none, or one of them is no JSON.
    """
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    files = sorted({*folder.glob("*.json"), *folder.glob(_CHECKPOINTS)})
    if not files:
        raise SourceError(f"{folder} holds no JSON; save replies there, as in: kubectl get --raw /api/v1/pods > pods.json")
    for file in files:
        reply = _parsed(file)
        pages = tuple(_pages(reply))
        yield FileReply(file, pages, {} if pages else mapping(reply))


def _parsed(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes())
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}); check the folder") from error
    except orjson.JSONDecodeError as error:
        raise SourceError(f"{file} is not JSON ({error}); it may have been cut off: save it again") from None


def _pages(reply: Any) -> Iterator[Page]:
    """The reply's list; kubectl's own ``List`` holds objects of any kind, each with its name."""
    page = as_page(reply)
    if page is None or page.kind:
        yield from [page] if page else []
        return
    kinds = dict.fromkeys((text(item.get("kind")), text(item.get("apiVersion"))) for item in page.items)
    for kind, version in kinds:
        chosen = [item for item in page.items if (item.get("kind"), item.get("apiVersion")) == (kind, version)]
        yield replace(page, kind=kind, api_version=version, items=chosen)


def read_observed_at(folder: Path) -> datetime:
    """Time of the saved replies; UsageError where ``observed_at.txt`` is not a time, SourceError without the folder."""
    file = folder / OBSERVED_AT
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    try:
        written = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise UsageError(
            f"{folder} does not say when it was saved; give --observed-at 2026-11-21T01:46:21Z, or write that into {OBSERVED_AT}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read ({error}); give --observed-at") from error
    return parse_instant(written)


RESTARTS = 2
"""Number of times that an expired list is read from its start again."""
_LONGEST_TAIL = 50
"""Number of times that the rest of a list may expire before the server is given up."""

_MOST_PAGES, _MOST_OBJECTS = 5_000, 160_000
"""Kubernetes itself is made for 150,000 pods."""

GetPage = Callable[[str], Page]
"""The page that a continue token leads to; '' is the first."""


def list_pages(get_page: GetPage) -> Iterator[Page]:
    """Every page of a list; where it expires, again from the start, at last with the server's inconsistent rest.

    A page with ``is_start`` begins the list, perhaps again. SourceError where the server never comes to an end.
    """
    expired_count, is_start, is_consistent = 0, True, True
    with left_when_stopped(ThreadPoolExecutor(1, "kubernetes-list")) as ahead:
        next_token, coming = "", ahead.submit(get_page, "")
        while True:
            try:
                page = coming.result()
            except ExpiredError as expired:
                expired_count += 1
                if expired_count > RESTARTS + _LONGEST_TAIL or (expired_count > RESTARTS and not expired.token):
                    raise
                is_start = expired_count <= RESTARTS
                is_consistent = is_start
                next_token = "" if is_start else expired.token
                coming = ahead.submit(get_page, next_token)
                continue
            if is_start:
                seen, object_count = set[str](), 0
            object_count += len(page.items)
            if token := page.continue_token:
                if token in seen:
                    raise SourceError("the server gives the same page again and again; check any proxy in between")
                seen.add(token)
                if len(seen) > _MOST_PAGES or object_count > _MOST_OBJECTS:
                    raise SourceError(
                        f"a list does not end after {len(seen):,} pages and {object_count:,} objects; check the server"
                    )
                next_token, coming = token, ahead.submit(get_page, token)
            yield replace(page, is_start=is_start, is_consistent=is_consistent)
            is_start = False
            if not token:
                return


class Cluster:
    """The lists of one API server; SourceError's family where it does not give a whole answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def url(self) -> str:
        """The server's address."""
        return self._connection.url

    @property
    def waited_seconds(self) -> float:
        """Time that went by between attempts: answers are by so much younger than the first request."""
        return sum(self._connection.waits)

    @cached_property
    def name(self) -> str:
        """The server and its version, as far as it shows."""
        try:
            return f"Kubernetes {text(mapping(self._connection.get('/version')).get('gitVersion'))}".strip()
        except NotListedError:
            return "Kubernetes"

    def pages(self, kind: Kind) -> Iterator[Page]:
        """Every object of a kind, page by page, in the first of its versions that is served; NotListedError where none is."""
        failure: SourceError = MissingError(f"the server has no {kind.name}")
        for prefix in self._prefixes(kind):
            try:
                yield from self._pages(prefix, kind)
                return
            except MissingError:
                continue
            except NotListedError:
                raise
            except SourceError as error:  # as where the webhook that converts to this version is down
                failure = error
        raise failure

    def first(self, kind: Kind) -> Page:
        """One object of a kind at most: whether it may be listed, and in which version; NotListedError where it may not."""
        for prefix in self._prefixes(kind):
            try:
                return self._first(prefix, kind)
            except MissingError:
                continue
        raise MissingError(f"the server has no {kind.name}")

    def versions(self, group: str) -> Sequence[str]:
        """The versions in which a group is served, the preferred one first; none where it is not. NotListedError if not shown."""
        return self._versions.get(group, [])

    def _pages(self, prefix: str, kind: Kind) -> Iterator[Page]:
        if kind == NAMESPACES and self._namespaces:
            yield self._own_namespaces(prefix)
        elif self._namespaces:
            yield from self._pages_by_namespace(prefix, kind)
        else:
            yield from self._list(f"{prefix}/{kind.resource}", kind)

    def _pages_by_namespace(self, prefix: str, kind: Kind) -> Iterator[Page]:
        """One list of several; a namespace's pages wait until they are whole, for a list that expires begins anew."""
        is_start = True
        for namespace in self._namespaces:
            whole: list[Page] = []
            for page in self._list(f"{prefix}/namespaces/{namespace}/{kind.resource}", kind):
                whole = [page] if page.is_start else [*whole, page]
            for page in whole:
                yield replace(page, is_start=is_start)
                is_start = False

    def _own_namespaces(self, prefix: str) -> Page:
        """The namespaces that are read, as far as they are there, each by itself: who may read one may rarely list all."""
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
        if page.continue_token and len(page.items) > 2 * size:  # a list in one page is a server's right, thick pages are not
            raise SourceError(f"{self.url}{path} answers with pages of {len(page.items):,} objects; {size:,} were requested")
        return page

    @property
    def _namespaces(self) -> tuple[str, ...]:
        return self._connection.settings.namespaces

    def _prefixes(self, kind: Kind) -> list[str]:
        """The path of each version of the kind's group in which it may be served, the best first."""
        if kind.system and kind.system not in self._connection.settings.systems:
            raise OutOfScopeError(f"left out, for kubernetes.systems does not name {kind.system}")
        if self._namespaces and not (kind.is_namespaced or kind == NAMESPACES):
            raise OutOfScopeError("left out, for it belongs to no namespace and kubernetes.namespaces is set")
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
        """The versions of each API group that is served, the server's preferred one first."""
        groups = objects(mapping(self._connection.get("/apis")).get("groups"))
        return {text(group.get("name")): _preferred_first(group) for group in groups}


def _preferred_first(group: Object) -> list[str]:
    preferred = text(mapping(group.get("preferredVersion")).get("version"))
    versions = [text(each.get("version")) for each in objects(group.get("versions"))]
    return list(dict.fromkeys(filter(None, [preferred, *versions])))


def open_cluster(settings: KubernetesSettings, environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Cluster:
    """The configured cluster; see ``access.open_client`` for what may be wrong with the configuration."""
    return Cluster(Connection(open_client(settings, environ, service_account), settings))
