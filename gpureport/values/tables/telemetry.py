"""The tables of what exporters say: samples, who was named on them, and what was asked and left out."""

from __future__ import annotations

import pyarrow as pa

from gpureport.values.runtime.resources import catalog_rows
from gpureport.values.tables.signals import SIGNALS, signal_columns
from gpureport.values.tables.table import INSTANT, Column, Table

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
