"""The API server: what it serves, and which lists it shows; what a refused one costs, and the rule that shows it."""

from __future__ import annotations

from gpureport.collect.state import Kind
from gpureport.collect.state.kinds import CLAIMS, DRA_GROUP, DRA_VERSIONS, KOORDINATOR_DEVICES, NODES, PODS, SLICES
from gpureport.doctor import remedies
from gpureport.doctor.evidence import ApiServer, Evidence, KubeState, Listing
from gpureport.doctor.findings import Finding
from gpureport.doctor.workloads import HOLDER_TABLES

_LEDGER = ("gpu_hour_ledger.*",)
_COSTS: dict[Kind, tuple[str, tuple[str, ...]]] = {
    PODS: ("who held a device by a claim, and when, is unknown", HOLDER_TABLES),
    CLAIMS: ("who held a device by a claim, and which claims were idle, is unknown", HOLDER_TABLES),
    SLICES: ("which device a claim was given is unknown, so its holder is too", HOLDER_TABLES),
    NODES: ("when a node was cordoned or not ready is unknown", _LEDGER),
    KOORDINATOR_DEVICES: ("when a GPU was unhealthy is unknown", _LEDGER),
}
"""Loss without a list; nothing for lists that the report does not need."""
_OUTAGE_SERIES = ("kube_node_status_condition", "kube_node_spec_unschedulable")


def access_findings(evidence: Evidence) -> list[Finding]:
    """Rows about the API server; none where it was not read."""
    api = evidence.api
    if api is None:
        return []
    lists = [_list(each, evidence.kube) for each in api.listings]
    return [Finding("kubernetes_server", "ok", api.name, api.url), *_groups(api), *lists]


def _groups(api: ApiServer) -> list[Finding]:
    if api.groups_refusal:
        text = f"{api.groups_refusal}: which groups there are is unknown, so claims, slices and quota objects are not found"
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
        return Finding("kubernetes_list", "ok", kind.asked, f"may be listed ({listing.version}){more}")
    lost, costs = _COSTS.get(kind, ("unknown in the lake; no figure is lost", ()))
    if kind == NODES and all(metric in kube.series for metric in _OUTAGE_SERIES):
        lost, costs = "kube-state-metrics tells of nodes", ()
    add = (remedies.may_list(kind.group, kind.resource),)
    return Finding("kubernetes_list", "partial" if costs else "note", kind.asked, f"{listing.refusal}: {lost}", costs, add)
