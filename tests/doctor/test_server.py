"""`gpureport doctor` against a real Prometheus: what is missing, what it costs, which lines to add, the exit code."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from prometheus.programs import free_port
from prometheus.replay import forwarding, replaying

from gpureport.values.catalog import FIGURES

from .clusters import CLUSTERS, INSTANTS, NOTHING_AT
from .conftest import Doctor, Told

Examined = Callable[[str], Told]

# What the stock CSV costs, by hand: signal → figures.
_OF_DEFAULT_CSV = {
    "power_limit_watts": ("power_limit_watts_max",),
    "sm_active_ratio": (
        "effective_gpu_hours",
        "underutilized_gpu_hours",
        "previous_effective_gpu_hours",
        "effective_change_gpu_hours",
        "freed_gpu_hours",
        "busiest_sm_active_ratio",
        "sm_active_avg",
        "sm_active_max",
        "sm_active_watts",
    ),
    "sm_occupancy_ratio": ("freed_gpu_hours", "busiest_sm_occupancy_ratio", "sm_occupancy_avg"),
    "throttle_reasons": (
        "sw_power_cap_ratio",
        "hw_slowdown_ratio",
        "sync_boost_ratio",
        "sw_thermal_ratio",
        "hw_thermal_ratio",
        "hw_power_brake_ratio",
        "any_throttle_ratio",
    ),
    "power_violation_seconds": ("power_violation_ratio", "any_throttle_ratio_min"),
    "thermal_violation_seconds": ("thermal_violation_ratio",),
    "sync_boost_violation_seconds": ("sync_boost_violation_ratio",),
    "board_limit_violation_seconds": ("board_limit_violation_ratio",),
}


def test_the_stock_csv_lacks_violations_reasons_and_sm_activity(examined: Examined) -> None:
    told = examined("default csv")
    assert told.code == 4
    assert {subject: told.losses.get(subject) for subject in _OF_DEFAULT_CSV} == _OF_DEFAULT_CSV
    assert {row["code"] for row in told.rows if row["status"] == "missing"} == {"signal"}
    assert "DCGM_FI_DEV_POWER_VIOLATION, counter, Time below the wanted clock because of the power limit (in ns)." in told.lines
    assert "DCGM_FI_PROF_SM_ACTIVE, gauge, Share of time with a warp resident; mean over the SMs (in 0 to 1)." in told.lines
    assert any(line.startswith("DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, ") for line in told.lines)


def test_with_the_lines_that_were_told_the_report_is_whole(examined: Examined) -> None:
    """The metrics that the stock cluster is told to add are those that the whole one has beyond it."""
    asked = {line.split(",")[0] for line in examined("default csv").lines if line.startswith("DCGM_FI_")}
    assert asked == {*CLUSTERS["whole"].metrics} - {*CLUSTERS["default csv"].metrics}
    told = examined("whole")
    assert (told.code, told.losses) == (0, {})
    assert told.err.strip().endswith("would be complete")
    assert [row["status"] for row in told.of("signal")] == ["ok"] * len(told.of("signal"))


def test_a_present_signal_says_its_metric_and_how_many_devices_have_it(examined: Examined) -> None:
    found = {row["subject"]: row["found"] for row in examined("whole").of("signal")}
    assert found["power_watts"] == "DCGM_FI_DEV_POWER_USAGE on 4 of 4 devices"


def test_without_workload_labels_every_row_of_the_container_tables_is_lost(examined: Examined) -> None:
    told = examined("no labels")
    (row,) = told.of("pod_labels")
    assert (told.code, row["status"]) == (4, "missing")
    assert row["costs"] == ["container.*", "container_saturation.*", "container_power.*"]
    assert "- name: DCGM_EXPORTER_KUBERNETES" in told.lines
    assert '  value: "nvidia.com/gpu.shared"' in told.lines  # the renamed resource is not matched unless it is named
    assert "all rows of container, container_saturation, container_power" in told.err


def test_displaced_labels_cost_nothing_and_get_the_service_monitors_lines(examined: Examined) -> None:
    told = examined("honorLabels false")
    (row,) = told.of("target_labels_win")
    assert (told.code, row["status"], row["subject"]) == (0, "note", "dcgm-exporter")
    assert "    honorLabels: true" in told.lines
    assert told.of("pod_labels")[0]["found"] == "named pods on the examined devices: 4"


def test_without_kube_state_metrics_the_life_of_pods_is_unknown(examined: Examined) -> None:
    told = examined("no kube-state-metrics")
    assert (told.code, told.losses) == (4, {"Kubernetes state": ("coverage_ratio",)})


def test_profiling_that_one_model_lacks_is_partial_and_names_the_node(examined: Examined) -> None:
    """DCGM 226: H200 and L40S in one cluster, and only one of them has the field."""
    told = examined("no profiling on n2")
    (row,) = [row for row in told.of("signal") if row["subject"] == "gr_engine_active_ratio"]
    assert (told.code, row["status"], row["costs"]) == (4, "partial", ["gpu_usage_avg"])
    assert row["found"].startswith("DCGM_FI_PROF_GR_ENGINE_ACTIVE on 2 of 4 devices; not on n2 (NVIDIA L40S)")
    assert "on some devices" in told.err


def test_an_absent_xid_series_is_not_missing(examined: Examined) -> None:
    """dcgm-exporter 700: from DCGM 4.5.3 on there is no series before the first error."""
    told = examined("no error yet")
    (row,) = told.of("signal_conditional")
    assert (told.code, row["subject"], row["status"], row["costs"]) == (0, "xid_code", "note", [])


@pytest.mark.parametrize(
    ("name", "code", "line"),
    [
        ("time slicing", "shared_one_owner", "- name: KUBERNETES_VIRTUAL_GPUS"),
        ("claims", "claim_labels", '  resources: ["resourceslices"]'),
        ("claims and virtual GPUs", "virtual_gpus_hide_claims", '  value: "false"'),
    ],
)
def test_holders_that_labels_hide_are_partial_losses(examined: Examined, name: str, code: str, line: str) -> None:
    told = examined(name)
    (row,) = told.of(code)
    assert (told.code, row["status"]) == (4, "partial")
    assert line in told.lines


def test_nodes_that_no_exporter_tells_of_are_named(examined: Examined) -> None:
    told = examined("silent nodes")
    (silent,), (bare,) = told.of("node_without_exporter"), told.of("hardware_without_driver")
    assert told.code == 4
    assert "n3 (2 nvidia_com_gpu)" in silent["found"]
    assert "n4 (nvidia)" in bare["found"]


def test_a_host_label_with_the_exporter_pods_name_gets_the_environments_lines(examined: Examined) -> None:
    told = examined("host is a pod")
    (row,) = told.of("host_label")
    assert (told.code, row["status"]) == (4, "missing")
    assert row["add"][0]["lines"] == ["- name: NODE_NAME", "  valueFrom:", "    fieldRef:", "      fieldPath: spec.nodeName"]
    assert told.of("node_without_exporter") == []  # which node is which is not known


def test_mig_instances_lack_utilisation_by_nature(examined: Examined) -> None:
    told = examined("MIG")
    (row,) = told.of("signal_conditional")
    assert (told.code, row["subject"]) == (0, "gpu_util_ratio")
    assert "on 2 of 2 devices" in told.of("signal")[0]["found"]  # a GPU on each node, in two instances


def test_an_amd_card_in_partitions_counts_once_and_lacks_no_energy(examined: Examined) -> None:
    found = {row["subject"]: (row["status"], row["found"]) for row in examined("AMD partitions").of("signal")}
    assert found["energy_joules"] == ("ok", "gpu_energy_consumed on 1 of 1 devices")
    assert found["power_watts"] == ("ok", "gpu_package_power on 1 of 1 devices")
    assert found["sm_clock_hertz"] == ("ok", "gpu_clock on 1 of 1 devices")
    assert found["memory_clock_hertz"][0] == "missing"  # the same metric, another clock
    assert found["fb_used_bytes"] == ("ok", "gpu_used_vram on 1 of 1 devices")


def test_other_servers_tell_the_same(doctor: Doctor, examined: Examined, other_server: str) -> None:
    for name in ("no profiling on n2", "silent nodes"):
        told = doctor("--prometheus-url", other_server, "-o", "json", now=INSTANTS[name])
        assert [row for row in told.rows if row["code"] != "server"] == [
            row for row in examined(name).rows if row["code"] != "server"
        ]


def test_repeated_values_and_restarted_counters_are_noted(examined: Examined) -> None:
    """100 100 101 101 102 102 103 103 1 2 3: six of ten steps bring a new value, and both GPUs of the host began anew."""
    told = examined("staircase and reset")
    (interval,), (reset,) = told.of("scrape_interval"), told.of("counter_reset")
    assert interval["found"].startswith("a sample every 30 s, but a new value only every 50 s")
    assert reset["found"].startswith("resets in the data (driver reloaded): 2;")
    assert told.code == 0


def test_a_server_without_device_series_costs_every_figure_that_needs_one(doctor: Doctor, server: str) -> None:
    told = doctor("--prometheus-url", server, "-o", "json", now=NOTHING_AT)
    (row,) = told.of("device_series")
    assert told.code == 4
    assert row["costs"] == [name for name, figure in FIGURES.items() if figure.signals]
    assert told.of("signal") == []


def test_the_servers_flavour_version_and_read_path_are_told(examined: Examined) -> None:
    (row,) = examined("whole").of("server")
    assert row["subject"].startswith("Prometheus 2.")
    assert row["found"] == "samples come by remote read"


def test_a_date_looks_at_the_end_of_that_day(doctor: Doctor, server: str) -> None:
    told = doctor("--prometheus-url", server, "--date", "2026-10-01", now=INSTANTS["whole"])
    assert "at 2026-10-02T00:00:00Z" in told.err


def test_a_table_in_a_pipe_is_a_line_for_each_row_and_the_lines_to_add(doctor: Doctor, server: str) -> None:
    told = doctor("--prometheus-url", server, now=INSTANTS["default csv"])
    rows, _, lines = told.out.partition("\n\nTo add, metrics CSV of dcgm-exporter:\n\n")
    assert rows.splitlines()[0].split() == ["status", "code", "subject", "found", "costs"]
    assert {line.split()[0] for line in rows.splitlines()[1:]} == {"missing", "note", "ok"}
    assert "\x1b" not in told.out
    assert [line for line in lines.splitlines() if line.startswith("DCGM_FI_DEV_POWER_VIOLATION, counter, ")]
    assert told.err.startswith("gpureport: a report from http://127.0.0.1:")


def test_csv_holds_the_same_rows_as_json(doctor: Doctor, server: str) -> None:
    flags = ("--prometheus-url", server)
    as_csv = doctor(*flags, "-o", "csv", now=INSTANTS["default csv"])
    as_json = doctor(*flags, "-o", "json", now=INSTANTS["default csv"])
    found = [
        (row["status"], row["code"], row["subject"], row["costs"].split()) for row in csv.DictReader(io.StringIO(as_csv.out))
    ]
    assert found == [(row["status"], row["code"], row["subject"], row["costs"]) for row in as_json.rows]


def test_samples_are_not_fetched_in_bulk(doctor: Doctor, server: str) -> None:
    """Counts and label sets; raw samples of one host at most, and of nothing by remote read but the probe."""

    with replaying({}, forwarding(server)) as replay:
        assert doctor("--prometheus-url", replay.url, now=INSTANTS["whole"]).code == 0
    queries = [request.form["query"] for request in replay.requests if request.path == "/api/v1/query"]
    ranges = [query for query in queries if "[" in query]
    assert ranges and all('Hostname="n1"' in query for query in ranges)
    assert all(query.startswith(("count by", "max by")) for query in queries if query not in ranges)
    assert replay.count("/api/v1/query_range") == 0
    assert replay.count("/api/v1/read") == 1
    assert len(replay.requests) < 25


def test_a_server_that_is_not_there_is_exit_code_5(doctor: Doctor) -> None:
    told = doctor("--prometheus-url", f"http://127.0.0.1:{free_port()}", now=NOTHING_AT)
    assert (told.code, told.out) == (5, "")
    assert "cannot reach" in told.err


@pytest.mark.parametrize("flags", [(), ("--prometheus-url", "http://h:9090", "--lake", "lake"), ("-o", "xml")])
def test_what_cannot_be_meant_is_exit_code_2(doctor: Doctor, flags: tuple[str, ...]) -> None:
    assert doctor(*flags, now=NOTHING_AT).code == 2
