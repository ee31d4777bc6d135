"""One value that many series show: counted once."""

from __future__ import annotations

from traps.results import Results, about, reason, samples


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="1",GPU_I_PROFILE="1g.18gb"} 52.6x59
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="2",GPU_I_PROFILE="1g.18gb"} 52.6x59
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="3",GPU_I_PROFILE="1g.18gb"} 52.6x59
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="4",GPU_I_PROFILE="1g.18gb"} 52.6x59
""")
def test_t3_dcgm_exporter_317_power_on_four_mig_instances_is_the_boards_once(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(52.6)
    # 60 samples of 60 s: 52.6 W x 3600 s, and not four times that.
    assert results.device()["energy_joules"] == about(52.6 * 3600)
    assert results.dropped("power_watts") == {"copy": 180}


@samples("""
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,GPU_I_ID="1"} 0+6000000x10
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,GPU_I_ID="2"} 0+6000000x10
""")
def test_dcgm_exporter_257_slurm_job_exporter_55_energy_on_every_mig_instance_is_the_boards_once(results: Results) -> None:
    # Ten steps of 6e6 mJ.
    assert results.device()["energy_joules"] == about(60_000)
    assert [row["kind"] for row in results.rows("report.device") if row["energy_joules"] is not None] == ["gpu"]


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,vgpu="0"} 300x59
    DCGM_FI_DEV_POWER_USAGE{$gpu,$q,vgpu="1"} 300x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,vgpu="0"} 0.5x59
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q,vgpu="1"} 0.5x59
""")
def test_t4_opencost_3858_a_device_shared_by_two_pods_draws_its_power_once(results: Results) -> None:
    assert results.device()["observed_seconds"] == about(3600)
    assert results.device()["energy_joules"] == about(300 * 3600)
    for pod in ("p", "q"):
        assert results.container(pod)["gpu_usage_avg"] == about(0.5)
        assert (results.container(pod)["sharing_mode"], results.container(pod)["scope"]) == ("time-sliced", "device")


@samples("""
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p,prometheus_replica="a"} 0+6000000x10
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p,prometheus_replica="b"} 0+6000000x10
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,prometheus_replica="a"} 100x10
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,prometheus_replica="b"} 100x10
""")
def test_t18_two_replicas_are_one_device(results: Results) -> None:
    assert results.device()["energy_joules"] == about(60_000)
    # Eleven samples of 60 s.
    assert results.device()["observed_seconds"] == about(660)
    assert results.container()["observed_seconds"] == about(660)


@samples(
    """
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p,replica="a"} 0 _ 3000000 _ 6000000 _ 9000000 _
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p,replica="b"} _ 1500000 _ 4500000 _ 7500000 _ 10500000
""",
    step_seconds=15,
)
def test_t18_of_two_servers_that_scrape_in_turn_one_serves(results: Results) -> None:
    # Replica a alone, every 30 s: three steps of 3 kJ, and the last sample holds 30 s more.
    assert results.device()["energy_joules"] == about(9000)
    assert results.device()["observed_seconds"] == about(120)


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,replica="a"} 100x4 _x6 100x4
    DCGM_FI_DEV_POWER_USAGE{$gpu,replica="b"} _x6 300x3 _x5
""")
def test_t18_a_replica_serves_where_the_better_one_is_silent(results: Results) -> None:
    # a: 5 x 60 s, the last of them before the silence 180 s or until b speaks at 360 s: 0–360 s at 100 W.
    # b: at 360 to 540 s, four samples at 300 W, the last until a speaks again at 660 s. a: 660–960 s at 100 W.
    # 360 x 100 + 300 x 300 + 300 x 100 over 960 s.
    assert results.device()["observed_seconds"] == about(960)
    assert results.device()["power_watts_avg"] == about(156_000 / 960)


@samples("""
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID="GPU-a",Hostname="n1",job="dcgm",instance="10.0.0.1:9400"} 0+6000000x10
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID="GPU-a",Hostname="n1",job="gpu-metrics",instance="n1:9400"} 0+6000000x10
""")
def test_t18_one_exporter_scraped_by_two_jobs_counts_once(results: Results) -> None:
    assert results.device()["energy_joules"] == about(60_000)
    assert results.dropped("energy_joules") == {"copy": 11}


@samples("""
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$p} 0+6000000x9
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{$gpu,$q} _x10 60000000+6000000x9
""")
def test_dcgm_exporter_237_dcgm_exporter_428_a_pod_that_follows_another_does_not_cut_a_devices_counter(results: Results) -> None:
    # 20 samples, 19 steps of 6 kJ; the step from the first pod to the second is known too.
    assert results.device()["energy_joules"] == about(114_000)
    assert results.device()["energy_seen_seconds"] == about(1140)
    assert [results.container(pod)["observed_seconds"] for pod in ("p", "q")] == [about(600), about(600)]
    assert {results.container(pod)["sharing_mode"] for pod in ("p", "q")} == {"exclusive"}


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p,vgpu="0"} 40000x9
    DCGM_FI_DEV_FB_USED{$gpu,$q,vgpu="1"} 40000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$p,vgpu="0"} 40000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$q,vgpu="1"} 40000x9
""")
def test_dcgm_exporter_582_without_an_unlabelled_series_the_copies_are_the_devices(results: Results) -> None:
    # Every copy says 40000 used of 80000: the device's, once.
    assert results.device()["memory_used_ratio_avg"] == about(0.5)
    assert [results.container(pod)["memory_used_ratio_avg"] for pod in ("p", "q")] == [about(0.5), about(0.5)]


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,vgpu="0"} 250x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,vgpu="1"} 250x9
""")
def test_dcgm_exporter_587_a_container_with_two_replicas_of_a_gpu_holds_one(results: Results) -> None:
    assert results.container()["observed_seconds"] == about(600)
    assert results.device()["power_watts_avg"] == about(250)
    [row] = results.rows("report.container")
    assert (row["device_count"], row["device_seconds"]) == (1, about(600))


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,vgpu="0"} 250x4
    DCGM_FI_DEV_POWER_USAGE{$gpu} _x5 90x4
""")
def test_dcgm_exporter_642_the_device_goes_on_when_its_copies_end(results: Results) -> None:
    # Five samples at 250 W with the pod, five at 90 W without anybody.
    assert results.device()["observed_seconds"] == about(600)
    assert results.device()["power_watts_avg"] == about(170)
    assert results.container()["observed_seconds"] == about(300)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu} 45x9
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p,pod_uid="u1"} 30x9
    DCGM_FI_DEV_GPU_UTIL{$gpu,$q,pod_uid="u2"} 0x9
    DCGM_FI_DEV_FB_USED{$gpu} 30000x9
    DCGM_FI_DEV_FB_USED{$gpu,$p,pod_uid="u1"} 20000x9
    DCGM_FI_DEV_FB_USED{$gpu,$q,pod_uid="u2"} 9000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$p,pod_uid="u1"} 50000x9
    DCGM_FI_DEV_FB_FREE{$gpu,$q,pod_uid="u2"} 50000x9
""")
def test_dcgm_exporter_594_a_pods_own_memory_and_utilisation_are_not_the_devices(results: Results) -> None:
    assert results.device()["gpu_util_ratio_avg"] == about(0.45)
    # 30000 / (30000 + 50000), and not 20000 / 70000.
    assert results.container()["memory_used_ratio_avg"] == about(0.375)
    assert results.container("q")["memory_used_ratio_avg"] == about(0.375)
    scopes = {(row["metric"], row["pod"]): row["scope"] for row in results.lake_rows("series")}
    assert scopes[("DCGM_FI_DEV_GPU_UTIL", "p")] == "pod"
    assert scopes[("DCGM_FI_DEV_GPU_UTIL", "")] == "board"
    assert scopes[("DCGM_FI_DEV_FB_FREE", "p")] == "instance"


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="1",hpc_job="17"} 200x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="1",hpc_job="18"} 200x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",hpc_job="17"} 0.3x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",hpc_job="18"} 0.3x9
""")
def test_dcgm_exporter_602_the_copies_of_hpc_jobs_are_one_device_and_one_instance(results: Results) -> None:
    assert results.device()["energy_joules"] == about(200 * 600)
    assert results.device(instance_id="1")["gpu_usage_avg"] == about(0.3)
    assert results.device(instance_id="1")["observed_seconds"] == about(600)


@samples("""
    DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1",instance="10.0.0.1:9400"} 100x4
    DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",hostname="n1",instance="10.0.0.2:9400"} _x5 100x4
""")
def test_dcgm_exporter_655_a_node_label_in_lower_case_is_the_same_node(results: Results) -> None:
    assert (results.device()["node_name"], results.device()["observed_seconds"]) == ("n1", about(600))


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",GPU_I_PROFILE="1g.11gb"} 0.2x4
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="1",GPU_I_PROFILE="1g.12gb"} _x5 0.4x4
""")
def test_dcgm_exporter_544_a_profile_by_another_name_is_the_same_instance(results: Results) -> None:
    # Five samples of 0.2, five of 0.4.
    assert results.device(instance_id="1")["gpu_usage_avg"] == about(0.3)
    assert results.device(instance_id="1")["observed_seconds"] == about(600)


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 150x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"} 0.8x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="2",GPU_I_PROFILE="3g.40gb"} 0x9
""")
def test_dcgm_exporter_561_a_board_is_there_although_only_its_instances_are_shown(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(150)
    # Whole-GPU activity is nobody's mean of instances: it is the instances'.
    assert reason(results.device(), "gpu_usage_avg") == "instance_scope"
    assert results.device(instance_id="1")["gpu_usage_avg"] == about(0.8)
    assert results.device(instance_id="2")["gpu_usage_avg"] == 0
    assert (results.container()["gpu_instance_id"], results.container()["sharing_mode"]) == ("1", "mig")


@samples("""
    DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.1"} 100x4
    DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a",Hostname="n1",DCGM_FI_SYSTEM_DRIVER_VERSION="590.2"} _x5 100x4
""")
def test_a_driver_upgrade_changes_every_series_and_no_device(results: Results) -> None:
    assert (results.device()["observed_seconds"], results.device()["driver_version"]) == (about(600), "590.2")


@samples("""
    gpu_package_power{serial_number="S1",gpu_id="0",gpu_partition_id="0",gpu_compute_partition_type="cpx",hostname="n1"} 500x9
    gpu_package_power{serial_number="S1",gpu_id="0",gpu_partition_id="1",gpu_compute_partition_type="cpx",hostname="n1"} 0x9
    gpu_gfx_activity{serial_number="S1",gpu_id="0",gpu_partition_id="0",gpu_compute_partition_type="cpx",hostname="n1"} 70x9
    gpu_gfx_activity{serial_number="S1",gpu_id="0",gpu_partition_id="1",gpu_compute_partition_type="cpx",hostname="n1"} 0x9
""")
def test_amd_partitions_that_report_0_are_not_idle(results: Results) -> None:
    # Only partition 0 has the card's power and activity.
    assert results.device("S1")["power_watts_avg"] == about(500)
    assert results.device("S1")["gpu_util_ratio_avg"] == about(0.7)
    for row in results.rows("report.device"):
        if row["gpu_instance_id"]:
            assert row["power_watts_avg"] is None and row["gpu_util_ratio_avg"] is None
