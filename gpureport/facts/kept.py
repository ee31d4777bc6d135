"""Which facts are written."""

from __future__ import annotations

from gpureport.facts.day_state import KEPT_ONCE
from gpureport.facts.quotas import QUOTA_FACTS

KEPT = (
    "facts.ownership",
    "facts.device_hour",
    "facts.container_hour",
    "facts.pod_hour",
    "facts.link_hour",
    "facts.device_signal",
    "facts.xid_event",
    "facts.ungiven_use",
    "facts.node_day",
    "facts.ledger_hour",
    "facts.idle_power_hour",
    "facts.power_hour",
    "facts.device_power_hour",
    "facts.reserved_power_hour",
    "facts.kepler_hour",
    "facts.pod_workload",
    *KEPT_ONCE,
    *QUOTA_FACTS,
)
"""The facts that compute writes; the other facts exist only while it runs, or only for a report."""
