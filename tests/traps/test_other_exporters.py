"""Exporters beside NVIDIA's, and several exporters on one device."""

from __future__ import annotations

from traps.notation import SMI_UUID
from traps.results import Results, about, samples


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9
    nvidia_smi_power_draw_watts{uuid="GPU-a",node="n1",job="smi"} 310x9
""")
def test_of_two_exporters_the_preferred_one_serves_and_the_other_is_named(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(300)
    signal = results.signal("power_watts")
    assert (signal["source_metric"], signal["exporter"]) == ("DCGM_FI_DEV_POWER_USAGE", "dcgm-exporter")
    assert list(signal["other_metrics"]) == ["nvidia_smi_power_draw_watts"]


@samples(
    """
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300 _ 300 _ 300 _ 300 _ 300 _
    nvidia_smi_power_draw_watts{uuid="GPU-a",node="n1",job="smi"} _ 310x8
""",
    step_seconds=30,
)
def test_the_preferred_exporter_serves_although_another_is_scraped_more_often(results: Results) -> None:
    # Five samples of 60 s each.
    assert results.device()["power_watts_avg"] == about(300)
    assert results.device()["observed_seconds"] == about(300)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x9
    nvidia_smi_power_draw_watts{uuid="GPU-a",node="n1",job="smi"} 310x9
""")
def test_an_exporter_that_names_nobody_ends_nobodys_hold(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(310)
    assert results.container()["observed_seconds"] == about(600)


@samples("""
    DCGM_FI_DEV_BOARD_POWER_WATTS{$gpu} 300x9
    DCGM_FI_DEV_POWER_USAGE{$gpu} 305x9
    dcgm_power_usage{uuid="GPU-a",Hostname="n1"} 309x9
""")
def test_of_three_eras_on_one_device_the_newest_serves(results: Results) -> None:
    assert results.device()["power_watts_avg"] == about(300)
    assert set(results.signal("power_watts")["other_metrics"]) == {"DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage"}


@samples("""
    hw_power_watts{hw_id="X",hw_sensor_location="card",node="n1"} 100x9
    hw_power_watts{hw_id="X",hw_sensor_location="gpu",node="n1"} 60x9
    hw_energy_joules_total{hw_id="X",hw_sensor_location="card",node="n1"} 0+6000x9
    hw_energy_joules_total{hw_id="X",hw_sensor_location="gpu",node="n1"} 0+3600x9
    hw_gpu_utilization_ratio{hw_id="X",hw_gpu_task="compute",node="n1"} 0.7x9
    hw_gpu_utilization_ratio{hw_id="X",hw_gpu_task="copy",node="n1"} 0.1x9
""")
def test_xpumd_sensors_and_engines_of_one_card_are_not_added(results: Results) -> None:
    row = results.device("X")
    assert (row["power_watts_avg"], row["gpu_util_ratio_avg"]) == (about(100), about(0.7))
    # Nine steps of 6000 J.
    assert row["energy_joules"] == about(54_000)


@samples("""
    xpum_engine_ratio{uuid="X",node="n1",kube_namespace="ns",kube_pod="p",kube_container="c"} 0.5x9
    xpum_engine_group_ratio{uuid="X",type="compute",node="n1"} 0.4454x9
    xpum_power_watts{uuid="X",node="n1",kube_namespace="ns",kube_pod="p",kube_container="c"} 1x9
""")
def test_xpumanager_112_xpum_ratios_are_no_percent(results: Results) -> None:
    row = results.device("X")
    assert (row["gpu_util_ratio_avg"], row["gpu_usage_avg"]) == (about(0.5), about(0.4454))
    assert results.device("X")["power_watts_avg"] == about(1)
    assert results.pods() == ["p"]


@samples("""
    duty_cycle{accelerator_id="GPU-a",make="nvidia",model="nvidia-l4",node="n1",$p} 40x9
    duty_cycle{accelerator_id="GPU-a",make="nvidia",model="nvidia-l4",node="n1",$q} 40x9
    memory_used{accelerator_id="GPU-a",make="nvidia",model="nvidia-l4",node="n1",$p} 6e9x9
    memory_total{accelerator_id="GPU-a",make="nvidia",model="nvidia-l4",node="n1",$p} 24e9x9
    duty_cycle{phase="x"} 99x9
""")
def test_gke_names_that_anybody_may_use_count_only_with_an_accelerator(results: Results) -> None:
    row = results.device()
    assert (row["gpu_util_ratio_avg"], row["memory_total_bytes"]) == (about(0.4), about(24e9))
    assert [each["device_uuid"] for each in results.rows("report.device")] == ["GPU-a"]


@samples("""
    container_accelerator_duty_cycle{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$p} 12x9
    container_accelerator_duty_cycle{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$q} 12x9
    container_accelerator_memory_used_bytes{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$p} 2030405060x9
    container_accelerator_memory_used_bytes{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$q} 2030405060x9
    container_accelerator_memory_total_bytes{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$p} 20304050607x9
    container_accelerator_memory_total_bytes{acc_id="GPU-a",make="nvidia",model="tesla-p100",node="n1",$q} 20304050607x9
""")
def test_cadvisor_repeats_a_devices_values_for_each_container_and_they_are_the_devices(results: Results) -> None:
    row = results.device()
    assert (row["gpu_util_ratio_avg"], row["memory_total_bytes"]) == (about(0.12), about(20_304_050_607))
    assert results.pods() == ["p", "q"]
    assert row["observed_seconds"] == about(600)


@samples("""
    kepler_node_gpu_watts{gpu_uuid="GPU-a",gpu="0",gpu_name="T4",vendor="nvidia",node_name="n1"} 17x9
    kepler_node_gpu_joules_total{gpu_uuid="GPU-a",gpu="0",gpu_name="T4",vendor="nvidia",node_name="n1"} 0+1020x9
""")
def test_keplers_own_gpu_series_serve_where_nobody_else_measures(results: Results) -> None:
    # 17 W are 1020 J a minute; nine steps.
    assert results.device()["power_watts_avg"] == about(17)
    assert results.device()["energy_joules"] == about(9180)
    assert results.device()["node_name"] == "n1"


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 100x9
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x9
    kepler_pod_gpu_watts{pod_id="u",pod_name="p",pod_namespace="ns",state="running",pod="kepler-x"} 60x9
    kepler_pod_gpu_watts{node_name="n1",pod_id="u",pod_name="p",pod_namespace="ns",state="terminated"} 900x9
    kepler_pod_gpu_joules_total{node_name="n1",pod_id="u",pod_name="p",pod_namespace="ns",state="running"} 9000 _ 10 20x6
""")
def test_keplers_running_watts_stand_beside_ours_and_its_falling_joules_are_not_read(results: Results) -> None:
    [row] = results.rows("report.kepler_pod")
    assert (row["pod"], row["kepler_watts_avg"], row["kepler_joules"]) == ("p", about(60), about(60 * 600))
    assert row["kepler_watts_max"] == about(60)
    # Never free, and of no model: what it draws at idle is unknown, and so is what is above that.
    names = ("above_idle_joules", "above_idle_watts_avg", "active_joules_kepler", "kepler_ratio")
    assert [row[name] for name in names] == [None] * 4
    assert row["unknown_reasons"] == dict.fromkeys(names, "idle_unknown")


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,modelName="Tesla T4",$p} 57x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,modelName="Tesla T4",$q} 57x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.5x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q} 0.5x9
    kepler_pod_gpu_watts{node_name="n1",pod_id="u",pod_name="p",pod_namespace="ns",state="running"} 60x9
    kepler_pod_gpu_watts{node_name="n1",pod_id="v",pod_name="q",pod_namespace="ns",state="running"} 20x9
""")
def test_sharers_of_whom_only_kepler_tells_share_by_its_watts(results: Results) -> None:
    # 40 W above the 17 W that are documented, for ten minutes, in parts of 3 : 1.
    rows = {row["pod"]: row for row in results.rows("report.container_power")}
    assert {pod: (row["active_joules"], row["method"], row["scope"]) for pod, row in rows.items()} == {
        "p": (about(18_000), "kepler_share", "pod"),
        "q": (about(6_000), "kepler_share", "pod"),
    }


@samples("""
    amd_gpu_gfx_activity{serial_number="S1",gpu_id="0",gpu_partition_id="NA",hostname="n1",namespace="",pod="",container=""} 25x9
    gpu_gfx_activity{source="a program of somebody"} 75x9
""")
def test_amd_with_its_prefix_and_empty_labels_and_a_strangers_metric_of_that_name(results: Results) -> None:
    [row] = results.rows("report.device")
    assert (row["device_uuid"], row["gpu_util_ratio_avg"]) == ("S1", about(0.25))
    assert results.pods() == []


@samples("""
    DCGM_FI_DEV_POWER_VIOLATION_total{$gpu,$p} 0+15000000000x9
    DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total{$gpu,$p} 0+12000000x9
""")
def test_counters_under_the_name_that_openmetrics_gives_them(results: Results) -> None:
    assert results.container()["power_violation_ratio"] == about(0.25)  # 15 s of every minute
    assert results.device()["energy_joules"] == about(9 * 12_000)


@samples(
    """
    HostCoreUtilization{deviceidx="0",deviceuuid="GPU-a",node="n1",pod="hami-device-plugin-x2",namespace="kube-system"} 60x9
    HostGPUMemoryUsage{deviceidx="0",deviceuuid="GPU-a",node="n1",pod="hami-device-plugin-x2",namespace="kube-system"} 4e9x9
    Device_utilization_desc_of_container{podnamespace="ns",podname="p",ctrname="c",deviceuuid="GPU-a",node="n1"} 45x9
    Device_utilization_desc_of_container{podnamespace="ns",podname="q",ctrname="c",deviceuuid="GPU-a",node="n1"} 15x9
    vGPU_device_memory_usage_in_bytes{podnamespace="ns",podname="p",ctrname="c",deviceuuid="GPU-a",node="n1"} 3e9x9
    vGPU_device_memory_usage_in_bytes{podnamespace="ns",podname="q",ctrname="c",deviceuuid="GPU-a",node="n1"} 1e9x9
""",
    is_alone=True,
)
def test_hami_before_2_9_names_its_holders_and_not_its_device_plugin(results: Results) -> None:
    assert results.pods() == ["p", "q"]
    assert results.device()["gpu_util_ratio_avg"] == about(0.6)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,pod="t-x1",namespace="ops",exported_pod="p",exported_namespace="ns",exported_container="c"} 50x4 _x4
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} _x5 50x4
    DCGM_FI_DEV_GPU_UTIL{$other,pod="t-x2",namespace="ops"} 0x9
""")
def test_honor_labels_switched_on_within_the_day_loses_no_time(results: Results) -> None:
    assert results.pods() == ["p"]
    assert results.container()["observed_seconds"] == about(600)


@samples("""
    nvidia_smi_power_draw_watts{uuid="GPU-a",instance="10.0.0.9:9835"} 90x9
    nvidia_smi_xid_errors_total{uuid="GPU-a",xid="31",instance="10.0.0.9:9835"} 4x9
""")
def test_a_counter_of_xids_that_does_not_rise_says_that_there_was_none(results: Results) -> None:
    assert results.device()["xid_error_count"] == 0


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu} 50x9
    nvidia_smi_power_draw_watts{uuid="GPU-a",instance="n1-alias:9835",job="smi"} 90x19
""")
def test_the_scraped_address_is_a_nodes_name_only_where_no_exporter_names_it(results: Results) -> None:
    assert results.device()["node_name"] == "n1"


@samples(f"""
    DCGM_FI_DEV_POWER_USAGE{{UUID="{SMI_UUID}",gpu="0",Hostname="n1"}} 300x9
    kepler_node_gpu_watts{{gpu_uuid="{SMI_UUID}",node_name="n1.example.com"}} 305x19
""")
def test_a_node_is_called_as_dcgm_calls_it(results: Results) -> None:
    assert results.device(SMI_UUID)["node_name"] == "n1"


PLUGIN = 'deviceuuid="GPU-a",node="n1",namespace="kube-system",pod="hami-device-plugin-x1"'


@samples(f"""
    HostCoreUtilization{{{PLUGIN}}} 50x9
    Device_utilization_desc_of_container{{{PLUGIN},podnamespace="ns",podname="p",ctrname="c"}} 40x9
""")
def test_the_workload_of_a_container_series_goes_before_the_scraped_pod(results: Results) -> None:
    assert results.pods() == ["p"]
    assert results.container()["observed_seconds"] == about(600)


@samples("""
    DCGM_FI_DEV_FB_USED{$gpu,$p,modelName="NVIDIA A100-SXM4-80GB"} 20480x9
""")
def test_memory_in_use_alone_is_a_share_of_the_models_memory(results: Results) -> None:
    assert results.container()["memory_used_ratio_avg"] == about(0.25)  # of 80 x 1,024 MiB
    assert results.signal("fb_total_bytes")["source_metric"] == "model data sheet"


@samples('gpu_gfx_activity{$amd,card_series="AMD Instinct MI300X OAM",card_model="102-G30211-0C"} 50x9')
def test_amds_series_is_the_model_and_not_the_number_of_the_board(results: Results) -> None:
    assert results.device("S1")["gpu_model"] == "AMD Instinct MI300X OAM"


CPX = 'serial_number="S1",gpu_id="0",card_series="AMD Instinct MI300X OAM",gpu_compute_partition_type="cpx",hostname="n1"'


@samples(
    "\n".join(f'gpu_used_vram{{{CPX},gpu_partition_id="{n}",namespace="ns",pod="p{n}",container="c"}} 100x9' for n in range(8))
    + f'\ngpu_package_power{{{CPX},gpu_partition_id="0"}} 300x9'
)
def test_eight_partitions_of_an_mi300x_are_eighths(results: Results) -> None:
    hours = {row["pod"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if row["pod"]}
    assert hours == {f"p{n}": about(600 / 8 / 3600) for n in range(8)}


@samples(
    "\n".join(f'gpu_used_vram{{{CPX},gpu_partition_id="{n}",gpu_uuid="u{n}"}} 100x9' for n in range(8))
    + "".join(f'\ngpu_package_power{{{CPX},gpu_partition_id="{n}",gpu_uuid="u{n}"}} {300 if n == 0 else 0}x9' for n in range(8))
)
def test_partitions_with_a_uuid_each_are_of_one_card(results: Results) -> None:
    assert {row["device_uuid"] for row in results.rows("report.device")} == {"S1"}
    assert results.device("S1")["energy_joules"] == about(300 * 600)


@samples("""
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="2",GPU_I_PROFILE="3g.40gb",modelName="NVIDIA H100 80GB HBM3",$p} 200x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,GPU_I_ID="7",GPU_I_PROFILE="1c.3g.40gb",modelName="NVIDIA H100 80GB HBM3",$q} 200x9
""")
def test_an_instance_known_by_board_series_alone_has_the_slices_of_its_profile(results: Results) -> None:
    hours = {row["pod"]: row["gpu_hours"] for row in results.rows("report.gpu_hour_ledger") if row["pod"]}
    assert hours == {"p": about(3 / 7 * 600 / 3600), "q": about(3 / 7 * 600 / 3600)}


@samples(
    """
    container_accelerator_duty_cycle{acc_id="GPU-a",make="nvidia",model="Tesla T4",node="n1",$p} 50x119
    kube_node_status_capacity{$ksm,node="n1",resource="nvidia_com_gpu"} 4x119
    kube_node_status_allocatable{$ksm,node="n1",resource="nvidia_com_gpu"} 4x119
    kube_node_status_condition{$ksm,node="n1",condition="Ready",status="true"} 1x119
    kube_node_spec_unschedulable{$ksm,node="n1"} 0x119
    kube_pod_container_resource_requests{$ksm,$p,uid="u1",resource="nvidia_com_gpu",node="n1"} 1x119
    kube_pod_info{$ksm,namespace="ns",pod="p",uid="u1",node="n1"} 1x119
    kube_pod_status_phase{$ksm,namespace="ns",pod="p",uid="u1",phase="Running"} 1x119
""",
    is_alone=True,
)
def test_gpus_that_cadvisor_does_not_show_are_free(results: Results) -> None:
    rows = results.rows("report.gpu_hour_ledger")
    assert sum(row["gpu_hours"] for row in rows if row["pod"] == "p") == about(2)
    assert {row["bucket"] for row in rows if row["pod"] == ""} == {"free"}
    assert sum(row["gpu_hours"] for row in rows) == about(8)
    assert results.container()["sharing_mode"] == "exclusive"
