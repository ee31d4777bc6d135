"""Holders in the labels of a device's series: runs of scrapes with the same labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.copies import merge_copies
from gpureport.collect.shape.identity import NO_WORKLOAD, DeviceLabels, Workload
from gpureport.collect.shape.intervals import NO_TIMES, Intervals, StepFallback, Times, distinct, intervals, is_among, is_same
from gpureport.collect.shape.prepare import Prepared
from gpureport.values.window import Window


class Run(NamedTuple):
    """Interval [start_ms, end_ms) with the same labels."""

    start_ms: int
    end_ms: int


def owner_runs(series: Iterable[Prepared], fallback_step_ms: StepFallback, window: Window) -> dict[Workload, list[Run]]:
    """Return the runs of each workload in one device's series, within the window."""
    runs: dict[Workload, list[Run]] = defaultdict(list)
    named: dict[Workload, list[Times]] = defaultdict(list)
    for signal_series in _distinct_signals(series):
        # Signal by signal: another exporter may scrape the device at other times, or without workload labels.
        grid = _grid(signal_series, fallback_step_ms)
        for workload, times in _times_by_workload(signal_series).items():
            is_named = is_among(grid.times_ms, times)
            runs[workload] += _runs(grid, is_named, window)
            named[workload].append(grid.times_ms[is_named])
        targets = {each.identity.provenance for each in signal_series if each.identity.is_owned}
        unnamed = [each for each in signal_series if not each.identity.is_owned and each.identity.provenance in targets]
        named[NO_WORKLOAD].append(grid.times_ms[is_among(grid.times_ms, _all_times(unnamed))])
    found = {workload: _union(parts) for workload, parts in _with_uids(runs).items() if parts}
    shown = {each: distinct(times) for each, times in named.items()}
    for workload, parts in found.items():
        uids = ("", workload.pod_uid) if workload.pod_uid else {each.pod_uid for each in shown}
        own = [each for each in shown if each[:2] == workload[:2] and each.pod_uid in uids]
        others = [times for each, times in shown.items() if each not in own]
        found[workload] = _handed_over(parts, distinct([shown[each] for each in own]), distinct(others))
    return found


def _handed_over(runs: list[Run], own: Times, others: Times) -> list[Run]:
    """End each run where the GPU first shows another pod or none after the pod's own last sample: metrics differ in steps."""
    last = own[np.searchsorted(own, [run.end_ms for run in runs]) - 1]
    bounds = np.append(others, runs[-1].end_ms)[np.searchsorted(others, last, side="right")].tolist()
    return [Run(run.start_ms, min(run.end_ms, end)) for run, end in zip(runs, bounds, strict=True) if run.start_ms < end]


def label_runs(
    series: list[Prepared], gpu: list[Prepared], fallback_step_ms: StepFallback, window: Window
) -> dict[DeviceLabels, list[Run]]:
    """Return the runs of each set of device labels in the window. ``gpu``: all series of a MIG instance's GPU."""
    best = min((each.identity.node_name_rank for each in series), default=0)
    by_labels: dict[DeviceLabels, list[Prepared]] = defaultdict(list)
    for each in series:
        labels = each.identity.device_labels
        by_labels[labels._replace(node_name="") if each.identity.node_name_rank > best else labels].append(each)
    found = {}
    for labels, group in by_labels.items():
        grids = [_grid(signal, fallback_step_ms) for signal in _distinct_signals(group)]
        start = max(min(int(grid.times_ms[0]) for grid in grids), window.start_ms)
        end = min(max(int(grid.ends_ms[-1]) for grid in grids), window.end_ms)
        if start < end:
            found[labels] = Run(start, end)
    runs = _without_part_descriptions(found).items()
    return {
        labels: _split(run, labels.gpu_instance_profile, series, gpu, fallback_step_ms) if gpu else [run] for labels, run in runs
    }


def _split(run: Run, profile: str, series: list[Prepared], gpu: list[Prepared], fallback_step_ms: StepFallback) -> list[Run]:
    """Split a run where an instance's metrics show its GPU without the instance, unless both sides have a common holder."""
    own = [each for each in series if not profile or each.identity.device_labels.gpu_instance_profile in ("", profile)]
    ids, metrics = {each.series_id for each in own}, {each.identity.meaning.metric for each in own}
    shown = _all_times([each for each in gpu if each.series_id not in ids and each.identity.meaning.metric in metrics])
    grid = intervals(_all_times(own), NO_TIMES, fallback_step_ms)
    following = np.append(grid.times_ms[1:], grid.ends_ms[-1])
    is_gap = ~grid.is_linked & (np.searchsorted(shown, grid.ends_ms) < np.searchsorted(shown, following))
    for times in _times_by_workload(own).values():
        named = is_among(grid.times_ms, times)
        is_gap[:-1] &= ~(named[:-1] & named[1:])
    edges = np.stack([grid.ends_ms, following], axis=1)[is_gap].ravel()
    parts = np.clip([run.start_ms, *edges, run.end_ms], *run).reshape(-1, 2).tolist()
    return [Run(*part) for part in parts if part[0] < part[1]]


def _without_part_descriptions(runs: Mapping[DeviceLabels, Run]) -> dict[DeviceLabels, Run]:
    """Merge a label set that is part of exactly one other set into it, for the time of either."""
    kept = dict(runs)
    for labels, run in runs.items():
        fuller = [other for other in kept if other != labels and all(a in ("", b) for a, b in zip(labels, other, strict=True))]
        if fuller:
            del kept[labels]
        if len(fuller) == 1:
            kept[fuller[0]] = Run(min(run.start_ms, kept[fuller[0]].start_ms), max(run.end_ms, kept[fuller[0]].end_ms))
    return kept


def _distinct_signals(series: Iterable[Prepared]) -> list[list[Prepared]]:
    """Return the series of each metric and job, without duplicates: most metrics share a scrape."""
    signals: dict[tuple[str, str], list[Prepared]] = defaultdict(list)
    for each in series:
        signals[each.identity.provenance.job, each.identity.meaning.metric].append(each)
    known: list[list[Prepared]] = []
    for group in signals.values():
        group.sort(key=lambda seen: (seen.identity.workload, seen.identity.provenance, int(seen.points.times_ms[0])))
        if not any(_are_equal(group, other) for other in known):
            known.append(group)
    return known


def _are_equal(group: list[Prepared], other: list[Prepared]) -> bool:
    return len(group) == len(other) and all(
        one.identity.workload == two.identity.workload
        and one.identity.provenance == two.identity.provenance
        and one.points.has_times_of(two.points)
        for one, two in zip(group, other, strict=True)
    )


def _grid(series: list[Prepared], fallback_step_ms: StepFallback) -> Intervals:
    """Return the intervals in which a metric shows the device. Copies are merged in the same way as values."""
    merged = merge_copies([(each.identity.provenance, each.points) for each in series])
    return intervals(merged.times_ms, merged.stale_ms, fallback_step_ms)


def _all_times(series: list[Prepared]) -> Times:
    """Return the distinct times of many series. Most share an array, which is read once."""
    arrays: list[Times] = []
    for each in series:
        if not any(is_same(each.points.times_ms, known) for known in arrays):
            arrays.append(each.points.times_ms)
    return distinct(arrays)


def _times_by_workload(series: list[Prepared]) -> dict[Workload, Times]:
    named: dict[Workload, list[Prepared]] = defaultdict(list)
    for each in series:
        if each.identity.workload != NO_WORKLOAD:
            named[each.identity.workload].append(each)
    return {workload: _all_times(group) for workload, group in named.items()}


def _with_uids(runs: Mapping[Workload, list[Run]]) -> dict[Workload, list[Run]]:
    """Assign runs without a pod UID to the pod of that name, where sibling series have exactly one UID."""
    merged = {workload: list(found) for workload, found in runs.items() if workload.pod_uid}
    for workload, found in runs.items():
        if not workload.pod_uid:
            siblings = [other for other in merged if other._replace(pod_uid="") == workload]
            merged.setdefault(siblings[0] if len(siblings) == 1 else workload, []).extend(found)
    return merged


def _runs(grid: Intervals, named: NDArray[np.bool_], window: Window) -> list[Run]:
    """Return the unbroken runs of named times. A gap in the scrapes ends a run, because the holder is unknown there."""
    continues = named[:-1] & named[1:] & grid.is_linked[:-1]
    first = np.flatnonzero(named & ~np.concatenate([[False], continues]))
    last = np.flatnonzero(named & ~np.concatenate([continues, [False]]))
    starts = np.maximum(grid.times_ms[first], window.start_ms)
    ends = np.minimum(grid.ends_ms[last], window.end_ms)
    return [Run(int(start), int(end)) for start, end in zip(starts, ends, strict=True) if start < end]


def _union(runs: list[Run]) -> list[Run]:
    """Merge the runs of several jobs, without overlaps."""
    merged: list[Run] = []
    for run in sorted(runs):
        if merged and run.start_ms <= merged[-1].end_ms:
            merged[-1] = Run(merged[-1].start_ms, max(merged[-1].end_ms, run.end_ms))
        else:
            merged.append(run)
    return merged
