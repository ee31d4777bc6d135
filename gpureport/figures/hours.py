"""Hours of GPUs: allocated, active and free, before, now and by the forecast."""

from __future__ import annotations

from gpureport.figures.figure import Figure
from gpureport.figures.forms import ACTIVITY, ANY_ACTIVITY

HOUR_FIGURES = {
    "observed_seconds": Figure("s in which any signal of the device was in force; of several devices their union"),
    "device_seconds": Figure("observed_seconds, added over devices"),
    "unheld_seconds": Figure(
        "s with data in which the device was unallocated",
        absent="a GPU split into instances (see theirs); a GPU that is in use and names no pod",
    ),
    "gpu_hours": Figure(
        "h of whole GPUs: of several holders as hours_method says, of a MIG instance its compute slices of 7 (of 4 on an A30)"
    ),
    "capacity_gpu_hours": Figure("h of the GPUs that were seen or expected, independent of the buckets"),
    "effective_gpu_hours": Figure("h held and active with SM activity of 0.5 or more", ("sm_active_ratio",)),
    "underutilized_gpu_hours": Figure("h held and active with SM activity below 0.5", ("sm_active_ratio",)),
    "active_unmeasured_gpu_hours": Figure("h held and active while SM activity is unknown", ACTIVITY, ways=ANY_ACTIVITY),
    "allocated_unmeasured_gpu_hours": Figure("h held without a signal of activity, or allocated by requests without telemetry"),
    "allocated_idle_gpu_hours": Figure("h held and not active", ACTIVITY, ways=ANY_ACTIVITY),
    "reserved_idle_gpu_hours": Figure("h that a resource claim had and no container held"),
    "share_ratio": Figure(
        "largest part that the claim's share consumes of any capacity of the device; 1 for a whole device",
        absent="neither the claim nor the device says how large the share is; known by labels alone",
    ),
    "fragmented_gpu_hours": Figure(
        "h unallocated that no pod refused by the scheduler could use; slices that no MIG instance uses"
    ),
    "free_gpu_hours": Figure("unallocated h"),
    "unknown_gpu_hours": Figure(
        "h without telemetry and not known from Kubernetes; or active while no pod is named; or without labels"
    ),
    "unavailable_gpu_hours": Figure(
        "h in which the GPU was unallocated and its node was not ready or cordoned, or it was unhealthy or tainted"
    ),
    "usable_gpu_hours": Figure("h in which GPUs were seen and could be used"),
    "held_gpu_hours": Figure("h of usable_gpu_hours in which a container held them"),
    "unnamed_gpu_hours": Figure("h of usable_gpu_hours active with no pod named, or on a node whose labels are missing"),
    "active_gpu_hours": Figure("h held and active, whatever the SM activity", ACTIVITY, ways=ANY_ACTIVITY),
    "held_ratio": Figure("held_gpu_hours ÷ (usable_gpu_hours − unnamed_gpu_hours)"),
    "held_idle_ratio": Figure("allocated_idle_gpu_hours ÷ (usable_gpu_hours − unnamed_gpu_hours)", ACTIVITY, ways=ANY_ACTIVITY),
    "idle_gpu_hours": Figure("allocated_idle_gpu_hours + reserved_idle_gpu_hours", ACTIVITY, ways=ANY_ACTIVITY),
    "idle_ratio": Figure("idle_gpu_hours of the namespace ÷ that of all", ACTIVITY, ways=ANY_ACTIVITY),
    "cumulative_idle_ratio": Figure("Σ idle_ratio down to this namespace, largest first", ACTIVITY, ways=ANY_ACTIVITY),
    "idle_cost": Figure(
        "Σ idle_gpu_hours × prices.gpu_hour of the model",
        ACTIVITY,
        "no price is configured for all its models",
        ANY_ACTIVITY,
    ),
    "earlier_gpu_hours": Figure("h at stake in the previous period"),
    "earlier_allocated_gpu_hours": Figure(
        "h held in the previous period, scaled to this window's length", ACTIVITY, ways=ANY_ACTIVITY
    ),
    "allocated_change_gpu_hours": Figure("allocated_gpu_hours − earlier_allocated_gpu_hours", ACTIVITY, ways=ANY_ACTIVITY),
    "earlier_effective_gpu_hours": Figure(
        "h held and active with SM activity of 0.5 or more in the previous period, scaled to this window's length",
        ("sm_active_ratio",),
    ),
    "effective_change_gpu_hours": Figure("effective_gpu_hours − earlier_effective_gpu_hours", ("sm_active_ratio",)),
    "freed_gpu_hours": Figure(
        "held h × (1 − 1 ÷ instances of the profile that fit on a GPU)",
        ("sm_active_ratio", "sm_occupancy_ratio", "dram_active_ratio", "fb_used_bytes"),
    ),
    "busiest_sm_active_ratio": Figure("largest hourly mean, of hours with ten minutes or more of it", ("sm_active_ratio",)),
    "busiest_sm_occupancy_ratio": Figure("largest hourly mean, of hours with ten minutes or more of it", ("sm_occupancy_ratio",)),
    "busiest_dram_active_ratio": Figure("largest hourly mean, of hours with ten minutes or more of it", ("dram_active_ratio",)),
    "earlier_seen_gpu_hours": Figure("h of GPUs seen, by the day's first facts"),
    "seen_gpu_hours": Figure("h of GPUs seen"),
    "earlier_held_gpu_hours": Figure("h that somebody held, by the day's first facts"),
    "at_stake_cost": Figure(
        "gpu_hours × prices.gpu_hour of the model", absent="no price is configured; models with several prices"
    ),
    "low_gpu_hours": Figure(
        "held on the same weekday of the last week + the tenth percentile of past changes over as many weeks"
    ),
    "expected_gpu_hours": Figure("held on the same weekday of the last week + the median of past changes over as many weeks"),
    "high_gpu_hours": Figure(
        "held on the same weekday of the last week + the ninetieth percentile of past changes over as many weeks"
    ),
    "daily_held_gpu_hours": Figure("mean held_gpu_hours of the last week, of days that were seen enough"),
    "daily_usable_gpu_hours": Figure("mean usable_gpu_hours of the last week, of days that were seen enough"),
    "weekly_change_gpu_hours": Figure("median of held_gpu_hours − that of a week before, over the back-test's days"),
    "short_gpu_hours": Figure("Σ max(0, expected_gpu_hours − daily_usable_gpu_hours) over the days of the forecast"),
    "backtest_error_ratio": Figure("Σ |held − what the forecast would have been a week before| ÷ Σ held"),
    "naive_error_ratio": Figure("Σ |held − held a week before| ÷ Σ held"),
    "backtest_within_ratio": Figure("days between low and high ÷ days of the back-test"),
    "difference_gpu_hours": Figure("capacity less the nine buckets: 0 unless the program is wrong"),
    "coverage_ratio": Figure(
        "s seen ÷ s that could have been seen: the window's for a device, the holder's life on it for a container",
        absent="a container whose lifetime is unknown",
    ),
}
