"""From a raw batch to clean points per series: sorted, distinct, in canonical units, without values that are none."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpureport.catalog import Catalog, Meaning
from gpureport.errors import SourceError
from gpureport.series import METRIC_LABEL, Labels, SeriesBatch, is_stale
from gpureport.shape.copies import Points
from gpureport.shape.identity import Identity, identify
from gpureport.shape.spans import Times, Values

# What DCGM writes for "no value": int32, int64 and fp64 blanks with their sixteen reasons each (dcgm_structs.h).
_BLANKS = ((0x7FFFFFF0, 0x7FFFFFFF), (0x7FFFFFFFFFFFFFF0, 0x7FFFFFFFFFFFFFFF), (140737488355328.0, 140737488355343.0))

_NO_MARKER: Times = np.empty(0, np.int64)


@dataclass
class Tally:
    """What came of one metric and what was left out."""

    series_count: int = 0
    sample_count: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    joined_count: int = 0
    row_count: int = 0


@dataclass(frozen=True)
class Prepared:
    """One series: identity, hash, clean points in canonical units, and its raw samples (staleness markers included)."""

    series_id: int
    identity: Identity
    points: Points
    raw_times_ms: Times
    raw_values: Values


def series_id(labels: Labels) -> int:
    """64-bit hash of the sorted labels, the metric's name among them."""
    text = "\x00".join(f"{name}\x01{labels[name]}" for name in sorted(labels) if labels[name] != "")
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def prepare(batch: SeriesBatch, catalog: Catalog) -> tuple[list[Prepared], dict[str, Tally]]:
    """Every series that the catalogue names, cleaned, and a tally per metric.

    Series handed over in several pieces become one. SourceError when two label sets share a hash.
    """
    tallies: dict[str, Tally] = {}
    pieces: dict[int, list[int]] = {}
    known: dict[int, Identity] = {}
    for number, labels in enumerate(batch.labels):
        identity = identify(labels, catalog)
        if identity is None:
            _count_nameless(labels, int(batch.offsets[number + 1] - batch.offsets[number]), catalog, tallies)
            continue
        key = series_id(labels)
        if known.setdefault(key, identity) is not identity and _present(known[key].labels) != _present(labels):
            raise SourceError(f"two series share the hash {key:016x}: {dict(labels)} and {dict(known[key].labels)}; report this")
        pieces.setdefault(key, []).append(number)
    prepared = []
    for key, numbers in pieces.items():
        identity = known[key]
        tally = tallies.setdefault(identity.meaning.metric, Tally())
        prepared.append(_prepare_one(key, identity, *_samples(batch, numbers, tally), tally))
    return prepared, tallies


def _count_nameless(labels: Labels, count: int, catalog: Catalog, tallies: dict[str, Tally]) -> None:
    metric = labels.get(METRIC_LABEL, "")
    if metric in catalog.by_metric:
        tallies.setdefault(metric, Tally()).dropped["nameless"] += count


def _present(labels: Labels) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value != ""}


def _samples(batch: SeriesBatch, numbers: list[int], tally: Tally) -> tuple[Times, Values]:
    """A series' raw samples, sorted by time, one per instant (the first that came)."""
    slices = [slice(batch.offsets[number], batch.offsets[number + 1]) for number in numbers]
    times = batch.times_ms[slices[0]] if len(slices) == 1 else np.concatenate([batch.times_ms[each] for each in slices])
    values = batch.values[slices[0]] if len(slices) == 1 else np.concatenate([batch.values[each] for each in slices])
    if (np.diff(times) <= 0).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        kept = np.append(True, times[1:] != times[:-1])
        tally.dropped["duplicate"] += int((~kept).sum())
        times, values = times[kept], values[kept]
    return times, values


def _prepare_one(key: int, identity: Identity, times: Times, values: Values, tally: Tally) -> Prepared:
    if _is_plain(values):
        tally.series_count += 1
        tally.sample_count += times.size
        points = Points(times, _scaled(values, identity.meaning), _NO_MARKER)
        return Prepared(key, identity, points, times, values)
    stale = is_stale(values)
    dropped = _unusable(values, stale, identity.meaning, tally)
    kept = ~(stale | dropped)
    points = Points(times[kept], _scaled(values[kept], identity.meaning), times[stale])
    tally.series_count += 1
    tally.sample_count += int(times.size - stale.sum())
    return Prepared(key, identity, points, times, values)


def _is_plain(values: Values) -> bool:
    """Whether nothing needs a second look: most series hold numbers below every blank."""
    return values.size > 0 and bool(values.max() < _BLANKS[0][0] and values.min() > -_BLANKS[0][0])


def _scaled(values: Values, meaning: Meaning) -> Values:
    return values if meaning.factor == 1 else values * meaning.factor


def _unusable(values: Values, stale: NDArray[np.bool_], meaning: Meaning, tally: Tally) -> NDArray[np.bool_]:
    """Which values are none, each counted under its reason."""
    reasons = {"nan": np.isnan(values) & ~stale, "infinite": np.isinf(values) if not meaning.allows_infinite else None}
    if meaning.exporter == "dcgm-exporter":
        reasons["blank"] = np.logical_or.reduce([(values >= low) & (values <= high) for low, high in _BLANKS])
    unusable = np.zeros(values.size, np.bool_)
    for reason, found in reasons.items():
        if found is not None and found.any():
            tally.dropped[reason] += int(found.sum())
            unusable |= found
    return unusable
