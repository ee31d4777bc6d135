"""Names that do not say the unit, or say a wrong one; rates that look like counters and counters that look like gauges."""

from __future__ import annotations

from traps.notation import SMI_UUID
from traps.results import Results, about, reason, samples


@samples("DCGM_FI_DEV_POWER_VIOLATION{$gpu,$p} 0+15e9x60")
def test_t1_dcgm_exporter_589_violation_counters_are_nanoseconds(results: Results) -> None:
    # 15e9 ns in each 60 s: 15 / 60 = 0.25; microseconds would give 250.
    assert results.container()["power_violation_ratio"] == about(0.25)
    # 60 steps of 15 s.
    assert results.container()["power_violation_seconds"] == about(900)


@samples("DCGM_FI_DEV_THERMAL_VIOLATION{$gpu,$p} 0+120e9x10")
def test_t1_dcgm_266_a_violation_counter_faster_than_time_is_unknown_and_neither_shown_nor_clamped(results: Results) -> None:
    # 120 s of violation in each 60 s cannot be.
    assert reason(results.container(), "thermal_violation_ratio") == "implausible"


@samples("""
    DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL{$gpu,$p} 0+15x10
    DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL{$gpu,$p} 5.5+0.6x10
""")
def test_t1_netdata_23785_the_same_counters_of_dcgm_4_7_are_seconds(results: Results) -> None:
    # 15 s in 60 s, 0.6 s in 60 s.
    assert results.container()["power_violation_ratio"] == about(0.25)
    assert results.container()["thermal_violation_ratio"] == about(0.01)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x10
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.5x10
    DCGM_FI_PROF_SM_ACTIVE{$gpu,$p} 0.009x10
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 1x10
""")
def test_t9_jobstats_52_gpu_util_is_percent_and_profiling_fields_are_ratios(results: Results) -> None:
    assert results.device()["gpu_util_ratio_avg"] == about(0.5)
    assert results.container()["gpu_usage_avg"] == about(0.5)
    # Not 0.00009 by a guess that small numbers are percent, and 1 is whole, not one percent.
    assert results.container()["sm_active_avg"] == about(0.009)
    assert results.container()["dram_active_avg"] == about(1)


@samples("""
    DCGM_FI_DEV_POWER_VIOLATION{$gpu,$p} 0+120e6x60
    DCGM_FI_DEV_CLOCKS_EVENT_REASONS{$gpu,$p} 1x60
""")
def test_t20_dcgm_285_a_little_power_violation_is_normal_and_no_throttling(results: Results) -> None:
    # 0.12 s in each 60 s, as boost clocks do at the limit: 0.002, and bit 0x1 (idle) is no throttling.
    assert results.container()["power_violation_ratio"] == about(0.002)
    assert results.container()["any_throttle_ratio"] == 0


@samples("""
    DCGM_FI_PROF_PCIE_TX_BYTES{$gpu,$p} 2e9 1e9 2e9 1e9
    DCGM_FI_PROF_PCIE_RX_BYTES{$gpu,$p} 0+1e9x3
""")
def test_dcgm_exporter_87_pcie_bytes_are_a_rate_however_they_are_declared(results: Results) -> None:
    # Four values of 60 s each: (2 + 1 + 2 + 1) / 4; falling is no reset of a counter.
    assert results.container()["pcie_tx_bytes_per_second_avg"] == about(1.5e9)
    # (0 + 1 + 2 + 3) / 4, and not a growth of 1e9 / 60.
    assert results.container()["pcie_rx_bytes_per_second_avg"] == about(1.5e9)


@samples("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{$gpu} 0 25000 25000 10000")
def test_dcgm_exporter_195_nvlink_bandwidth_total_is_a_rate_in_thousands_of_kib_per_second(results: Results) -> None:
    values = [
        row["nvlink_bytes_per_second"] for row in sorted(results.lake_rows("device_sample"), key=lambda row: row["seen_at"])
    ]
    assert values == [0, 25.6e9, 25.6e9, 10.24e9]  # DCGM makes "MB/s" of KiB/s by a division by 1000, so 1 is 1,024,000 bytes/s


@samples("""
    DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND{$gpu} 25e9x5
    DCGM_FI_DEV_POWER_USAGE{$gpu} 100x5
""")
def test_dcgm_exporter_472_both_directions_together_are_not_taken_for_one(results: Results) -> None:
    assert reason(results.device(), "nvlink_tx_bytes_per_second_avg") == "not_collected"
    assert reason(results.device(), "nvlink_rx_bytes_per_second_avg") == "not_collected"


@samples("""
    DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL{$gpu,$p} 0 60e9 60e9 180e9
    DCGM_FI_PROF_PCIE_TX_BYTES{$gpu,$p} 9e9 9e9 9e9 9e9
""")
def test_true_pcie_counters_are_preferred_to_the_sampled_rate(results: Results) -> None:
    # 60e9, 0 and 120e9 bytes in 60 s each: 180e9 / 180 s.
    assert results.container()["pcie_tx_bytes_per_second_avg"] == about(1e9)
    assert results.signal("pcie_tx_bytes_per_second")["source_metric"] == "DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL"
    assert list(results.signal("pcie_tx_bytes_per_second")["other_metrics"]) == ["DCGM_FI_PROF_PCIE_TX_BYTES"]


@samples("""
    DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL{$gpu,$p} 0 30e9 30e9 90e9
    DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL{$gpu,$p} 0+120e9x3
    DCGM_FI_PROF_SM_ACTIVE{$gpu,$p} 0.9x3
""")
def test_sm_activity_is_active_cycles_over_elapsed_ones_where_both_are_counted(results: Results) -> None:
    # 30/120, 0/120, 60/120, each for 60 s: (0.25 + 0 + 0.5) / 3; the largest 0.5.
    assert results.container()["sm_active_avg"] == about(0.25)
    assert results.container()["sm_active_max"] == about(0.5)


@samples("""
    DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS{$gpu,$p} 0 30e9 30e9 60e9
    DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS{$gpu,$p} 0x3
    DCGM_FI_DEV_CLOCKS_EVENT_REASONS{$gpu,$p} 12x3
""")
def test_clock_event_counters_are_preferred_to_point_samples_of_the_bitmask(results: Results) -> None:
    # 30 s + 0 s + 30 s of 180 s in which the growth is known; the bitmask (0x4 and 0x8) says always.
    assert results.container()["sw_power_cap_ratio"] == about(1 / 3)
    assert results.container()["hw_thermal_ratio"] == 0
    # What no counter says the bitmask says.
    assert results.container()["hw_slowdown_ratio"] == about(1)


@samples(
    """
    nvidia_smi_clocks_event_reasons_counters_sw_power_cap_seconds{$smi} 200 203.9 203.9
    nvidia_smi_utilization_gpu_ratio{$smi} 0.09 1 1
""",
    is_alone=True,
)
def test_nvidia_smi_seconds_typed_gauge_are_a_counter_and_its_utilisation_is_a_ratio(results: Results) -> None:
    device = results.device(SMI_UUID)
    # 3.9 s in the 120 s between the first and the last sample.
    assert device["sw_power_cap_ratio"] == about(3.9 / 120)
    # 60 s each: (0.09 + 1 + 1) / 3.
    assert device["gpu_util_ratio_avg"] == about(2.09 / 3)


@samples(
    """
    nvidia_smi_clocks_event_reasons_sw_power_cap{$smi} 1 1 0 0
    nvidia_smi_clocks_event_reasons_hw_slowdown{$smi} 0 1 1 0
""",
    is_alone=True,
)
def test_nvidia_smi_flags_are_the_bits_of_one_mask(results: Results) -> None:
    device = results.device(SMI_UUID)
    # Masks 0x4, 0xc, 0x8, 0x0 for 60 s each.
    assert (device["sw_power_cap_ratio"], device["hw_slowdown_ratio"]) == (about(0.5), about(0.5))
    assert device["any_throttle_ratio"] == about(0.75)


@samples("""
    gpu_energy_consumed{$amd} 0+6e9x3
    gpu_gfx_activity{$amd} 25x3
""")
def test_amd_energy_typed_gauge_is_a_counter_in_microjoules(results: Results) -> None:
    # 6e9 µJ = 6000 J a minute, three minutes between the first and the last sample.
    assert results.device("S1")["energy_joules"] == about(18_000)
    assert results.device("S1")["gpu_util_ratio_avg"] == about(0.25)


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL_RATIO{$gpu} 0 1 1 0
    DCGM_FI_DEV_GPU_UTIL_RATIO{$other} 37 80 100 3
""",
    is_alone=True,
)
def test_dcgm_4_6_a_ratio_in_percent_is_told_by_the_clusters_other_devices(results: Results) -> None:
    # Whole numbers up to 100 on GPU-b: percent, for GPU-a too: (0 + 1 + 1 + 0) / 4 %.
    assert results.device("GPU-b")["gpu_util_ratio_avg"] == about(0.55)
    assert results.device("GPU-a")["gpu_util_ratio_avg"] == about(0.005)


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL_RATIO{$gpu} 0 1 1 0
    DCGM_FI_DEV_GPU_UTIL_RATIO{$other} 0.37 0.8 1 0.03
""",
    is_alone=True,
)
def test_dcgm_4_7_a_ratio_is_a_ratio_where_any_device_shows_fractions(results: Results) -> None:
    assert results.device("GPU-b")["gpu_util_ratio_avg"] == about(0.55)
    assert results.device("GPU-a")["gpu_util_ratio_avg"] == about(0.5)


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL_RATIO{$gpu} 0 1 1 0
    DCGM_FI_DEV_GPU_UTIL_RATIO{$other} 1 1 1 1
    DCGM_FI_DEV_BOARD_POWER_WATTS{$gpu} 100x3
""",
    is_alone=True,
)
def test_a_ratio_that_may_be_percent_on_a_day_that_does_not_tell_is_unknown(results: Results) -> None:
    # 1 is all of the time or a hundredth of it.
    assert reason(results.device(), "gpu_util_ratio_avg") == "ambiguous_unit"
    assert results.dropped("gpu_util_ratio") == {"ambiguous_unit": 4}
    assert results.dropped("gpu_util_ratio", "GPU-b") == {"ambiguous_unit": 4}
    assert results.signal("gpu_util_ratio")["sample_count"] == 0


@samples("DCGM_FI_DEV_GPU_UTIL_RATIO{$gpu} 0x9", is_alone=True)
def test_a_ratio_that_is_0_all_day_is_0_in_either_unit(results: Results) -> None:
    assert results.device()["gpu_util_ratio_avg"] == 0
    assert results.dropped("gpu_util_ratio") == {}
