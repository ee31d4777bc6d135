"""Snapshot: the Kubernetes state at one time into the lake, from an API server or a folder of its replies.

Objects are converted to rows page by page. The rows are kept in memory until all lists are complete, and then written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from gpureport.collect.sources.kubernetes import Cluster, FileReply, ForbiddenError, NotListedError, Page, read_folder
from gpureport.collect.sources.provenance import Listed, listed_table
from gpureport.collect.state import KINDS, Kind, Observation, kubelet_rows
from gpureport.collect.state.kinds import PODS
from gpureport.lake import Lake, open_lake
from gpureport.store import Place
from gpureport.values.errors import AuthError, SourceError
from gpureport.values.runtime.garbage import garbage_collection_off
from gpureport.values.window import CLOCKS_DIFFER, rfc3339, to_ms

_KIND_BY_NAME = {(kind.kind, kind.group): kind for kind in KINDS}


@dataclass(frozen=True)
class Snapshot:
    """Result of a snapshot."""

    observed_at: datetime
    origin: str
    """Address of the server, or path of the folder."""
    listed: tuple[Listed, ...]
    refused: tuple[str, ...] = ()
    """Kinds of objects that these credentials may not list."""
    row_counts: Mapping[str, int] = field(default_factory=dict)
    """Number of rows by table."""
    failure: SourceError | None = None
    """Error of the first unreadable list. The other lists are in the lake."""


def take_snapshot(place: Place, cluster: Cluster, cluster_name: str, now: datetime) -> Snapshot:
    """Write the state of a cluster to the lake, list by list. A list that is not served or not allowed is reported, not empty.

    AuthError where no list is allowed, SourceError where no list is complete. The lake is then unchanged.
    """
    lake = open_lake(place, create=True)
    server = cluster.name
    observed_at = now + timedelta(seconds=cluster.waited_seconds)  # time of the answers, not of the command's start
    observation = Observation(to_ms(observed_at))
    with garbage_collection_off():
        listed, refused, failures = [], [], list[SourceError]()
        for kind in KINDS:
            try:
                listed.append(_list(cluster, kind, observation))
            except AuthError:
                raise
            except SourceError as error:
                observation.discard(kind)
                error.with_traceback(None)  # its frames keep the last page in memory
                listed.append(Listed(kind.name, server, reason=str(error)))
                refused += [kind.name] if isinstance(error, ForbiddenError) else []
                failures += [] if isinstance(error, NotListedError) else [error]
        if all(each.reason for each in listed):
            if refused and not failures:
                raise AuthError(f"{cluster.url} lets these credentials list nothing; give them the rules in docs/operations.md")
            none = SourceError(f"{cluster.url} serves none of the lists that are read; check the address")
            raise next(iter(failures), none)
        if PODS.name in refused:
            failures.append(
                AuthError(f"{cluster.url} does not let these credentials list pods; give them the rules in docs/operations.md")
            )
        taken = Snapshot(observed_at, cluster.url, tuple(listed), tuple(refused), failure=next(iter(failures), None))
        return _write(lake, cluster_name, observation, taken)


def _list(cluster: Cluster, kind: Kind, observation: Observation) -> Listed:
    version, is_consistent = "", True
    for page in cluster.pages(kind):
        version = page.api_version
        if page.is_start:
            observation.begin(kind, version)
        observation.add(kind, page.items)
        is_consistent = page.is_consistent and (is_consistent or page.is_start)
    warnings = () if is_consistent else ("the list expired while it was read; its end was read at a later time",)
    return Listed(kind.name, cluster.name, version, observation.count(kind), warnings)


def import_folder(place: Place, folder: Path, cluster: str, observed_at: datetime, now: datetime) -> Snapshot:
    """Write the replies of a folder to the lake. A second import of the same folder changes nothing.

    SourceError for a folder without a known list, for a file that is not JSON, and for a time in the future.
    """
    if observed_at > now + CLOCKS_DIFFER:
        raise SourceError(f"{folder} was saved at {rfc3339(observed_at)}, in the future; check both clocks")
    lake = open_lake(place, create=True)
    observation = Observation(to_ms(observed_at))
    objects = _FolderObjects(observation)
    with garbage_collection_off():
        for reply in read_folder(folder):
            objects.take(reply)
    if not objects.pages and not objects.has_kubelet_files:
        raise SourceError(f"{folder} has no list that gpureport reads; save pods, nodes, resourceclaims, resourceslices, …")
    return _write(lake, cluster, observation, Snapshot(observed_at, str(folder), objects.listed()))


class _FolderObjects:
    """Objects from the files of a folder, by kind."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._server = "Kubernetes"
        self.pages: dict[Kind, list[Page]] = {}
        self._unread: dict[Kind, str] = {}
        self._misnamed: dict[str, str] = {}
        self.has_kubelet_files = False

    def take(self, reply: FileReply) -> None:
        if not any(reply.file.stem.startswith(page.kind.lower()) for page in reply.pages):
            self._misnamed[reply.file.stem] = reply.file.name
        for page in reply.pages:
            if kind := _KIND_BY_NAME.get((page.kind, page.group)):
                self._take_page(kind, page)
        if version := reply.other.get("gitVersion"):
            self._server = f"Kubernetes {version}"
        rows = kubelet_rows(reply.other)
        if rows is not None:
            self.has_kubelet_files = True
            self._observation.add_kubelet(rows)

    def _take_page(self, kind: Kind, page: Page) -> None:
        """Add a page. Files are pages of one list, or copies of it: objects that were added before are skipped."""
        if kind.versions and page.api_version.rpartition("/")[2] not in kind.versions:
            self._unread[kind] = page.api_version
            return
        if kind not in self.pages:
            self._observation.begin(kind, page.api_version)
        self._observation.add(kind, page.items)
        bare = Page(page.kind, page.api_version, [], page.continue_token, len(page.items) + page.remaining_count)
        self.pages.setdefault(kind, []).append(bare)

    def listed(self) -> tuple[Listed, ...]:
        return tuple(self._listed(kind) for kind in KINDS)

    def _listed(self, kind: Kind) -> Listed:
        pages = self.pages.get(kind)
        if not pages:
            unread = self._unread.get(kind)
            reason = f"the folder has it as {unread}, which is not read" if unread else "the folder has no list of it"
            file = self._misnamed.get(kind.name.partition(".")[0])
            warnings = (f"{file} has no {kind.kind}List; save that list there",) if file else ()
            return Listed(kind.name, self._server, warnings=warnings, reason=reason)
        count = self._observation.count(kind)
        return Listed(kind.name, self._server, pages[0].api_version, count, _missing_page_warnings(pages, count))


def _missing_page_warnings(pages: list[Page], count: int) -> tuple[str, ...]:
    """Return a warning where pages are missing. Each page has the number of objects after it; the last one has 0."""
    announced = max(page.remaining_count for page in pages)
    if announced > count:
        return (f"the folder lacks {announced - count} of {announced} objects of this list",)
    return () if any(not page.continue_token for page in pages) else ("the folder lacks the last page of this list",)


def _write(lake: Lake, cluster: str, observation: Observation, taken: Snapshot) -> Snapshot:
    tables = observation.tables()
    with lake.change() as change:
        change.observe(cluster, taken.observed_at, {**tables, "source": listed_table(taken.listed, taken.observed_at)})
    return replace(taken, row_counts={name: rows.num_rows for name, rows in tables.items()})
