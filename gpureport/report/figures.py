"""How report tables stand on the page: order, titles, groups of columns."""

from __future__ import annotations

TABLES = {
    # table: (title, sentence)
    "finding": (
        "Findings",
        "What deserves a look: rule, numbers, whose it is, what is at stake, what to do; the SQL that shows it is in the files.",
    ),
    "fleet": ("Clusters", "What each cluster has, how much of it was seen, and how much is unknown."),
    "gpu_hour_balance": (
        "GPU-hours against capacity",
        "The ledger's nine buckets against a capacity that is reckoned without them. Each dimension is the whole: never add two.",
    ),
    "gpu_hour_ledger": ("GPU-hour ledger", "Every GPU-hour of capacity in exactly one bucket, by device, day and holder."),
    "gpu_hour_course": ("Hour by hour", "What of the GPUs was there, held, active and effective in each hour of what was seen."),
    "hour_of_week": ("Hours of the week", "The same by weekday and hour, UTC: when GPUs are held, and held for nothing."),
    "idle_by_holder": ("Who held them for nothing", "Hours held or reserved and not active, the most first."),
    "period": ("This window and the one before", "Capacity, what became of it, and energy; each row is its own window's."),
    "gpu_hour_bridge": (
        "What changed",
        "From the window before to this one, step by step; the steps add up. Hours on GPUs that came or went stand apart.",
    ),
    "namespace_change": ("Whose hours changed", "By namespace, against the window before, scaled to the same length."),
    "finding_change": (
        "Findings, new and resolved",
        "Against the window before: a finding is the same where all it is about is.",
    ),
    "boundness": ("What limits the work", "By rules that each row states; no score."),
    "restated_day": ("Days stated anew", "Their samples came late: what was said of them at first, and what is now."),
    "runway": (
        "For how long the GPUs last",
        "By model, from four weeks of its past or more; how wrong the forecast would have been before stands beside it.",
    ),
    "demand_trend": (
        "Held day by day, and expected",
        "Past days as they were; days to come with a band that eight of ten are to fall into.",
    ),
    "rightsizing": (
        "Would it fit a smaller GPU?",
        "Containers alone on one GPU: what their busiest hour needed, and the MIG profile or smaller model in which that fits.",
    ),
    "scheduler_pressure": (
        "Scheduler pressure",
        "What was asked of the scheduler and what there was, hour by hour, in OpenCost's sense and in Kubernetes' own. "
        "A device may be offered under several names: never add resources.",
    ),
    "pod_wait": (
        "Waiting for accelerators",
        "How long pods waited for a place and then to run, by GPU model and size of the request.",
    ),
    "requested_use": (
        "Asked for and used",
        "What each container asked for of each of its GPUs, in percent and bytes, beside SM activity and memory in use.",
    ),
    "fragmentation": (
        "What was left",
        "Free accelerators and the largest request that still fitted on one node, by looks every five minutes.",
    ),
    "node_free": ("Koordinator's nodes", "What fit devices add up to, what of it is free, and the largest request that fits."),
    "device_free": ("Koordinator's devices", "Health, topology, and what of each device is given out and free."),
    "quota_fair_share": (
        "Quotas",
        "Who was guaranteed what, who got it, who lent and borrowed, who was short; integrals over the time that is known. "
        "Never add rows of several schedulers or resources, nor those that contain others.",
    ),
    "quota_pair": ("Short while others borrowed", "Inferred: no scheduler records whose loss was whose gain."),
    "quota_fairness": ("How even it was", "Derived: held over due, the lesser of fair share and demand, as one number."),
    "quota_pod": ("Pods and their quotas", "Waiting, held, in and over quota; who might have preempted them."),
    "dra_claim": ("Resource claims", "What claims had, and what of it was used."),
    "device_allocation": ("How devices were asked for", "What each container asked for, was given, and used."),
    "device": ("Devices", "Every GPU and MIG instance that was seen: what it is, how busy, how strained, how much energy."),
    "container": ("Containers", "Every container that held a GPU, its devices rolled up by one rule per figure."),
    "container_saturation": (
        "Containers by device",
        "The same, device by device; on a shared device each holder sees the device's figures.",
    ),
    "accelerator": (
        "Accelerators by container",
        "What each container's accelerators are, of any make, and how full and busy; a whole device's figures are the same on "
        "each row that shares it, so they are not to be added.",
    ),
    "container_power": (
        "Power by container",
        "What each container's devices drew for it: above idle while active, above idle while merely held, and at idle.",
    ),
    "energy": (
        "Energy",
        "Where the energy went, by day, namespace, node and model; with what nobody used the rows add up to what was measured.",
    ),
    "energy_balance": (
        "Energy by who and where",
        "By day, node, model, team, namespace, workload, pod and container. Each dimension is the whole: never add two.",
    ),
    "kepler_pod": (
        "Kepler beside this",
        "Where Kepler's own series were collected: its running watts of each pod, and ours above idle in the same hours.",
    ),
    "cost": (
        "Cost and emissions",
        "By the configured prices and factors: for time held (allocated) and for time used, and for energy.",
    ),
    "coverage": (
        "Coverage",
        "For each signal, node and day: how much of the device time is known, and why the rest is not; the most unknown first.",
    ),
}

_GROUPS = (
    # group: beginnings of the columns in it
    (
        "time",
        ("observed_seconds", "unheld_seconds", "coverage", "device_seconds", "expected_device_seconds", "unknown_device_seconds"),
    ),
    ("what it is", ("make", "model")),
    ("activity", ("duty_cycle_percent", "gpu_usage", "gpu_util", "sm_active", "sm_occupancy", "tensor", "dram")),
    ("memory", ("memory_used_ratio", "memory_used_bytes", "memory_pressure", "memory_total_bytes")),
    ("clocks held back: counters", ("power_violation", "thermal_violation", "sync_boost_violation", "board_limit_violation")),
    (
        "clocks held back: reasons",
        ("sw_power", "hw_slowdown", "sync_boost_ratio", "sw_thermal", "hw_thermal", "hw_power", "any_throttle"),
    ),
    ("errors", ("xid", "pcie_replay")),
    ("links", ("pcie_tx", "pcie_rx", "nvlink")),
    ("energy and power", ("energy", "idle", "attributed", "unattributed", "closing", "power", "active", "held")),
    ("temperature and clocks", ("gpu_temp", "memory_temp", "sm_clock", "memory_clock")),
)


def group_of(column: str) -> str:
    """The heading over a figure's column; 'how known' for what says how it was made."""
    return next((group for group, starts in _GROUPS if column.startswith(starts)), "what and how known")


GROUP_ORDER = (*(group for group, _ in _GROUPS), "what and how known")
ROW_LABELS = ("code", "bucket", "value", "pod", "signal", "device_uuid")
"""The key that names a row, the first of these that the table has; it stands first and stays in sight."""
KEPT_SECONDS = frozenset({"observed_seconds", "unheld_seconds", "expected_device_seconds", "unknown_device_seconds"})
LEADING = {"finding": ("title", "severity", "evidence", "gpu_hours", "action")}
"""Columns that stand beside the row's name, before the keys: what a reader came for."""
MOST_FIRST = {
    "coverage": "unknown_device_seconds",
    "finding": "gpu_hours",
    "container": "observed_seconds",
    "container_saturation": "observed_seconds",
    "accelerator": "observed_seconds",
    "gpu_hour_ledger": "gpu_hours",
    "idle_by_holder": "idle_gpu_hours",
}
"""Tables that the page sorts by a figure, the largest first."""
FILES_ONLY = frozenset({"sql"})
LONG_TEXT = frozenset({"evidence", "rule", "thresholds", "action", "suppression", "boundness", "sharing_evidence"})
"""Columns of sentences, which a narrow column breaks."""


def is_on_page(column: str) -> bool:
    """Whether a column is shown on the page; statements and the seconds behind each ratio are in the files beside it."""
    return column not in FILES_ONLY and (not column.endswith("_seconds") or column in KEPT_SECONDS)
