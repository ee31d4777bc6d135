"""Values that lie: left out and counted by reason, never bent into range."""

from __future__ import annotations

from traps.results import Results, about, reason, samples


@samples("DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 80 686103 80 808334905 60 4294967295 1980 60")
def test_dcgm_199_dcgm_exporter_418_utilisation_above_100_percent_is_garbage(results: Results) -> None:
    assert results.dropped("gpu_util_ratio") == {"out_of_range": 4}
    # Kept: 80 at 0 s and at 120 s, 60 at 240 s and at 420 s. Their median step of 120 s makes the gap limit 360 s, so each
    # reaches the next: 120, 120, 180 s, and the last one step of 120 s. (80 x 240 + 60 x 300) / 540 %.
    assert results.device()["gpu_util_ratio_avg"] == about((0.8 * 240 + 0.6 * 300) / 540)


@samples("""
    DCGM_FI_DEV_GPU_TEMP{$gpu} 40 2147483632 2147483633 2147483634 2147483635 40
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu} 1000 9223372036854775792 9223372036854775795 9223372036854775807 2000 3000
    DCGM_FI_DEV_POWER_USAGE{$gpu} 100 140737488355328 140737488355331 100 100 100
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu} 0.5 140737488355330 0.5 0.5 0.5 0.5
""")
def test_slurm_job_exporter_30_gpu_monitoring_tools_97_blanks_of_every_type_are_no_values(results: Results) -> None:
    assert results.dropped("gpu_temp_celsius") == {"blank": 4}
    assert results.dropped("energy_joules") == {"blank": 3}
    assert results.dropped("power_watts") == {"blank": 2}
    assert results.dropped("gr_engine_active_ratio") == {"blank": 1}
    row = results.device()
    assert (row["gpu_temp_celsius_max"], row["power_watts_max"], row["gpu_usage_avg"]) == (40, about(100), about(0.5))
    # 1 J, then 2 J and 3 J: the growth over the blanks counts in the total.
    assert row["energy_joules"] == about(2)


@samples("DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.6 0.6 140737488355328 140737488355328 0.6 0.6")
def test_dcgm_exporter_307_another_profiler_leaves_a_gap_and_no_0(results: Results) -> None:
    # 0.6 wherever it is known.
    assert results.container()["gpu_usage_avg"] == about(0.6)
    assert results.dropped("gr_engine_active_ratio") == {"blank": 2}


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu} 100 NaN 100 +Inf 100 -5 100
    DCGM_FI_DEV_FB_USED{$gpu} 10 10 NaN 10 10 10 10
""")
def test_what_is_no_number_infinite_or_negative_is_left_out_and_counted(results: Results) -> None:
    assert results.dropped("power_watts") == {"nan": 1, "infinite": 1, "out_of_range": 1}
    assert results.device()["power_watts_avg"] == about(100)
    assert results.dropped("fb_used_bytes") == {"nan": 1}


@samples("""
    DCGM_FI_DEV_CLOCKS_EVENT_REASONS{$gpu,$p} 4 0.5 4 3000000000 4
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0 0 78.5 0 0
""")
def test_half_a_bit_and_half_a_code_are_left_out_and_counted(results: Results) -> None:
    assert results.dropped("throttle_reasons") == {"out_of_range": 2}
    assert results.dropped("xid_code") == {"out_of_range": 1}
    # 4 at 0, 120 and 240 s: the software power cap all of the time.
    assert results.container()["sw_power_cap_ratio"] == 1
    assert results.container()["xid_error_count"] == 0


@samples("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu} 3000 4000 1000 2000")
def test_an_energy_counter_that_the_driver_reset_loses_nothing_that_is_known(results: Results) -> None:
    # 3 → 4 J: 1. Reset: at least the 1 J that it says after. 1 → 2 J: 1.
    assert results.device()["energy_joules"] == about(3)
    # The two steps of 60 s that were no reset.
    assert results.device()["energy_seen_seconds"] == about(120)


@samples("""
    DCGM_FI_PROF_SM_ACTIVE{$gpu,GPU_I_ID="1"} 0.5 0.5 1.07 0.5
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1"} 1 1 1 1
""")
def test_dcgm_152_activity_above_1_on_mig_is_left_out_and_not_clamped(results: Results) -> None:
    row = results.device(instance_id="1")
    assert (row["sm_active_avg"], row["sm_active_max"]) == (about(0.5), about(0.5))
    assert row["gpu_usage_avg"] == 1
    assert results.dropped("sm_active_ratio", instance_id="1") == {"out_of_range": 1}


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="2",GPU_I_PROFILE="3g.40gb"} 0.333333x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"} 1x9
""")
def test_dcgm_138_dcgm_248_activity_of_large_instances_that_saturates_early_is_shown_as_read(results: Results) -> None:
    # One compute instance saturates a 3g at a third: no factor is made up for it.
    assert results.container("p")["gpu_usage_avg"] == about(0.333333)
    assert results.container("q")["gpu_usage_avg"] == 1


STUCK = """
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x89
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x89
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.4x89
"""


@samples(STUCK)
def test_dcgm_exporter_662_engine_activity_stuck_at_0_for_an_hour_of_work_is_dead(results: Results) -> None:
    # 90 minutes of exactly 0 at 100 % and with memory at 0.4: the counter is dead, and not the GPU.
    assert reason(results.container(), "gpu_usage_avg") == "dead"
    assert results.dropped("gr_engine_active_ratio") == {"dead": 90}
    assert results.container()["dram_active_avg"] == about(0.4)


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x89
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x89
    DCGM_FI_PROF_SM_ACTIVE{$gpu,$p} 0.05x89
""")
def test_sm_activity_contradicts_a_dead_engine_too(results: Results) -> None:
    assert reason(results.container(), "gpu_usage_avg") == "dead"
    assert results.container()["sm_active_avg"] == about(0.05)


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x99
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 0x9 100x89
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 80x9 330x89
    DCGM_FI_DEV_ENFORCED_POWER_LIMIT{$gpu,$p} 700x99
""")
def test_power_well_above_idle_contradicts_a_dead_engine_too(results: Results) -> None:
    # 80 W idle and a limit of 700 W: from 80 + 0.4 x 620 = 328 W on it works.
    assert reason(results.container(), "gpu_usage_avg") == "dead"


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x99
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 0x9 100x89
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 80x9 325x89
    DCGM_FI_DEV_ENFORCED_POWER_LIMIT{$gpu,$p} 700x99
""")
def test_power_a_little_above_idle_proves_nothing(results: Results) -> None:
    assert results.container()["gpu_usage_avg"] == 0


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x29 _x60
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x29 _x60
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.4x29 _x60
""")
def test_half_an_hour_of_0_is_no_proof(results: Results) -> None:
    assert results.container()["gpu_usage_avg"] == 0
    assert results.dropped("gr_engine_active_ratio") == {}


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x89
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x89
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.01x89
    DCGM_FI_PROF_SM_ACTIVE{$gpu,$p} 0x89
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 133x89
    DCGM_FI_DEV_ENFORCED_POWER_LIMIT{$gpu,$p} 700x89
    DCGM_FI_PROF_PCIE_RX_BYTES{$gpu,$p} 25e9x89
""")
def test_pcie_copies_keep_gpu_util_at_100_and_the_engine_truly_at_0(results: Results) -> None:
    # As the H200 recording shows: neither memory, nor SMs, nor 133 W of 700 W contradict the 0.
    assert results.container()["gpu_usage_avg"] == 0
    assert results.dropped("gr_engine_active_ratio") == {}


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x89
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 30x89
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.4x89
""")
def test_a_gpu_that_is_half_idle_proves_nothing(results: Results) -> None:
    assert results.container()["gpu_usage_avg"] == 0
    assert results.dropped("gr_engine_active_ratio") == {}


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 6e-05x89
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x89
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.4x89
""")
def test_almost_0_is_a_living_counter(results: Results) -> None:
    assert results.container()["gpu_usage_avg"] == about(6e-5)


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p} 50000 50000 60000 50000
    DCGM_FI_DEV_FB_FREE{$gpu,$p} 30000 30000 60000 30000
    DCGM_FI_DEV_FB_TOTAL{$gpu,$p} 80000x3
""")
def test_used_and_free_that_are_more_than_the_total_are_left_out(results: Results) -> None:
    # 60000 + 60000 of 80000 MiB cannot be; elsewhere 50000 / 80000.
    assert (results.container()["memory_used_ratio_avg"], results.container()["memory_used_ratio_max"]) == (
        about(0.625),
        about(0.625),
    )
    counted = [results.dropped(name).get("over_total", 0) for name in ("fb_used_bytes", "fb_free_bytes")]
    assert max(counted) == 1


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p} 50000x3
    DCGM_FI_DEV_FB_FREE{$gpu,$p} 29001x3
    DCGM_FI_DEV_FB_RESERVED{$gpu,$p} 1000x3
    DCGM_FI_DEV_FB_TOTAL{$gpu,$p} 80000x3
""")
def test_a_mebibyte_of_rounding_is_no_contradiction(results: Results) -> None:
    # 50000 + 29001 + 1000 is 1 MiB above 80000: each part is rounded.
    assert results.container()["memory_used_ratio_avg"] == about(50_000 / 79_001)
    assert results.dropped("fb_used_bytes") == {}


@samples("""
    gpu_package_power{$amd} 300 255 300 65535 300
    gpu_junction_temperature{$amd} 60 4294967295 60 2147483647 60
    gpu_used_vram{$amd} 18446744073709551615 1000 1000 1000 1000
""")
def test_amd_the_largest_integers_mean_not_applicable(results: Results) -> None:
    assert results.dropped("power_watts", "S1") == {"not_applicable": 2}
    assert results.dropped("gpu_temp_celsius", "S1") == {"not_applicable": 2}
    assert results.dropped("fb_used_bytes", "S1") == {"not_applicable": 1}
    assert (results.device("S1")["power_watts_avg"], results.device("S1")["gpu_temp_celsius_max"]) == (about(300), 60)


@samples("""
    gpu_average_package_power{$amd} 0x9
    gpu_gfx_activity{$amd} 50x9
""")
def test_0_w_of_a_gpu_that_is_on_is_no_power(results: Results) -> None:
    # Ten samples of a missing sensor: what the GPU drew is unknown, not 0 J.
    row = results.device("S1")
    assert (row["gpu_util_ratio_avg"], row["power_watts_avg"], row["energy_joules"]) == (about(0.5), None, None)
    assert results.dropped("power_watts", "S1") == {"implausible": 10}


@samples("DCGM_FI_DEV_POWER_USAGE{$gpu} 255x9")
def test_255_watts_of_an_nvidia_gpu_are_255_watts(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(255)
    assert results.dropped("power_watts") == {}


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu} 700x9
    DCGM_FI_DEV_POWER_USAGE{$gpu} 300x9
""")
def test_a_signal_of_which_every_value_is_left_out_is_unknown_and_its_values_are_counted(results: Results) -> None:
    assert results.device()["gpu_util_ratio_avg"] is None
    assert (results.signal("gpu_util_ratio")["sample_count"], results.dropped("gpu_util_ratio")) == (0, {"out_of_range": 10})
    assert results.signal("power_watts")["sample_count"] == 10


# 20 samples a minute apart at 300 W: 19 steps of 18 kJ, and a last one of which only power tells.
STEADY = """
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x20
    DCGM_FI_DEV_ENFORCED_POWER_LIMIT{$gpu} 700x20
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x20
"""


@samples(STEADY + "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu} 2600000000000+18000000x9 2600161999000+18000000x10")
def test_amdsmi_115_an_energy_counter_that_goes_back_by_1_j_adds_nothing(results: Results) -> None:
    assert results.dropped("energy_joules") == {"backward_step": 1}
    assert results.device()["energy_joules"] == about(20 * 18_000)


@samples(STEADY + "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu} 2600000000000+18000000x9 0 2600198000000+18000000x9")
def test_an_energy_counter_that_reads_0_once_adds_nothing(results: Results) -> None:
    assert results.dropped("energy_joules") == {"outlier": 1}
    assert results.device()["energy_joules"] == about(20 * 18_000)


@samples(STEADY + "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu} 2600000000000x20")
def test_amdsmi_38_rocm_smi_lib_180_a_stuck_energy_counter_is_none(results: Results) -> None:
    assert results.dropped("energy_joules") == {"stuck": 20}
    assert results.device()["energy_joules"] == about(21 * 18_000)  # power alone tells of the last sample's minute too


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9 1000000 300x10
    DCGM_FI_DEV_POWER_MGMT_LIMIT{$gpu} 700x20
""")
def test_power_of_a_megawatt_is_none(results: Results) -> None:
    assert results.dropped("power_watts") == {"implausible": 1}
    assert results.device()["energy_joules"] == about(22 * 18_000)
    assert results.device()["power_watts_max"] == about(300)


@samples("DCGM_FI_DEV_POWER_VIOLATION{$gpu,$p} 1000000000000+6000000000x9 0 1066000000000+6000000000x9")
def test_a_violation_counter_that_reads_0_once_is_no_violation(results: Results) -> None:
    assert results.container()["power_violation_ratio"] == about(0.1)


@samples(
    """
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x59
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p} 0+36000000x59
    DCGM_FI_DEV_POWER_USAGE{$other,$p} 300x59
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$other,$p} 0+9000000x59
    """.replace("$gpu", 'UUID="GPU-a",Hostname="n1",modelName="NVIDIA H100 80GB HBM3"').replace(
        "$other", 'UUID="GPU-b",Hostname="n1"'
    ),
    is_alone=True,
)
def test_a_counter_of_twice_or_half_the_power_is_a_finding_and_its_energy_the_counters(results: Results) -> None:
    # 59 steps of 60 s: 600 W x 3,540 s and 150 W x 3,540 s, where 300 W were measured.
    assert [results.device(uuid)["energy_joules"] for uuid in ("GPU-a", "GPU-b")] == [about(2_124_000), about(531_000)]
    found = {row["gpu_model"]: row["evidence"] for row in results.rows("report.finding") if row["code"] == "GR004"}
    assert [text.partition(" times")[0].rpartition(" ")[2] for _, text in sorted(found.items())] == ["0.50", "2.00"]


STAIRS = " ".join(f"{72_000_000 * number}x3" for number in range(15))


@samples(
    f"""
    DCGM_FI_DEV_GPU_UTIL{{$gpu}} 80x59
    DCGM_FI_DEV_GPU_UTIL{{$gpu,$p}} 60x59
    DCGM_FI_DEV_GPU_UTIL{{$gpu,$q}} 20x59
    DCGM_FI_DEV_POWER_USAGE{{$gpu}} 300x59
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{$gpu}} {STAIRS}
    """.replace("$gpu", 'UUID="GPU-a",Hostname="n1",modelName="NVIDIA H100 80GB HBM3"'),
    is_alone=True,
)
def test_a_counter_that_refreshes_late_makes_no_power_that_was_not_there(results: Results) -> None:
    # 72 kJ every fourth minute are 1,200 W of that minute; the board drew 300 W.
    found = {row["pod"]: row["active_watts_max"] for row in results.rows("report.container_power")}
    assert found["q"] < found["p"] <= 300
