"""One snapshot of a cluster: raw objects are added page by page, and become the rows of every state table."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from gpureport.collect.state import kinds
from gpureport.collect.state.dra import Pools, claim_consumer_rows, claim_device_rows, claim_row, device_class_row
from gpureport.collect.state.fields import Object, Row, instant, mapping, text, texts
from gpureport.collect.state.kinds import Kind
from gpureport.collect.state.nodes import kept_labels, namespace_row, node_row
from gpureport.collect.state.pod_devices import annotated_device_rows, completed, koordinator_device_rows
from gpureport.collect.state.pods import container_rows, pod_row
from gpureport.collect.state.quota_terms import flavor_labels, quota_term_rows, workload_row
from gpureport.values.tables import STATE_TABLES
from gpureport.values.tables.table import Table

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def quota_row(kind: Kind, api_version: str, found: Object) -> Row:
    """Return the row of a quota object, with its spec and status as JSON."""
    metadata = mapping(found.get("metadata"))
    annotations = texts(metadata.get("annotations"))
    annotations.pop(_LAST_APPLIED, None)
    return {
        "system": kind.quota_system,
        "kind": kind.name,
        "api_version": api_version,
        "namespace": text(metadata.get("namespace")),
        "name": text(metadata.get("name")),
        "uid": text(metadata.get("uid")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "labels": texts(metadata.get("labels")),
        "annotations": annotations,
        "spec": _json(found.get("spec")),
        "status": _json(found.get("status")),
    }


def _json(value: Any) -> str:
    return json.dumps(mapping(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_BATCH_ROWS = 2_000
_EMPTY = {pa.types.is_string: "", pa.types.is_boolean: False, pa.types.is_map: {}, pa.types.is_list: ()}


class Rows:
    """Collects rows of a table. A missing column is '', false or empty, or null where the column is nullable."""

    def __init__(self, table: Table, observed_at_ms: int) -> None:
        self._table = table
        self._observed_at_ms = observed_at_ms
        self._waiting: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self._waiting.append(row)
        if len(self._waiting) >= _BATCH_ROWS:
            self._pack()

    def arrow(self) -> pa.Table:
        """Return all rows in the order of the table's grain."""
        self._pack()
        rows = pa.Table.from_batches(self._batches, self._table.schema)
        return rows.sort_by([(name, "ascending") for name in self._table.grain]) if rows.num_rows else rows

    def _pack(self) -> None:
        if self._waiting:
            columns = [self._column(field) for field in self._table.schema]
            self._batches.append(pa.record_batch(columns, schema=self._table.schema))
            self._waiting = []

    def _column(self, field: pa.Field) -> pa.Array:
        if field.name == "observed_at":
            return pa.array([self._observed_at_ms] * len(self._waiting), field.type)
        name = field.name
        try:
            found = [row[name] for row in self._waiting]
        except KeyError:
            found = [row.get(name, _missing(field)) for row in self._waiting]
        return _maps(found, field.type) if pa.types.is_map(field.type) else pa.array(found, field.type)


def _missing(field: pa.Field) -> Any:
    return None if field.nullable else next((empty for is_kind, empty in _EMPTY.items() if is_kind(field.type)), None)


def _maps(found: Sequence[Mapping[str, Any]], kind: pa.MapType) -> pa.Array:
    """Build maps from the concatenated keys and values of all rows, in a third of Arrow's time for one map after another."""
    offsets = [0]
    keys: list[str] = []
    values: list[Any] = []
    for each in found:
        keys += each
        values += each.values()
        offsets.append(len(keys))
    columns = pa.array(keys, kind.key_type), pa.array(values, kind.item_type)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), *columns, type=kind)


Shaper = Callable[[Object], Iterable[tuple[str, Row]]]
_TABLE_BY_NAME = {table.name: table for table in STATE_TABLES}


class Observation:
    """The state of a cluster at one time, collected list by list."""

    def __init__(self, observed_at_ms: int) -> None:
        self._observed_at_ms = observed_at_ms
        self._lists: dict[str, _List] = {}
        self._kubelet: list[Row] = []
        self._flavor_labels: set[str] = set()

    def begin(self, kind: Kind, api_version: str) -> None:
        """Start the list of a kind. A second start discards the rows of the first."""
        self._lists[kind.name] = _List(kind, api_version, self._observed_at_ms)

    def discard(self, kind: Kind) -> None:
        """Discard an incomplete list and free its memory: the next list may be as large."""
        self._lists.pop(kind.name, None)
        pa.default_memory_pool().release_unused()

    def add(self, kind: Kind, items: Iterable[Object]) -> None:
        """Add objects of a started list. An object with a known UID is skipped."""
        objects = list(items)
        if kind == kinds.FLAVORS:
            self._flavor_labels.update(*(flavor_labels(each) for each in objects))
        self._lists[kind.name].add(objects)

    def add_kubelet(self, rows: Iterable[Row]) -> None:
        """Add the rows of a checkpoint file or a PodResources dump."""
        self._kubelet += rows

    def count(self, kind: Kind) -> int:
        """Return the number of objects of a kind."""
        return self._lists[kind.name].count if kind.name in self._lists else 0

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows of every table that has any, in the order of its grain."""
        found: dict[str, list[pa.Table]] = {}
        for each in self._lists.values():
            for name, rows in each.finished(self._flavor_labels):
                found.setdefault(name, []).append(rows)
        if self._kubelet:
            found.setdefault("pod_device", []).append(self._completed(found))
        return {name: _sorted(name, parts) for name, parts in found.items() if any(part.num_rows for part in parts)}

    def _completed(self, found: dict[str, list[pa.Table]]) -> pa.Table:
        pods = [pod for part in found.get("pod", ()) for pod in part.select(_POD_COLUMNS).to_pylist()]
        known = [row for part in found.get("pod_device", ()) for row in part.select(["pod_uid"]).to_pylist()]
        rows = Rows(_TABLE_BY_NAME["pod_device"], self._observed_at_ms)
        for row in completed(self._kubelet, pods, known):
            rows.add(row)
        return rows.arrow()


_POD_COLUMNS = ["namespace", "pod", "pod_uid", "node_name"]


class _List:
    """Rows of one kind."""

    def __init__(self, kind: Kind, api_version: str, observed_at_ms: int) -> None:
        self._observed_at_ms = observed_at_ms
        self._pools = Pools()
        self._nodes: list[Row] = []
        deferred = {kinds.SLICES.name: self._take_slice, kinds.NODES.name: self._take_node}
        self._shaper = {**_SHAPERS, **deferred}.get(kind.name) or partial(_quota, kind, api_version)
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
        """Add a slice. Its devices are known only when all slices are."""
        self._pools.add(found)
        return ()

    def _take_node(self, found: Object) -> Sequence[tuple[str, Row]]:
        """Add a node. The labels to keep are known only when all flavors are."""
        self._nodes.append(node_row(found))
        return ()


def _quota(kind: Kind, api_version: str, found: Object) -> Iterator[tuple[str, Row]]:
    yield "quota", quota_row(kind, api_version, found)
    for row in quota_term_rows(kind, found):
        yield "quota_term", row


def _refusal(found: Object) -> Iterator[tuple[str, Row]]:
    """Yield an Event in which a quota refused a controller's pod; others are skipped."""
    if "exceeded quota" in text(found.get("message")):
        spec = {name: found.get(name) for name in ("involvedObject", "message", "lastTimestamp")}
        yield "quota", quota_row(kinds.REFUSALS, "v1", {**found, "spec": spec})


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
    kinds.NAMESPACES.name: lambda found: [("namespace", namespace_row(found))],
    kinds.PODS.name: _pod,
    kinds.REFUSALS.name: _refusal,
    kinds.WORKLOADS.name: lambda found: [("workload", workload_row(found))],
    kinds.CLASSES.name: lambda found: [("device_class", device_class_row(found))],
    kinds.CLAIMS.name: _claim,
    kinds.KOORDINATOR_DEVICES.name: lambda found: [("koordinator_device", row) for row in koordinator_device_rows(found)],
}


def _sorted(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    return rows.sort_by([(column, "ascending") for column in _TABLE_BY_NAME[name].grain]) if len(parts) > 1 else rows
