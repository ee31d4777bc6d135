"""Single checks: evidence in, rows out; no server and no lake."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus.replay import replaying, success
from prometheus.samples import connect

from gpureport import doctor
from gpureport.collect.state.kinds import PODS
from gpureport.compute.query import load
from gpureport.doctor import Evidence, Finding, combine_evidence, examine
from gpureport.doctor.cluster import cluster_findings
from gpureport.doctor.evidence import (
    ApiServer,
    Carried,
    KubeState,
    Listing,
    Rhythm,
    ServerSeen,
    is_accelerator,
    pci_vendor,
    verdict,
)
from gpureport.doctor.prometheus import retention_days
from gpureport.doctor.signals import costs, rhythm_findings, server_findings, signal_findings
from gpureport.doctor.workloads import SAMPLED_HOSTS, chosen_hosts, leading_metrics, replica_findings, workload_findings
from gpureport.values.catalog import FIGURES, Catalog, load_catalog
from gpureport.values.series import Labels
from gpureport.values.tables import SIGNALS

CATALOG: Catalog = load_catalog()
OPERATIONS = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
ALL_SIGNALS = frozenset(signal.name for signal in SIGNALS)


def carried(metric: str, host: str = "n1", count: int = 2, **more: object) -> Carried:
    """A metric of the catalogue on two devices of a node."""
    row = CATALOG.metrics[metric][0]
    found = Carried(row.signal, metric, row.exporter, host, "", "NVIDIA H200", False, count, "Hostname")
    return replace(found, **more)  # type: ignore[arg-type]


def row_of(findings: list[Finding], subject: str) -> Finding:
    (found,) = [finding for finding in findings if finding.subject == subject]
    return found


def lines_for(metrics: list[str], signal: str) -> list[str]:
    """What is told to add for a signal beside these metrics."""
    findings = signal_findings(Evidence("x", tuple(carried(metric) for metric in metrics)), CATALOG)
    return [line for remedy in row_of(findings, signal).add for line in remedy.lines]


def test_the_codes_of_the_operations_page_are_those_that_are_used() -> None:
    sources = "".join(path.read_text() for path in Path(doctor.__file__).parent.glob("*.py"))
    used = set(re.findall(r'Finding\(\s*"(\w+)"', sources))
    table = OPERATIONS.partition("| code | checks |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`(?=[^|]*\|[^|]*\|$)", table, re.MULTILINE)) == sorted(used)


def test_every_cost_is_a_figure_or_a_table_or_a_column_of_the_report() -> None:
    report = {query.table.removeprefix("report."): query.columns for query in load().values() if query.life == "report"}
    sources = "".join(path.read_text() for path in Path(doctor.__file__).parent.glob("*.py"))
    tables = set(re.findall(r'"(\w+)\.\*"', sources))
    assert tables and tables - report.keys() == set()
    assert {"node_name", "coverage_ratio"} <= {column for columns in report.values() for column in columns}


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.signals])
def test_a_figure_is_lost_without_its_signals_and_known_with_those_that_are_told(name: str) -> None:
    figure = FIGURES[name]
    told = {signal for signal, names in costs(ALL_SIGNALS - set(figure.signals)).items() if name in names}
    assert told and told <= set(figure.signals)
    assert name not in {lost for names in costs((ALL_SIGNALS - set(figure.signals)) | told).values() for lost in names}


def test_a_signal_that_another_replaces_costs_nothing() -> None:
    assert costs(ALL_SIGNALS) == {}
    assert costs(ALL_SIGNALS - {"fb_total_bytes"}) == {}  # used, free and reserved serve


def test_without_the_energy_counter_energy_is_known_and_only_the_comparison_is_lost() -> None:
    lost = ("counter_joules", "integral_joules", "counter_difference_joules", "corrected_joules", "counter_integral_ratio")
    assert costs(ALL_SIGNALS - {"energy_joules"}) == {"energy_joules": lost}
    told = costs(ALL_SIGNALS - {"energy_joules", "power_watts"})
    assert told.keys() == {"energy_joules", "power_watts"} and "energy_joules" in told["energy_joules"]


def test_memory_that_is_wanted_anyway_serves_the_total_too() -> None:
    """Used and free are needed for the ratios, so nobody is told to add the total beside them."""
    told = costs(ALL_SIGNALS - {"fb_used_bytes", "fb_free_bytes", "fb_total_bytes"})
    assert told.keys() == {"fb_used_bytes", "fb_free_bytes"}
    assert "memory_total_bytes" in told["fb_used_bytes"]


@pytest.mark.parametrize(
    ("seen", "signal", "metric"),
    [
        (["DCGM_FI_DEV_POWER_USAGE"], "power_violation_seconds", "DCGM_FI_DEV_POWER_VIOLATION"),
        (["DCGM_FI_DEV_BOARD_POWER_WATTS"], "power_violation_seconds", "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL"),
        (["dcgm_power_usage"], "power_violation_seconds", "DCGM_FI_DEV_POWER_VIOLATION"),
        (["DCGM_FI_DEV_POWER_USAGE"], "sm_active_ratio", "DCGM_FI_PROF_SM_ACTIVE"),
        (["DCGM_FI_DEV_BOARD_POWER_WATTS"], "sm_active_ratio", "DCGM_FI_PROF_SM_UTIL_RATIO"),
        (["DCGM_FI_DEV_POWER_USAGE"], "throttle_reasons", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    ],
)
def test_the_line_to_add_has_the_name_of_the_version_in_use(seen: list[str], signal: str, metric: str) -> None:
    (line,) = lines_for(seen, signal)
    assert line.split(",")[0] == metric


def test_a_line_has_the_three_columns_of_the_csv_and_the_exporters_unit() -> None:
    for metrics in (["DCGM_FI_DEV_POWER_USAGE"], ["DCGM_FI_DEV_BOARD_POWER_WATTS"]):
        findings = signal_findings(Evidence("x", tuple(carried(metric) for metric in metrics)), CATALOG)
        lines = [line for finding in findings for remedy in finding.add for line in remedy.lines]
        assert len(lines) > 10
        assert {len(line.split(",")) for line in lines} == {3}
        assert {line.split(",")[1].strip() for line in lines} == {"gauge", "counter"}
    (old,) = lines_for(["DCGM_FI_DEV_POWER_USAGE"], "fb_used_bytes")
    (new,) = lines_for(["DCGM_FI_DEV_BOARD_POWER_WATTS"], "fb_used_bytes")
    assert old.endswith("(in MiB).") and new.endswith("(in bytes).")


def test_what_a_model_cannot_have_is_not_asked_for() -> None:
    """Neither an L4 nor a T4 has NVLink: no line to add, and no figure is lost by it."""
    of_model = [
        carried("DCGM_FI_DEV_POWER_USAGE", "n1", model="NVIDIA L4"),
        carried("DCGM_FI_DEV_POWER_USAGE", "n2", model="Tesla T4"),
    ]
    row = row_of(signal_findings(Evidence("x", tuple(of_model)), CATALOG), "nvlink_tx_bytes_per_second")
    assert (row.code, row.status, row.costs, row.add) == ("not_on_model", "note", (), ())
    assert row.found == "no series: not supported by NVIDIA L4, Tesla T4"


def test_a_cluster_of_two_models_lacks_only_what_both_could_have() -> None:
    power, nvlink = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_NVLINK_TX_BYTES"
    of_both = [carried(power, "n1"), carried(power, "n2", model="NVIDIA L4")]
    lacking = row_of(signal_findings(Evidence("x", tuple(of_both)), CATALOG), "nvlink_tx_bytes_per_second")
    assert (lacking.code, lacking.status) == ("signal", "missing") and lacking.add
    there = row_of(signal_findings(Evidence("x", (*of_both, carried(nvlink, "n1"))), CATALOG), "nvlink_tx_bytes_per_second")
    assert (there.code, there.status, there.costs) == ("not_on_model", "note", ())
    assert there.found == f"{nvlink} on 2 of 4 devices: not supported by NVIDIA L4"


def test_a_guest_of_a_virtual_gpu_is_asked_for_nothing_that_it_cannot_tell() -> None:
    """Energy is lost all the same; no line of a CSV brings it, and a host's own A40 that lacks it is told of as ever."""
    guests = [
        carried("DCGM_FI_DEV_GPU_UTIL", "vm1", model="NVIDIA A40-8Q"),
        carried("DCGM_FI_DEV_GPU_UTIL", "vm2", model="GRID V100D-32C"),
    ]
    row = row_of(signal_findings(Evidence("x", tuple(guests)), CATALOG), "power_watts")
    assert (row.code, row.status, row.add) == ("virtual_gpu", "missing", ())
    assert "power_watts_avg" in row.costs
    told = "are virtual GPUs: guests cannot read it; the exporter on their host can"
    assert row.found == f"no series: GRID V100D-32C, NVIDIA A40-8Q {told}"
    assert row_of(signal_findings(Evidence("x", tuple(guests)), CATALOG), "sm_active_ratio").code == "signal"

    host = [
        carried("DCGM_FI_DEV_GPU_UTIL", "n1", model="NVIDIA A40"),
        carried("DCGM_FI_DEV_POWER_USAGE", "n1", model="NVIDIA A40"),
    ]
    mixed = row_of(signal_findings(Evidence("x", (*host, *guests)), CATALOG), "power_watts")
    assert (mixed.code, mixed.status, mixed.add) == ("virtual_gpu", "partial", ())
    assert mixed.found == f"DCGM_FI_DEV_POWER_USAGE on 2 of 6 devices: GRID V100D-32C, NVIDIA A40-8Q {told}"
    silent = carried("DCGM_FI_DEV_GPU_UTIL", "n2", model="NVIDIA A40")
    lacking = row_of(signal_findings(Evidence("x", (*host, *guests, silent)), CATALOG), "power_watts")
    assert (lacking.code, lacking.status) == ("signal", "partial")
    assert "n2 (NVIDIA A40)" in lacking.found


def test_another_exporters_metric_is_told_with_what_it_needs() -> None:
    assert lines_for(["gpu_package_power"], "sm_active_ratio") == ["gpu_prof_sm_active (needs profiler)"]
    findings = signal_findings(Evidence("x", (carried("gpu_package_power"),)), CATALOG)
    assert lines_for(["gpu_package_power"], "memory_clock_hertz") == ['gpu_clock{clock_type="GPU_CLOCK_TYPE_MEMORY"}']
    assert row_of(findings, "xid_code").found == "no series; none of device-metrics-exporter publishes it"
    assert row_of(findings, "xid_code").status == "missing"


def test_a_second_exporter_that_knows_little_makes_nothing_partial() -> None:
    """Kepler tells of power alone, under its own labels."""
    both = (carried("DCGM_FI_DEV_POWER_USAGE"), carried("DCGM_FI_DEV_GPU_UTIL"), carried("kepler_node_gpu_watts", host="k1"))
    findings = signal_findings(Evidence("x", both), CATALOG)
    assert row_of(findings, "gpu_util_ratio").status == "ok"
    assert row_of(findings, "power_watts").found == "DCGM_FI_DEV_POWER_USAGE, kepler_node_gpu_watts on 2 of 2 devices"


def test_devices_of_another_vendor_are_judged_on_their_own() -> None:
    """NVIDIA's power on n1 is none of AMD's on n2, whose exporter could publish it, but no replays."""
    of_nvidia = [carried(f"DCGM_FI_DEV_{what}", "n1") for what in ("POWER_USAGE", "PCIE_REPLAY_COUNTER", "XID_ERRORS")]
    of_amd = carried("gpu_gfx_activity", "n2", model="MI300X")
    findings = [each for each in signal_findings(Evidence("x", (*of_nvidia, of_amd)), CATALOG) if each.found.startswith("not on")]
    power, replays = (row_of(findings, signal) for signal in ("power_watts", "pcie_replay_count"))
    assert power.found == "not on n2 (MI300X): no series" and power.status == "partial"
    assert [line for remedy in power.add for line in remedy.lines] == ["gpu_package_power (needs MI3xx; partition 0 only)"]
    assert replays.found == "not on n2 (MI300X): no series; none of device-metrics-exporter publishes it"
    assert not [each for each in findings if "n1" in each.found and each.subject == "power_watts"]


def test_a_node_with_fewer_devices_than_its_fullest_metric_is_partial() -> None:
    seen = (carried("DCGM_FI_DEV_GPU_TEMP", count=8), carried("DCGM_FI_DEV_SM_CLOCK", count=7))
    found = row_of(signal_findings(Evidence("x", seen), CATALOG), "sm_clock_hertz")
    assert (found.status, found.costs) == ("partial", ("sm_clock_hertz_avg", "sm_clock_hertz_max"))
    assert found.found == "DCGM_FI_DEV_SM_CLOCK on 7 of 8 devices; not on n1 (NVIDIA H200)"


def test_devices_of_which_every_value_was_left_out_are_named_with_the_reason() -> None:
    seen = (carried("DCGM_FI_DEV_GPU_TEMP"), carried("DCGM_FI_PROF_GR_ENGINE_ACTIVE", count=1))
    evidence = Evidence("x", seen, left_out={"gr_engine_active_ratio": {"dead": 1440}})
    found = row_of(signal_findings(evidence, CATALOG), "gr_engine_active_ratio")
    assert (found.status, found.costs) == ("partial", ("gpu_usage_avg", "used_gpu_hours"))
    assert found.found.endswith("(series exist, but every value was left out: 1,440 dead)")


def test_a_partial_signal_that_another_replaces_is_a_note() -> None:
    seen = (
        *(carried(f"DCGM_FI_DEV_FB_{what}", host=host) for what in ("USED", "FREE", "RESERVED") for host in ("n1", "n2")),
        carried("DCGM_FI_DEV_FB_TOTAL", host="n1"),
    )
    assert row_of(signal_findings(Evidence("x", seen), CATALOG), "fb_total_bytes").status == "note"


def test_errors_on_some_devices_only_are_not_partial() -> None:
    """From DCGM 4.5.3 on a GPU has the series from its first error on."""
    seen = (carried("DCGM_FI_DEV_GPU_TEMP"), carried("DCGM_FI_DEV_XID_ERRORS", count=1))
    found = row_of(signal_findings(Evidence("x", seen), CATALOG), "xid_code")
    assert (found.code, found.status, found.costs) == ("signal_conditional", "note", ())


def test_kube_state_metrics_behind_other_labels_gets_the_service_monitors_lines() -> None:
    kube = KubeState(series={"kube_pod_info": 1}, is_relabelled=True)
    found = row_of(cluster_findings(Evidence("x", kube=kube)), "kube-state-metrics")
    assert (found.code, found.status, found.add[0].lines[-1].strip()) == ("target_labels_win", "note", "honorLabels: true")
    assert found.add[0].place == "ServiceMonitor of kube-state-metrics"


def test_pods_that_snapshots_will_show_are_not_lost_without_kube_state_metrics() -> None:
    """The lists of the API server are what a run reads; where pods may not be listed their lives are unknown."""
    for refusal, status in (("", "note"), ("pods is forbidden", "missing")):
        state = Evidence("k", api=ApiServer("k", "kubernetes", (Listing(PODS, "v1", refusal),)), has_telemetry=False)
        findings = cluster_findings(combine_evidence(Evidence("x", (carried("DCGM_FI_DEV_POWER_USAGE"),)), state))
        assert row_of(findings, "Kubernetes state").status == status


@pytest.mark.parametrize("metric", ["kube_pod_info", "kube_pod_created", "kube_pod_status_phase"])
def test_a_series_that_tells_of_pods_lives_costs_the_coverage(metric: str) -> None:
    others = {"kube_pod_info", "kube_pod_created", "kube_pod_status_phase"} - {metric}
    found = row_of(cluster_findings(Evidence("x", kube=KubeState(series=dict.fromkeys(others, 1)))), metric)
    assert (found.status, found.costs) == ("missing", ("coverage_ratio",))


def test_a_node_whose_name_merely_ends_like_a_pods_is_a_node() -> None:
    hosts = [carried("DCGM_FI_DEV_GPU_TEMP", host=host) for host in ("gpu-worker-a1b2c", "nvidia-dcgm-exporter-x7k2p")]
    found = row_of(cluster_findings(Evidence("x", tuple(hosts))), "Hostname")
    assert "(nvidia-dcgm-exporter-x7k2p)" in found.found


DEVICE: Labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "gpu": "0", "Hostname": "n1", "job": "dcgm-exporter"}
OWN_POD: Labels = {"pod": "nvidia-dcgm-exporter-x7k2p", "namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}


def workloads(*labels: Labels, kube: KubeState | None = None) -> list[Finding]:
    return workload_findings(Evidence("x", labels=labels, kube=kube or KubeState()), CATALOG)


def test_the_exporters_own_pod_is_nobody_and_tells_that_target_labels_win() -> None:
    """An idle cluster behind a ServiceMonitor without honorLabels: exported_pod is nowhere."""
    findings = workloads({**DEVICE, **OWN_POD})
    assert {finding.code: finding.status for finding in findings} == {"pod_labels": "missing", "target_labels_win": "note"}


def test_pods_that_cannot_hold_a_device_are_told_with_the_evidence() -> None:
    pods = [{"pod": name, "namespace": "ns", "container": "c"} for name in ("agent", "web", "train", "claimer")]
    labels = tuple({**DEVICE, **pod, "instance": "10.0.0.5:9400"} for pod in pods)
    requests = {"__name__": "kube_pod_container_resource_requests", "resource": "cpu"}
    evidence: tuple[Labels, ...] = (
        {"__name__": "kube_pod_info", "pod": "agent", "namespace": "ns", "pod_ip": "10.0.0.5", "host_ip": "10.1.0.1"},
        *({**requests, **pod} for pod in pods[1:]),
        {**requests, **pods[2], "resource": "koordinator_sh_gpu_core"},
        {"__name__": "kube_pod_resourceclaim_info", **pods[3], "claim_name": "gpu"},
    )
    kube = KubeState(series={"kube_pod_info": 4})
    found = {each.code: each.found for each in workload_findings(Evidence("x", labels=labels, pods=evidence, kube=kube), CATALOG)}
    assert (
        found["refuted_holders"]
        == "labels name pods that cannot hold a GPU: ns/agent (its address is scraped), ns/web (requests no accelerator)"
    )
    assert found["pod_labels"] == "named pods on the examined devices: 2"


def test_a_pod_and_a_scrape_of_unknown_addresses_are_not_one() -> None:
    """Series from a file carry no instance, and without kube-state-metrics no pod has an address."""
    named = {name: text for name, text in DEVICE.items() if name != "instance"} | {"pod": "train", "namespace": "ns"}
    codes = {finding.code: finding.status for finding in workloads(named)}
    assert codes["pod_labels"] == "ok"
    assert "refuted_holders" not in codes


def test_a_pod_that_requests_a_gpu_is_a_holder_though_it_is_named_like_the_job() -> None:
    pod = {"pod": "train-x7k2p", "namespace": "ml", "container": "c"}
    asks = {"__name__": "kube_pod_container_resource_requests", "resource": "nvidia_com_gpu", **pod}
    evidence = Evidence("x", labels=({**DEVICE, **pod, "job": "train"},), pods=(asks,))
    assert {each.code: each.status for each in workload_findings(evidence, CATALOG)}["pod_labels"] == "ok"


def test_honor_labels_is_not_advised_where_it_is_on() -> None:
    """The workload is in pod; a GPU without one has the exporter's pod there, and hours ago it was in exported_pod."""
    held = {"pod": "train-0", "namespace": "ml", "container": "main"}
    before = {"exported_pod": "train-0", "exported_namespace": "ml", "exported_container": "main"}
    findings = workloads({**DEVICE, **OWN_POD}, {**DEVICE, **OWN_POD, **before}, {**DEVICE, "UUID": "GPU-2", **held})
    assert "target_labels_win" not in {finding.code for finding in findings}


def test_a_cluster_where_nobody_asks_for_a_gpu_lacks_no_pod_labels() -> None:
    (finding,) = workloads(DEVICE, kube=KubeState(series={"kube_pod_info": 3}))
    assert (finding.code, finding.status) == ("pod_labels", "note")


def test_pods_that_request_ascend_npus_want_holders_and_can_hold_one() -> None:
    """Requests of any maker count: they were those of no accelerator, so nothing was missing, and the holder was refuted."""
    kube = KubeState(series={"kube_pod_info": 3}, requests={"huawei_com_Ascend910": 2})
    named = {"__name__": "npu_chip_info_utilization", "vdie_id": "1", "namespace": "ml", "pod_name": "train"}
    pod = {"namespace": "ml", "pod": "train", "container": "c", "resource": "huawei_com_Ascend910"}
    asks = {"__name__": "kube_pod_container_resource_requests", **pod}
    findings = workload_findings(Evidence("x", labels=(named,), pods=(asks,), kube=kube), CATALOG)
    assert [(finding.code, finding.status) for finding in findings] == [("pod_labels", "ok")]


def test_an_exporter_that_never_names_pods_is_told_and_its_holders_are_missing() -> None:
    findings = workloads({"__name__": "nvidia_smi_utilization_gpu_ratio", "uuid": "1", "instance": "h:9835"})
    assert [(finding.code, finding.status) for finding in findings] == [
        ("exporter_without_pods", "note"),
        ("pod_labels", "missing"),
    ]


@pytest.mark.parametrize(
    "labels",
    [
        {"__name__": "habanalabs_utilization", "UUID": "1", "pod_namespace": "ml", "pod_name": "p"},
        {"__name__": "npu_chip_info_utilization", "vdie_id": "1", "namespace": "ml", "pod_name": "p"},
        {"__name__": "hami_container_device_utilization_ratio", "device_uuid": "GPU-1", "namespace": "ml", "pod": "p"},
    ],
)
def test_an_exporter_that_names_pods_is_not_said_to_name_none(labels: dict[str, str]) -> None:
    assert [finding.code for finding in workloads(labels) if finding.status != "note"] == ["pod_labels"]
    assert "exporter_without_pods" not in {finding.code for finding in workloads(labels)}


def test_of_many_nodes_with_more_gpus_than_devices_the_rest_is_counted() -> None:
    """Seven nodes have two devices each, and four allocatable GPUs."""
    hosts = [f"n{number}" for number in range(7)]
    kube = KubeState(allocatable={host: {"nvidia_com_gpu": 4} for host in hosts}, nodes=frozenset(hosts))
    seen = Evidence("x", tuple(carried("DCGM_FI_DEV_GPU_UTIL", host=host) for host in hosts), (DEVICE,), kube=kube)
    found = {each.code: each.found for each in workload_findings(seen, CATALOG)}
    assert "than exist on n0, n1, n2, n3, n4 and 2 more: labels name" in found["shared_one_owner"]


def test_replicas_and_jobs_that_repeat_devices_are_noted() -> None:
    replicas = replica_findings([{**DEVICE, "replica": "a"}, {**DEVICE, "replica": "b"}], CATALOG)
    jobs = replica_findings([DEVICE, {**DEVICE, "job": "other"}], CATALOG)
    assert [finding.found for finding in replicas] == ["replicas a, b; each device is counted once"]
    assert [finding.found for finding in jobs] == [
        "jobs dcgm-exporter, other scrape the same devices; each device is counted once"
    ]
    assert replica_findings([DEVICE, {**DEVICE, "pod": "p"}], CATALOG) == []


def test_a_server_that_forgets_sooner_than_days_are_filled_back_is_noted() -> None:
    kept = ServerSeen("Prometheus 3.5", "remote-read", retention_days=7)
    assert [finding.code for finding in server_findings(kept, 7)] == ["server", "retention"]
    assert [finding.code for finding in server_findings(replace(kept, retention_days=8), 7)] == ["server"]
    assert [finding.code for finding in server_findings(replace(kept, retention_days=None), 7)] == ["server"]


@pytest.mark.parametrize(
    ("text", "days"), [("15d", 15), ("1w1d", 8), ("36h", 1.5), ("10d or 5GiB", 10), ("512MB", None), ("0s", None), ("", None)]
)
def test_the_retention_is_read_as_prometheus_writes_it(text: str, days: float | None) -> None:
    with replaying({"/api/v1/status/runtimeinfo": success({"storageRetention": text})}) as server:
        assert retention_days(connect(server.url)) == days


def test_a_server_that_does_not_tell_its_retention_is_not_judged() -> None:
    with replaying({}) as server:
        assert retention_days(connect(server.url)) is None


def test_a_server_without_remote_read_is_noted() -> None:
    (finding,) = server_findings(ServerSeen("Prometheus", "matrix"), 7)
    assert finding.status == "note"


@pytest.mark.parametrize(
    ("rhythm", "status"),
    [
        (Rhythm(30, 1.0), "ok"),
        (Rhythm(15, 0.5), "note"),  # DCGM renews every 30 s
        (Rhythm(300, 1.0), "note"),
        (Rhythm(30, None), "ok"),
        (Rhythm(30, 0.0), "note"),
    ],
)
def test_the_interval_is_judged_by_new_values_and_length(rhythm: Rhythm, status: str) -> None:
    (finding,) = rhythm_findings(rhythm)
    assert finding.status == status


def test_accelerator_resources_and_slots_are_told_from_others() -> None:
    names = ["nvidia_com_gpu", "nvidia_com_gpu_shared", "nvidia_com_mig_1g_5gb", "amd_com_gpu", "gpu_intel_com_i915", "cpu"]
    assert [is_accelerator(name) for name in names] == [True, True, True, True, True, False]
    parts = [
        "koordinator_sh_gpu_core",
        "kubernetes_io_gpu_core",
        "volcano_sh_vgpu_number",
        "aliyun_com_gpu_mem",
        "amd_com_cpx_nps4",
    ]
    assert all(map(is_accelerator, parts)) and not is_accelerator("koordinator_sh_rdma")
    others = ["huawei_com_Ascend910", "aws_amazon_com_neuron", "metax_tech_com_gpu", "iluvatar_ai_gpu", "furiosa_ai_warboy"]
    assert all(map(is_accelerator, others))
    assert not any(
        is_accelerator(name) for name in ["gpu_intel_com_i915_monitoring", "gpu_intel_com_millicores", "nvidia_com_hostdev"]
    )
    slot = "label_feature_node_kubernetes_io_pci_0302_10de_present"
    assert (pci_vendor({slot: "true"}), pci_vendor({slot: "false"}), pci_vendor({"node": "n1"})) == ("nvidia", "", "")


def test_of_many_hosts_some_are_looked_at_and_every_kind_among_them() -> None:
    plain = [carried("DCGM_FI_DEV_GPU_UTIL", host=f"n{number:04d}") for number in range(1000)]
    odd = carried("DCGM_FI_DEV_GPU_UTIL", host="n0001", model="NVIDIA L40S")
    hosts = [host for _, host in chosen_hosts([*plain, odd])]
    assert len(hosts) == SAMPLED_HOSTS + 1
    assert "n0001" in hosts
    assert leading_metrics([*plain, carried("DCGM_FI_DEV_SM_CLOCK")]) == ["DCGM_FI_DEV_GPU_UTIL"]


def test_losses_come_first_and_the_verdict_names_them() -> None:
    findings = examine(Evidence("here", (carried("DCGM_FI_DEV_GPU_TEMP"),)), CATALOG, 7)
    statuses = [finding.status for finding in findings]
    assert statuses == sorted(statuses, key=["missing", "partial", "note", "ok"].index)
    two = [
        Finding("signal", "missing", "a", "", ("gpu_usage_avg",)),
        Finding("signal", "partial", "b", "", ("sm_active_avg", "gpu_usage_avg")),
        Finding("pod_labels", "partial", "c", "", ("container.*",)),
    ]
    number = len(FIGURES)
    assert verdict(two, "here") == (
        f"a report from here would lack 1 of {number} figures (gpu_usage_avg) and some rows of container "
        f"and 1 of {number} figures on some devices (sm_active_avg)"
    )
    assert verdict([], "here") == "a report from here would be complete"
