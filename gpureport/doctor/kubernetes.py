"""Evidence from a Kubernetes API server: which kinds may be listed (tested with one object), and nodes with accelerators.

Nodes and resource slices are read completely. Pods are not, so their requests are known only from kube-state-metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpureport.collect.sources.kubernetes import Cluster, ForbiddenError, NotListedError, OutOfScopeError
from gpureport.collect.state import KINDS, Kind
from gpureport.collect.state.dra import Pools
from gpureport.collect.state.fields import Row
from gpureport.collect.state.kinds import CLAIMS, DRA_GROUP, DRA_VERSIONS, KOORDINATOR_DEVICES, NODES, PODS, SLICES
from gpureport.collect.state.nodes import node_row
from gpureport.doctor import remedies
from gpureport.doctor.cluster import OUTAGE_SERIES
from gpureport.doctor.evidence import (
    ApiServer,
    Evidence,
    Finding,
    KubeState,
    Listing,
    as_exported,
    is_accelerator,
    is_accelerator_driver,
    resource_vendor,
    vendors,
)
from gpureport.doctor.workloads import HOLDER_TABLES

_LEDGER = ("gpu_hour_ledger.*",)
_COSTS: dict[Kind, tuple[str, tuple[str, ...]]] = {
    PODS: ("holders of claimed devices, and their times, are unknown", HOLDER_TABLES),
    CLAIMS: ("holders of claimed devices, and idle claims, are unknown", HOLDER_TABLES),
    SLICES: ("the device of each claim, and so its holder, is unknown", HOLDER_TABLES),
    NODES: ("times of cordoned and not ready nodes are unknown", _LEDGER),
    KOORDINATOR_DEVICES: ("times of unhealthy GPUs are unknown", _LEDGER),
}
"""Loss where a kind cannot be listed; kinds that the report does not need have none."""


def access_findings(evidence: Evidence) -> list[Finding]:
    """Return findings on the API server; none if it was not read."""
    api = evidence.api
    if api is None:
        return []
    lists = [_list(each, evidence.kube) for each in api.listings]
    return [Finding("kubernetes_server", "ok", api.name, api.url), *_groups(api), *lists]


def _groups(api: ApiServer) -> list[Finding]:
    if api.groups_refusal:
        text = f"{api.groups_refusal}: API groups are unknown, so claims, slices and quota objects are not found"
        return [Finding("kubernetes_groups", "partial", "API groups", text, HOLDER_TABLES, (remedies.GROUPS,))]
    found = [_claim_version(api.dra_versions)]
    if api.groups_not_served:
        text = f"not installed, so nothing is lost: {', '.join(api.groups_not_served)}"
        found.append(Finding("kubernetes_groups", "note", "API groups", text))
    return found


def _claim_version(served: tuple[str, ...]) -> Finding:
    if not served:
        text = "not served, so there are no resource claims (Kubernetes has it on by default from 1.34)"
        return Finding("claim_version", "note", DRA_GROUP, text)
    read = next((version for version in DRA_VERSIONS if version in served), "")
    if not read:
        text = f"served only as {', '.join(served)}, which is not read: claims and their devices stay unknown"
        return Finding("claim_version", "partial", DRA_GROUP, text, HOLDER_TABLES)
    return Finding("claim_version", "ok", DRA_GROUP, f"{read} is read; served: {', '.join(served)}")


def _list(listing: Listing, kube: KubeState) -> Finding:
    kind = listing.kind
    if not listing.refusal:
        more = f"; {len(kube.allocatable)} of {len(kube.nodes)} nodes with accelerators" if kind == NODES else ""
        return Finding("kubernetes_list", "ok", kind.name, f"may be listed ({listing.version}){more}")
    lost, costs = _COSTS.get(kind, ("unknown in the lake; no figure is lost", ()))
    if kind == NODES and all(metric in kube.series for metric in OUTAGE_SERIES):
        lost, costs = "kube-state-metrics has the nodes", ()
    add = (remedies.may_list(kind.group, kind.resource),)
    return Finding("kubernetes_list", "partial" if costs else "note", kind.name, f"{listing.refusal}: {lost}", costs, add)


ByNode = Mapping[str, Mapping[str, int]]


def examine_cluster(cluster: Cluster) -> Evidence:
    """Return lists, permissions and nodes of the server, without telemetry. SourceError or a subclass where it cannot be read."""
    refusal = _groups_refusal(cluster)
    kinds = [kind for kind in KINDS if not (kind.group and refusal)]
    groups = dict.fromkeys(kind.group for kind in kinds if kind.group)
    api = ApiServer(
        url=cluster.url,
        name=cluster.name,
        listings=tuple(found for kind in kinds if (found := _listing(cluster, kind))),
        dra_versions=() if refusal else tuple(cluster.versions(DRA_GROUP)),
        groups_not_served=tuple(group for group in groups if group != DRA_GROUP and not cluster.versions(group)),
        groups_refusal=refusal,
    )
    return Evidence(cluster.url, kube=_kube(cluster, api), api=api, has_telemetry=False)


def combine_evidence(telemetry: Evidence, state: Evidence) -> Evidence:
    """Combine the telemetry's evidence with Kubernetes' own; kube-state-metrics' values of a node take precedence."""
    series, nodes = telemetry.kube, state.kube
    allocatable = {
        node: {**nodes.allocatable.get(node, {}), **series.allocatable.get(node, {})}
        for node in (*nodes.allocatable, *series.allocatable)
    }
    kube = replace(
        series,
        allocatable=allocatable,
        hardware={**nodes.hardware, **series.hardware},
        nodes=series.nodes | nodes.nodes,
        has_snapshots=state.api is not None and state.api.may_list(PODS),
    )
    return replace(telemetry, subject=f"{telemetry.subject} and {state.subject}", kube=kube, api=state.api)


def _groups_refusal(cluster: Cluster) -> str:
    try:
        cluster.versions(DRA_GROUP)
    except NotListedError as error:
        return str(error)
    return ""


def _listing(cluster: Cluster, kind: Kind) -> Listing | None:
    """List one object of the kind; None where the server has no such kind."""
    try:
        return Listing(kind, cluster.first(kind).api_version)
    except (ForbiddenError, OutOfScopeError) as error:
        return Listing(kind, refusal=str(error))
    except NotListedError:
        return None


def _kube(cluster: Cluster, api: ApiServer) -> KubeState:
    if not api.may_list(NODES):
        return KubeState()
    rows = _node_rows(cluster)
    allocatable = {node: dict(found) for node, found in _by_node(rows, "allocatable").items()}
    driven = _dra_devices(cluster) if api.may_list(SLICES) else {}
    for node in driven.keys() & {row["node_name"] for row in rows}:
        allocatable[node] = {**allocatable.get(node, {}), **driven[node]}
    hardware = {node: resource_vendor(min(resources)) for node, resources in _by_node(rows, "capacity").items()}
    if api.may_list(SLICES) or not (api.dra_versions or api.groups_refusal):
        # Otherwise a node with devices of a DRA driver would look like a node without a driver.
        hardware |= vendors(_exported_labels(row) for row in rows)
    return KubeState(allocatable=allocatable, hardware=hardware, nodes=frozenset(row["node_name"] for row in rows))


def _exported_labels(row: Row) -> dict[str, str]:
    return {"node": row["node_name"], **{f"label_{as_exported(name)}": value for name, value in row["labels"].items()}}


def _node_rows(cluster: Cluster) -> list[Row]:
    rows: list[Row] = []
    for page in cluster.pages(NODES):
        if page.is_start:
            rows.clear()
        rows += map(node_row, page.items)
    return rows


def _by_node(rows: Iterable[Row], what: str) -> ByNode:
    """Return node → accelerator resource → count above 0."""
    found = {
        row["node_name"]: {as_exported(name): int(count) for name, count in row[what].items() if count and count >= 1}
        for row in rows
    }
    chosen = {node: {name: count for name, count in held.items() if is_accelerator(name)} for node, held in found.items()}
    return {node: held for node, held in chosen.items() if held}


def _dra_devices(cluster: Cluster) -> ByNode:
    """Return node → DRA driver → number of its devices or partitions there."""
    pools = Pools()
    for page in cluster.pages(SLICES):
        if page.is_start:
            pools = Pools()
        for each in page.items:
            pools.add(each)
    found: dict[str, Counter[str]] = {}
    for row in pools.rows():
        if row["node_name"] and is_accelerator_driver(row["driver"]):
            found.setdefault(row["node_name"], Counter())[row["driver"]] += 1
    return found
