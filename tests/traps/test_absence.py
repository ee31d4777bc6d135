"""Metrics that are not there: unknown, with a reason, and never 0; and zeros that are there, and are data."""

from __future__ import annotations

import pytest

from traps.results import Results, about, reason, samples

PROFILING = (
    "gpu_usage_avg",
    "sm_active_avg",
    "sm_active_max",
    "sm_occupancy_avg",
    "tensor_active_avg",
    "dram_active_avg",
    "dram_active_max",
)
ONE_OF_EACH_KIND = """
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 80x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9
"""


@samples(ONE_OF_EACH_KIND)
def test_t2_violation_counters_that_no_default_csv_has_are_unknown(results: Results) -> None:
    for row in (results.device(), results.container()):
        for cause in ("power", "thermal", "sync_boost", "board_limit"):
            assert reason(row, f"{cause}_violation_ratio") == "not_collected"
        assert reason(row, "any_throttle_ratio") == "not_collected"
        assert reason(row, "any_throttle_ratio_min") == "not_collected"


@samples(ONE_OF_EACH_KIND)
def test_t6_dcgm_226_an_h200_without_the_engine_field_has_no_usage_and_not_0(results: Results) -> None:
    assert reason(results.container(), "gpu_usage_avg") == "not_collected"
    # What is there says that it was busy.
    assert results.device()["gpu_util_ratio_avg"] == about(0.8)


@samples(ONE_OF_EACH_KIND)
def test_t6_dcgm_exporter_395_a_gpu_without_profiling_has_no_profiling_figures(results: Results) -> None:
    assert {reason(results.container(), figure) for figure in PROFILING} == {"not_collected"}
    assert results.device()["power_watts_avg"] == about(300)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 80x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.7x9
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.3x9
""")
def test_t6_dcgm_exporter_571_one_profiling_field_may_be_missing_beside_others(results: Results) -> None:
    assert results.container()["gpu_usage_avg"] == about(0.7)
    assert reason(results.container(), "tensor_active_avg") == "not_collected"


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="1g.12gb"} 0.6x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="1g.12gb"} 200x9
""")
def test_t6_dcgm_exporter_512_memory_of_mig_instances_may_be_missing(results: Results) -> None:
    for figure in ("memory_used_ratio_avg", "memory_used_ratio_max", "memory_pressure_ratio"):
        assert reason(results.container(), figure) == "not_collected"
    assert results.container()["gpu_usage_avg"] == about(0.6)


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p,GPU_I_ID="1"} 5000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$p,GPU_I_ID="1"} 5000x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,GPU_I_ID="2"} 0.5x9
""")
def test_t6_dcgm_exporter_397_one_instance_has_activity_and_its_neighbour_has_none(results: Results) -> None:
    assert reason(results.container("p"), "gpu_usage_avg") == "not_collected"
    assert results.container("q")["gpu_usage_avg"] == about(0.5)


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1"} 0.5x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,GPU_I_ID="1"} 200x9
""")
def test_t6_dcgm_exporter_726_no_pcie_and_nvlink_under_mig_is_not_no_traffic(results: Results) -> None:
    for direction in ("pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx"):
        figure = f"{direction}_bytes_per_second_avg"
        assert results.device()[figure] is None and results.device(instance_id="1")[figure] is None
        assert results.container()[figure] is None


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0x9
    DCGM_FI_DEV_MEM_COPY_UTIL{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.9x9
    DCGM_FI_DEV_GPU_TEMP{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 40x9
""")
def test_dcgm_exporter_216_gpu_util_0_on_a_mig_instance_is_not_idleness(results: Results) -> None:
    # NVML has no utilisation under MIG and prints 0: the instance was busy for nine tenths of the time.
    assert results.container()["gpu_usage_avg"] == about(0.9)
    assert results.device()["gpu_util_ratio_avg"] is None


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$q} 50x9
    kube_pod_container_resource_requests{$ksm,$p,uid="u1",node="n2",resource="nvidia_com_gpu"} 1x9
    kube_pod_status_phase{$ksm,namespace="ns",pod="p",uid="u1",phase="Running"} 1x9
""")
def test_t14_opencost_944_opencost_3900_a_pod_on_a_node_without_exporter_has_no_usage_of_0(results: Results) -> None:
    assert [row["gpu_usage_avg"] for row in results.containers()] == [None] * len(results.containers())
    assert all(row["node_name"] != "n2" or not row["observed_seconds"] for row in results.containers())


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0x59
    DCGM_FI_PROF_SM_ACTIVE{$gpu,$p} 0x9 _x50
    DCGM_FI_PROF_DRAM_ACTIVE{$gpu,$p} 0.5x29 0x29
    DCGM_FI_DEV_XID_ERRORS{$gpu,$p} 0x59
""")
def test_t16_zeros_are_data_and_absence_is_not(results: Results) -> None:
    row = results.container()
    assert (row["gpu_usage_avg"], row["gpu_usage_seen_seconds"]) == (0, about(3600))
    # Half of the hour at 0.5 and half at 0.
    assert row["dram_active_avg"] == about(0.25)
    # Seen for ten of sixty minutes: too little to be a figure, though all of it was 0.
    assert reason(row, "sm_active_avg") == "low_coverage"
    assert (row["xid_error_count"], row["xid_codes"]) == (0, [])


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 80x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.5x9
    DCGM_EXP_XID_ERRORS_COUNT{$other,xid="31",window_size_in_ms="300000"} 0x9
""")
def test_dcgm_exporter_700_no_xid_series_is_none_or_not_collected_and_no_0(results: Results) -> None:
    # DCGM 4.5.3 and later show the series from the first error on; older ones show 0; a CSV may leave it out.
    assert reason(results.container(), "xid_error_count")
    assert reason(results.container(), "xid_codes")


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x59
    DCGM_FI_DEV_GPU_UTIL{$other} 0x9
""")
def test_dcgm_exporter_570_a_device_that_vanishes_from_the_scrape_is_unseen_and_not_idle(results: Results) -> None:
    # Ten of the samples before its neighbour got a claim; the last holds a minute.
    assert results.device("GPU-b")["observed_seconds"] == about(600)
    # The window is two hours.
    assert results.device("GPU-b")["coverage_ratio"] == about(600 / 7200)
    assert results.device()["coverage_ratio"] == about(0.5)


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p} 40000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$p} 40000x9
    DCGM_FI_DEV_FB_RESERVED{$gpu,$p} 1000x9
""")
def test_t8_the_share_of_memory_leaves_out_what_is_reserved_and_the_total_has_it(results: Results) -> None:
    # 40000 / (40000 + 40000); the total is 81000 MiB.
    assert results.container()["memory_used_ratio_avg"] == about(0.5)
    assert results.device()["memory_total_bytes"] == about(81_000 * 1_048_576)


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p} 40000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$p} 40000x9
""")
def test_t8_without_the_reserved_memory_the_total_is_unknown_and_not_too_small(results: Results) -> None:
    assert results.container()["memory_used_ratio_avg"] == about(0.5)
    assert reason(results.device(), "memory_total_bytes") == "not_collected"


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p} 40000x9
    DCGM_FI_DEV_FB_TOTAL{$gpu,$p} 81000x9
""")
def test_t8_without_the_free_memory_the_share_is_of_the_total_with_what_is_reserved(results: Results) -> None:
    assert results.container()["memory_used_ratio_avg"] == about(40_000 / 81_000)
    assert results.device()["memory_total_bytes"] == about(81_000 * 1_048_576)


@samples(
    """
    nvidia_smi_power_draw_watts{$smi} 71.15x9
    nvidia_smi_mig_memory_used_bytes{$smi,gpu_instance_id="1"} 1e9x9
    nvidia_smi_mig_memory_free_bytes{$smi,gpu_instance_id="1"} 3e9x9
""",
    is_alone=True,
)
def test_nvidia_smi_leaves_out_what_does_not_apply_and_that_is_unknown(results: Results) -> None:
    rows = {row["gpu_instance_id"]: row for row in results.rows("report.device")}
    # No utilisation under MIG.
    assert rows[""]["gpu_util_ratio_avg"] is None
    assert rows[""]["power_watts_avg"] == about(71.15)
    assert rows["1"]["memory_used_ratio_avg"] == pytest.approx(0.25)


@samples("DCGM_FI_DEV_SM_CLOCK{$gpu} 139x9", is_alone=True)
def test_a_gpu_of_which_neither_use_nor_holder_is_told_is_not_free(results: Results) -> None:
    # Ten minutes of clocks from an exporter that names no pod on any GPU.
    hours = {
        (row["bucket"], row["cause"]): row["gpu_hours"]
        for row in results.rows("report.gpu_hour_ledger")
        if row["cause"] != "unseen"
    }
    assert hours == {("unknown", "no_permission"): about(10 / 60)}


@samples("DCGM_FI_DEV_GPU_UTIL{$gpu} 0x9", is_alone=True)
def test_a_gpu_that_does_nothing_is_not_free_where_no_source_names_holders(results: Results) -> None:
    hours = {row["bucket"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if row["cause"] != "unseen"}
    assert hours == {"unknown": about(10 / 60)}


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x9
    DCGM_FI_DEV_GPU_UTIL{$other} 0x9
""",
    is_alone=True,
)
def test_a_gpu_that_does_nothing_is_free_where_the_exporter_names_pods_of_others(results: Results) -> None:
    hours = {row["bucket"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if row["cause"] != "unseen"}
    assert hours == {"active_unmeasured": about(10 / 60), "free": about(10 / 60)}


@samples("DCGM_FI_PROF_PCIE_TX_BYTES{$gpu,$p} 1000x9", is_alone=True)
def test_little_traffic_alone_is_not_idleness(results: Results) -> None:
    hours = {row["bucket"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if row["namespace"]}
    assert hours == {"allocated_unmeasured": about(10 / 60)}


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 100x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9
""",
    is_alone=True,
)
def test_energy_without_a_known_idle_baseline_has_no_known_parts(results: Results) -> None:
    # Ten minutes at 300 W of a GPU of no known model that was never idle.
    found = [*results.rows("report.energy"), *results.rows("report.energy_balance")]
    for row in (row for row in found if row.get("namespace") == "ns" or row.get("dimension") in ("cluster", "workload")):
        assert (row["energy_joules"], row["unsplit_joules"], row["unattributed_joules"]) == (about(180_000), about(180_000), 0)
        assert {reason(row, f"{part}_joules") for part in ("active", "allocated_idle", "idle")} == {"idle_unknown"}
