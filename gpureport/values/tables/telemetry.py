"""The tables of what exporters say: device signals, samples, who was named on them, and what was asked and left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from gpureport.values.runtime.resources import catalog_rows
from gpureport.values.tables.table import INSTANT, Column, Table

SignalKind = Literal["gauge", "counter", "bitmask", "code"]
SignalScope = Literal["board", "instance"]

_HIGHEST = {
    **{"ratio": 1.0, "bytes": 2.0**42, "hertz": 1e10, "celsius": 200.0, "second": 4e12, "generation": 9.0, "width": 32.0},
    **{"pcie_tx_bytes_per_second": 2.6e11, "pcie_rx_bytes_per_second": 2.6e11, "xid_code": 9999.0},
    **{"row_remap_failure_count": 1.0, "remapped_row_uncorrectable_count": 1e4, "remapped_row_correctable_count": 1e4},
    **{"count": 2147483647.0, "reasons": 2147483647.0},
}
"""By name (16 lanes of PCIe 7; NVIDIA spares 512 rows) or unit, above what any device has; power has its device's own bound."""


@dataclass(frozen=True)
class Signal:
    """One device signal in canonical units: a column of ``device_sample``, named by its unit."""

    name: str
    kind: SignalKind
    scope: SignalScope
    doc: str

    @property
    def unit(self) -> str:
        """The last word of the name: watts, joules, ratio, seconds, count, …; ``second`` of what is per second."""
        return self.name.rpartition("_")[2]

    @property
    def lowest(self) -> float:
        """The least that it can be; no device is without memory."""
        return -100.0 if self.unit == "celsius" else float(self.name == "fb_total_bytes")

    @property
    def highest(self) -> float:
        """The most that it can be on any device, of a counter no matter what."""
        return math.inf if self.kind == "counter" else _HIGHEST.get(self.name, _HIGHEST.get(self.unit, math.inf))

    @property
    def increase_name(self) -> str:
        """Column with a counter's growth to the next sample: ``<stem>_increase_<unit>``."""
        return f"{self.name}_increase"

    @property
    def gap_increase_name(self) -> str:
        """Column with a counter's growth over a gap or reset that ended at this row."""
        return f"{self.name}_gap_increase"


SIGNALS: tuple[Signal, ...] = (
    Signal("power_watts", "gauge", "board", "power drawn by the whole board"),
    Signal("power_limit_watts", "gauge", "board", "enforced power limit"),
    Signal("energy_joules", "counter", "board", "energy since the driver was loaded"),
    Signal("gpu_util_ratio", "gauge", "board", "share of time in which any kernel ran (NVML utilization)"),
    Signal("mem_copy_util_ratio", "gauge", "board", "share of time in which memory was read or written (NVML)"),
    Signal("enc_util_ratio", "gauge", "board", "share of time in which the video encoder worked (NVML)"),
    Signal("dec_util_ratio", "gauge", "board", "share of time in which the video decoder worked (NVML)"),
    Signal("fb_used_bytes", "gauge", "instance", "framebuffer memory in use, reserved memory excluded"),
    Signal("fb_free_bytes", "gauge", "instance", "framebuffer memory free"),
    Signal("fb_reserved_bytes", "gauge", "instance", "framebuffer memory reserved by driver and firmware"),
    Signal("fb_total_bytes", "gauge", "instance", "framebuffer memory in all"),
    Signal("fb_used_ratio", "gauge", "instance", "share of the framebuffer in use, where only that is exported"),
    Signal("sm_clock_hertz", "gauge", "board", "clock of the streaming multiprocessors"),
    Signal("memory_clock_hertz", "gauge", "board", "memory clock"),
    Signal("gpu_temp_celsius", "gauge", "board", "GPU core temperature"),
    Signal("memory_temp_celsius", "gauge", "board", "memory temperature"),
    Signal("gr_engine_active_ratio", "gauge", "instance", "share of time with the graphics or compute engine active"),
    Signal("sm_active_ratio", "gauge", "instance", "share of time with a warp resident, mean over the SMs"),
    Signal("sm_occupancy_ratio", "gauge", "instance", "resident warps over the most an SM can hold"),
    Signal("tensor_active_ratio", "gauge", "instance", "share of cycles with the tensor pipe active"),
    Signal("fp64_active_ratio", "gauge", "instance", "share of cycles with the FP64 pipe active"),
    Signal("fp32_active_ratio", "gauge", "instance", "share of cycles with the FP32 pipe active"),
    Signal("fp16_active_ratio", "gauge", "instance", "share of cycles with the FP16 pipe active"),
    Signal("dram_active_ratio", "gauge", "instance", "share of cycles in which device memory moved data"),
    Signal("pcie_tx_bytes_per_second", "gauge", "board", "device to host over PCIe, headers included"),
    Signal("pcie_rx_bytes_per_second", "gauge", "board", "host to device over PCIe, headers included"),
    Signal("nvlink_tx_bytes_per_second", "gauge", "board", "sent over NVLink, headers included"),
    Signal("nvlink_rx_bytes_per_second", "gauge", "board", "received over NVLink, headers included"),
    Signal("nvlink_bytes_per_second", "gauge", "board", "sent and received over all NVLinks together"),
    Signal("pcie_link_generation", "gauge", "board", "PCIe generation that the link runs at"),
    Signal("pcie_link_width", "gauge", "board", "PCIe lanes that the link runs with"),
    Signal("throttle_reasons", "bitmask", "board", "NVML clock event reasons in force, one bit each"),
    Signal("sw_power_cap_active_ratio", "gauge", "board", "share of time held down by the software power cap, by its counter"),
    Signal("sync_boost_active_ratio", "gauge", "board", "share of time held down by sync boost, by its counter"),
    Signal("sw_thermal_active_ratio", "gauge", "board", "share of time in software thermal slowdown, by its counter"),
    Signal("hw_thermal_active_ratio", "gauge", "board", "share of time in hardware thermal slowdown, by its counter"),
    Signal("hw_power_brake_active_ratio", "gauge", "board", "share of time held down by the power brake, by its counter"),
    Signal("power_violation_seconds", "counter", "board", "time below the wanted clock because of the power limit"),
    Signal("thermal_violation_seconds", "counter", "board", "time below the wanted clock because of heat"),
    Signal("sync_boost_violation_seconds", "counter", "board", "time below the wanted clock because of sync boost"),
    Signal("board_limit_violation_seconds", "counter", "board", "time below the wanted clock because of board limits"),
    Signal("low_util_violation_seconds", "counter", "board", "time below the wanted clock because of low utilization"),
    Signal("reliability_violation_seconds", "counter", "board", "time below the wanted clock because of reliability"),
    Signal("pcie_replay_count", "counter", "board", "PCIe retransmissions"),
    Signal("row_remap_failure_count", "gauge", "board", "1 where a faulty row of memory could not be remapped, else 0"),
    Signal("remapped_row_uncorrectable_count", "gauge", "board", "rows of memory remapped for errors that ECC could not correct"),
    Signal("remapped_row_correctable_count", "gauge", "board", "rows of memory remapped for errors that ECC corrected"),
    Signal("ecc_uncorrectable_count", "gauge", "board", "memory errors that ECC could not correct, as counted by the driver"),
    Signal("ecc_correctable_count", "gauge", "board", "memory errors that ECC corrected, as counted by the driver"),
    Signal("xid_code", "code", "board", "the last XID error's code; 0 = none since the driver was loaded"),
)
SIGNAL_BY_NAME = {signal.name: signal for signal in SIGNALS}


# What exporters print: DCGM gives ratios with six decimals, NVML milliwatts and millijoules.
_DECIMALS = {"ratio": 6, "watts": 3, "joules": 3}


def signal_columns(signal: Signal) -> list[Column]:
    """A signal's columns in ``device_sample``: its value; a counter's growth; where a code changed."""
    decimals = _DECIMALS.get(signal.unit)
    kind = pa.int32() if signal.kind in ("bitmask", "code") else pa.float64()
    columns = [Column(signal.name, kind, signal.doc, True, decimals)]
    if signal.kind == "counter":
        columns += [
            Column(
                signal.increase_name,
                pa.float64(),
                "growth to the next sample, over exactly held_seconds; null on the last one, before a gap and over a reset",
                True,
                # Six, not three: a growth is cut at full hours in proportion, and the parts must still add up.
                6 if decimals else None,
            ),
            Column(
                signal.gap_increase_name,
                pa.float64(),
                "growth over the gap that ended here, or the value after a reset (a lower bound)",
                True,
            ),
        ]
    if signal.name == "energy_joules":
        doc = "the growth to the next sample is not believed; null in files of older versions"
        columns.append(Column("is_energy_refused", pa.bool_(), doc, True))
    if signal.kind == "code":
        columns.append(Column("xid_event_code", pa.int32(), "the code, where it changed to a new non-zero one here", True))
    return columns


_DEVICE = (
    Column("device_uuid", pa.string(), "UUID of the physical GPU; '' where unknown"),
    Column("gpu_instance_id", pa.string(), "MIG instance; '' for the whole GPU"),
)
_WORKLOAD = (
    Column("namespace", pa.string(), "namespace of the workload, or of the claim that reserves; '' where unallocated"),
    Column("pod", pa.string(), "pod of the workload; not an identity, names come again"),
    Column("pod_uid", pa.string(), "its uid; '' where unknown"),
    Column("container", pa.string(), "container of the workload"),
)
_SPAN = (Column("start_at", INSTANT, "UTC, start"), Column("end_at", INSTANT, "UTC, end, exclusive"))
_HELD = Column(
    "held_seconds",
    pa.float64(),
    "seconds for which the row is in force: to the next instant, at most 3 x the median step, cut at full hours",
)

DEVICE_SAMPLE = Table(
    "device_sample",
    "All device signals of one instant side by side, canonical units, copies collapsed: one row per device and instant.",
    ("device_uuid", "gpu_instance_id", "seen_at"),
    (
        *_DEVICE,
        Column("seen_at", INSTANT, "UTC, start of the row's span"),
        _HELD,
        Column("is_carried", pa.bool_(), "no sample was taken here: the span was cut at a full hour or where a signal ended"),
        Column("is_step_guessed", pa.bool_(), "the step could not be measured and was taken as 60 s"),
        Column("joined_count", pa.int16(), "how many of the row's values were sampled earlier and are still in force"),
        *(column for signal in SIGNALS for column in signal_columns(signal)),
    ),
)
SAMPLE = Table(
    "sample",
    "Samples of what is not a whole device's: per pod, per queue, Kubernetes state. One row per series and instant.",
    ("series_id", "seen_at"),
    (
        Column("series_id", pa.int64(), "hash of the sorted labels; see series"),
        Column("seen_at", INSTANT, "UTC, start of the sample's span"),
        Column("value", pa.float64(), "value in the signal's unit"),
        _HELD,
        Column("increase", pa.float64(), "counter: growth to the next sample; null as in device_sample", True),
        Column("gap_increase", pa.float64(), "counter: growth over a gap or reset that ended here", True),
        Column("is_carried", pa.bool_(), "cut at a full hour; no sample was taken here"),
    ),
)
RAW_SAMPLE = Table(
    "raw_sample",
    "Every raw sample as it was scraped, in the metric's own unit (import, and export --keep-raw).",
    ("series_id", "seen_at"),
    (
        Column("series_id", pa.int64(), "hash of the sorted labels; see series"),
        Column("seen_at", INSTANT, "UTC"),
        Column("value", pa.float64(), "value as scraped; null marks the end of a series (staleness marker)", True),
    ),
)
SERIES = Table(
    "series",
    "The labels of every series read on the day, and what was made of them.",
    ("series_id",),
    (
        Column("series_id", pa.int64(), "hash of the sorted labels, external labels left out; stable over days"),
        Column("metric", pa.string(), "metric name as scraped"),
        Column("signal", pa.string(), "canonical signal or, for Kubernetes state, the metric's name"),
        Column("scope", pa.string(), "board, instance, pod, detail or cluster"),
        *_DEVICE,
        *_WORKLOAD,
        Column("node_name", pa.string(), "node; '' where unknown"),
        Column("labels", pa.map_(pa.string(), pa.string()), "all labels as scraped, without the metric's name"),
        Column("external_labels", pa.map_(pa.string(), pa.string()), "labels that the server added (remote read only)"),
        Column("sample_count", pa.int64(), "samples of the day, duplicates removed"),
    ),
)
OWNER_LABEL = Table(
    "owner_label",
    "Who was named on a device's series, and when: runs of instants on which the labels stood.",
    ("device_uuid", "gpu_instance_id", "namespace", "pod", "pod_uid", "container", "start_at"),
    (*_DEVICE, *_WORKLOAD, *_SPAN),
)
DEVICE_LABEL = Table(
    "device_label",
    "What a device's series said about it: node, model, index, driver; one row per run of equal labels.",
    ("device_uuid", "gpu_instance_id", "start_at", "node_name", "gpu_device", "driver_version"),
    (
        *_DEVICE,
        *_SPAN,
        Column("node_name", pa.string(), "node; '' where unknown"),
        Column("gpu_index", pa.string(), "index that DCGM gives the GPU on its node"),
        Column("gpu_device", pa.string(), "device name on the node, as nvidia0; '' where unknown"),
        Column("gpu_model", pa.string(), "model name as the driver prints it"),
        Column("gpu_instance_profile", pa.string(), "MIG profile, '' for the whole GPU"),
        Column("pci_bus_id", pa.string(), "PCI address; '' where unknown"),
        Column("driver_version", pa.string(), "GPU driver, '' where unknown"),
        Column("make", pa.string(), "nvidia, amd, intel, google, …; '' where unknown"),
    ),
)
DEVICE_SIGNAL = Table(
    "device_signal",
    "Which metric each device signal of the day was read from, and what was left out of it.",
    ("device_uuid", "gpu_instance_id", "signal"),
    (
        *_DEVICE,
        Column("signal", pa.string(), "canonical signal"),
        Column("source_metric", pa.string(), "metric that served"),
        Column("exporter", pa.string(), "exporter that prints it, by the catalog"),
        Column("node_name", pa.string(), "node; '' where unknown"),
        Column("start_at", INSTANT, "UTC, first sample that came in the day", True),
        Column("end_at", INSTANT, "UTC, last sample that came in the day", True),
        Column("series_count", pa.int64(), "label sets that carried it, copies among them"),
        Column("sample_count", pa.int64(), "instants that were kept; 0 where every value was left out"),
        Column("dropped", pa.map_(pa.string(), pa.int64()), "reason → values left out, copies of a kept value among them"),
        Column("other_metrics", pa.list_(pa.string()), "metrics that carry it too; used only where this one was silent"),
    ),
)
DROP_REASONS = {row["reason"]: row["meaning"] for row in catalog_rows("reason_dropped.csv")}
"""Reasons why values are left out: the keys of ``device_signal.dropped``."""
SOURCE = Table(
    "source",
    "What was asked, what came and what was left out: one row per metric, and per kind of Kubernetes object and observation.",
    ("kind", "asked", "start_at"),
    (
        Column("kind", pa.string(), "prometheus, file, simulation or kubernetes"),
        Column("asked", pa.string(), "metric name, or resource and API group (resourceclaims.resource.k8s.io)"),
        Column("signal", pa.string(), "canonical signal it was read as; '' for Kubernetes"),
        Column("server", pa.string(), "flavour and version of the server, or the file's name"),
        Column("read_path", pa.string(), "remote-read, matrix, victoria-metrics, openmetrics; API version of Kubernetes objects"),
        *_SPAN,
        Column("series_count", pa.int64(), "series that came, or objects"),
        Column("sample_count", pa.int64(), "samples that came, staleness markers left out; 0 for Kubernetes"),
        Column("duplicate_count", pa.int64(), "left out for this reason"),
        Column("copy_count", pa.int64(), "left out for this reason"),
        Column("blank_count", pa.int64(), "left out for this reason"),
        Column("nan_count", pa.int64(), "left out for this reason"),
        Column("infinite_count", pa.int64(), "left out for this reason"),
        Column("out_of_range_count", pa.int64(), "left out for this reason"),
        Column("not_applicable_count", pa.int64(), "left out for this reason"),
        Column("nameless_count", pa.int64(), "values dropped: no UUID label says which device they are of"),
        Column("joined_ratio", pa.float64(), "share of the signal's rows whose value was sampled earlier", True),
        Column("warnings", pa.list_(pa.string()), "what the server warned of; not empty means the answer may be partial"),
        Column("reason", pa.string(), "why nothing came; '' where something did"),
        Column("catalog_version", pa.string(), "hash of the signal catalog in force"),
        Column("gpureport_version", pa.string(), "version that wrote the row"),
    ),
)
