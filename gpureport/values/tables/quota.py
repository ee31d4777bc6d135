"""The lake's tables of quotas: the objects of quota systems as they are, and what they say of each resource."""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.tables.table import CREATED, INSTANT, OBSERVED, TEXTS, Column, Table

QUOTA = Table(
    "quota",
    "Objects of quota systems, as they are.",
    ("system", "kind", "namespace", "name", "uid", "observed_at"),
    (
        OBSERVED,
        Column("system", pa.string(), "quota system"),
        Column("kind", pa.string(), "resource and API group, elasticquotas.nos.nebuly.com"),
        Column("api_version", pa.string(), "API version in which it was read"),
        Column("namespace", pa.string(), "namespace, '' for what belongs to the cluster"),
        Column("name", pa.string(), "object's name"),
        Column("uid", pa.string(), "object's uid"),
        CREATED,
        Column("labels", TEXTS, "labels"),
        Column("annotations", TEXTS, "annotations"),
        Column("spec", pa.string(), "spec as JSON, keys sorted"),
        Column("status", pa.string(), "status as JSON, keys sorted"),
    ),
)


def _amount(name: str, doc: str) -> Column:
    return Column(name, pa.float64(), f"{doc}; null where it says none", True)


QUOTA_TERM = Table(
    "quota_term",
    "What quota objects say of each resource, in the same words for all systems. Amounts are in base units of the resource.",
    ("system", "kind", "namespace", "name", "uid", "resource", "flavor", "observed_at"),
    (
        OBSERVED,
        Column("system", pa.string(), "quota system"),
        Column("kind", pa.string(), "resource and API group, elasticquotas.nos.nebuly.com"),
        Column("namespace", pa.string(), "namespace, '' for what belongs to the cluster"),
        Column("name", pa.string(), "object's name"),
        Column("uid", pa.string(), "object's uid"),
        CREATED,
        Column("quota", pa.string(), "what the system knows it by: namespace/name, the name alone, or cohort/name"),
        Column("parent", pa.string(), "quota that contains it, '' where none does"),
        Column("is_parent", pa.bool_(), "said to contain others; what it holds is theirs"),
        Column("namespaces", pa.list_(pa.string()), "namespaces that it governs by their name"),
        Column("tree", pa.string(), "Koordinator's quota tree"),
        Column("display_name", pa.string(), "name for people, which KAI's scheduler gives its series"),
        Column("priority", pa.int64(), "priority among quotas", True),
        Column("may_lend", pa.bool_(), "what it does not use may go to others"),
        Column(
            "resource", pa.string(), "resource as the quota names it; gpu for KAI; '' of a Cohort's place among Kueue's cohorts"
        ),
        Column("flavor", pa.string(), "Kueue's flavor of the resource, or ''"),
        _amount("guaranteed", "min, nominalQuota, guarantee, quota (infinite for KAI's -1)"),
        _amount("cap", "max, capability, limit, hard"),
        _amount("weight", "part of what is over: shared-weight, weight, overQuotaWeight, fairSharing.weight"),
        _amount("deserved", "Volcano's capacity plugin: what it has before others may reclaim"),
        _amount("borrowing_limit", "Kueue: most that it may borrow"),
        _amount("lending_limit", "Kueue: most that it lends"),
        _amount("delivered", "what its status says is in use"),
        _amount("demanded", "what its status says is requested"),
        _amount("fair_share", "what its scheduler says it may have: Koordinator's runtime"),
        Column("changed_at", INSTANT, "UTC, when its spec last changed, as far as its managed fields tell", True),
    ),
)

_REQUEST = pa.struct(
    [
        ("pod_set", pa.string()),
        ("pod_count", pa.int64()),
        ("resource", pa.string()),
        ("flavor", pa.string()),
        ("amount", pa.float64()),
        ("placement", pa.string()),
    ]
)


def _event(name: str, doc: str) -> Column:
    return Column(name, INSTANT, f"UTC, {doc}; null where that is not its state", True)


WORKLOAD = Table(
    "workload",
    "Kueue's Workloads: what requests quota, before there are pods and after, and its outcome.",
    ("namespace", "workload", "workload_uid", "observed_at"),
    (
        OBSERVED,
        Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
        Column("workload", pa.string(), "workload's name"),
        Column("workload_uid", pa.string(), "workload's uid"),
        CREATED,
        Column("owner_kind", pa.string(), "kind of what it was made for: Job, JobSet, RayJob, Pod, …"),
        Column("owner_name", pa.string(), "name of that"),
        Column("local_queue", pa.string(), "LocalQueue in which it waits"),
        Column("cluster_queue", pa.string(), "ClusterQueue whose quota it has reserved; '' while it has none"),
        Column("priority", pa.int64(), "priority; null where unknown", True),
        Column("priority_class", pa.string(), "priority class"),
        Column("is_active", pa.bool_(), "it may be admitted; a deactivated one waits for nothing"),
        _event("reserved_at", "when it reserved quota"),
        _event("released_at", "since when it has no quota, from its creation or after it had some"),
        _event("admitted_at", "when it was admitted"),
        _event("evicted_at", "when it was evicted"),
        Column("eviction_reason", pa.string(), "why it was evicted: Preempted, PodsReadyTimeout, AdmissionCheck, …"),
        Column("preemption_reason", pa.string(), "why it was preempted: InClusterQueue, InCohortReclamation, …"),
        Column("preemptor_uid", pa.string(), "uid of the workload for which it was preempted"),
        _event("finished_at", "when it finished"),
        Column("finish_reason", pa.string(), "how it finished: Succeeded, Failed, …"),
        Column("waiting_message", pa.string(), "why it has no quota, in Kueue's words"),
        Column("requests", pa.list_(_REQUEST), "what it requests or has reserved, by pod set and resource, of all its pods"),
    ),
)

QUOTA_TABLES = (QUOTA, QUOTA_TERM, WORKLOAD)
