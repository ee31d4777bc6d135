"""What each figure of the report is: formula, signals behind it, when it is absent; and what the reasons for absence mean.

Plain values, read by the page, by ``docs/figures.md`` and by the tests that hold them to the SQL.
"""

from __future__ import annotations

from gpureport.figures.figure import Figure
from gpureport.figures.quota import QUOTA_FIGURES, QUOTA_REASONS
from gpureport.figures.scheduler import SCHEDULER_FIGURES

REASONS = {
    "not_collected": "the exporter does not publish this metric, or the server did not keep it",
    "low_coverage": "seen for too little of the time to be printed (--figure-min-coverage)",
    "single_sample": "a counter with samples too few or too far apart has no growth that can be told",
    "disabled": "switched off in the configuration (saturation.enabled)",
    "board_scope": "the exporter gives this for the whole board only, not for a MIG instance",
    "instance_scope": "given per MIG instance; see the instances' rows",
    "link_unknown": "neither the exporter says how the link runs nor the configuration what it carries (links.<model>)",
    "pods_not_mapped": "every pod reads 0 while the device is busy: the exporter could not tell whose processes they are",
    "partial_devices": "a sum over devices of which some are unknown",
    "lifetime_unknown": "nothing of kube-state-metrics says how long the holder lived; labels say when it was seen",
    "idle_unknown": "nothing tells what the device draws at idle: it was never seen free, nor was another of its model",
    "not_estimated": "what it cost cannot be told from what is measured",
    "not_found": "there was no such finding in that window",
    "no_smaller": "no MIG profile of its model is large enough, or the model has none",
    "too_few_days": "less than four weeks of days that count are there",
    "beyond_horizon": "not within the days of which the forecast says something",
    "is_past": "the day is over: what was held stands beside it",
    "is_future": "the day is to come",
    "not_configured": "no price or factor is configured for it (prices, carbon)",
    "pods_not_listed": "pods may not be listed, so nothing tells which containers ran with it",
    "device_unknown": "nothing tells which device of the telemetry it is",
    "admin_access": "it only watched the device (admin access), which takes nothing",
    "labels_only": "known by labels of telemetry alone, which do not say it",
    "no_time": "no time of it was measured",
    "no_pod": "no pod did so in this window",
    "none_allocatable": "no node has any of it to give, so there is nothing to divide by",
    "not_looked_at": "Kubernetes' nodes and claims were not looked at on that day (gpureport snapshot)",
    "not_a_holder": "no series of a device names it as a holder, so nothing can be attributed to it",
    "not_active": "it was never active while it held the device",
    "partial": "seen for a part of the time",
    "exporter_down": "the node's devices fell silent together, in all signals: the exporter, the node or the scrape was down",
    "device_unseen": "a device fell silent while others of its node were seen: it is gone, or the driver lost it",
    "no_exporter": "Kubernetes lists accelerators on the node and no exporter tells of them",
    "no_driver": "accelerator hardware by the node's PCI labels, and none in its capacity: no driver, or no device plugin",
    "not_in_exporter_config": "the exporter runs and can give it: it lacks in its list of metrics (dcgm-exporter: the CSV)",
    "not_published": "the exporter that tells of the device does not publish it",
    "not_on_model": "GPUs of other models have it and those of this one do not",
    "no_dcp": "no profiling metric at all: the GPU or driver gives none, another tool holds the counters, or the CSV lists none",
    "mig": "not defined for a GPU that is cut into MIG instances",
    "driver": "this driver does not give it (reserved memory: from 510 on; memory of H100 instances: not in 535)",
    "xid_absent_until_first_error": "inferred: no error yet (DCGM from 4.5.3 has no series before the first), or not collected",
    "no_pod_labels": "the device was busy, or pods asked for one, and its series name nobody",
    "no_permission": "the device was busy and no series of the whole cluster names anybody: the exporter may not ask the kubelet",
    "blank": "values came and all say that there is none: DCGM's blanks",
    "nan": "values came that are no numbers",
    "infinite": "values came that are infinite where the signal allows none",
    "out_of_range": "values came that the signal cannot have: a share above 1, a negative count",
    "not_applicable": "values came that mean not applicable: an integer type's largest (AMD)",
    "over_total": "memory used and free came to more than the total: one of them is wrong",
    "dead": "the counter stood at exactly 0 for an hour or more of work that others show",
    **QUOTA_REASONS,
    "ambiguous_unit": "a share that may be percent, on a day that does not tell which",
}
"""The codes in ``unknown_reasons`` and in ``report.coverage``, each with a sentence for people."""


_BOARD = "no sample of the signal; a MIG instance, for which only the board's is known"
_THROTTLE = "no sample of the bitmask; the violation counters do not replace it"
_NOT_MAPPED = "no sample of the signal; every pod reads 0 while the device is busy"
_POWER = "neither power nor an energy counter was seen"
_COUNTER = "fewer than two samples of an energy counter"
_IDLE = f"{_POWER}; no baseline is known (idle_source)"


def _mean(signal: str, absent: str = "") -> Figure:
    return Figure(f"∫ {signal} dt ÷ s in which it was known", (signal,), absent)


def _largest(signal: str, absent: str = "") -> Figure:
    return Figure(f"largest sample of {signal}", (signal,), absent)


def _violation(signal: str) -> Figure:
    return Figure(f"growth of {signal} ÷ s over which its growth is known", (signal,), f"fewer than two samples; {_BOARD}")


def _reason_bits(bits: str, counter: str = "") -> Figure:
    formula = f"s with {bits} set in throttle_reasons ÷ s in which it was known"
    if not counter:
        return Figure(formula, ("throttle_reasons",), _THROTTLE)
    ways = ((counter,), ("throttle_reasons",))
    return Figure(
        f"growth of the reason's own counter ({counter}); without it {formula}", (counter, "throttle_reasons"), _THROTTLE, ways
    )


def _link_share(signal: str, *link: str) -> Figure:
    formula = f"mean of {signal} ÷ bytes/s that the link can carry in one direction"
    return Figure(formula, (signal, *link), f"no sample of {signal}; the link's capacity is neither exported nor configured")


_PCIE_LINK = ("pcie_link_generation", "pcie_link_width")
_MEMORY = ("fb_used_bytes", "fb_free_bytes")
_ACTIVITY = ("gpu_util_ratio", "gr_engine_active_ratio", "sm_active_ratio")
_ANY_ACTIVITY = tuple((signal,) for signal in _ACTIVITY)
_POWERS = ("energy_joules", "power_watts")
_EITHER = (("energy_joules",), ("power_watts",))
_VIOLATIONS = (
    "power_violation_seconds",
    "thermal_violation_seconds",
    "sync_boost_violation_seconds",
    "board_limit_violation_seconds",
)

FIGURES = {
    "observed_seconds": Figure("s in which any signal of the device was in force; of several devices the union"),
    "device_seconds": Figure("the same, added over devices"),
    "unheld_seconds": Figure(
        "s in which the device was seen, but for those in which anybody held it",
        absent="of a GPU split into instances: see theirs; where a GPU in use names nobody",
    ),
    "gpu_hours": Figure(
        "h of whole GPUs: of several holders equal parts, of a MIG instance its compute slices of 7 (of 4 on an A30)"
    ),
    "capacity_gpu_hours": Figure("h of GPUs, seen and expected together; reckoned without the buckets"),
    "effective_gpu_hours": Figure("h held and active with SM activity of 0.5 or more", ("sm_active_ratio",)),
    "allocated_ineffective_gpu_hours": Figure("h held and active with SM activity below 0.5", ("sm_active_ratio",)),
    "allocated_busy_gpu_hours": Figure("h held and active while SM activity is not known", _ACTIVITY, ways=_ANY_ACTIVITY),
    "allocated_idle_gpu_hours": Figure("h held and not active", _ACTIVITY, ways=_ANY_ACTIVITY),
    "reserved_idle_gpu_hours": Figure("h that a resource claim had and no container held"),
    "stranded_gpu_hours": Figure(
        "h that nobody had and that no pod that the scheduler refused could have; slices of which no MIG instance is made"
    ),
    "free_gpu_hours": Figure("h that nobody had"),
    "unknown_gpu_hours": Figure("h not seen; or held with no signal of activity; or active with nobody named; or without labels"),
    "unavailable_gpu_hours": Figure("h in which the node was not ready or cordoned, or the GPU unhealthy or tainted"),
    "usable_gpu_hours": Figure("h in which GPUs were seen and could be used"),
    "held_gpu_hours": Figure("h of usable_gpu_hours in which a container held them"),
    "active_gpu_hours": Figure("h held and active, however deep", _ACTIVITY, ways=_ANY_ACTIVITY),
    "held_ratio": Figure("held_gpu_hours ÷ usable_gpu_hours"),
    "held_idle_ratio": Figure("allocated_idle_gpu_hours ÷ usable_gpu_hours", _ACTIVITY, ways=_ANY_ACTIVITY),
    "idle_gpu_hours": Figure("allocated_idle_gpu_hours + reserved_idle_gpu_hours", _ACTIVITY, ways=_ANY_ACTIVITY),
    "idle_ratio": Figure("idle_gpu_hours of the namespace ÷ that of all", _ACTIVITY, ways=_ANY_ACTIVITY),
    "cumulative_idle_ratio": Figure("Σ idle_ratio down to the namespace, the largest first", _ACTIVITY, ways=_ANY_ACTIVITY),
    "idle_cost": Figure(
        "Σ idle_gpu_hours × prices.gpu_hour of the model",
        _ACTIVITY,
        "no price is configured for all its models",
        _ANY_ACTIVITY,
    ),
    "earlier_gpu_hours": Figure("h at stake in the window before"),
    "earlier_allocated_gpu_hours": Figure(
        "h held in the window before, scaled to this window's length", _ACTIVITY, ways=_ANY_ACTIVITY
    ),
    "allocated_change_gpu_hours": Figure("allocated_gpu_hours − earlier_allocated_gpu_hours", _ACTIVITY, ways=_ANY_ACTIVITY),
    "earlier_effective_gpu_hours": Figure(
        "h held and active with SM activity of 0.5 or more in the window before, scaled to this window's length",
        ("sm_active_ratio",),
    ),
    "effective_change_gpu_hours": Figure("effective_gpu_hours − earlier_effective_gpu_hours", ("sm_active_ratio",)),
    "freed_gpu_hours": Figure(
        "held h × (1 − 1 ÷ instances of the profile that fit on a GPU)",
        ("sm_active_ratio", "sm_occupancy_ratio", "dram_active_ratio", "fb_used_bytes"),
    ),
    "busiest_sm_active_ratio": Figure("largest mean of an hour with ten minutes or more of it", ("sm_active_ratio",)),
    "busiest_sm_occupancy_ratio": Figure("largest mean of an hour with ten minutes or more of it", ("sm_occupancy_ratio",)),
    "busiest_dram_active_ratio": Figure("largest mean of an hour with ten minutes or more of it", ("dram_active_ratio",)),
    "earlier_seen_gpu_hours": Figure("h of GPUs seen, by the day's first facts"),
    "seen_gpu_hours": Figure("h of GPUs seen"),
    "earlier_held_gpu_hours": Figure("h that somebody held, by the day's first facts"),
    "at_stake_cost": Figure(
        "gpu_hours × prices.gpu_hour of the model", absent="no price is configured, or models of several prices"
    ),
    "low_gpu_hours": Figure("the same weekday of the last week + the tenth percentile of all changes over as many weeks"),
    "expected_gpu_hours": Figure("the same weekday of the last week + the median of all changes over as many weeks"),
    "high_gpu_hours": Figure("the same weekday of the last week + the ninetieth percentile of all changes over as many weeks"),
    "daily_held_gpu_hours": Figure("mean held_gpu_hours of the last week's days that count"),
    "daily_usable_gpu_hours": Figure("mean usable_gpu_hours of the last week's days that count"),
    "weekly_change_gpu_hours": Figure("median of held_gpu_hours − that of a week before, over the back-test's days"),
    "short_gpu_hours": Figure("Σ max(0, expected_gpu_hours − daily_usable_gpu_hours) over the days of the forecast"),
    "backtest_error_ratio": Figure("Σ |held − what the forecast would have said a week before| ÷ Σ held"),
    "naive_error_ratio": Figure("Σ |held − held a week before| ÷ Σ held"),
    "backtest_within_ratio": Figure("days between low and high ÷ days of the back-test"),
    "difference_gpu_hours": Figure("capacity less the nine buckets: 0, or the program is wrong"),
    "coverage_ratio": Figure(
        "seen s ÷ s that could have been seen: the window's for a device, the holder's life on it for a container",
        absent="of a container, while its lifetime is unknown",
    ),
    "gpu_usage_avg": _mean("gr_engine_active_ratio"),
    "power_violation_ratio": _violation("power_violation_seconds"),
    "thermal_violation_ratio": _violation("thermal_violation_seconds"),
    "sync_boost_violation_ratio": _violation("sync_boost_violation_seconds"),
    "board_limit_violation_ratio": _violation("board_limit_violation_seconds"),
    "sw_power_cap_ratio": _reason_bits("0x4", "sw_power_cap_active_ratio"),
    "hw_slowdown_ratio": _reason_bits("0x8"),
    "sync_boost_ratio": _reason_bits("0x10", "sync_boost_active_ratio"),
    "sw_thermal_ratio": _reason_bits("0x20", "sw_thermal_active_ratio"),
    "hw_thermal_ratio": _reason_bits("0x40", "hw_thermal_active_ratio"),
    "hw_power_brake_ratio": _reason_bits("0x80", "hw_power_brake_active_ratio"),
    "any_throttle_ratio": _reason_bits("any bit of 0xfc"),
    "any_throttle_ratio_min": Figure(
        "largest of the four violation ratios",
        _VIOLATIONS,
        "none of the four is known",
        tuple((violation,) for violation in _VIOLATIONS),
    ),
    "memory_used_ratio_avg": Figure("∫ used ÷ (used + free) dt ÷ s in which both were known", _MEMORY),
    "memory_used_ratio_max": Figure("largest used ÷ (used + free) of one instant", _MEMORY),
    "memory_pressure_ratio": Figure("s with used ÷ (used + free) ≥ the threshold ÷ s in which both were known", _MEMORY),
    "memory_total_bytes": Figure(
        "total; used + free + reserved where it is not published; of an accelerator the holder's own limit where there is one",
        ("fb_total_bytes", *_MEMORY, "fb_reserved_bytes"),
        "neither the total nor the reserved memory is published: used + free alone is too small",
        (("fb_total_bytes",), (*_MEMORY, "fb_reserved_bytes")),
    ),
    "xid_error_count": Figure("times the code changed to another non-zero one: a lower bound", ("xid_code",), _BOARD),
    "xid_codes": Figure("their distinct codes", ("xid_code",), _BOARD),
    "dram_active_avg": _mean("dram_active_ratio"),
    "dram_active_max": _largest("dram_active_ratio"),
    "sm_active_avg": _mean("sm_active_ratio"),
    "sm_active_max": _largest("sm_active_ratio"),
    "sm_occupancy_avg": _mean("sm_occupancy_ratio"),
    "tensor_active_avg": _mean("tensor_active_ratio"),
    "pcie_tx_bytes_per_second_avg": _mean("pcie_tx_bytes_per_second", _BOARD),
    "pcie_rx_bytes_per_second_avg": _mean("pcie_rx_bytes_per_second", _BOARD),
    "nvlink_tx_bytes_per_second_avg": _mean("nvlink_tx_bytes_per_second", _BOARD),
    "nvlink_rx_bytes_per_second_avg": _mean("nvlink_rx_bytes_per_second", _BOARD),
    "pcie_tx_ratio_avg": _link_share("pcie_tx_bytes_per_second", *_PCIE_LINK),
    "pcie_rx_ratio_avg": _link_share("pcie_rx_bytes_per_second", *_PCIE_LINK),
    "nvlink_tx_ratio_avg": _link_share("nvlink_tx_bytes_per_second"),
    "nvlink_rx_ratio_avg": _link_share("nvlink_rx_bytes_per_second"),
    "energy_joules": Figure("growth of the counter, over gaps too; else ∫ power dt", _POWERS, _BOARD, _EITHER),
    "power_watts_avg": _mean("power_watts", _BOARD),
    "power_watts_max": _largest("power_watts", _BOARD),
    "power_limit_watts_max": _largest("power_limit_watts", _BOARD),
    "gpu_util_ratio_avg": _mean("gpu_util_ratio", _BOARD),
    "gpu_temp_celsius_avg": _mean("gpu_temp_celsius", _BOARD),
    "gpu_temp_celsius_max": _largest("gpu_temp_celsius", _BOARD),
    "memory_temp_celsius_avg": _mean("memory_temp_celsius", _BOARD),
    "memory_temp_celsius_max": _largest("memory_temp_celsius", _BOARD),
    "sm_clock_hertz_avg": _mean("sm_clock_hertz", _BOARD),
    "sm_clock_hertz_max": _largest("sm_clock_hertz", _BOARD),
    "memory_clock_hertz_avg": _mean("memory_clock_hertz", _BOARD),
    "memory_clock_hertz_max": _largest("memory_clock_hertz", _BOARD),
    "pcie_replay_count": Figure(
        "growth of the counter, over gaps too", ("pcie_replay_count",), f"fewer than two samples; {_BOARD}"
    ),
    "idle_joules": Figure(
        "least(energy, idle_watts × s), over active and other time; of a container its part of that while it held the device",
        _POWERS,
        _IDLE,
        _EITHER,
    ),
    "attributed_joules": Figure("Σ active_joules + held_joules of its holders", _POWERS, _POWER, _EITHER),
    "unattributed_joules": Figure(
        "energy above idle while nobody held it, of active MIG instances that nobody held, and over gaps of the counter",
        _POWERS,
        _POWER,
        _EITHER,
    ),
    "closing_error_joules": Figure(
        "energy_joules - idle - attributed - unattributed; more than 1e-9 of it fails", _POWERS, _POWER, _EITHER
    ),
    "counter_joules": Figure("growth of the energy counter, without that over gaps and resets", ("energy_joules",), _COUNTER),
    "integral_joules": Figure("∫ power dt over the time of counter_joules", _POWERS, f"{_COUNTER}; {_BOARD}"),
    "counter_difference_joules": Figure("counter_joules - integral_joules", _POWERS, f"{_COUNTER}; {_BOARD}"),
    "memory_used_bytes": Figure("∫ memory in use dt ÷ s in which it was known", ("fb_used_bytes",), _NOT_MAPPED),
    "memory_used_bytes_max": Figure("largest memory in use of one instant", ("fb_used_bytes",), _NOT_MAPPED),
    "duty_cycle_percent": Figure(
        "100 × ∫ gpu_util_ratio dt ÷ s in which it was known; on a MIG instance of gr_engine_active_ratio",
        ("gpu_util_ratio", "gr_engine_active_ratio"),
        _NOT_MAPPED,
        (("gpu_util_ratio",), ("gr_engine_active_ratio",)),
    ),
    "active_joules": Figure(
        "Σ share × energy above idle of active spans: all for a sole holder; of several by their own utilisation, under MIG by "
        "engine activity × compute slices",
        _POWERS,
        _POWER,
        _EITHER,
    ),
    "held_joules": Figure("Σ energy above idle of spans without activity ÷ holders", _POWERS, _POWER, _EITHER),
    "active_joules_kepler": Figure("Σ Kepler's share × energy above idle of all spans", _POWERS, _POWER, _EITHER),
    "active_joules_unweighted": Figure("as active_joules, MIG activity not weighted by compute slices", _POWERS, _POWER, _EITHER),
    "active_watts_avg": Figure("active_joules ÷ s whose energy is known", _POWERS, _POWER, _EITHER),
    "active_watts_max": Figure("largest share × power above idle of an active span", _POWERS, _POWER, _EITHER),
    "idle_watts": Figure(
        "power.idle_watts of the configuration; else the 5th percentile of the device's power in its free time of 28 days; else "
        "the median of that over its model; else its lowest power",
        ("power_watts",),
        _IDLE,
    ),
    "never_active_joules": Figure(
        "held_joules + idle_joules of holders on days on which they never were active on the device", _POWERS, _POWER, _EITHER
    ),
    "allocated_gpu_hours": Figure("Σ s held × part of the GPU (1 ÷ sharers, compute slices ÷ 7) ÷ 3600"),
    "used_gpu_hours": Figure(
        "allocated_gpu_hours × mean of engine activity, else of GPU utilisation, of what was held, hour by hour",
        ("gr_engine_active_ratio", "gpu_util_ratio"),
        ways=(("gr_engine_active_ratio",), ("gpu_util_ratio",)),
    ),
    "allocated_cost": Figure("allocated_gpu_hours × prices.gpu_hour of the model", absent="no price is configured"),
    "used_cost": Figure("used_gpu_hours × prices.gpu_hour of the model", absent="no price is configured; no activity is known"),
    "energy_kwh": Figure("energy ÷ 3.6e6", _POWERS, _POWER, _EITHER),
    "facility_kwh": Figure("energy_kwh × carbon.pue", _POWERS, _POWER, _EITHER),
    "energy_cost": Figure("facility_kwh × prices.kwh", _POWERS, "no price is configured", _EITHER),
    "co2e_grams": Figure(
        "Σ facility kWh of each hour × carbon.grams_per_kwh then", _POWERS, "not configured for all hours", _EITHER
    ),
    "co2e_market_grams": Figure(
        "Σ facility kWh of each hour × carbon.market_grams_per_kwh then", _POWERS, "not configured for all hours", _EITHER
    ),
    "reserved_joules": Figure(
        "energy of GPUs while a claim had them and no container held them: a part of nobody's",
        _POWERS,
        f"{_POWER}; no look at claims on that day",
        _EITHER,
    ),
    "hour_power_watts_max": Figure(
        "largest of the hours: Σ over GPUs of energy ÷ s in which the GPU was measured", _POWERS, _POWER, _EITHER
    ),
    "measured_gpu_hours": Figure("Σ s whose energy is known × part of the GPU ÷ 3600; of nobody's part s that nobody held"),
    "unmeasured_gpu_hours": Figure("Σ s held × part of the GPU ÷ 3600 in hours whose energy is unknown"),
    "kepler_watts_avg": Figure("∫ Kepler's running watts of the pod dt ÷ s in which it showed it"),
    "kepler_watts_max": Figure("Kepler's largest watts of the pod"),
    "kepler_joules": Figure("∫ Kepler's running watts of the pod dt"),
    "above_idle_watts_avg": Figure("above_idle_joules ÷ s whose energy is known", _POWERS, f"{_POWER}; it held nothing", _EITHER),
    "above_idle_joules": Figure("active_joules + held_joules of the same hours", _POWERS, f"{_POWER}; it held nothing", _EITHER),
    "kepler_ratio": Figure(
        "kepler_joules ÷ above_idle_joules", _POWERS, f"{_POWER}; it held nothing; nothing above idle", _EITHER
    ),
    "charged_joules": Figure("active_joules + held_joules, + idle by --idle-policy", _POWERS, _IDLE, _EITHER),
    "sm_active_watts": Figure(
        "active_joules ÷ ∫ sm_active_ratio dt",
        (*_POWERS, "sm_active_ratio"),
        _POWER,
        (("energy_joules", "sm_active_ratio"), ("power_watts", "sm_active_ratio")),
    ),
    **SCHEDULER_FIGURES,
    **QUOTA_FIGURES,
}
"""Every figure of the report tables, in the order of the tables; seconds behind a ratio are named after it."""
