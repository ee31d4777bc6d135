"""What each figure of the report is: formula, signals behind it, when it is absent; and what the reasons for absence mean.

Plain values, read by the page, by ``docs/figures.md`` and by the tests that hold them to the SQL.
"""

from __future__ import annotations

from gpureport.figures.energy import ENERGY_FIGURES
from gpureport.figures.figure import Figure
from gpureport.figures.hours import HOUR_FIGURES
from gpureport.figures.quota import QUOTA_FIGURES
from gpureport.figures.reasons import REASONS
from gpureport.figures.scheduler import SCHEDULER_FIGURES
from gpureport.figures.telemetry import DEVICE_FIGURES

__all__ = ["FIGURES", "GROUPS", "REASONS", "Figure"]

GROUPS = {
    "GPU-hours, coverage and forecast": HOUR_FIGURES,
    "Activity, throttling, memory, links and power": DEVICE_FIGURES,
    "Energy and cost": ENERGY_FIGURES,
    "Scheduler and free capacity": SCHEDULER_FIGURES,
    "Quotas": QUOTA_FIGURES,
}
"""The figures by what they are about, under the headings of ``docs/figures.md``."""

FIGURES = {name: figure for group in GROUPS.values() for name, figure in group.items()}
"""Every figure of the report tables, in the order of the tables; seconds behind a ratio are named after it."""
