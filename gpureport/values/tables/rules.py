"""Tables of facts that no SQL makes: what the schedulers' own rules say of amounts that SQL has put together."""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.tables.table import Column, Table

_AT = pa.timestamp("us")


def _span(what: str) -> tuple[Column, Column]:
    return Column("start_at", _AT, f"UTC, start of {what}"), Column("end_at", _AT, "UTC, its end, outside it")


_CLUSTER = Column("cluster", pa.string(), "cluster name")
_SYSTEM = Column("system", pa.string(), "quota system")
_RESOURCE = Column("resource", pa.string(), "resource as the quota names it")

QUOTA_NATIVE = Table(
    "day.quota_native",
    "What requests and offers of Kubernetes' resources count for in a quota system; the system '' is Kubernetes itself.",
    ("system", "requests", "resource"),
    (
        _SYSTEM,
        Column("requests", pa.string(), "the request or offer, as text"),
        _RESOURCE,
        Column("amount_native", pa.float64(), "amount in the resource's own unit"),
        Column("amount_gpus", pa.float64(), "the same in GPUs; null where it counts for none", True),
    ),
)
QUOTA_UNIT = Table(
    "day.quota_unit",
    "What one unit of a quota's resource is in GPUs.",
    ("system", "resource"),
    (
        _SYSTEM,
        _RESOURCE,
        Column("gpus_per_native", pa.float64(), "GPUs per unit; null where the resource is no accelerator's", True),
        Column("native_unit", pa.string(), "the unit: GB, GPU, percent of a GPU, bytes, …"),
    ),
)
QUOTA_SHARE = Table(
    "day.quota_share",
    "What each quota may have by its scheduler's rules, with all others as they are at the time.",
    ("cluster", "system", "resource", "flavor", "quota", "start_at"),
    (
        _CLUSTER,
        _SYSTEM,
        _RESOURCE,
        Column("flavor", pa.string(), "Kueue's flavor, or ''"),
        Column("quota", pa.string(), "quota"),
        *_span("the step"),
        Column("fair_share_native", pa.float64(), "guaranteed and its part of what is over; null where there is none", True),
        Column("reason", pa.string(), "why it is null, a code of docs/figures.md"),
    ),
)
QUOTA_LENDING = Table(
    "day.quota_lending",
    "What passes between the queues of Kueue's trees of cohorts; no row where no Cohort is known.",
    ("cluster", "system", "resource", "flavor", "quota", "start_at"),
    (
        _CLUSTER,
        _SYSTEM,
        _RESOURCE,
        Column("flavor", pa.string(), "Kueue's flavor"),
        Column("quota", pa.string(), "queue or cohort"),
        *_span("the step"),
        Column("lent_native", pa.float64(), "its own that others use, inferred: first within its cohort, then beyond it"),
        Column("borrowed_native", pa.float64(), "held beyond its own; of a cohort, beyond what it and its members have"),
        Column("others_borrowed_native", pa.float64(), "what siblings borrow, and others of what its cohort lent them"),
        Column("borrowers", pa.map_(pa.string(), pa.float64()), "the same by the queue that borrows"),
    ),
)
QUOTA_WEIGHTED_SHARE = Table(
    "day.quota_weighted_share",
    "Kueue's weighted shares, and past use by its Admission Fair Sharing, at each snapshot; no row where it has none.",
    ("cluster", "quota", "measure", "resource", "start_at"),
    (
        _CLUSTER,
        Column("quota", pa.string(), "queue or cohort; NAMESPACE/NAME of a LocalQueue"),
        Column("measure", pa.string(), "weighted share, or past use"),
        Column("resource", pa.string(), "resource of past use; else ''"),
        *_span("the snapshot"),
        Column("reported_native", pa.float64(), "what its status says"),
        Column("recomputed_native", pa.float64(), "the same from what queues have reserved; null where that is unknown", True),
    ),
)
QUOTA_POD_LABEL = Table(
    "day.quota_pod_label",
    "Which running pods are over quota by nos' rules, and when: stretches of one label.",
    ("cluster", "quota", "pod_uid", "start_at"),
    (
        _CLUSTER,
        Column("quota", pa.string(), "quota of nos that governs it"),
        Column("pod_uid", pa.string(), "pod's uid"),
        *_span("the stretch"),
        Column("label", pa.string(), "in-quota or over-quota"),
    ),
)
QUOTA_EXPOSURE = Table(
    "day.quota_exposure",
    "Which pods another quota's waiting pods, or their own, may preempt by nos' or scheduler-plugins' rules, and when.",
    ("cluster", "system", "pod_uid", "by_quota", "condition", "start_at"),
    (
        _CLUSTER,
        _SYSTEM,
        Column("pod_uid", pa.string(), "uid of the pod that may be preempted"),
        Column("by_quota", pa.string(), "quota of the pod that waits"),
        Column("condition", pa.string(), "within min, fair share (nos alone) or same namespace"),
        *_span("the stretch"),
        Column("evidence", pa.string(), "the comparison in numbers, as it stood first"),
    ),
)
