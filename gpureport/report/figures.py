"""How report tables stand on the page: order, titles, groups of columns."""

from __future__ import annotations

TABLES = {
    # table: (title, sentence)
    "finding": (
        "Findings",
        "What deserves a look: rule, numbers, owner, what is at stake and what to do. The files also have the SQL that shows it.",
    ),
    "fleet": ("Clusters", "What each cluster has, how much of it was seen, and how much is unknown."),
    "gpu_hour_balance": (
        "GPU-hours against capacity",
        "The ledger's nine buckets against a capacity worked out without them. Each dimension is the whole, so never add two.",
    ),
    "gpu_hour_ledger": ("GPU-hour ledger", "Every GPU-hour of capacity in exactly one bucket, by device, day and holder."),
    "gpu_hour_course": ("Hour by hour", "GPUs there, held, active and effective in each hour, as far as they were seen."),
    "hour_of_week": ("Hours of the week", "The same by weekday and hour (UTC): when GPUs are held, and held idle."),
    "idle_by_holder": ("Who held idle GPUs", "Hours held or reserved without activity, largest first."),
    "period": ("This window and the one before", "Capacity, what became of it, and energy; each row is its own window's."),
    "gpu_hour_bridge": (
        "What changed",
        "From the window before to this one, step by step; the steps add up. Hours on GPUs that came or went stand apart.",
    ),
    "namespace_change": ("Whose hours changed", "By namespace, against the window before, scaled to the same length."),
    "finding_change": (
        "Findings, new and resolved",
        "Against the window before. A finding is the same if everything that it is about is the same.",
    ),
    "boundness": ("What limits the work", "By rules that each row states; no score."),
    "restated_day": ("Days stated anew", "Days whose samples came late: what was reported at first, and what is known now."),
    "runway": (
        "How long the GPUs will suffice",
        "By model, from at least four weeks of its past, with the error that such a forecast made before.",
    ),
    "demand_trend": (
        "Held day by day, and expected",
        "Past days as they were, and days to come with a band that eight of ten should fall into.",
    ),
    "rightsizing": (
        "Would it fit a smaller GPU?",
        "Containers alone on one GPU: what their busiest hour needed, and the MIG profile or smaller model that it fits.",
    ),
    "scheduler_pressure": (
        "Scheduler pressure",
        "What pods asked for and what there was, hour by hour, in OpenCost's sense and in Kubernetes' own. "
        "A device may be offered under several names, so never add resources.",
    ),
    "pod_wait": (
        "Waiting for accelerators",
        "How long pods waited for a node and then to start, by GPU model and size of the request.",
    ),
    "requested_use": (
        "Asked for and used",
        "What each container asked for of each of its GPUs, in percent and bytes, beside SM activity and memory in use.",
    ),
    "fragmentation": (
        "What was left",
        "Free accelerators and the largest request that still fitted on one node, every five minutes.",
    ),
    "node_free": ("Koordinator's nodes", "What healthy devices add up to, what of it is free, the largest request that fits."),
    "device_free": ("Koordinator's devices", "Health, topology, and how much of each device is given out and free."),
    "quota_fair_share": (
        "Quotas",
        "Who was guaranteed what, who got it, who lent and borrowed, who was short; integrals over the time that is known. "
        "Never add rows of several schedulers or resources, nor those that contain others.",
    ),
    "quota_pair": ("Short while others borrowed", "Inferred: no scheduler records whose loss was whose gain."),
    "quota_fairness": ("Fairness", "Derived: held over due (the lesser of fair share and demand), as one number."),
    "quota_pod": ("Pods and their quotas", "When pods waited, held, were over quota, and who might have preempted them."),
    "dra_claim": ("Resource claims", "What claims had, and how much of it was used."),
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
        "Where the energy went, by day, namespace, node and model. With what nobody used, the rows add up to what was measured.",
    ),
    "energy_balance": (
        "Energy by who and where",
        "By day, node, model, team, namespace, workload, pod and container. Each dimension is the whole, so never add two.",
    ),
    "kepler_pod": (
        "Kepler beside this",
        "Where Kepler's own series were collected: its running watts of each pod, and ours above idle in the same hours.",
    ),
    "cost": (
        "Cost and emissions",
        "By the configured prices and factors: for time held (allocated), for time used, and for energy.",
    ),
    "coverage": (
        "Coverage",
        "For each signal, node and day: how much of the device time is known, and why the rest is not; largest unknown first.",
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
