"""What each figure of the report is: formula, signals behind it, when it is absent; and what the reasons for absence mean.

Plain values, read by the page, by ``docs/figures.md`` and by the tests that hold them to the SQL.
"""

from __future__ import annotations

from gpureport.figures.energy import ENERGY_FIGURES
from gpureport.figures.figure import Figure
from gpureport.figures.hours import HOUR_FIGURES
from gpureport.figures.quota import QUOTA_FIGURES, QUOTA_REASONS
from gpureport.figures.scheduler import SCHEDULER_FIGURES
from gpureport.figures.telemetry import DEVICE_FIGURES

REASONS = {
    "not_collected": "the exporter does not publish this metric, or the server did not keep it",
    "low_coverage": "seen for too little of its time (--figure-min-coverage)",
    "single_sample": "a counter with too few samples, or samples too far apart, has no known growth",
    "disabled": "switched off in the configuration",
    "board_scope": "the exporter gives this for the whole board only, not for a MIG instance",
    "instance_scope": "given for each MIG instance; see the rows of the instances",
    "link_unknown": "what the link carries is unknown to exporter (PCIe), configuration (links.<model>) and data sheet (NVLink)",
    "pods_not_mapped": "every pod reads 0 while the device is busy: the exporter could not tell whose processes they are",
    "partial_devices": "a sum over devices, some of which are unknown",
    "lifetime_unknown": "neither kube-state-metrics nor snapshots say how long the holder lived; labels say when it was seen",
    "idle_unknown": "what the device draws at idle is unknown: neither it nor another of its model was ever seen free",
    "not_estimated": "the measurements do not show what it cost",
    "not_found": "there was no such finding in that window",
    "no_smaller": "no MIG profile of its model is large enough, or the model has none",
    "too_few_days": "fewer than four weeks of usable days",
    "beyond_horizon": "not within the days that the forecast covers",
    "is_past": "the day is over; what was held is beside it",
    "is_future": "the day has not come yet",
    "not_configured": "no price or factor is configured for it (prices, carbon)",
    "pods_not_listed": "pods could not be listed, so it is unknown which containers ran with it",
    "device_unknown": "it is unknown which device of the telemetry this is",
    "admin_access": "it only watched the device (admin access), which takes nothing",
    "labels_only": "known from labels of the telemetry alone, which do not say this",
    "no_time": "no time of it was measured",
    "no_pod": "no pod did so in this window",
    "none_allocatable": "no node has any to give, so there is nothing to divide by",
    "not_looked_at": "no snapshot of Kubernetes' nodes and claims was taken on that day (gpureport snapshot)",
    "not_a_holder": "no series of a device names it as a holder, so nothing can be attributed to it",
    "not_active": "it was never active while it held the device",
    "partial": "seen for part of the time",
    "not_exported": "nothing of the cluster was exported on that day: its GPUs are those of the nearest day with data",
    "exporter_down": "all devices and signals of the node fell silent together: the exporter, the node or the scrape was down",
    "device_unseen": "a device fell silent while others on its node were seen: it is gone, or the driver lost it",
    "no_exporter": "Kubernetes lists accelerators on the node, and no exporter reports them",
    "no_driver": "the node's PCI labels show an accelerator and its capacity does not: no driver, or no device plugin",
    "not_in_exporter_config": "the exporter runs and could give it, but its list of metrics lacks it (dcgm-exporter: the CSV)",
    "not_published": "the exporter that reports the device does not publish it",
    "not_on_model": "GPUs of other models have it and those of this model do not, or cannot by their data sheet",
    "virtual_gpu": "the guest of a virtual GPU has no power, energy or temperature; its host's exporter has them",
    "no_dcp": "no profiling metric at all: GPU or driver give none, another tool holds the counters, or the CSV lists none",
    "mig": "not defined for a GPU that is split into MIG instances",
    "driver": "this driver does not give it (reserved memory: from 510 on; memory of H100 instances: not in 535)",
    "xid_absent_until_first_error": "inferred: no error yet (since 4.5.3 DCGM has no series before the first), or not collected",
    "no_pod_labels": "the device was busy, or pods requested one, and its series name no pod",
    "no_permission": "the device was busy and no series of the whole cluster names anybody: the exporter may not ask the kubelet",
    "blank": "all values were DCGM's blanks, which mean that there is none",
    "nan": "the values were not numbers",
    "infinite": "the values were infinite, which this signal cannot be",
    "out_of_range": "the values were impossible for this signal: a share above 1, a negative count",
    "not_applicable": "the values meant 'not applicable': the largest number of an integer type (AMD)",
    "over_total": "used and free memory added up to more than the total: one of them is wrong",
    "dead": "the counter stood at exactly 0 for an hour or more while other signals showed work",
    "implausible": "impossible for the model (beyond its board power, under 1 % of its power), or against another signal",
    "outlier": "a few counter values were away from those around them",
    "beyond_bound": "the counter grew faster than the device can",
    "backward_step": "the counter fell, and not by a reset: the step is no growth",
    "stuck": "the energy counter all but stood still while the GPU drew power",
    **QUOTA_REASONS,
    "ambiguous_unit": "a share that may be a percentage, on a day that does not show which",
}
"""The codes in ``unknown_reasons`` and in ``report.coverage``, each with a sentence for people."""


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
