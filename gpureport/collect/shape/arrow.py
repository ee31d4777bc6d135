"""Conversion of shaped rows to the Arrow tables of ``tables.py``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport.collect.shape.devices import DeviceSignals
from gpureport.collect.shape.identity import DeviceKey, DeviceLabels, Identity, Workload
from gpureport.collect.shape.intervals import Times, is_among
from gpureport.collect.shape.owners import Run
from gpureport.collect.shape.prepare import Prepared
from gpureport.collect.shape.wide import DeviceRows, LongRows
from gpureport.values.series import METRIC_LABEL
from gpureport.values.tables import DEVICE_LABEL, DEVICE_SAMPLE, DEVICE_SIGNAL, OWNER_LABEL, RAW_SAMPLE, SAMPLE, SERIES
from gpureport.values.tables.table import Table
from gpureport.values.window import Window

MS_PER_SECOND = 1000.0


def _instants(milliseconds: Times) -> pa.Array:
    return pa.array(milliseconds.astype("datetime64[ms]"))


def _join(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def device_sample_table(devices: Sequence[tuple[DeviceKey, DeviceRows]]) -> pa.Table:
    """Return the rows of all devices in order. Each column is removed from its device's rows."""
    counts = [rows.count for _, rows in devices]
    columns = {
        "device_uuid": _repeated([key.device_uuid for key, _ in devices], counts),
        "gpu_instance_id": _repeated([key.gpu_instance_id for key, _ in devices], counts),
        "seen_at": _instants(_join([rows.starts_ms for _, rows in devices], np.int64)),
        "held_seconds": pa.array(_join([rows.held_ms for _, rows in devices], np.int64) / MS_PER_SECOND),
        "is_carried": pa.array(_join([rows.is_carried for _, rows in devices], np.bool_)),
        "is_step_guessed": pa.array(_join([rows.is_guessed for _, rows in devices], np.bool_)),
        "joined_count": pa.array(_join([rows.joined_count for _, rows in devices], np.int16)),
    }
    present = {name for _, rows in devices for name in rows.columns}
    nothing = {kind: pa.nulls(sum(counts), kind) for kind in (pa.float64(), pa.int32(), pa.bool_())}
    for field in DEVICE_SAMPLE.schema:
        if field.name in present:
            columns[field.name] = _signal_column(field, devices, counts)
        elif field.name not in columns:
            columns[field.name] = nothing[field.type]
    return _table(DEVICE_SAMPLE, columns)


def _signal_column(field: pa.Field, devices: Sequence[tuple[DeviceKey, DeviceRows]], counts: list[int]) -> pa.Array:
    """Return a column of all devices, removed from their rows so that memory holds it once. NaN becomes null."""
    parts = [
        rows.columns.pop(field.name) if field.name in rows.columns else np.full(count, np.nan)
        for (_, rows), count in zip(devices, counts, strict=True)
    ]
    values = np.concatenate(parts)
    del parts
    return pa.array(values, from_pandas=bool(np.isnan(values).any())).cast(field.type)


def _repeated(values: Sequence[str], counts: Sequence[int]) -> pa.Array:
    indices = np.repeat(np.arange(len(values), dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(values, pa.string())).cast(pa.string())


def sample_table(series: Sequence[tuple[int, LongRows]]) -> pa.Table:
    """Return the long rows of many series, by series and time."""
    series = sorted(series, key=lambda each: each[0])
    rows = [each for _, each in series]
    ids = np.repeat(np.array([key for key, _ in series], np.int64), np.array([each.starts_ms.size for each in rows], np.int64))
    return _table(
        SAMPLE,
        {
            "series_id": pa.array(ids),
            "seen_at": _instants(_join([each.starts_ms for each in rows], np.int64)),
            "value": pa.array(_join([each.values for each in rows], np.float64)),
            "held_seconds": pa.array(_join([each.held_ms for each in rows], np.int64) / MS_PER_SECOND),
            "increase": pa.array(_join([each.increase for each in rows], np.float64), from_pandas=True),
            "gap_increase": pa.array(_join([each.gap_increase for each in rows], np.float64), from_pandas=True),
            "is_carried": pa.array(_join([each.is_carried for each in rows], np.bool_)),
        },
    )


def raw_sample_table(series: Iterable[Prepared], window: Window) -> pa.Table:
    """Return the raw samples of the window by series and time. A staleness marker's value is null; any other NaN stays NaN."""
    ids, times, values, stale = [], [], [], []
    for each in sorted(series, key=lambda one: one.series_id):
        inside = (each.raw_times_ms >= window.start_ms) & (each.raw_times_ms < window.end_ms)
        times.append(each.raw_times_ms[inside])
        values.append(each.raw_values[inside])
        stale.append(is_among(times[-1], each.points.stale_ms))
        ids.append(np.full(times[-1].size, each.series_id, np.int64))
    return _table(
        RAW_SAMPLE,
        {
            "series_id": pa.array(_join(ids, np.int64)),
            "seen_at": _instants(_join(times, np.int64)),
            "value": pa.array(_join(values, np.float64), mask=_join(stale, np.bool_)),
        },
    )


def series_table(series: Iterable[tuple[Prepared, str]], external_labels: Mapping[str, str], window: Window) -> pa.Table:
    """Return the labels and scope of each series with a sample in the window."""
    found: list[tuple[Prepared, str, int]] = []
    counted = _Counted(window)
    for each, scope in sorted(series, key=lambda one: one[0].series_id):
        if count := counted.within(each.raw_times_ms):
            found.append((each, scope, count))
    identities = [each.identity for each, _, _ in found]
    own = [sorted((name, value) for name, value in each.labels.items() if value and name != METRIC_LABEL) for each in identities]
    texts = {**_identity_columns(identities), "scope": [scope for _, scope, _ in found]}
    return _table(
        SERIES,
        {
            **{name: pa.array(column, pa.string()) for name, column in texts.items()},
            "series_id": pa.array([each.series_id for each, _, _ in found], pa.int64()),
            "labels": _maps(own),
            "external_labels": _maps([sorted(external_labels.items())] * len(found)),
            "sample_count": pa.array([count for _, _, count in found], pa.int64()),
        },
    )


def _identity_columns(identities: Sequence[Identity]) -> dict[str, list[str]]:
    """Return the identity columns of the series: metric, device, workload, node. '' where the labels lack a value."""
    devices = [identity.device or identity.holder_device or DeviceKey("", "") for identity in identities]
    return {
        "metric": [identity.meaning.metric for identity in identities],
        "signal": [identity.meaning.signal for identity in identities],
        "device_uuid": [device.device_uuid for device in devices],
        "gpu_instance_id": [device.gpu_instance_id for device in devices],
        "namespace": [identity.workload.namespace for identity in identities],
        "pod": [identity.workload.pod for identity in identities],
        "pod_uid": [identity.workload.pod_uid for identity in identities],
        "container": [identity.workload.container for identity in identities],
        "node_name": [identity.device_labels.node_name for identity in identities],
    }


class _Counted:
    """Counts of a series' samples in a window, computed once for all series with the same times array."""

    def __init__(self, window: Window) -> None:
        self._bounds = np.array([window.start_ms, window.end_ms])
        self._known: dict[int, tuple[Times, int]] = {}

    def within(self, times_ms: Times) -> int:
        """Return the count. The array is kept alive so that its id stays unique."""
        if id(times_ms) not in self._known:
            first, end = np.searchsorted(times_ms, self._bounds)
            self._known[id(times_ms)] = times_ms, int(end - first)
        return self._known[id(times_ms)][1]


def _maps(rows: Sequence[Sequence[tuple[str, str]]]) -> pa.Array:
    """Build maps from pairs by column, in a tenth of the time of a conversion pair by pair."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int32)
    keys = pa.array([name for row in rows for name, _ in row], pa.string())
    return pa.MapArray.from_arrays(offsets, keys, pa.array([value for row in rows for _, value in row], pa.string()))


def owner_label_table(owners: Sequence[tuple[DeviceKey, Mapping[Workload, Sequence[Run]]]]) -> pa.Table:
    """Return the runs of workload labels by device, workload and time."""
    rows = [
        {**key._asdict(), **workload._asdict(), **_run(run)}
        for key, by_workload in owners
        for workload in sorted(by_workload)
        for run in by_workload[workload]
    ]
    return pa.Table.from_pylist(rows, OWNER_LABEL.schema)


def device_label_table(labels: Sequence[tuple[DeviceKey, Mapping[DeviceLabels, Sequence[Run]]]]) -> pa.Table:
    """Return the runs of device labels by device and time."""
    rows = [
        {**key._asdict(), **_run(run), **found._asdict()}
        for key, by_labels in labels
        for run, found in sorted((run, found) for found, runs in by_labels.items() for run in runs)
    ]
    return pa.Table.from_pylist(rows, DEVICE_LABEL.schema)


def device_signal_table(signals: Mapping[DeviceKey, DeviceSignals], window: Window) -> pa.Table:
    """Return the source of each device signal by device and signal, without signals that have no series in the window."""
    low, high, counted = window.start_ms, window.end_ms, _Counted(window)
    found = [
        (key, signal, origin, each.points.get(signal))
        for key, each in signals.items()
        for signal, origin in sorted(each.origin.items())
        if origin.first_ms < high and origin.last_ms >= low
    ]
    origins = [origin for _, _, origin, _ in found]
    columns = {
        "device_uuid": [key.device_uuid for key, _, _, _ in found],
        "gpu_instance_id": [key.gpu_instance_id for key, _, _, _ in found],
        "signal": [signal for _, signal, _, _ in found],
        "source_metric": [", ".join(origin.metrics) for origin in origins],
        "exporter": [origin.exporter for origin in origins],
        "node_name": [origin.node_name for origin in origins],
        "start_at": _instants(np.array([max(origin.first_ms, low) for origin in origins], np.int64)),
        "end_at": _instants(np.array([min(origin.last_ms, high - 1) for origin in origins], np.int64)),
        "series_count": [origin.series_count for origin in origins],
        "sample_count": [0 if points is None else counted.within(points.times_ms) for _, _, _, points in found],
        "dropped": [sorted((reason, count) for reason, count in each.dropped.items() if count) for each in origins],
        "other_metrics": [origin.other_metrics for origin in origins],
    }
    return _table(DEVICE_SIGNAL, {field.name: _column(columns[field.name], field.type) for field in DEVICE_SIGNAL.schema})


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _run(run: Run) -> dict[str, object]:
    return {"start_at": np.datetime64(run.start_ms, "ms"), "end_at": np.datetime64(run.end_ms, "ms")}


def _table(table: Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    return pa.Table.from_arrays([columns[field.name] for field in table.schema], schema=table.schema)
