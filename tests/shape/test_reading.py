"""What series say of themselves, by the habits of many exporters; and values that contradict each other."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from gpureport.collect.shape import PLAIN, Reading, Shaped, read_labels, reading_of, shape
from gpureport.collect.shape.identity import NO_WORKLOAD, DeviceKey, identify
from gpureport.values.catalog import load_catalog
from gpureport.values.series import SeriesBatch
from gpureport.values.window import Window

DAY = Window.of_day(date(2026, 11, 20))
NOON_MS = DAY.start_ms + 43_200_000
CATALOG = load_catalog()
DCGM = {"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-1", "job": "dcgm", "instance": "10.0.0.1:9400"}
BARE = "01234567-89ab-cdef-0123-456789abcdef"

NO_UUID, NO_PART = "00000000-0000-0000-0000-000000000000", "4294967295"

CPX = {"__name__": "gpu_used_vram", "gpu_uuid": BARE, "hostname": "vm1", "serial_number": "", "gpu_compute_partition_type": "cpx"}


def shaped(*series: tuple[dict[str, str], list[float]], step_seconds: int = 60, reading: Reading | None = None) -> Shaped:
    """Series that all begin at noon."""
    lengths = [len(values) for _, values in series]
    batch = SeriesBatch(
        labels=[labels for labels, _ in series],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        times_ms=np.concatenate([NOON_MS + 1000 * step_seconds * np.arange(length) for length in lengths]).astype(np.int64),
        values=np.array([value for _, values in series for value in values], np.float64),
    )
    return shape(batch, CATALOG, DAY, reading=reading or read_labels(batch.labels))


def dcgm(metric: str, **labels: str) -> dict[str, str]:
    return {**DCGM, "__name__": f"DCGM_FI_{metric}", **labels}


def signals(found: Shaped) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = found.device_signal.to_pylist()
    return {(row["device_uuid"], row["gpu_instance_id"], row["signal"]): {**row, "dropped": dict(row["dropped"])} for row in rows}


@pytest.mark.parametrize(
    ("labels", "device"),
    [
        ({"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-1", "GPU_I_ID": "3"}, ("GPU-1", "3")),
        ({"__name__": "dcgm_fb_used", "uuid": "GPU-1"}, ("GPU-1", "")),
        ({"__name__": "nvidia_smi_memory_used_bytes", "uuid": BARE}, (f"GPU-{BARE}", "")),
        ({"__name__": "nvidia_smi_mig_memory_used_bytes", "uuid": BARE, "gpu_instance_id": "7"}, (f"GPU-{BARE}", "7")),
        ({"__name__": "gpu_used_vram", "gpu_uuid": BARE, "gpu_partition_id": "0"}, (BARE, "")),
        ({"__name__": "amd_gpu_used_vram", "serial_number": "s1", "gpu_partition_id": "NA"}, ("s1", "")),
        (
            {
                "__name__": "amd_gpu_used_vram",
                "serial_number": "s1",
                "gpu_partition_id": "2",
                "gpu_compute_partition_type": "cpx",
            },
            ("s1", "2"),
        ),
        ({"__name__": "gpu_used_vram", "hostname": "vm1", "gpu_id": "0", "gpu_partition_id": "0"}, ("vm1/0", "")),
        # Without a serial number: partitions are numbered on through a node's cards, 0 to 7 and 8 to 15.
        (CPX | {"gpu_id": "8", "gpu_partition_id": "0"}, ("vm1/8", "0")),
        (CPX | {"serial_number": "N/A", "gpu_id": "8", "gpu_partition_id": "0"}, ("vm1/8", "0")),
        # NVML's number of an instance where there is none, and DCGM's of 32 bits.
        ({"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-1", "GPU_I_ID": "4294967295", "GPU_I_PROFILE": ""}, ("GPU-1", "")),
        ({"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-1", "GPU_I_ID": "2147483632"}, ("GPU-1", "")),
        ({"__name__": "DCGM_FI_DEV_FB_USED", "UUID": "GPU-1", "GPU_I_ID": "9" * 5000}, ("GPU-1", "")),
        (CPX | {"gpu_id": "9" * 5000, "gpu_partition_id": "0"}, (f"vm1/{'9' * 5000}", "0")),
        (CPX | {"gpu_id": "15", "gpu_partition_id": "7"}, ("vm1/8", "7")),
        (CPX | {"gpu_id": "3", "gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, (BARE, "")),
        # A VM's card has no UUID: four of them are not one.
        (
            CPX | {"gpu_id": "3", "gpu_uuid": NO_UUID, "gpu_partition_id": NO_PART, "gpu_compute_partition_type": "spx"},
            ("vm1/3", ""),
        ),
        # A card without partitions, and a later partition that does not show its card's mode.
        (
            CPX | {"serial_number": "s1", "gpu_uuid": "", "gpu_partition_id": "0", "gpu_compute_partition_type": "none"},
            ("s1", ""),
        ),
        (CPX | {"gpu_id": "3", "gpu_uuid": "", "gpu_partition_id": NO_PART, "gpu_compute_partition_type": "none"}, ("vm1/3", "")),
        (CPX | {"serial_number": "s1", "gpu_partition_id": "3", "gpu_compute_partition_type": "none"}, ("s1", "3")),
        ({"__name__": "hw_memory_usage_bytes", "hw_id": "card-1"}, ("card-1", "")),
        ({"__name__": "xpum_memory_used_bytes", "uuid": "u1", "sub_dev": "1"}, ("u1", "1")),
        ({"__name__": "memory_used", "accelerator_id": "GPU-1"}, ("GPU-1", "")),
        ({"__name__": "container_accelerator_memory_used_bytes", "acc_id": "GPU-1"}, ("GPU-1", "")),
        ({"__name__": "hami_host_gpu_memory_used_bytes", "device_uuid": "GPU-1"}, ("GPU-1", "")),
    ],
)
def test_a_device_is_known_by_whatever_name_the_exporter_gives_it(labels: dict[str, str], device: tuple[str, str]) -> None:
    found = identify(labels, CATALOG)
    assert found is not None
    assert found.device == DeviceKey(*device)


def test_a_text_that_is_not_there_is_no_device_and_no_model() -> None:
    """Four GPUs whose UUID DCGM does not know are not one GPU: they are counted as without a name."""
    labels = [{"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "<<<NOT_SUPPORTED>>>", "gpu": str(number)} for number in range(4)]
    found = shaped(*((each, [50.0, 50.0]) for each in labels))
    assert found.device_sample.num_rows == 0
    assert found.tallies["DCGM_FI_DEV_GPU_UTIL"].dropped == {"nameless": 8}
    unmeant = [{"uuid": "u1", "type": "copy"}, {"node": "n1", "condition": "DiskPressure", "status": "true"}]
    names = ("xpum_engine_group_ratio", "kube_node_status_condition")
    assert shaped(*(({"__name__": name, **each}, [1.0]) for name, each in zip(names, unmeant, strict=True))).tallies == {}
    card = shaped(({"__name__": "gpu_package_power", "hostname": "n1"}, [300.0]))
    assert card.tallies["gpu_package_power"].dropped == {"nameless": 1}
    model = shaped((dcgm("DEV_GPU_UTIL", modelName="<<<NULL>>>"), [50.0, 50.0]))
    assert {row["gpu_model"] for row in model.device_label.to_pylist()} == {""}


@pytest.mark.parametrize(
    ("labels", "workload"),
    [
        ({"pod": "p", "namespace": "ns", "container": "c", "pod_uid": "u"}, ("ns", "p", "u", "c")),
        ({"pod_name": "p", "pod_namespace": "ns", "container_name": "c"}, ("ns", "p", "", "c")),
        ({"kube_pod": "p", "kube_namespace": "ns", "kube_container": "c"}, ("ns", "p", "", "c")),
        ({"pod": "", "namespace": "", "container": ""}, NO_WORKLOAD),
        (
            {"exported_pod": "p", "exported_namespace": "ns", "exported_container": "c", "pod": "nvidia-dcgm-exporter-x"},
            ("ns", "p", "", "c"),
        ),
        # A target without a container, as of a job for annotated pods: the label is the exporter's, of its workload.
        ({"exported_pod": "p", "exported_namespace": "ns", "container": "c", "pod": "telemetry-1"}, ("ns", "p", "", "c")),
        ({"exported_pod": "p", "container": "nvidia-dcgm-exporter", "pod": "telemetry-1"}, ("", "p", "", "")),
        # The target's labels have its pod's uid.
        ({"exported_pod": "p", "exported_pod_uid": "u", "pod": "nvidia-dcgm-exporter-x", "pod_uid": "x"}, ("", "p", "u", "")),
        ({"pod": "nvidia-dcgm-exporter-x7", "namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}, NO_WORKLOAD),
        ({"pod": "metrics-agent-x7k2p", "namespace": "ops", "service": "metrics-agent"}, NO_WORKLOAD),
        ({"pod": "metrics-agent-6d5f7b8c9d-x7k2p", "namespace": "ops", "job": "metrics-agent"}, NO_WORKLOAD),
        # AMD's operator; its exporter's series of an idle GPU.
        ({"pod": "default-metrics-exporter-vvvkm", "namespace": "kube-amd-gpu", "job": "gpu-exporter"}, NO_WORKLOAD),
        # Exporters that a job for annotated pods scrapes; their containers' names say nothing, or nothing that is known.
        ({"pod": "npu-exporter-x7k2p", "namespace": "npu-exporter", "container": "npu-exporter"}, NO_WORKLOAD),
        ({"pod": "intel-xpumanager-x7k2p", "namespace": "monitoring", "container": "python-exporter"}, NO_WORKLOAD),
        ({"pod": "train-7", "namespace": "ml", "job": "train"}, ("ml", "train-7", "", "")),
        ({"pod": "train-worker-x7k2p", "namespace": "ml", "service": "train"}, ("ml", "train-worker-x7k2p", "", "")),
        ({"pod": "agent-x7", "Hostname": "agent-x7"}, NO_WORKLOAD),
    ],
)
def test_a_workload_is_known_by_every_habit_and_the_exporter_is_nobody(labels: dict[str, str], workload: tuple[str, ...]) -> None:
    found = identify({**DCGM, **labels}, CATALOG)
    assert found is not None
    assert found.workload == workload


@pytest.mark.parametrize("labels", [{"__name__": "nvidia_smi_power_draw_watts"}, {"__name__": "gpu_dcgm_utilization_ratio"}])
def test_exporters_that_never_name_a_workload_hold_nothing(labels: dict[str, str]) -> None:
    """nvidia_gpu_exporter and OpenTelemetry's dcgmreceiver know no pods: a pod in their labels is the scraped one."""
    scraped = {"job": "kubernetes-pods", "pod": "agent-x7k2p", "namespace": "ops", "container": "agent"}
    assert shaped(({**labels, **scraped, "uuid": BARE}, [0.5] * 3)).owner_label.num_rows == 0


@pytest.mark.parametrize(
    ("target", "held_by"), [({"container": "main"}, {"exported_container": "c"}), ({}, {"container": "c"})], ids=["full", "bare"]
)
def test_one_exported_label_in_a_job_says_that_its_bare_pod_labels_are_the_exporters(
    target: dict[str, str], held_by: dict[str, str]
) -> None:
    own = {"pod": "telemetry-1", "namespace": "ops", **target}
    held = dcgm("DEV_FB_USED", **{**own, **held_by}, exported_pod="train", exported_namespace="ml")
    idle = dcgm("DEV_FB_USED", **own, UUID="GPU-2")
    owners = shaped((held, [1.0, 1, 1]), (idle, [0.0, 0, 0])).owner_label.to_pylist()
    assert [(row["device_uuid"], row["pod"]) for row in owners] == [("GPU-1", "train")]


def test_a_board_has_no_power_of_0_where_its_first_partition_shows_none() -> None:
    """AMD's exporter gives a card's power on partition 0, 0 on the others, and 65,535 where it has none."""
    first, second = ({**CPX, "__name__": "gpu_package_power", "gpu_id": each, "gpu_partition_id": each} for each in "01")
    rows = shaped((first, [300.0, 65535, 310]), (second, [0.0, 0, 0])).device_sample.to_pylist()
    assert [(row["power_watts"], row["held_seconds"]) for row in rows] == [(300, 120), (310, 60)]


def test_a_workload_of_a_like_name_elsewhere_is_no_exporter() -> None:
    held = dcgm("DEV_FB_USED", pod="train-5", namespace="ops", container="c", exported_pod="p", exported_namespace="ml")
    sibling = dcgm("DEV_FB_USED", pod="train-6", namespace="ops", container="c", UUID="GPU-2")
    workload = dcgm("DEV_FB_USED", pod="train-7", namespace="ml", container="c", UUID="GPU-3", job="honors-labels")
    owners = shaped(*((each, [1.0, 1, 1]) for each in (held, sibling, workload))).owner_label.to_pylist()
    assert [(row["device_uuid"], row["pod"]) for row in owners] == [("GPU-1", "p"), ("GPU-3", "train-7")]


def test_a_host_label_with_the_exporter_pods_name_gives_way_to_the_node() -> None:
    found = identify({**DCGM, "Hostname": "dcgm-exporter-x", "pod": "dcgm-exporter-x", "node": "n1"}, CATALOG)
    assert found is not None
    assert found.device_labels.node_name == "n1"


@pytest.mark.parametrize(
    ("instance", "host"),
    [("n1:9835", "n1"), ("n1", "n1"), ("n1:metrics", "n1"), ("n1:http-2", "n1"), ("[fd00::1]:9835", "[fd00::1]"), ("", "")],
)
def test_the_scraped_host_is_without_its_port_by_number_or_by_name(instance: str, host: str) -> None:
    """Google's managed Prometheus names a DaemonSet's target by its node and the name of the port."""
    found = identify({"__name__": "nvidia_smi_power_draw_watts", "uuid": BARE, "instance": instance}, CATALOG)
    assert found is not None
    assert found.device_labels.node_name == host


def test_a_federated_series_is_of_the_host_that_was_scraped_first() -> None:
    """Without honor_labels; or all devices of exporters that name no host would be on the node of the other Prometheus."""
    federated = {"job": "federate", "instance": "prometheus:9090", "exported_job": "smi", "exported_instance": "n1:9835"}
    core = {"__name__": "neuroncore_utilization_ratio", "neuroncore": "0"}
    for labels, device in (({"__name__": "nvidia_smi_power_draw_watts", "uuid": BARE}, f"GPU-{BARE}"), (core, "n1/0")):
        found = identify({**labels, **federated}, CATALOG)
        assert found is not None
        assert found.device is not None
        assert (found.device.device_uuid, found.device_labels.node_name, found.node_name_rank) == (device, "n1", 2)


def test_a_description_that_says_less_is_part_of_the_one_that_says_more() -> None:
    info = {
        "__name__": "nvidia_smi_gpu_info",
        "uuid": BARE,
        "name": "NVIDIA H200",
        "driver_version": "590.1",
        "instance": "n1:9835",
    }
    power = {"__name__": "nvidia_smi_power_draw_watts", "uuid": BARE, "instance": "n1:9835"}
    labels = shaped((info, [1.0, 1, 1]), (power, [80.0, 80, 80])).device_label.to_pylist()
    assert [(row["gpu_model"], row["driver_version"], row["make"]) for row in labels] == [("NVIDIA H200", "590.1", "nvidia")]


def test_the_source_of_each_signal_is_recorded_with_what_was_left_out() -> None:
    util = dcgm("DEV_GPU_UTIL", Hostname="n1")
    found = signals(shaped((util, [50.0, 686_103, 2_147_483_632, float("nan"), 60]), (dcgm("DEV_FB_USED"), [7.0])))
    row = found["GPU-1", "", "gpu_util_ratio"]
    assert (row["source_metric"], row["exporter"], row["series_count"]) == ("DCGM_FI_DEV_GPU_UTIL", "dcgm-exporter", 1)
    assert row["sample_count"] == 2
    assert row["dropped"] == {"out_of_range": 1, "blank": 1, "nan": 1}
    assert found["GPU-1", "", "fb_used_bytes"]["dropped"] == {}


def test_a_signal_of_which_nothing_was_usable_still_has_its_row() -> None:
    row = signals(shaped((dcgm("DEV_GPU_UTIL"), [101.0, 4_294_967_295])))["GPU-1", "", "gpu_util_ratio"]
    assert (row["sample_count"], row["dropped"]) == (0, {"out_of_range": 2})


def test_the_preferred_metric_serves_and_another_only_while_it_is_silent() -> None:
    # dcgm-exporter is upgraded to 4.9 in the middle: the metric changes its name.
    old, new = dcgm("DEV_POWER_USAGE"), dcgm("DEV_BOARD_POWER_WATTS")
    times = np.arange(10) * 60_000 + NOON_MS
    batch = SeriesBatch(
        [old, new],
        np.array([0, 5, 10], np.int64),
        times.astype(np.int64),
        np.array([100.0, 100, 100, 100, 100, 200, 200, 200, 200, 200]),
    )
    found = shape(batch, CATALOG, DAY)
    assert found.device_sample["power_watts"].to_pylist() == [100.0] * 5 + [200.0] * 5
    row = signals(found)["GPU-1", "", "power_watts"]
    assert (row["source_metric"], row["other_metrics"]) == ("DCGM_FI_DEV_BOARD_POWER_WATTS", ["DCGM_FI_DEV_POWER_USAGE"])


@pytest.mark.parametrize(
    ("labels", "signal", "reason"),
    [
        (dcgm("DEV_MEMORY_TEMP", modelName="Tesla T4"), "memory_temp_celsius", "blank"),
        ({"__name__": "nvidia_smi_temperature_memory", "uuid": "GPU-1"}, "memory_temp_celsius", "blank"),
        (
            {"__name__": "gpu_junction_temperature", "gpu_uuid": "GPU-1", "gpu_partition_id": "0"},
            "gpu_temp_celsius",
            "not_applicable",
        ),
    ],
)
def test_no_sensor_is_at_0_degrees(labels: dict[str, str], signal: str, reason: str) -> None:
    """A T4 has no sensor in its memory, and DCGM prints 0; AMD's exporter prints 0 for what is not applicable."""
    row = signals(shaped((labels, [0.0, 0, 41])))["GPU-1", "", signal]
    assert (row["sample_count"], row["dropped"]) == (1, {reason: 2})


@pytest.mark.parametrize(("amd", "kept"), [(255.0, 0), (65_535.0, 0), (240.0, 1)])
def test_amds_not_applicable_is_no_reading(amd: float, kept: int) -> None:
    labels = {"__name__": "gpu_package_power", "serial_number": "s", "gpu_partition_id": "0", "hostname": "n1"}
    row = signals(shaped((labels, [amd])))["s", "", "power_watts"]
    assert row["sample_count"] == kept
    assert row["dropped"] == ({} if kept else {"not_applicable": 1})


def test_an_idle_card_without_a_partitions_number_is_idle() -> None:
    """A VM's card has the largest number in place of its partition's."""
    card = {"__name__": "gpu_gfx_activity", "gpu_id": "0", "gpu_partition_id": NO_PART, "gpu_compute_partition_type": "spx"}
    found = shaped(({**card, "hostname": "vm1", "gpu_uuid": NO_UUID}, [100.0, 0, 0, 0]))
    assert found.device_sample["gpu_util_ratio"].to_pylist() == [1, 0, 0, 0]


def test_partitions_of_an_amd_card_that_report_no_power_do_not_hide_the_one_that_does() -> None:
    card = {"__name__": "gpu_package_power", "serial_number": "s", "gpu_compute_partition_type": "cpx", "hostname": "n1"}
    found = shaped(*(({**card, "gpu_partition_id": str(number)}, [500.0 if number == 0 else 0.0]) for number in range(4)))
    assert found.device_sample.select(["device_uuid", "gpu_instance_id", "power_watts"]).to_pylist() == [
        {"device_uuid": "s", "gpu_instance_id": "", "power_watts": 500.0}
    ]


@pytest.mark.parametrize(
    ("values", "read", "dropped"),
    [
        ([0.37, 0.5, 1.0], [0.37, 0.5, 1.0], {}),  # fractions: a ratio (DCGM 4.7)
        ([37.0, 100, 0], [0.37, 1.0, 0.0], {}),  # whole numbers above 1: percent (DCGM 4.6)
        ([0.0, 0, 0], [0.0, 0.0, 0.0], {}),  # nothing either way
        ([37.0, 0.5, 0], [], {"ambiguous_unit": 3}),  # both: two versions in one cluster
        ([1.0, 0, 1], [], {"ambiguous_unit": 3}),  # 1 % or all of the time
        ([0.5, 686_103, 0.25], [0.5, 0.25], {"out_of_range": 1}),  # garbage tells nothing of the unit
        ([50.0, 686_103, 25], [0.5, 0.25], {"out_of_range": 1}),
    ],
)
def test_a_share_that_may_be_percent_is_decided_by_the_day(
    values: list[float], read: list[float], dropped: dict[str, int]
) -> None:
    series = (dcgm("DEV_GPU_UTIL_RATIO"), values)
    found = shaped(series, reading=reading_of(shaped(series).tallies, PLAIN))
    kept = [value for value in found.device_sample["gpu_util_ratio"].to_pylist() if value is not None]
    assert kept == pytest.approx(read)
    assert signals(found)["GPU-1", "", "gpu_util_ratio"]["dropped"] == dropped


def test_an_engine_stuck_at_zero_is_dead_where_others_show_an_hour_of_work() -> None:
    busy = [(dcgm("DEV_GPU_UTIL"), [100.0] * 70), (dcgm("PROF_DRAM_ACTIVE"), [0.3] * 70)]
    stuck = shaped((dcgm("PROF_GR_ENGINE_ACTIVE"), [0.0] * 70), *busy)
    assert set(stuck.device_sample["gr_engine_active_ratio"].to_pylist()) == {None}
    assert signals(stuck)["GPU-1", "", "gr_engine_active_ratio"]["dropped"] == {"dead": 70}
    # 59 minutes are too little to tell.
    short = shaped((dcgm("PROF_GR_ENGINE_ACTIVE"), [0.0] * 59 + [0.9] * 11), *busy)
    assert None not in short.device_sample["gr_engine_active_ratio"].to_pylist()


def test_zeros_are_true_while_data_is_only_copied_over_pcie() -> None:
    power = [(dcgm("DEV_POWER_USAGE"), [82.0] + [130.0] * 69), (dcgm("DEV_ENFORCED_POWER_LIMIT"), [700.0] * 70)]
    quiet = [(dcgm("DEV_GPU_UTIL"), [100.0] * 70), (dcgm("PROF_DRAM_ACTIVE"), [0.01] * 70), *power]
    found = shaped((dcgm("PROF_GR_ENGINE_ACTIVE"), [0.0] * 70), *quiet)
    assert set(found.device_sample["gr_engine_active_ratio"].to_pylist()) == {0.0}


def test_power_well_above_idle_shows_work_too() -> None:
    # 40 % of the way from 82 W to 700 W is 329.2 W.
    for watts, is_dead in ((329.0, False), (330.0, True)):
        power = [(dcgm("DEV_POWER_USAGE"), [82.0] + [watts] * 69), (dcgm("DEV_ENFORCED_POWER_LIMIT"), [700.0] * 70)]
        found = shaped((dcgm("PROF_GR_ENGINE_ACTIVE"), [0.0] * 70), (dcgm("DEV_GPU_UTIL"), [100.0] * 70), *power)
        assert (None in found.device_sample["gr_engine_active_ratio"].to_pylist()) == is_dead


@pytest.mark.parametrize(("refresh", "share"), [(2, 0.8), (2, 1.0), (3, 0.9), (2, 0.25)])
def test_time_counted_by_an_exporter_that_refreshes_late_keeps_its_share(refresh: int, share: float) -> None:
    """Scraped every 15 s, refreshed every second or third time: of 180 s, the counter shows the share, in some of its steps."""
    nanoseconds = [share * 15e9 * (number - number % refresh) for number in range(13)]
    found = shaped((dcgm("DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"), nanoseconds), step_seconds=15).device_sample.to_pylist()
    known = [row for row in found if row["sw_power_cap_active_ratio"] is not None]
    assert sum(row["held_seconds"] for row in known) == 180
    assert sum(row["held_seconds"] * row["sw_power_cap_active_ratio"] for row in known) == pytest.approx(180 * share)


def test_cycles_counted_by_an_exporter_that_refreshes_late_are_known_all_the_time() -> None:
    """Scraped every 15 s, refreshed every 30 s: active for 80 % of the cycles of 180 s."""
    elapsed = [1e9 * 15 * (number - number % 2) for number in range(13)]
    cycles = (
        (dcgm("PROF_SM_CYCLES_ACTIVE_TOTAL"), [0.8 * each for each in elapsed]),
        (dcgm("PROF_SM_CYCLES_ELAPSED_TOTAL"), elapsed),
    )
    known = [row for row in shaped(*cycles, step_seconds=15).device_sample.to_pylist() if row["sm_active_ratio"] is not None]
    assert sum(row["held_seconds"] for row in known) == 180
    assert {row["sm_active_ratio"] for row in known} == {0.8}


def test_more_memory_used_and_free_than_there_is_is_left_out() -> None:
    found = shaped(
        (dcgm("DEV_FB_USED"), [600.0, 600, 502]),
        (dcgm("DEV_FB_FREE"), [400.0, 500, 500]),  # 1,002 MiB of 1,000: within the rounding
        (dcgm("DEV_FB_TOTAL"), [1000.0, 1000, 1000]),
    )
    assert [value is None for value in found.device_sample["fb_used_bytes"].to_pylist()] == [False, True, False]
    assert signals(found)["GPU-1", "", "fb_free_bytes"]["dropped"] == {"over_total": 1}


def test_memory_of_a_card_with_tiles_is_that_of_all_its_tiles() -> None:
    """xpumd shows each tile's memory; of power and utilization, the largest of several sensors is the card's."""
    tiles = [{"hw_id": "card-1", "com_intel_subdevice_id": tile, "job": "xpumd"} for tile in "01"]
    found = shaped(
        *(({**each, "__name__": "hw_memory_size_bytes"}, [64e9] * 2) for each in tiles),
        *(
            ({**each, "__name__": "hw_memory_usage_bytes"}, used)
            for each, used in zip(tiles, ([60e9, 1e9], [2e9, np.nan]), strict=True)
        ),
        *(({**each, "__name__": "hw_power_watts"}, [watts] * 2) for each, watts in zip(tiles, (150.0, 170.0), strict=True)),
    )
    rows = found.device_sample.to_pylist()
    # One tile's memory alone is not the card's.
    names = ("fb_used_bytes", "fb_free_bytes", "fb_total_bytes", "power_watts", "held_seconds")
    assert [tuple(row[name] for name in names) for row in rows] == [(62e9, 66e9, 128e9, 170, 60), (None, None, 128e9, 170, 60)]


def test_own_label_names_are_read_as_what_they_are_mapped_to() -> None:
    own = load_catalog(own_labels={"gpu_serial": "UUID", "workload_pod": "pod"})
    labels = {"__name__": "DCGM_FI_DEV_FB_USED", "gpu_serial": "GPU-7", "workload_pod": "train", "namespace": "ml"}
    found = identify(labels, own)
    assert found is not None
    assert (found.device, found.workload.pod, found.labels) == (DeviceKey("GPU-7", ""), "train", labels)


def test_metrics_of_accelerators_that_nothing_reads_are_named() -> None:
    counts = {"DCGM_FI_DEV_FB_USED": 8, "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 8, "kube_node_status_capacity": 3, "up": 1}
    assert CATALOG.unread(counts) == {"DCGM_FI_DEV_VGPU_LICENSE_STATUS": 8}
