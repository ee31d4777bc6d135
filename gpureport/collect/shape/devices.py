"""Signals of each device: the choice of the metric, the exclusion of pod values, and the merging of copies.

A derived value (growth over time or over another counter) starts at its interval's first sample and holds to the next one: its
time-weighted mean is exactly the counter's growth. Unknown growth (gap, reset) is a pause.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from gpureport.collect.shape.copies import CopyMerger, Points, merge_targets
from gpureport.collect.shape.identity import DeviceKey
from gpureport.collect.shape.intervals import Flags, StepFallback, Times, Values, distinct, intervals, is_among, median_step_ms
from gpureport.collect.shape.physics import can_be_power, drop_impossible, plausible
from gpureport.collect.shape.prepare import Prepared, Tally
from gpureport.values.catalog import PER_SECOND, UNKNOWN_BOARD, Board, Catalog, Meaning
from gpureport.values.tables import SIGNAL_BY_NAME

_MARGIN = 1.05
"""Tolerance: a counter is read some ms before or after its timestamp."""


def growth_per_second(counter: Points, fallback_step_ms: StepFallback) -> Points:
    """Convert a counter to its growth per second until the next sample; where growth is refused, it is unknown.

    A counter that is refreshed later than it is scraped shows more in one step than it can gain, and nothing in another.
    """
    rate = np.diff(counter.values) / (np.diff(counter.times_ms) / 1000)
    is_known = _linked(counter, fallback_step_ms) & (rate >= 0)
    return _gauge(counter, rate, is_known if counter.refused is None else is_known & np.isnan(counter.refused[:-1]))


def growth_ratio(counter: Points, divisor: Points, fallback_step_ms: StepFallback, highest: float) -> Points:
    """Return the ratio of two counters' growth between common times of a new divisor. A ratio above ``highest`` is dropped."""
    mine = is_among(counter.times_ms, divisor.times_ms)
    bases = divisor.values[is_among(divisor.times_ms, counter.times_ms)]
    is_fresh = np.append(True, bases[1:] != bases[:-1])[: bases.size]
    times, values = counter.times_ms[mine][is_fresh], counter.values[mine][is_fresh]
    shared = Points(times, values, distinct([counter.stale_ms, divisor.stale_ms]))
    if not shared.count:
        return shared
    change, base = np.diff(values), np.diff(bases[is_fresh])
    is_known = _linked(shared, fallback_step_ms) & (change >= 0) & (base > 0) & (change <= highest * _MARGIN * base)
    return _gauge(shared, np.divide(change, base, out=np.zeros(change.size), where=base > 0), is_known)


def sum_of(parts: Sequence[Points], of_all: bool) -> Points:
    """Return the sum of the parts at each time; ``of_all``: only at times of all parts. The sum of a mask's flags is the mask."""
    times = distinct([each.times_ms for each in parts])
    values, counts = np.zeros(times.size), np.zeros(times.size)
    for each in parts:
        at = np.searchsorted(times, each.times_ms)
        values[at] += each.values
        counts[at] += 1
    kept = counts >= (len(parts) if of_all else 1)
    return Points(times[kept], values[kept], distinct([each.stale_ms for each in parts]))


def _linked(counter: Points, fallback_step_ms: StepFallback) -> Flags:
    return intervals(counter.times_ms, counter.stale_ms, fallback_step_ms).is_linked[:-1]


def _gauge(counter: Points, values: Values, is_known: Flags) -> Points:
    """Return values at the starts of their intervals, with staleness markers where a value is unknown."""
    known = np.append(is_known, False)
    times = counter.times_ms
    stale = distinct([counter.stale_ms, times[~known]])
    return Points(times[known], np.append(values, 0.0)[known], stale)


# In virtual-GPU mode, dcgm-exporter (594) exports these two per pod; the device's own series have no workload labels.
_MAY_BE_POD_SCOPE = frozenset({"gpu_util_ratio", "fb_used_bytes"})

# NVML has no utilization for a GPU in MIG mode: older exporters print 0 for each instance (dcgm-exporter 50, 216).
_UNKNOWN_UNDER_MIG = frozenset({"gpu_util_ratio", "mem_copy_util_ratio"})

# A counter in whole units can be this much below the same counter in a finer unit.
_ROUNDING = 1.0

_NO_POINTS = Points(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))


@dataclass
class Origin:
    """Source of a device signal, and its dropped values."""

    metrics: tuple[str, ...]
    """Metrics of the signal: several where flags form a mask."""
    exporter: str
    node_name: str
    first_ms: int
    last_ms: int
    series_count: int
    dropped: Counter[str]
    other_metrics: tuple[str, ...]


@dataclass
class DeviceSignals:
    """The signals of one device as points, and the series that are pods' values."""

    board: Board
    points: dict[str, Points] = field(default_factory=dict)
    origin: dict[str, Origin] = field(default_factory=dict)
    fallback: dict[str, StepFallback] = field(default_factory=dict)
    pod_series: list[Prepared] = field(default_factory=list)


class Steps:
    """Median step per metric, job and node: the fallback for hours with too few steps of a signal."""

    def __init__(self, series: list[Prepared]) -> None:
        times: dict[tuple[str, str, str], list[Times]] = defaultdict(list)
        for each in series:
            times[_step_key(each)].append(each.points.times_ms)
        self._found = {key: cache(partial(median_step_ms, found)) for key, found in times.items()}

    def of(self, series: Prepared) -> StepFallback:
        """Return the fallback of a series' signal, computed at its first call."""
        return self._found[_step_key(series)]


def _step_key(series: Prepared) -> tuple[str, str, str]:
    identity = series.identity
    return identity.meaning.metric, identity.provenance.job, identity.device_labels.node_name


def devices(
    series: list[Prepared], catalog: Catalog, steps: Steps, tallies: Mapping[str, Tally]
) -> dict[DeviceKey, DeviceSignals]:
    """Return the signals by device. A signal without a usable value has an origin and no points."""
    by_device: dict[DeviceKey, dict[str, list[Prepared]]] = defaultdict(lambda: defaultdict(list))
    xid_counters: dict[str, list[Prepared]] = defaultdict(list)
    boards: dict[str, Board] = defaultdict(lambda: UNKNOWN_BOARD)  # some exporters show the model on a series of its own
    for each in series:
        identity, signal = each.identity, each.identity.meaning.signal
        uuid = identity.holder_device.device_uuid if identity.holder_device else ""
        boards[uuid] = max(boards[uuid], catalog.board(identity.device_labels.gpu_model))
        if identity.device is not None:
            by_device[identity.device][signal].append(each)
        elif signal == "xid_error_count" and uuid:
            xid_counters[uuid].append(each)
    batch = _Batch(catalog, steps, tallies, CopyMerger())
    found = {key: _signals(by_device[key], boards[key.device_uuid], batch) for key in sorted(by_device)}
    for key, signals in found.items():
        imply_memory(signals, 0.0 if key.gpu_instance_id else signals.board.memory_bytes)
        if not key.gpu_instance_id:
            imply_no_xid(signals, xid_counters[key.device_uuid], steps)
    return found


class _Batch(NamedTuple):
    """Common inputs for all devices of a batch."""

    catalog: Catalog
    steps: Steps
    tallies: Mapping[str, Tally]
    merger: CopyMerger


def _signals(by_signal: Mapping[str, list[Prepared]], board: Board, batch: _Batch) -> DeviceSignals:
    found = DeviceSignals(board)
    for signal, candidates in sorted(by_signal.items()):
        chosen, pods = _without_pod_scope(signal, [_drop_unknown_under_mig(signal, each) for each in candidates])
        found.pod_series += pods
        if chosen and signal not in batch.catalog.divisors:
            _add(found, signal, _by_source(chosen, batch.catalog), by_signal, batch)
    drop_impossible(found, board)
    return found


def _drop_unknown_under_mig(signal: str, series: Prepared) -> Prepared:
    """Return the series. A whole GPU's utilization under an instance's name loses its points."""
    identity = series.identity
    is_instance = identity.holder_device is not None and identity.holder_device.gpu_instance_id != ""
    if signal not in _UNKNOWN_UNDER_MIG or not is_instance or identity.meaning.exporter != "dcgm-exporter":
        return series
    dropped = Counter({**series.dropped, "mig": series.points.count})
    return replace(series, points=_NO_POINTS, dropped=dropped)


def _by_source(series: list[Prepared], catalog: Catalog) -> list[list[Prepared]]:
    """Return the signal's series by metric, in order of preference. All flags of a mask are one source.

    Metrics with a unit in their names come first.
    """
    sources: dict[tuple[bool, int], list[Prepared]] = defaultdict(list)
    first_bit: dict[str, int] = {}
    for each in series:
        meaning = each.identity.meaning
        number = catalog.rank[meaning.metric, meaning.labels]
        if meaning.kind == "bit":
            number = first_bit.setdefault(meaning.exporter, number)
        sources[meaning.may_be_percent, number].append(each)
    return [sources[key] for key in sorted(sources)]


def _add(
    found: DeviceSignals, signal: str, sources: Sequence[list[Prepared]], by_signal: Mapping[str, list[Prepared]], batch: _Batch
) -> None:
    """Add one signal's points. A later source fills only pauses of the earlier ones, or replaces impossible values."""
    dropped: Counter[str] = Counter()
    usable = []
    for series in sources:
        points = _points(series, by_signal, batch, dropped)
        if points.count:
            usable.append((series, points))
    if signal == "power_watts" and len(usable) > 1:
        limit = found.points.get("power_limit_watts")
        usable = [each for each in usable if can_be_power(each[1], limit, found.board.watts)] or usable
    served = usable[0][0] if usable else sources[0]
    found.fallback[signal] = batch.steps.of(served[0])
    if usable:
        found.points[signal] = _merged([points for _, points in usable], served[0].identity.meaning)
    found.origin[signal] = _origin(served, sources, dropped)


def _points(series: list[Prepared], by_signal: Mapping[str, list[Prepared]], batch: _Batch, dropped: Counter[str]) -> Points:
    meaning = series[0].identity.meaning
    is_memory, parts = meaning.signal.startswith("fb_"), defaultdict[object, list[Prepared]](list)
    for each in series:  # by bit: drivers rename flags, and both names may exist; by tile: in xpumd each has its own memory
        parts[each.identity.labels.get("com_intel_subdevice_id") if is_memory else each.identity.meaning.factor].append(each)
    if len(parts) > 1:
        return sum_of([_merge_copies(found, batch, dropped) for found in parts.values()], is_memory)
    points = _merge_copies(series, batch, dropped)
    if not meaning.per or not points.count:
        return points
    step, highest = batch.steps.of(series[0]), SIGNAL_BY_NAME[meaning.signal].highest
    if meaning.per == PER_SECOND:
        derived = growth_per_second(plausible(points, highest * _MARGIN / 1000, step, dropped), step)
    else:
        divisor = [each for each in by_signal.get(meaning.per, []) if each.points.count]
        derived = growth_ratio(points, _merge_copies(divisor, batch, dropped), step, highest) if divisor else _NO_POINTS
    if points.count == 1:
        dropped["single_sample"] += 1
    return derived


def _merged(sources: Sequence[Points], meaning: Meaning) -> Points:
    if len(sources) == 1:
        return sources[0]
    if meaning.kind == "counter" and not meaning.per:
        return merge_targets([sources[0], *(_continue_counter(sources[0], each) for each in sources[1:])])
    return merge_targets(list(sources))


def _continue_counter(before: Points, after: Points) -> Points:
    """Continue a counter under a new name. Where rounding alone makes it lower, it continues from the previous value."""
    at = int(np.searchsorted(after.times_ms, before.times_ms[-1], side="right"))
    if at == after.count:
        return after
    behind = float(before.values[-1] - after.values[at])
    return Points(after.times_ms, after.values + behind, after.stale_ms) if 0 < behind <= _ROUNDING else after


def _origin(served: list[Prepared], sources: Sequence[list[Prepared]], dropped: Counter[str]) -> Origin:
    meaning = served[0].identity.meaning
    everything = [each for series in sources for each in series]
    times = [each.raw_times_ms for each in everything if each.raw_times_ms.size]
    for each in everything:
        dropped.update(each.dropped)
    others = sorted({each.identity.meaning.metric for each in everything} - {each.identity.meaning.metric for each in served})
    return Origin(
        metrics=tuple(sorted({each.identity.meaning.metric for each in served})),
        exporter=meaning.exporter,
        node_name=served[0].identity.device_labels.node_name,
        first_ms=min((int(each[0]) for each in times), default=0),
        last_ms=max((int(each[-1]) for each in times), default=0),
        series_count=len(everything),
        dropped=dropped,
        other_metrics=tuple(others),
    )


def _without_pod_scope(signal: str, series: list[Prepared]) -> tuple[list[Prepared], list[Prepared]]:
    """Separate a device's own series from pods'. A labeled series is a pod's where an unlabeled one has a common time."""
    owned = [each for each in series if each.identity.is_owned and each.points.count]
    unlabeled = [each for each in series if not each.identity.is_owned and each.points.count]
    if signal not in _MAY_BE_POD_SCOPE or not owned or not unlabeled:
        return series, []
    metrics = {each.identity.meaning.metric for each in unlabeled}
    unlabeled_ms = distinct([each.points.times_ms for each in unlabeled])
    labeled = [each for each in owned if each.identity.meaning.metric in metrics]
    if not any(is_among(each.points.times_ms, unlabeled_ms).any() for each in labeled):
        return series, []
    ids = {each.series_id for each in labeled}
    return [each for each in series if each.series_id not in ids], labeled


def _merge_copies(series: list[Prepared], batch: _Batch, dropped: Counter[str]) -> Points:
    """Merge all copies of one device signal."""
    found = [(each.identity.provenance, each.points) for each in series if each.points.count]
    if not found:
        return _NO_POINTS
    merged = batch.merger.merge(found)
    copies = sum(each.points.count for each in series) - merged.count
    if copies:
        dropped["copy"] += copies
        batch.tallies[series[0].identity.meaning.metric].dropped["copy"] += copies
    return merged


DATA_SHEET = "model data sheet"
"""Source of a memory size that no exporter reports."""


def imply_memory(found: DeviceSignals, memory_bytes: float) -> None:
    """Derive free memory as total minus used. The total is constant; without one from an exporter it is the data sheet's."""
    points = found.points
    if "fb_free_bytes" in points:
        return
    if "fb_total_bytes" not in points and memory_bytes:
        if "fb_used_bytes" not in points and "fb_used_ratio" in points:
            share = points["fb_used_ratio"]
            _imply(found, "fb_used_bytes", "fb_used_ratio", replace(share, values=share.values * memory_bytes))
        if "fb_used_bytes" in points:
            used = points["fb_used_bytes"]
            _imply(found, "fb_total_bytes", "fb_used_bytes", replace(used, values=np.full(used.count, memory_bytes)), DATA_SHEET)
    if {"fb_used_bytes", "fb_total_bytes"} <= points.keys():
        used, total = points["fb_used_bytes"], points["fb_total_bytes"]
        known = total.values[np.maximum(np.searchsorted(total.times_ms, used.times_ms, side="right") - 1, 0)]
        if (fits := used.values <= known).any():
            free = Points(used.times_ms[fits], (known - used.values)[fits], used.stale_ms)
            _imply(found, "fb_free_bytes", "fb_total_bytes", free)


def _imply(found: DeviceSignals, name: str, source: str, points: Points, metric: str = "") -> None:
    origin = found.origin[source]
    found.points[name], found.fallback[name] = points, found.fallback[source]
    found.origin[name] = replace(origin, metrics=(metric,) if metric else origin.metrics, dropped=Counter(), other_metrics=())


def imply_no_xid(found: DeviceSignals, counters: Sequence[Prepared], steps: Steps) -> None:
    """Set the XID code to 0 where only XID counters are exported. The counters' growth is counted separately."""
    seen = [each for each in counters if each.points.count]
    if "xid_code" in found.points or not seen:
        return
    times = distinct([each.points.times_ms for each in seen])
    found.points["xid_code"] = Points(times, np.zeros(times.size), distinct([each.points.stale_ms for each in seen]))
    found.fallback["xid_code"] = steps.of(seen[0])
    found.origin["xid_code"] = replace(_origin(seen[:1], [seen], Counter()), dropped=Counter(), other_metrics=())
