"""Energy and what it costs: idle, attributed, by holder; and what was allocated and used."""

from __future__ import annotations

from gpureport.figures.figure import Figure
from gpureport.figures.forms import BOARD, COUNTER, EITHER, IDLE, NOT_MAPPED, POWER, POWERS

ENERGY_FIGURES = {
    "idle_joules": Figure(
        "min(energy, idle_watts × s), in active and in other time; of a container its part of that while it held the device",
        POWERS,
        IDLE,
        EITHER,
    ),
    "attributed_joules": Figure("Σ active_joules + held_joules of its holders", POWERS, POWER, EITHER),
    "unattributed_joules": Figure(
        "energy above idle while it was unallocated, of active MIG instances without a holder, and over gaps in the counter",
        POWERS,
        POWER,
        EITHER,
    ),
    "closing_error_joules": Figure(
        "energy_joules - idle - attributed - unattributed; more than 1e-9 of it fails", POWERS, POWER, EITHER
    ),
    "counter_joules": Figure("growth of the energy counter, except over gaps and resets", ("energy_joules",), COUNTER),
    "integral_joules": Figure("∫ power dt over the time of counter_joules", POWERS, f"{COUNTER}; {BOARD}"),
    "counter_difference_joules": Figure("counter_joules - integral_joules", POWERS, f"{COUNTER}; {BOARD}"),
    "memory_used_bytes": Figure("∫ memory in use dt ÷ s in which it was known", ("fb_used_bytes",), NOT_MAPPED),
    "memory_used_bytes_max": Figure("largest memory in use of one instant", ("fb_used_bytes",), NOT_MAPPED),
    "duty_cycle_percent": Figure(
        "100 × ∫ gpu_util_ratio dt ÷ s in which it was known; on a MIG instance of gr_engine_active_ratio",
        ("gpu_util_ratio", "gr_engine_active_ratio"),
        NOT_MAPPED,
        (("gpu_util_ratio",), ("gr_engine_active_ratio",)),
    ),
    "active_joules": Figure(
        "Σ share × energy above idle of active spans: all for a sole holder; of several by their own utilization, under MIG by "
        "engine activity × compute slices",
        POWERS,
        POWER,
        EITHER,
    ),
    "held_joules": Figure("Σ energy above idle of spans without activity ÷ holders", POWERS, POWER, EITHER),
    "active_joules_kepler": Figure("Σ Kepler's share × energy above idle of all spans", POWERS, POWER, EITHER),
    "active_joules_unweighted": Figure("as active_joules, MIG activity not weighted by compute slices", POWERS, POWER, EITHER),
    "active_watts_avg": Figure("active_joules ÷ s whose energy is known", POWERS, POWER, EITHER),
    "active_watts_max": Figure("largest share × power above idle of an active span", POWERS, POWER, EITHER),
    "idle_watts": Figure(
        "power.idle_watts of the configuration; else the 5th percentile of the device's power in its free time of 28 days; else "
        "the median of that over its model; else what is documented of the model",
        ("power_watts",),
        IDLE,
    ),
    "never_active_joules": Figure(
        "held_joules + idle_joules of holders, on days on which they were never active on the device", POWERS, POWER, EITHER
    ),
    "allocated_gpu_hours": Figure(
        "Σ s held × part of the GPU (of sharers what each was given ÷ Σ, else 1 ÷ sharers; compute slices ÷ 7) ÷ 3600"
    ),
    "used_gpu_hours": Figure(
        "allocated_gpu_hours × mean of engine activity, else of GPU utilization, of what was held, hour by hour",
        ("gr_engine_active_ratio", "gpu_util_ratio"),
        ways=(("gr_engine_active_ratio",), ("gpu_util_ratio",)),
    ),
    "allocated_cost": Figure("allocated_gpu_hours × prices.gpu_hour of the model", absent="no price is configured"),
    "used_cost": Figure("used_gpu_hours × prices.gpu_hour of the model", absent="no price is configured; no activity is known"),
    "energy_kwh": Figure("energy ÷ 3.6e6", POWERS, POWER, EITHER),
    "facility_kwh": Figure("energy_kwh × carbon.pue", POWERS, POWER, EITHER),
    "energy_cost": Figure("facility_kwh × prices.kwh", POWERS, "no price is configured", EITHER),
    "co2e_grams": Figure(
        "Σ facility kWh of each hour × carbon.grams_per_kwh then", POWERS, "not configured for all hours", EITHER
    ),
    "co2e_market_grams": Figure(
        "Σ facility kWh of each hour × carbon.market_grams_per_kwh then", POWERS, "not configured for all hours", EITHER
    ),
    "reserved_joules": Figure(
        "energy of GPUs while a claim had them and no container held them: part of unallocated energy",
        POWERS,
        f"{POWER}; no look at claims on that day",
        EITHER,
    ),
    "hour_power_watts_max": Figure(
        "largest of the hours: Σ over GPUs of energy ÷ s in which the GPU was measured", POWERS, POWER, EITHER
    ),
    "measured_gpu_hours": Figure("Σ s whose energy is known × part of the GPU ÷ 3600; for unallocated energy s without a holder"),
    "unmeasured_gpu_hours": Figure("Σ s held × part of the GPU ÷ 3600 in hours whose energy is unknown"),
    "kepler_watts_avg": Figure("∫ Kepler's running watts of the pod dt ÷ s in which it showed it"),
    "kepler_watts_max": Figure("Kepler's largest watts of the pod"),
    "kepler_joules": Figure("∫ Kepler's running watts of the pod dt"),
    "above_idle_watts_avg": Figure("above_idle_joules ÷ s whose energy is known", POWERS, f"{POWER}; it held nothing", EITHER),
    "above_idle_joules": Figure("active_joules + held_joules of the same hours", POWERS, f"{POWER}; it held nothing", EITHER),
    "kepler_ratio": Figure("kepler_joules ÷ above_idle_joules", POWERS, f"{POWER}; it held nothing; nothing above idle", EITHER),
    "charged_joules": Figure("active_joules + held_joules, + idle by --idle-policy", POWERS, IDLE, EITHER),
    "sm_active_watts": Figure(
        "active_joules ÷ ∫ sm_active_ratio dt",
        (*POWERS, "sm_active_ratio"),
        POWER,
        (("energy_joules", "sm_active_ratio"), ("power_watts", "sm_active_ratio")),
    ),
}
