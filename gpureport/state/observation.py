"""One look at a cluster: raw objects in, page by page, the rows of every state table out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from gpureport.state import kinds
from gpureport.state.claims import claim_consumer_rows, claim_device_rows, claim_row
from gpureport.state.devices import Pools, device_class_row
from gpureport.state.fields import Object, Row, mapping, text
from gpureport.state.kinds import Kind
from gpureport.state.koordinator import annotated_device_rows, koordinator_device_rows
from gpureport.state.kubelet import completed
from gpureport.state.nodes import kept_labels, namespace_row, node_row
from gpureport.state.pods import container_rows, pod_row
from gpureport.state.quota_terms import quota_term_rows
from gpureport.state.quotas import quota_row
from gpureport.state.rows import Rows
from gpureport.state.workloads import flavor_labels, workload_row
from gpureport.tables.state import STATE_TABLES

Shaper = Callable[[Object], Iterable[tuple[str, Row]]]
_TABLE_BY_NAME = {table.name: table for table in STATE_TABLES}


class Observation:
    """The state of a cluster at one instant, gathered list by list."""

    def __init__(self, observed_at_ms: int) -> None:
        self._observed_at_ms = observed_at_ms
        self._lists: dict[str, _List] = {}
        self._kubelet: list[Row] = []
        self._flavor_labels: set[str] = set()

    def begin(self, kind: Kind, api_version: str) -> None:
        """A list of a kind starts; if it started before, what came of it is forgotten."""
        self._lists[kind.asked] = _List(kind, api_version, self._observed_at_ms)

    def forget(self, kind: Kind) -> None:
        """What came of a list that is not whole; its memory is given back, for the next list may be as large."""
        self._lists.pop(kind.asked, None)
        pa.default_memory_pool().release_unused()

    def add(self, kind: Kind, items: Iterable[Object]) -> None:
        """Objects of a list that has begun; one that came before (by uid) is left out."""
        objects = list(items)
        if kind == kinds.FLAVORS:
            self._flavor_labels.update(*(flavor_labels(each) for each in objects))
        self._lists[kind.asked].add(objects)

    def add_kubelet(self, rows: Iterable[Row]) -> None:
        """Rows of a checkpoint file or of a PodResources dump."""
        self._kubelet += rows

    def count(self, kind: Kind) -> int:
        """How many objects of a kind came."""
        return self._lists[kind.asked].count if kind.asked in self._lists else 0

    def tables(self) -> dict[str, pa.Table]:
        """The rows of every table that has any, in the order of its grain."""
        found: dict[str, list[pa.Table]] = {}
        for each in self._lists.values():
            for name, rows in each.finished(self._flavor_labels):
                found.setdefault(name, []).append(rows)
        if self._kubelet:
            found.setdefault("pod_device", []).append(self._completed(found))
        return {name: _sorted(name, parts) for name, parts in found.items() if any(part.num_rows for part in parts)}

    def _completed(self, found: dict[str, list[pa.Table]]) -> pa.Table:
        pods = [pod for part in found.get("pod", ()) for pod in part.select(_POD_COLUMNS).to_pylist()]
        known = [row for part in found.get("pod_device", ()) for row in part.select(["source", "pod_uid"]).to_pylist()]
        rows = Rows(_TABLE_BY_NAME["pod_device"], self._observed_at_ms)
        for row in completed(self._kubelet, pods, known):
            rows.add(row)
        return rows.arrow()


_POD_COLUMNS = ["namespace", "pod", "pod_uid", "node_name"]


class _List:
    """What came of one kind."""

    def __init__(self, kind: Kind, api_version: str, observed_at_ms: int) -> None:
        self._observed_at_ms = observed_at_ms
        self._pools = Pools()
        self._nodes: list[Row] = []
        deferred = {kinds.SLICES: self._take_slice, kinds.NODES: self._take_node}
        self._shaper = deferred.get(kind) or _shaper(kind, api_version)
        self._rows: dict[str, Rows] = {}
        self._uids: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._uids)

    def add(self, items: Iterable[Object]) -> None:
        for item in items:
            metadata = mapping(item.get("metadata"))
            uid = text(metadata.get("uid")) or f"{metadata.get('namespace')}/{metadata.get('name')}"
            if uid not in self._uids:
                self._uids.add(uid)
                self._take(self._shaper(item))

    def finished(self, flavor_labels: Collection[str]) -> Iterator[tuple[str, pa.Table]]:
        self._take(("device", row) for row in self._pools.rows())
        self._take(("node", row | {"labels": kept_labels(row["labels"], flavor_labels)}) for row in self._nodes)
        self._nodes = []
        for name, rows in self._rows.items():
            yield name, rows.arrow()

    def _take(self, shaped: Iterable[tuple[str, Row]]) -> None:
        for name, row in shaped:
            if name not in self._rows:
                self._rows[name] = Rows(_TABLE_BY_NAME[name], self._observed_at_ms)
            self._rows[name].add(row)

    def _take_slice(self, found: Object) -> Sequence[tuple[str, Row]]:
        """Which devices are there is known when all slices are."""
        self._pools.add(found)
        return ()

    def _take_node(self, found: Object) -> Sequence[tuple[str, Row]]:
        """Which of its labels matter is known when all flavors are."""
        self._nodes.append(node_row(found))
        return ()


def _shaper(kind: Kind, api_version: str) -> Shaper:
    return _SHAPERS.get(kind.asked) or partial(_quota, kind, api_version)


def _quota(kind: Kind, api_version: str, found: Object) -> Iterator[tuple[str, Row]]:
    yield "quota", quota_row(kind, api_version, found)
    for row in quota_term_rows(kind, found):
        yield "quota_term", row


def _pod(found: Object) -> Iterator[tuple[str, Row]]:
    pod = pod_row(found)
    yield "pod", pod
    for row in container_rows(found, pod["resource_claims"]):
        yield "pod_container", row
    for row in annotated_device_rows(found):
        yield "pod_device", row


def _claim(found: Object) -> Iterator[tuple[str, Row]]:
    yield "claim", claim_row(found)
    for row in claim_device_rows(found):
        yield "claim_device", row
    for row in claim_consumer_rows(found):
        yield "claim_consumer", row


_SHAPERS: dict[str, Shaper] = {
    kinds.NAMESPACES.asked: lambda found: [("namespace", namespace_row(found))],
    kinds.PODS.asked: _pod,
    kinds.WORKLOADS.asked: lambda found: [("workload", workload_row(found))],
    kinds.CLASSES.asked: lambda found: [("device_class", device_class_row(found))],
    kinds.CLAIMS.asked: _claim,
    kinds.KOORDINATOR_DEVICES.asked: lambda found: [("koordinator_device", row) for row in koordinator_device_rows(found)],
}


def _sorted(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    return rows.sort_by([(column, "ascending") for column in _TABLE_BY_NAME[name].grain]) if len(parts) > 1 else rows
