"""Snapshot: the Kubernetes state of one instant into the lake, from an API server or from a folder of its replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.lake import open_lake
from gpureport.provenance import Listed, listed_table
from gpureport.sources.kubernetes import FileReply, Page, read_folder
from gpureport.state import KINDS, Kind, Observation, kubelet_rows
from gpureport.window import rfc3339, to_ms

AHEAD = timedelta(hours=1)
"""How far clocks may differ."""

_KIND_BY_NAME = {(kind.kind, kind.group): kind for kind in KINDS}


@dataclass(frozen=True)
class Snapshot:
    """What an observation brought."""

    observed_at: datetime
    row_counts: Mapping[str, int]
    listed: tuple[Listed, ...]


def import_folder(lake_path: Path, folder: Path, cluster: str, observed_at: datetime, now: datetime) -> Snapshot:
    """The replies of a folder into the lake; the same folder twice changes nothing.

    SourceError for a folder without lists that gpureport reads, for a file that is no JSON, and for a time yet to come.
    """
    if observed_at > now + AHEAD:
        raise SourceError(
            f"{folder} was saved at {rfc3339(observed_at)}, in the future; check the clock that stamped it, or ours"
        )
    observation = Observation(to_ms(observed_at))
    gathered = _Gathered(observation)
    for reply in read_folder(folder):
        gathered.take(reply)
    if not gathered.pages and not gathered.has_kubelet_files:
        raise SourceError(f"{folder} holds no list that gpureport reads; save pods, nodes, resourceclaims, resourceslices, …")
    return _write(lake_path, cluster, observed_at, observation, gathered.listed())


class _Gathered:
    """What the files of a folder brought, kind by kind."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._server = "Kubernetes"
        self.pages: dict[Kind, list[Page]] = {}
        self.has_kubelet_files = False

    def take(self, reply: FileReply) -> None:
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
        """Files are pages of one list, or the same list again; objects that came before are left out."""
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
            return Listed(kind.asked, self._server, reason="the folder holds no list of it")
        count = self._observation.count(kind)
        return Listed(kind.asked, self._server, pages[0].api_version, count, _lacking(pages, count))


def _lacking(pages: list[Page], count: int) -> tuple[str, ...]:
    """Whether pages are missing: each says how many objects come after it, and the last one that none do."""
    announced = max(page.remaining_count for page in pages)
    if announced > count:
        return (f"the folder lacks {announced - count} of {announced} objects of this list",)
    return () if any(not page.continue_token for page in pages) else ("the folder lacks the last page of this list",)


def _write(
    lake_path: Path, cluster: str, observed_at: datetime, observation: Observation, listed: tuple[Listed, ...]
) -> Snapshot:
    tables = observation.tables()
    with open_lake(lake_path, create=True).change() as change:
        change.observe(cluster, observed_at, {**tables, "source": listed_table(listed, observed_at)})
    return Snapshot(observed_at, {name: rows.num_rows for name, rows in tables.items()}, listed)
