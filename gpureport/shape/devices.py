"""The device side of a batch: which series make up each signal of each device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpureport.catalog import Catalog
from gpureport.shape.copies import Points, collapse_target, in_order_of_preference, merge_targets
from gpureport.shape.identity import DeviceKey, Provenance
from gpureport.shape.prepare import Prepared, Tally
from gpureport.shape.spans import StepFallback, Times, distinct, is_among, median_step_ms

# In virtual-GPU mode dcgm-exporter (594) gives these two per pod, and the device's own without workload labels.
_MAY_BE_POD_SCOPE = frozenset({"gpu_util_ratio", "fb_used_bytes"})


@dataclass
class DeviceSignals:
    """One device's signals as points, and what was found to be a pod's and not the device's."""

    points: dict[str, Points] = field(default_factory=dict)
    metric: dict[str, str] = field(default_factory=dict)
    fallback: dict[str, StepFallback] = field(default_factory=dict)
    pod_series: list[Prepared] = field(default_factory=list)


class Steps:
    """Median step per metric, job and node, for hours in which a signal has too few steps of its own."""

    def __init__(self, series: list[Prepared]) -> None:
        self._times: dict[tuple[str, str, str], list[Times]] = defaultdict(list)
        self._found: dict[tuple[str, str, str], int | None] = {}
        for each in series:
            self._times[_step_key(each)].append(each.points.times_ms)

    def of(self, series: Prepared) -> StepFallback:
        """The fallback for a series' signal; worked out on first use."""
        key = _step_key(series)

        def found() -> int | None:
            if key not in self._found:
                self._found[key] = median_step_ms(self._times[key])
            return self._found[key]

        return found


def _step_key(series: Prepared) -> tuple[str, str, str]:
    identity = series.identity
    return identity.meaning.metric, identity.provenance.job, identity.device_labels.node_name


def devices(
    series: list[Prepared], catalog: Catalog, steps: Steps, tallies: Mapping[str, Tally]
) -> dict[DeviceKey, DeviceSignals]:
    """Every device's signals, by device; series without a usable point are left out."""
    by_device: dict[DeviceKey, dict[str, list[Prepared]]] = defaultdict(lambda: defaultdict(list))
    for each in series:
        if each.identity.device is not None and each.points.count:
            by_device[each.identity.device][each.identity.meaning.signal].append(each)
    rank = {row.metric: number for number, row in enumerate(catalog.rows)}
    return {key: _signals(by_device[key], rank, steps, tallies) for key in sorted(by_device)}


def _signals(
    by_signal: Mapping[str, list[Prepared]], rank: Mapping[str, int], steps: Steps, tallies: Mapping[str, Tally]
) -> DeviceSignals:
    found = DeviceSignals()
    for signal, candidates in sorted(by_signal.items()):
        metric = min((each.identity.meaning.metric for each in candidates), key=rank.__getitem__)
        chosen = [each for each in candidates if each.identity.meaning.metric == metric]
        chosen, pods = _without_pod_scope(signal, chosen)
        found.pod_series += pods
        if not chosen:
            continue
        found.points[signal] = _one(chosen, tallies[metric])
        found.metric[signal] = metric
        found.fallback[signal] = steps.of(chosen[0])
    return found


def _without_pod_scope(signal: str, series: list[Prepared]) -> tuple[list[Prepared], list[Prepared]]:
    """The device's own series, and the pods': labelled ones are pods' where an unlabelled twin speaks at the same instant."""
    owned = [each for each in series if each.identity.is_owned]
    bare = [each for each in series if not each.identity.is_owned]
    if signal not in _MAY_BE_POD_SCOPE or not owned or not bare:
        return series, []
    own = distinct([each.points.times_ms for each in bare])
    has_twin = any(is_among(each.points.times_ms, own).any() for each in owned)
    return (bare, owned) if has_twin else (series, [])


def _one(series: list[Prepared], tally: Tally) -> Points:
    """All copies of one device signal as one."""
    targets: dict[Provenance, list[Points]] = defaultdict(list)
    for each in series:
        targets[each.identity.provenance].append(each.points)
    merged = merge_targets(in_order_of_preference({key: collapse_target(found) for key, found in targets.items()}))
    tally.dropped["copy"] += sum(each.points.count for each in series) - merged.count
    return merged
