"""`gpureport doctor --lake` on the H200 recording: the rows by hand, from what the recording's exporter was asked for."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.values.runtime.resources import RECORDING

from .conftest import Doctor, Told

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
DAY = date(2026, 11, 20)

# Metric by signal, by hand from the recording's metric names; each on the one GPU that was recorded.
PRESENT = {
    "power_watts": "DCGM_FI_DEV_POWER_USAGE",
    "energy_joules": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "gpu_util_ratio": "DCGM_FI_DEV_GPU_UTIL",
    "fb_used_bytes": "DCGM_FI_DEV_FB_USED",
    "fb_free_bytes": "DCGM_FI_DEV_FB_FREE",
    "sm_clock_hertz": "DCGM_FI_DEV_SM_CLOCK",
    "memory_clock_hertz": "DCGM_FI_DEV_MEM_CLOCK",
    "gpu_temp_celsius": "DCGM_FI_DEV_GPU_TEMP",
    "gr_engine_active_ratio": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "sm_active_ratio": "DCGM_FI_PROF_SM_ACTIVE",
    "sm_occupancy_ratio": "DCGM_FI_PROF_SM_OCCUPANCY",
    "tensor_active_ratio": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dram_active_ratio": "DCGM_FI_PROF_DRAM_ACTIVE",
    "pcie_tx_bytes_per_second": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "pcie_rx_bytes_per_second": "DCGM_FI_PROF_PCIE_RX_BYTES",
    "nvlink_tx_bytes_per_second": "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "nvlink_rx_bytes_per_second": "DCGM_FI_PROF_NVLINK_RX_BYTES",
    "throttle_reasons": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "power_violation_seconds": "DCGM_FI_DEV_POWER_VIOLATION",
    "thermal_violation_seconds": "DCGM_FI_DEV_THERMAL_VIOLATION",
    "sync_boost_violation_seconds": "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "board_limit_violation_seconds": "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "pcie_replay_count": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "xid_code": "DCGM_FI_DEV_XID_ERRORS",
}
LOST = {
    "power_limit_watts": ("power_limit_watts_max",),
    "memory_temp_celsius": ("memory_temp_celsius_avg", "memory_temp_celsius_max"),
}


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording as a lake."""
    path = tmp_path_factory.mktemp("doctor-lake") / "lake"
    file = str(RECORDING / "metrics.openmetrics.txt.gz")
    assert main(["import", file, "--cluster", "lab", "--lake", str(path)], environ={}, now=NOW) == 0
    return path


@pytest.fixture
def told(doctor: Doctor, lake: Path) -> Told:
    return doctor("--lake", str(lake), "--date", DAY.isoformat(), "-o", "json", now=NOW)


def test_every_signal_of_the_recording_is_found_on_its_one_gpu(told: Told) -> None:
    found = {row["subject"]: (row["status"], row["found"]) for row in told.of("signal")}
    assert {subject: found[subject] for subject in PRESENT} == {
        subject: ("ok", f"{metric} on 1 of 1 devices") for subject, metric in PRESENT.items()
    }


def test_what_the_recording_lacks_costs_its_figures(told: Told) -> None:
    links = {"pcie_link_generation", "pcie_link_width"}
    assert {subject: costs for subject, costs in told.losses.items() if subject not in links} == LOST
    assert told.code == 4
    assert "DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature (in degrees C)." in told.lines


def test_the_recordings_holders_state_and_rhythm_are_told(told: Told) -> None:
    found = {row["code"]: row["found"] for row in told.rows}
    assert found["pod_labels"] == "named pods on the examined devices: 4"
    assert found["scrape_interval"] == "a sample every 1 s"
    assert found["server"] == "samples came from files"
    assert found["kube_state_metrics"].split(", ") == [
        "kube_node_status_allocatable",
        "kube_pod_container_resource_requests",
        "kube_pod_created",
        "kube_pod_info",
        "kube_pod_status_phase",
    ]
    absent = {row["subject"] for row in told.rows if row["code"] in ("kube_state_series", "node_labels", "claim_series")}
    nodes = {"kube_node_status_condition", "kube_node_spec_unschedulable"}
    assert absent == {"kube_pod_completion_time", "kube_node_labels", "kube_pod_resourceclaim_info", *nodes}
    free = "no series: whether nodes accept pods, and so free GPUs and the allocation of nodes without an exporter, are unknown"
    assert {row["found"] for row in told.rows if row["subject"] in nodes} == {free}
    assert f"cluster lab, {DAY} would lack" in told.err


def test_a_day_that_the_lake_does_not_hold_is_a_failure(doctor: Doctor, lake: Path) -> None:
    told = doctor("--lake", str(lake), "--date", "2026-11-19", now=NOW)
    assert (told.code, told.out) == (1, "")
    assert "has no data for 2026-11-19" in told.err


def test_snapshots_serve_in_place_of_kube_state_metrics(recorded_cluster: Path, doctor: Doctor) -> None:
    told = doctor("--lake", str(recorded_cluster / "lake"), "--date", "2026-11-21", "-o", "json", now=NOW)
    [row] = told.of("kube_state_metrics")
    assert (row["status"], row["costs"], row["found"]) == ("note", [], "snapshots instead of kube-state-metrics series")


def test_the_first_snapshot_after_a_day_shows_its_pods_too(doctor: Doctor, tmp_path: Path) -> None:
    """A lake's first night: the state is taken when the day is over, and the report of the day reads it."""
    (tmp_path / "one.txt").write_text('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",Hostname="n1"} 5 1795176000\n# EOF\n')
    pod = {"metadata": {"name": "p", "namespace": "ml", "uid": "u"}, "spec": {}, "status": {"phase": "Running"}}
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod]}))
    day, lake = "2026-11-20", ("--lake", str(tmp_path / "lake"))
    flags = ["--kubernetes", str(tmp_path), "--observed-at", "2026-11-21T02:00:00Z", *lake]
    assert main(["import", str(tmp_path / "one.txt"), *flags], environ={}, now=NOW) == 0
    [row] = doctor(*lake, "--date", day, "-o", "json", now=NOW).of("kube_state_metrics")
    assert (row["status"], row["found"]) == ("note", "snapshots instead of kube-state-metrics series")


def test_several_clusters_of_a_day_must_be_chosen_from(doctor: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",Hostname="n1"} 5 1795176000\n# EOF\n')
    for cluster in ("a", "b"):
        flags = ["--cluster", cluster, "--lake", str(tmp_path / "lake")]
        assert main(["import", str(file), *flags], environ={}, now=NOW) == 0
    told = doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-20", now=NOW)
    assert (told.code, "a, b" in told.err) == (2, True)
    chosen = doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-20", "--cluster", "b", now=NOW)
    assert "cluster b" in chosen.err


def test_labels_that_go_back_and_forth_are_noted(doctor: Doctor, tmp_path: Path) -> None:
    """The last pod wins (dcgm-exporter 340): five scrapes name a, five b, five a again."""
    lines = [
        f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1",Hostname="n1",namespace="t",pod="{pod}",container="c"}} 5 {1795176000 + 30 * step}'
        for step, pod in enumerate("aaaaabbbbbaaaaa")
    ]
    (tmp_path / "flapping.txt").write_text("\n".join([*lines, "# EOF\n"]))
    flags = ["--cluster", "lab", "--lake", str(tmp_path / "lake")]
    assert main(["import", str(tmp_path / "flapping.txt"), *flags], environ={}, now=NOW) == 0
    told = doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-20", "-o", "json", now=NOW)
    (row,) = told.of("alternating_owner")
    assert row["found"].startswith("devices with labels of A, then B, then A again: 1;")
    assert "- name: KUBERNETES_VIRTUAL_GPUS" in told.lines


def test_a_signal_of_which_every_value_was_blank_is_lost_with_the_reason(doctor: Doctor, tmp_path: Path) -> None:
    """2147483632 is DCGM's blank."""
    series = 'UUID="GPU-1",Hostname="n1"'
    lines = [f"DCGM_FI_DEV_GPU_UTIL{{{series}}} 5 {1795176000 + 30 * step}" for step in range(4)]
    lines += [f"DCGM_FI_DEV_GPU_TEMP{{{series}}} 2147483632 {1795176000 + 30 * step}" for step in range(4)]
    (tmp_path / "blank.txt").write_text("\n".join([*lines, "# EOF\n"]))
    flags = ["--cluster", "lab", "--lake", str(tmp_path / "lake")]
    assert main(["import", str(tmp_path / "blank.txt"), *flags], environ={}, now=NOW) == 0
    told = doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-20", "-o", "json", now=NOW)
    (row,) = told.of("values_left_out")
    assert (row["subject"], row["costs"]) == ("gpu_temp_celsius", ["gpu_temp_celsius_avg", "gpu_temp_celsius_max"])
    assert row["found"] == "series exist, but every value was left out: 4 blank"


def test_gpus_that_lost_their_data_since_the_day_before_are_noted(doctor: Doctor, tmp_path: Path) -> None:
    """GPU-1 has data on both days; GPU-2 and GPU-3 of n2, and GPU-4, only on the first. GPU-5 is new; GPU-6 moves."""
    first, second = 1795176000 - 86400, 1795176000
    there = [(1, "n1", first), (2, "n2", first), (3, "n2", first), (4, "n1", first), (6, "n1", first)]
    there += [(1, "n1", second), (5, "n1", second), (6, "n3", second)]
    lines = [f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{number}",Hostname="{node}"}} 5 {at}' for number, node, at in there]
    (tmp_path / "days.txt").write_text("\n".join([*lines, "# EOF\n"]))
    flags = ["--cluster", "lab", "--lake", str(tmp_path / "lake")]
    assert main(["import", str(tmp_path / "days.txt"), *flags], environ={}, now=NOW) == 0
    (row,) = doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-20", "-o", "json", now=NOW).of("lost_gpu")
    assert (row["status"], row["found"].partition(";")[0]) == (
        "note",
        "data on the day before, none on this day: n1 (1 GPU), n2 (2 GPUs)",
    )
    assert doctor("--lake", str(tmp_path / "lake"), "--date", "2026-11-19", "-o", "json", now=NOW).of("lost_gpu") == []
