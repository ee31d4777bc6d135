"""Cleaning of a raw batch: points per series, sorted, distinct, in canonical units, without invalid values.

Series with equal times share one times array.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.identity import Identity, KnownLabels
from gpureport.collect.shape.intervals import NO_TIMES, Times, Values
from gpureport.collect.shape.reading import PLAIN, Reading, UnitEvidence
from gpureport.values.catalog import Catalog, Meaning
from gpureport.values.errors import SourceError
from gpureport.values.series import METRIC_LABEL, Labels, SeriesBatch, is_stale
from gpureport.values.tables import SIGNAL_BY_NAME


class Raw(NamedTuple):
    """Raw samples of a series. The extremes are NaN where any value is."""

    times: Times
    values: Values
    lowest: float
    highest: float
    is_whole: bool
    """No value has a fraction or is NaN."""


class Samples:
    """Raw samples by series, and shared arrays of their times."""

    def __init__(self, batch: SeriesBatch) -> None:
        from gpureport.collect.shape.loops import equal_to, extents

        found = extents(batch)
        self._batch = batch
        self._extents = list(zip(found.lowest.tolist(), found.highest.tolist(), found.is_whole.tolist(), strict=True))
        self._is_rising = found.is_rising.tolist()
        self._offsets = batch.offsets.tolist()
        leader: dict[tuple[int, int], int] = {}
        keys = zip(np.diff(batch.offsets).tolist(), found.digest.tolist(), strict=True)
        alike = np.array([leader.setdefault(key, number) for number, key in enumerate(keys)], np.int64)
        self._alike = np.where(equal_to(batch, alike), alike, np.arange(alike.size)).tolist()
        self._times: dict[int, Times] = {}
        self._sorted_times: list[Times] = []
        self._parts: dict[tuple[int, bytes], Times] = {}

    def of(self, numbers: list[int], dropped: Counter[str]) -> Raw:
        """Merge the parts of a series. Of several samples at one time, the first received is kept."""
        number = numbers[0]
        if len(numbers) > 1 or not self._is_rising[number]:
            return self._sorted(numbers, dropped)
        return Raw(self._instants(self._alike[number]), self._batch.values[self._slice(number)], *self._extents[number])

    def part(self, times: Times, kept: NDArray[np.bool_]) -> Times:
        """Select times of a series. Series with the same times and selection share one array."""
        key = id(times), kept.tobytes()  # the batch's own arrays live as long as this object
        if key not in self._parts:
            self._parts[key] = times[kept]
        return self._parts[key]

    def _instants(self, number: int) -> Times:
        if number not in self._times:
            self._times[number] = self._batch.times_ms[self._slice(number)]
        return self._times[number]

    def _slice(self, number: int) -> slice:
        return slice(self._offsets[number], self._offsets[number + 1])

    def _sorted(self, numbers: list[int], dropped: Counter[str]) -> Raw:
        times = np.concatenate([self._batch.times_ms[self._slice(number)] for number in numbers])
        values = np.concatenate([self._batch.values[self._slice(number)] for number in numbers])
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        kept = np.append(True, times[1:] != times[:-1])
        dropped["duplicate"] += int((~kept).sum())
        times, values = times[kept], values[kept]
        self._sorted_times.append(times)  # kept alive: the id of this array is a key
        is_whole = all(self._extents[number][2] for number in numbers)
        return Raw(times, values, float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)), is_whole)


# DCGM's codes for "no value": int32, int64 and fp64 blanks with sixteen reasons each (dcgm_structs.h).
_BLANKS = ((0x7FFFFFF0, 0x7FFFFFFF), (0x7FFFFFFFFFFFFFF0, 0x7FFFFFFFFFFFFFFF), (140737488355328.0, 140737488355343.0))

# Codes of AMD's exporter for "not applicable": the largest unsigned or signed integer of each width.
_NOT_APPLICABLE = (255.0, 65_535.0, 2_147_483_647.0, 4_294_967_295.0, 18_446_744_073_709_551_615.0)

_INSTANTS = (1.4e9, 2.0**31)
"""Seconds since 1970, from Kubernetes' first release on."""
_AMOUNTS = (0.0, 1e15)
"""The largest amounts on a node are bytes of memory."""


@dataclass
class Tally:
    """Counts of one metric's samples and dropped values."""

    series_count: int = 0
    sample_count: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    joined_count: int = 0
    row_count: int = 0
    unit: UnitEvidence = field(default_factory=UnitEvidence)


@dataclass(frozen=True)
class Prepared:
    """One series: identity, hash, clean points in canonical units, and raw samples with staleness markers."""

    series_id: int
    identity: Identity
    points: Points
    raw_times_ms: Times
    raw_values: Values
    dropped: Counter[str]
    """Dropped values by reason."""


def prepare(batch: SeriesBatch, catalog: Catalog, reading: Reading = PLAIN) -> tuple[list[Prepared], dict[str, Tally]]:
    """Return the cleaned series of the catalog's metrics, and a tally per metric.

    Parts of a series are merged. SourceError where two label sets share a hash.
    """
    tallies: dict[str, Tally] = {}
    numbers_by_key: dict[int, list[int]] = {}
    known: dict[int, Identity] = {}
    known_labels = KnownLabels(catalog, reading)
    for number, labels in enumerate(batch.labels):
        found = known_labels.read(labels)
        if found is None:
            _count_nameless(labels, int(batch.offsets[number + 1] - batch.offsets[number]), catalog, tallies)
            continue
        identity, key = found
        if known.setdefault(key, identity) is not identity and _present(known[key].labels) != _present(labels):
            raise SourceError(f"two series share the hash {key:016x}: {dict(labels)} and {dict(known[key].labels)}; report this")
        numbers_by_key.setdefault(key, []).append(number)
    prepared = []
    samples, rules = Samples(batch), _Rules(reading)
    for key, numbers in numbers_by_key.items():
        dropped: Counter[str] = Counter()
        identity, raw = known[key], samples.of(numbers, dropped)
        one = _prepare_one(key, identity, raw, samples, rules.of(identity.meaning), dropped)
        _count(tallies.setdefault(identity.meaning.metric, Tally()), one)
        prepared.append(one)
    return prepared, tallies


def _count_nameless(labels: Labels, count: int, catalog: Catalog, tallies: dict[str, Tally]) -> None:
    metric = labels.get(METRIC_LABEL, "")
    # A series with another label value than the catalog's condition is not read, so it is not counted.
    if any(all(value in ("*", labels.get(name)) for name, value in row.conditions) for row in catalog.metrics.get(metric, ())):
        tallies.setdefault(metric, Tally()).dropped["nameless"] += count


def _count(tally: Tally, found: Prepared) -> None:
    if found.identity.meaning.may_be_percent:
        tally.unit.add(found.raw_values)
    tally.series_count += 1
    tally.sample_count += found.raw_times_ms.size - found.points.stale_ms.size
    tally.dropped.update(found.dropped)


def _present(labels: Labels) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value != ""}


class _Rule(NamedTuple):
    """Factor from a metric's unit to the canonical unit (NaN: unknown), and the range of possible values."""

    factor: float
    low: float
    high: float
    is_code: bool


class _Rules:
    """Rules of the catalog's rows, each computed once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, str], _Rule] = {}

    def of(self, meaning: Meaning) -> _Rule:
        """Return the rule of a catalog row."""
        key = meaning.metric, meaning.labels
        if key not in self._known:
            factor = _factor(meaning, self._reading)
            self._known[key] = _Rule(factor, *_range(meaning, factor), meaning.is_whole)
        return self._known[key]


def _prepare_one(key: int, identity: Identity, raw: Raw, samples: Samples, rule: _Rule, dropped: Counter[str]) -> Prepared:
    times, values, meaning = raw.times, raw.values, identity.meaning
    if _is_plain(raw, meaning, rule):
        scaled = values if rule.factor == 1 else values * rule.factor
        return Prepared(key, identity, Points(times, scaled, NO_TIMES), times, values, dropped)
    stale = is_stale(values)
    kept = ~(stale | _is_unusable(values, stale, identity, rule.factor, dropped))
    markers = samples.part(times, stale) if stale.any() else NO_TIMES
    points = Points(samples.part(times, kept), values[kept] * rule.factor, markers)
    return Prepared(key, identity, points, times, values, dropped)


def _factor(meaning: Meaning, reading: Reading) -> float:
    """Return the factor to the canonical unit; NaN where the unit is unknown."""
    if not meaning.may_be_percent:
        return meaning.factor
    return {"ratio": meaning.factor, "percent": meaning.factor / 100, "unclear": np.nan}[reading.unit(meaning.metric)]


def _is_plain(raw: Raw, meaning: Meaning, rule: _Rule) -> bool:
    """Whether no further check is needed: most series have numbers in the signal's range and below every blank.

    The range is NaN where the unit is unknown.
    """
    if meaning.vendor == "amd" or (meaning.is_steady and raw.lowest != raw.highest):
        return False
    return raw.highest <= rule.high and raw.lowest >= rule.low and (raw.is_whole or not rule.is_code)


def _range(meaning: Meaning, factor: float) -> tuple[float, float]:
    """Return the range of a signal's plain raw values. Derived growth is checked separately."""
    below_blanks = float(_BLANKS[0][0] - 1)
    if meaning.signal.startswith("kube_"):
        return _range_of_object(meaning)
    if meaning.signal not in SIGNAL_BY_NAME:
        return -below_blanks, below_blanks
    low, high = _bounds(meaning, factor)
    return 1.0 if meaning.signal.endswith("_celsius") else low, min(high, below_blanks)


def _range_of_object(meaning: Meaning) -> tuple[float, float]:
    """Return the range of a Kubernetes object's values: times, amounts and counts, or flags of 0 and 1."""
    if meaning.is_instant:
        return _INSTANTS
    return _AMOUNTS if meaning.is_steady or meaning.kind == "counter" else (0.0, 1.0)


def _bounds(meaning: Meaning, factor: float) -> tuple[float, float]:
    """Return the signal's range, ignoring blanks. A counter is checked later by its growth on the device."""
    signal = SIGNAL_BY_NAME.get(meaning.signal)  # a divisor has no signal
    if signal is None or meaning.kind == "counter":
        return 0.0, 2.0**64  # no counter is wider
    return signal.lowest / factor, signal.highest / factor


def _is_unusable(
    values: Values, stale: NDArray[np.bool_], identity: Identity, factor: float, dropped: Counter[str]
) -> NDArray[np.bool_]:
    """Whether each value is invalid. Each is counted under the first reason that applies."""
    unusable = np.zeros(values.size, np.bool_)
    for reason, found in _reasons(values, identity, factor).items():
        fresh = found & ~stale & ~unusable
        if fresh.any():
            dropped[reason] += int(fresh.sum())
            unusable |= fresh
    return unusable


def _reasons(values: Values, identity: Identity, factor: float) -> dict[str, NDArray[np.bool_]]:
    meaning, found = identity.meaning, {"nan": np.isnan(values)}
    if not meaning.allows_infinite:
        found["infinite"] = np.isinf(values)
    may_lack_sensor = meaning.signal.endswith("_celsius")  # exporters then print 0
    if meaning.vendor == "nvidia":
        blanks = (*_BLANKS, (0, 0)) if may_lack_sensor else _BLANKS
        found["blank"] = np.logical_or.reduce([(values >= low) & (values <= high) for low, high in blanks])
    if meaning.vendor == "amd":
        part = identity.holder_device.gpu_instance_id.lstrip("0") if identity.holder_device else ""
        shows_0 = may_lack_sensor or ("partition 0 only" in meaning.needs and part.isdecimal())  # later ones print 0
        found["not_applicable"] = np.isin(values, (*_NOT_APPLICABLE, 0.0) if shows_0 else _NOT_APPLICABLE)
    if meaning.is_steady:
        found["outlier"] = _is_outlier(values, meaning.is_instant)
    if meaning.signal.startswith("kube_"):
        low, high = _range_of_object(meaning)
        found["out_of_range"] = (values < low) | (values > high)
    elif meaning.signal in SIGNAL_BY_NAME or meaning.kind == "counter":
        found["out_of_range"] = _is_out_of_range(values, meaning, factor)
    if math.isnan(factor):
        found["ambiguous_unit"] = np.ones(values.size, np.bool_)
    return found


def _is_outlier(values: Values, is_two_sided: bool) -> NDArray[np.bool_]:
    """Whether a sample is above (or, either way, unlike) two equal neighbors; for the first and last, the two next to them."""
    if values.size < 3:
        return np.zeros(values.size, np.bool_)
    before, after = np.append(values[2], values[:-1]), np.append(values[1:], values[-3])
    is_different = values != before if is_two_sided else values > before
    return np.asarray(is_different & (before == after))


def _is_out_of_range(values: Values, meaning: Meaning, factor: float) -> NDArray[np.bool_]:
    low, high = _bounds(meaning, factor)
    with np.errstate(invalid="ignore"):  # an unknown unit has no bound, and a staleness marker is a signaling NaN
        outside: NDArray[np.bool_] = (values < low) | (values > high)
        if meaning.is_whole:  # a code or bits, at most as wide as the lake's 32 bits
            outside |= (values != np.floor(values)) | (values > _BLANKS[0][1])
    return outside
