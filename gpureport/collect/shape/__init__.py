"""Shape raw series of one UTC day into lake tables: identify, clean, merge copies, turn samples into intervals.

The order is fixed: scale by name, identify the device, merge copies of the same time. Only then are intervals and growth known:
each ends at the next sample of the device signal, from any copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from gpureport.collect.shape import arrow
from gpureport.collect.shape.devices import DeviceSignals, Steps, devices
from gpureport.collect.shape.identity import DeviceKey
from gpureport.collect.shape.names import DEVICE_LABELS, device_uuid
from gpureport.collect.shape.owners import label_runs, owner_runs
from gpureport.collect.shape.physics import drop_contradictions, plausible
from gpureport.collect.shape.prepare import Prepared, Tally, prepare
from gpureport.collect.shape.reading import PLAIN, Reading, read_labels, target, units_by_evidence
from gpureport.collect.shape.wide import DeviceRows, LongRows, device_rows, long_rows
from gpureport.values.catalog import Catalog
from gpureport.values.series import SeriesBatch
from gpureport.values.window import Window

__all__ = ["DEVICE_LABELS", "PLAIN", "Reading", "Shaped", "Tally", "device_uuid", "read_labels", "reading_of", "shape", "target"]


@dataclass(frozen=True)
class Shaped:
    """The lake tables of one batch, with the schemas of ``tables.py``. ``tallies`` is by metric; ``devices`` has UUIDs."""

    device_sample: pa.Table
    sample: pa.Table
    raw_sample: pa.Table
    series: pa.Table
    owner_label: pa.Table
    device_label: pa.Table
    device_signal: pa.Table
    tallies: Mapping[str, Tally]
    devices: frozenset[str]

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables by name."""
        names = ("device_sample", "sample", "raw_sample", "series", "owner_label", "device_label", "device_signal")
        return {name: getattr(self, name) for name in names}


def shape(batch: SeriesBatch, catalog: Catalog, window: Window, keep_raw: bool = False, reading: Reading = PLAIN) -> Shaped:
    """Shape the samples of [start, end). Samples around the window only show how long the first and last samples hold.

    The batch must have all series of a device's day. SourceError for a hash collision.
    """
    series, tallies = prepare(batch, catalog, reading)
    steps = Steps(series)
    signals = devices(series, catalog, steps, tallies)
    rows = [(key, found) for key, each in signals.items() if (found := _device_rows(each, window)) is not None]
    _count_contradictions(rows, signals)
    _count_joins(rows, signals, tallies)
    pods = {each.series_id for found in signals.values() for each in found.pod_series}
    scoped = [(each, "pod" if each.series_id in pods else each.identity.meaning.scope) for each in series]
    return Shaped(
        device_sample=arrow.device_sample_table(rows),
        sample=arrow.sample_table(_sample_rows(series, pods, steps, window)),
        raw_sample=arrow.raw_sample_table(series if keep_raw else (), window),  # without rows, an import's are removed
        series=arrow.series_table(scoped, batch.external_labels, window),
        owner_label=_owner_label(series, steps, window),
        device_label=_device_label(series, steps, window),
        device_signal=arrow.device_signal_table(signals, window),
        tallies=tallies,
        devices=frozenset(key.device_uuid for each in series if (key := each.identity.device or each.identity.holder_device)),
    )


def reading_of(tallies: Mapping[str, Tally], pods: Reading) -> Reading:
    """Return the reading of the day: exporters, and units from the tallies of a first shaping of all series."""
    return replace(pods, units=units_by_evidence({metric: tally.unit for metric, tally in tallies.items()}))


def _device_rows(signals: DeviceSignals, window: Window) -> DeviceRows | None:
    if not signals.points:
        return None
    sources = {name: signals.origin[name].exporter for name in signals.points}
    siblings = [int(signals.points[name].times_ms[0]) for name in sources if sources[name] == sources.get("xid_code")]
    rows = device_rows(signals.points, signals.fallback, window, min(siblings, default=0))
    return rows if rows.count else None


def _count_contradictions(rows: list[tuple[DeviceKey, DeviceRows]], signals: Mapping[DeviceKey, DeviceSignals]) -> None:
    for key, found in rows:
        for signal, counts in drop_contradictions(found).items():
            signals[key].origin[signal].dropped.update(counts)


def _count_joins(
    rows: list[tuple[DeviceKey, DeviceRows]], signals: Mapping[DeviceKey, DeviceSignals], tallies: Mapping[str, Tally]
) -> None:
    for key, found in rows:
        for signal, joined in found.joined_by_signal.items():
            tally = tallies.get(signals[key].origin[signal].metrics[0])
            if tally is not None:  # data-sheet values have no tally
                tally.joined_count += joined
                tally.row_count += found.count


_XIDS_PER_MS = 0.1
"""Upper bound: a driver does not log more errors."""


def _sample_rows(series: list[Prepared], pods: set[int], steps: Steps, window: Window) -> list[tuple[int, LongRows]]:
    """Return the rows of all series that are not device columns."""
    found = []
    for each in series:
        meaning = each.identity.meaning
        is_long = each.series_id in pods or not (meaning.is_device or meaning.kind == "info")
        if is_long and each.points.count:
            is_state, points = meaning.scope == "cluster", each.points
            if meaning.scope == "detail" and meaning.kind == "counter":
                points = plausible(points, _XIDS_PER_MS, steps.of(each), each.dropped)
            rows = long_rows(points, meaning.kind == "counter", is_state, steps.of(each), window)
            found.append((each.series_id, rows))
    return found


def _owner_label(series: list[Prepared], steps: Steps, window: Window) -> pa.Table:
    by_holder = _grouped(series, lambda each: each.identity.holder_device)
    return arrow.owner_label_table([(key, owner_runs(found, steps.of(found[0]), window)) for key, found in by_holder.items()])


def _device_label(series: list[Prepared], steps: Steps, window: Window) -> pa.Table:
    found: dict[DeviceKey, list[Prepared]] = defaultdict(list)
    for each in series:
        for key, described in _device_descriptions(each).items():
            found[key].append(described)
    gpus = _grouped(series, lambda each: (key := each.identity.holder_device) and key._replace(gpu_instance_id=""))
    runs = []
    for key in sorted(found):
        gpu = gpus[key._replace(gpu_instance_id="")] if key.gpu_instance_id else []
        runs.append((key, label_runs(found[key], gpu, steps.of(found[key][0]), window)))
    return arrow.device_label_table(runs)


def _device_descriptions(series: Prepared) -> dict[DeviceKey, Prepared]:
    """Return the device of the labels, and the instance of a board value's series."""
    identity = series.identity
    device, holder = identity.device, identity.holder_device
    if holder is None or not identity.meaning.names_device or not series.points.count:
        return {}
    found = {holder: series}
    if device is not None and device != holder:
        board = replace(identity, device_labels=identity.device_labels._replace(gpu_instance_profile=""))
        found[device] = replace(series, identity=board)
    return found


def _grouped(series: list[Prepared], key_of: Callable[[Prepared], DeviceKey | None]) -> dict[DeviceKey, list[Prepared]]:
    """Return the series with usable points by device, devices in order."""
    groups: dict[DeviceKey, list[Prepared]] = defaultdict(list)
    for each in series:
        key = key_of(each)
        if key is not None and each.points.count:
            groups[key].append(each)
    return {key: groups[key] for key in sorted(groups)}
