"""What the figures of the quotas' tables are, and why one may be absent."""

from __future__ import annotations

from gpureport.figures.figure import Figure

QUOTA_REASONS = {
    "no_gpu_equivalent": "no one says what part of a GPU one unit of the resource is",
    "no_such_notion": "the quota's system has no such number",
    "preemption_not_read": "its scheduler preempts by settings of its own, which are not read",
    "capacity_unknown": "how much there is to share is unknown: no nodes were looked at, or they belong to another tree",
    "demand_unknown": "what waits is unknown: pods cannot be assigned to queues, and the scheduler does not say",
    "no_limit": "there is no hard limit, or none is known",
    "unlimited": "everything is guaranteed: the quota names no number",
    "contains_others": "what the quota has is what the quotas within it have; see their rows",
    "nothing_due": "nothing was both guaranteed and requested, or nothing was shared out",
    "no_reclaim": "it was never short while others borrowed, or its end has no data",
    "not_observed": "nothing that was read says it",
    "nothing_reserved": "no workload of the queue got quota in the window",
    "nothing_waits": "no workload of the queue waits at the window's end",
    "not_held_by_pods": "there is no telemetry of GPUs that its pods are known to have held",
}
_SYSTEM = "its scheduler has no such notion"
_SHARE = "its scheduler has no such number, or demand or capacity is unknown"

QUOTA_FIGURES = {
    "guaranteed_gpu_hours": Figure(
        "∫ min (nos, scheduler-plugins, Koordinator), nominalQuota (Kueue), the larger of deserved and guarantee (Volcano), "
        "quota (KAI) dt, in GPUs",
        absent="a ResourceQuota guarantees nothing; all is guaranteed",
    ),
    "cap_gpu_hours": Figure("∫ max, nominalQuota + borrowingLimit, capability, limit or hard dt, in GPUs", absent="no limit"),
    "demanded_gpu_hours": Figure(
        "∫ requests of its pods from creation to end dt, or else what its scheduler says, in GPUs",
        absent="what waits is unknown",
    ),
    "delivered_gpu_hours": Figure("∫ requests of its pods from binding to end dt, or else what its scheduler says, in GPUs"),
    "borrowed_gpu_hours": Figure(
        "∫ max(0, held - its own) dt; its own is what is guaranteed, in Volcano deserved", absent=_SYSTEM
    ),
    "lent_gpu_hours": Figure(
        "∫ lendable × min(1, Σ borrowed ÷ Σ lendable) dt over its pool, lendable = max(0, its own - held): inferred",
        absent=_SYSTEM,
    ),
    "fair_share_gpu_hours": Figure(
        "∫ fair share dt: what the scheduler says, or else what its rules give with the quotas of the time", absent=_SHARE
    ),
    "entitled_gpu_hours": Figure("∫ max(0, fair share - its own) dt: nos' guaranteed over-quota", absent=_SHARE),
    "over_entitlement_gpu_hours": Figure("∫ max(0, held - fair share) dt", absent=_SHARE),
    "unmet_gpu_hours": Figure("∫ max(0, min(guaranteed, demanded) - held) dt", absent="no guarantee; what waits is unknown"),
    "violated_gpu_hours": Figure(
        "∫ min(unmet, free GPUs on nodes with room for the smallest request that waits + what others of its pool borrow) dt",
        absent="unmet is absent; free GPUs are unknown and borrowers alone do not cover it",
    ),
    "guarantee_honoured_ratio": Figure(
        "∫ min(held, guaranteed, demanded) dt ÷ ∫ min(guaranteed, demanded) dt", absent="nothing was due"
    ),
    "over_quota_share_ratio": Figure("guaranteed ÷ Σ guaranteed of its pool", absent="no guarantee"),
    "reclaim_seconds_avg": Figure(
        "mean s of shortage, from its beginning to its end, of those that ended and in which others borrowed",
        absent="no such time",
    ),
    "reclaim_seconds_max": Figure("longest s of such a shortage", absent="no such time"),
    "lost_gpu_hours": Figure(
        "h × GPUs that pods held in the window, before they were evicted or preempted; what they had saved is not known",
        absent="no snapshot saw a pod evicted or preempted",
    ),
    "borrowed_idle_gpu_hours": Figure(
        "allocated_idle_gpu_hours of its pods × borrowed ÷ held: inferred", absent="no telemetry of its pods; no such notion"
    ),
    "over_quota_gpu_hours": Figure("h × GPUs that it held while over quota by nos' rules", absent=_SYSTEM),
    "contested_gpu_hours": Figure("∫ min(unmet, what others borrow) × the borrower's part of what is borrowed dt: inferred"),
    "contested_gpus_max": Figure("largest of that at any instant: inferred"),
    "due_gpu_hours": Figure("Σ ∫ min(fair share, demanded) dt", absent=_SHARE),
    "wait_seconds_p50": Figure("median of quota reserved − queued", absent="no workload got quota"),
    "wait_seconds_p90": Figure("90th percentile of quota reserved − queued", absent="no workload got quota"),
    "wait_seconds_p95": Figure("95th percentile of quota reserved − queued", absent="no workload got quota"),
    "waiting_seconds_max": Figure("largest window's end − queued of workloads that wait", absent="none waits"),
    "start_seconds_p50": Figure("median of first pod running − quota reserved", absent="no pod was seen to run"),
    "pending_gpu_hours": Figure("Σ GPUs requested × time in which they waited"),
    "reported_native_avg": Figure("mean that the scheduler reports, in the resource's own unit"),
    "recomputed_native_avg": Figure("mean from requests of pods and workloads, or by the scheduler's rules, in the same unit"),
    "difference_native_avg": Figure("recomputed_native_avg - reported_native_avg"),
    "fairness_gap_ratio": Figure("largest less smallest of held ÷ due over quotas: derived", absent=f"{_SHARE}; nothing was due"),
    "jain_ratio": Figure("(Σ x)² ÷ (n Σ x²) of x = held ÷ due over quotas: derived", absent=f"{_SHARE}; nothing was due"),
}
"""The figures of ``report.quota_fair_share``, ``quota_pod``, ``quota_pair``, ``quota_fairness`` and ``workload_wait``."""
