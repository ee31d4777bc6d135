"""Whose device: labels that name the exporter, nobody, somebody who is gone, or a pod at a time."""

from __future__ import annotations

from traps.results import Results, about, samples


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="gpu-operator",pod="nvidia-dcgm-exporter-7xk2p",container="nvidia-dcgm-exporter"} 60x9
""")
def test_t7_dcgm_exporter_27_the_exporters_own_pod_holds_nothing(results: Results) -> None:
    assert results.pods() == []
    assert results.device()["gpu_util_ratio_avg"] == about(0.6)


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="gpu-operator",pod="nvidia-dcgm-exporter-7xk2p",container="nvidia-dcgm-exporter",
        exported_namespace="ns",exported_pod="p",exported_container="c"} 60x9
""".replace("\n        ", "")
)
def test_t7_dcgm_exporter_85_the_workload_is_in_the_exported_labels(results: Results) -> None:
    assert results.pods() == ["p"]
    row = results.container()
    assert (row["namespace"], row["container"], row["observed_seconds"]) == ("ns", "c", about(600))


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="tools",pod="telemetry-5",container="c",exported_namespace="ns",exported_pod="p"} 60x9
    DCGM_FI_DEV_GPU_UTIL{$other,namespace="tools",pod="telemetry-5",container="c"} 0x9
""")
def test_t7_dcgm_exporter_144_where_a_sibling_has_exported_labels_the_pod_label_is_the_exporter(results: Results) -> None:
    # GPU-b is idle; nothing but its sibling tells that telemetry-5 is the exporter.
    assert results.pods() == ["p"]
    assert results.device("GPU-b")["observed_seconds"] == about(600)


@samples("""
    habanalabs_utilization{UUID="GPU-a",node="n1",job="g",namespace="x",pod="collector-ds-1",pod_namespace="ns",pod_name="p"} 60x9
    habanalabs_utilization{UUID="GPU-b",node="n1",job="g",namespace="x",pod="collector-ds-1"} 0x9
""")
def test_where_a_sibling_names_its_workload_in_labels_of_its_own_the_pod_label_is_the_exporter(results: Results) -> None:
    assert results.pods() == ["p"]
    assert results.device("GPU-b")["observed_seconds"] == about(600)


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$p} 0.4 _ 0.4 _ 0.4 _ 0.4 _
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,$q} _ 0.8 _ 0.8 _ 0.8 _ 0.8
""")
def test_dcgm_exporter_340_labels_that_alternate_are_two_holders_and_nobody_knows_whose_the_activity_is(results: Results) -> None:
    assert {row["sharing_mode"] for row in results.containers()} == {"time-sliced?"}
    ambiguous = {row["pod"] for row in results.rows("facts.ownership") if row["certainty"] == "ambiguous"}
    assert ambiguous == {"p", "q"}
    # One device, eight minutes, (0.4 + 0.8) / 2.
    assert results.device()["observed_seconds"] == about(480)
    assert results.device()["gpu_usage_avg"] == about(0.6)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 80x9 _x2 80x7
    DCGM_FI_DEV_GPU_UTIL{$gpu} _x10 80x1 _x8
    kube_pod_status_phase{$ksm,namespace="ns",pod="p",uid="u1",phase="Running"} 1x19
    kube_pod_info{$ksm,namespace="ns",pod="p",uid="u1",node="n1"} 1x19
""")
def test_t7_dcgm_exporter_342_labels_missing_on_a_kubelet_error_are_not_idleness(results: Results) -> None:
    # Ten scrapes with labels, two without while the pod runs on, eight with: one holder for 20 minutes.
    assert results.container()["observed_seconds"] == about(1200)
    assert results.device()["gpu_util_ratio_avg"] == about(0.8)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu} 95x9
    DCGM_FI_DEV_POWER_USAGE{$gpu} 600x9
""")
def test_dcgm_exporter_127_dcgm_exporter_138_a_pod_that_asked_for_no_gpu_uses_one_and_nobody_is_named(results: Results) -> None:
    assert results.pods() == []
    assert results.device()["energy_joules"] == about(360_000)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 90x9 0x29
    kube_pod_status_phase{$ksm,namespace="ns",pod="p",uid="u1",phase="Running"} 1x9 0x29
    kube_pod_status_phase{$ksm,namespace="ns",pod="p",uid="u1",phase="Succeeded"} 0x9 1x29
    kube_pod_info{$ksm,namespace="ns",pod="p",uid="u1",node="n1"} 1x39
    kube_pod_completion_time{$ksm,namespace="ns",pod="p",uid="u1"} _x10 1795176600x29
""")
def test_dcgm_exporter_140_labels_that_outlive_their_pod_are_cut_at_its_end(results: Results) -> None:
    # It ran for the first ten scrapes and completed at 12:10 (1795176600); its labels stood half an hour longer.
    assert results.container()["observed_seconds"] == about(600)
    assert results.device()["observed_seconds"] == about(2400)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu} 50x9
    kube_pod_container_resource_requests{$ksm,$p,uid="u1",node="n1",resource="nvidia_com_gpu_shared"} 1x9
    kube_pod_container_resource_requests{$ksm,$q,uid="u2",node="n1",resource="nvidia_com_gpu_shared"} 1x9
""")
def test_t7_dcgm_exporter_151_a_renamed_shared_resource_has_no_labels_and_no_holder_is_made_up(results: Results) -> None:
    assert "exclusive" not in {row["sharing_mode"] for row in results.containers()}
    assert results.device()["gpu_util_ratio_avg"] == about(0.5)


@samples("""
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="3",GPU_I_PROFILE="1g.6gb",dra_device_name="gpu-1-mig-1g6gb-14-0",$p} 0.7x9
    DCGM_FI_PROF_GR_ENGINE_ACTIVE{$gpu,GPU_I_ID="4",GPU_I_PROFILE="1g.6gb"} 0.6x9
""")
def test_dcgm_exporter_714_a_mig_instance_made_on_demand_is_unlabelled_and_its_activity_stays_unowned(results: Results) -> None:
    assert [(row["pod"], row["gpu_instance_id"]) for row in results.containers()] == [("p", "3")]
    assert results.device(instance_id="4")["gpu_usage_avg"] == about(0.6)


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,$p,pod_uid="u1"} 50x9
    DCGM_FI_DEV_POWER_USAGE{$gpu,$p} 300x9
""")
def test_dcgm_exporter_718_a_uid_on_some_of_a_pods_series_is_the_pods(results: Results) -> None:
    assert [(row["pod"], row["pod_uid"]) for row in results.containers()] == [("p", "u1")]


@samples("DCGM_FI_DEV_GPU_UTIL{$gpu,$p} 50x9")
def test_dcgm_exporter_718_without_a_uid_none_is_made_up(results: Results) -> None:
    assert results.container()["pod_uid"] == ""


@samples("""
    dcgm_gpu_utilization{uuid="GPU-a",gpu="0",Hostname="n1",pod_name="p",pod_namespace="ns",container_name="c"} 50x9
""")
def test_t7_the_old_namespace_names_the_same_workload(results: Results) -> None:
    row = results.container()
    assert (row["namespace"], row["pod"], row["container"], row["device_uuid"]) == ("ns", "p", "c", "GPU-a")


@samples("""
    DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="",pod="",container=""} 0x9
""")
def test_t7_empty_labels_are_missing_ones(results: Results) -> None:
    assert results.pods() == []
    assert results.device()["gpu_util_ratio_avg"] == 0


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",Hostname="nvidia-dcgm-exporter-7xk2p",node="n1",pod="nvidia-dcgm-exporter-7xk2p"} 0x9
""",
    is_alone=True,
)
def test_a_host_name_that_is_the_exporters_pod_gives_way_to_the_scrapes_node(results: Results) -> None:
    assert results.device()["node_name"] == "n1"
    assert results.pods() == []


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{UUID="0aa1b2c3-0000-1111-2222-333344445555",Hostname="n1",$p} 50x9
    DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0aa1b2c3-0000-1111-2222-333344445555",Hostname="n1",$p} 300x9
""",
    is_alone=True,
)
def test_a_uuid_with_and_without_its_prefix_is_one_device(results: Results) -> None:
    [row] = results.rows("report.device")
    assert row["device_uuid"] == "GPU-0aa1b2c3-0000-1111-2222-333344445555"
    assert (row["gpu_util_ratio_avg"], row["power_watts_avg"]) == (about(0.5), about(300))


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,instance="10.0.0.5:9400",namespace="monitoring",pod="metrics-agent-x1",container="agent"} 0x99
    DCGM_FI_DEV_GPU_UTIL{$other,instance="10.0.0.5:9400",namespace="monitoring",pod="metrics-agent-x1",container="agent"} 0x99
    kube_pod_info{$ksm,namespace="monitoring",pod="metrics-agent-x1",uid="u1",pod_ip="10.0.0.5",host_ip="192.168.0.1"} 1x99
""",
    is_alone=True,
)
def test_a_pod_whose_address_is_scraped_is_the_exporter_whatever_its_name(results: Results) -> None:
    assert results.pods() == []


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,job="monitoring/gpu-metrics",namespace="monitoring",pod="gpu-metrics-x7k2p",container="main"} 50x9
    """.replace("$gpu", 'UUID="GPU-a",gpu="0",Hostname="n1"'),
    is_alone=True,
)
def test_a_pod_monitors_job_names_the_exporter_behind_its_namespace(results: Results) -> None:
    assert results.pods() == []


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,$train} 50x9
    DCGM_FI_DEV_GPU_UTIL{$other,$train} 50x9
    kube_pod_container_resource_requests{namespace="ns",pod="train-x7k2p",container="c",resource="nvidia_com_gpu",job="ksm"} 2x9
    """.replace("$gpu", 'UUID="GPU-a",gpu="0",Hostname="n1"')
    .replace("$other", 'UUID="GPU-b",gpu="1",Hostname="n1"')
    .replace("$train", 'namespace="ns",pod="train-x7k2p",container="c",job="train",instance="10.0.0.1:9400"'),
    is_alone=True,
)
def test_a_pod_that_requests_gpus_is_no_exporter_though_it_is_named_like_the_job(results: Results) -> None:
    assert results.pods() == ["train-x7k2p"] * 2


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="ns",pod="train-x7k2p",container="c",job="train",instance="10.0.0.1:9400"} 50x9
    DCGM_FI_DEV_GPU_UTIL{$other,job="train",instance="10.0.0.2:9400"} 0x9
    """.replace("$gpu", 'UUID="GPU-a",gpu="0",Hostname="n1"').replace("$other", 'UUID="GPU-b",gpu="0",Hostname="n2"'),
    is_alone=True,
)
def test_a_pod_label_that_not_all_of_a_jobs_devices_have_is_no_targets(results: Results) -> None:
    assert results.pods() == ["train-x7k2p"]


@samples('DCGM_FI_DEV_GPU_UTIL{$gpu,namespace="ns",pod="gpu-exporter-bench-0",container="train"} 80x9')
def test_a_workload_with_exporter_in_its_name_is_a_workload(results: Results) -> None:
    assert results.pods() == ["gpu-exporter-bench-0"]


@samples(
    """
    DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0AA1B2C3-0000-1111-2222-333344445555",Hostname="n1",$p} 50x9
    nvidia_smi_power_draw_watts{uuid="0aa1b2c3-0000-1111-2222-333344445555"} 300x9
""",
    is_alone=True,
)
def test_a_uuid_in_capitals_is_the_same_device(results: Results) -> None:
    [row] = results.rows("report.device")
    assert (row["gpu_util_ratio_avg"], row["power_watts_avg"]) == (about(0.5), about(300))
