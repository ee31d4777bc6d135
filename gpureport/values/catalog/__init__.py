"""Metric catalog (``queries/catalog/signal.csv``): signal, factor to SI units, kind and scope of each metric.

The declared Prometheus TYPE is ignored: violation "counters" are nanoseconds, PCIe and NVLink "counters" are rates (DCGM field
reference; dcgm-exporter 87, 589).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from itertools import groupby
from typing import Literal, NamedTuple, get_args

from gpureport.values.errors import UsageError
from gpureport.values.runtime.resources import catalog_rows
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.tables import SIGNAL_BY_NAME

Kind = Literal["gauge", "counter", "bitmask", "code", "rate", "bit", "info"]
Scope = Literal["board", "instance", "pod", "detail", "cluster"]
_NEEDED = ("metric", "signal", "kind", "scope")
PER_SECOND = "second"
DEVICE_INFO = "device_info"
"""Signal of metrics whose labels describe a device. Their values have no meaning."""


ACCELERATOR_METRICS = "(?i).*(dcgm|nvidia|gpu|xpum|npu_|tpu_|rocm|habana|gaudi|neuron|ascend|accelerator).*"
"""Pattern of likely accelerator metrics. Prometheus servers accept it too."""
_OF_SCHEDULING = (
    "kube_",
    "gpureport_",
    "cluster_gpu_",
    "node_gpu_",
    "container_gpu_",
    "apiserver_",
    "kueue_",
    "volcano_",
    "kai_",
)

RESPELLED = "respelled"
PUBLISHER_LABEL, PUBLISHER = "publisher", "gpureport"
"""Label on gpureport's own gauges with names of OpenCost. Without it a run would read its own results as OpenCost's."""


_STEADY = (
    *("_resource_requests", "_resource_limits", "_allocatable", "_capacity"),
    *("quota_guaranteed", "quota_cap", "quota_borrowing_limit", "quota_lending_limit", "quota_weight"),
)


@dataclass(frozen=True)
class Meaning:
    """One catalog row: how to read a metric.

    ``kind`` bit: a 0/1 flag for bit ``factor`` of the mask; info: only the labels count. ``scope`` detail: a part of a device's
    values (such as one XID code). ``per``: the divisor of a counter's growth where it feeds a gauge: "second", or another
    counter's metric.
    """

    metric: str
    labels: str
    signal: str
    factor: float
    kind: Kind
    scope: Scope
    per: str
    vendor: str
    exporter: str
    versions: str
    needs: str
    holder: str
    """``none``: a metric of the whole host. A workload on its series is the scraped exporter and holds no device."""
    source: str

    @property
    def is_of_host(self) -> bool:
        """Whether its series never name the workload that holds a device."""
        return self.holder == "none"

    @property
    def is_respelled(self) -> bool:
        """Whether it is another row's metric under the OpenMetrics or OpenTelemetry name."""
        return self.source == RESPELLED

    @property
    def is_device(self) -> bool:
        """Whether it describes a device (a column of device_sample) rather than a pod or the cluster."""
        return self.scope in ("board", "instance") and self.kind != "info"

    @property
    def names_device(self) -> bool:
        """Whether its series have labels that identify a device."""
        return self.scope in ("board", "instance", "detail")

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers: bits, codes or counts."""
        return self.kind in ("bit", "bitmask", "code") or (self.kind == "gauge" and self.signal.endswith("_count"))

    @property
    def is_instant(self) -> bool:
        """Whether its values are times of Kubernetes events, in seconds since 1970."""
        return self.exporter == "kube-state-metrics" and self.signal.endswith(("_created", "_time", "_timestamp", "_started"))

    @property
    def is_steady(self) -> bool:
        """Whether its values rarely change: times of events, requests of pods, capacities of nodes and quotas."""
        return self.is_instant or (self.scope == "cluster" and self.signal.endswith(_STEADY))

    @property
    def allows_infinite(self) -> bool:
        """Whether an infinite value has a meaning (a quota without a limit)."""
        return "infinite" in self.needs

    @property
    def may_be_percent(self) -> bool:
        """Whether a version exports percent under a ratio's name (DCGM 4.6 aliases). The unit is decided per cluster and day."""
        return "ratio or percent" in self.needs

    @cached_property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """Labels that a series must have, with their values; ``*`` is any value."""
        pairs = (condition.partition("=") for condition in self.labels.split())
        return tuple((name, value) for name, _, value in pairs)

    def matches(self, labels: Labels) -> bool:
        """Whether a series has the labels of this row."""
        return all((found := labels.get(name, "")) != "" and value in ("*", found) for name, value in self.conditions)


COLUMNS = tuple(each.name for each in fields(Meaning))


class Board(NamedTuple):
    """Data-sheet values of a GPU model; 0 where unknown."""

    watts: float
    memory_bytes: float


UNKNOWN_BOARD = Board(0.0, 0.0)


@dataclass(frozen=True)
class Catalog:
    """All rows in order of preference. Where several metrics have one signal, the first available is used."""

    rows: tuple[Meaning, ...]
    boards: tuple[tuple[str, Board], ...] = ()
    """Patterns of model names, with their data-sheet values."""
    own_labels: tuple[tuple[str, str], ...] = ()
    """The user's label names, each with the standard name."""

    def board(self, model: str) -> Board:
        """Return the data-sheet values of a model."""
        known = self._known_boards
        if model not in known:
            known[model] = next((board for pattern, board in self.boards if fnmatchcase(model, pattern)), UNKNOWN_BOARD)
        return known[model]

    @cached_property
    def _known_boards(self) -> dict[str, Board]:
        return {}

    def spelled(self, labels: Labels) -> Labels:
        """Return the labels with standard names added for the user's names."""
        own = {name: labels[mine] for mine, name in self.own_labels if labels.get(mine)}
        return {**labels, **own} if own else labels

    @cached_property
    def metrics(self) -> Mapping[str, tuple[Meaning, ...]]:
        """Rows by metric: several where labels decide or where a counter feeds several gauges."""
        found: dict[str, list[Meaning]] = defaultdict(list)
        for row in self.rows:
            found[row.metric].append(row)
        return {metric: tuple(rows) for metric, rows in found.items()}

    @cached_property
    def rank(self) -> Mapping[tuple[str, str], int]:
        """Position in the order of preference, by metric and labels."""
        return {(row.metric, row.labels): number for number, row in enumerate(self.rows)}

    @cached_property
    def divisors(self) -> Mapping[str, Meaning]:
        """Counters whose growth divides another counter's growth, by metric. Their signal is the metric's name."""
        return {
            row.per: replace(row, metric=row.per, labels="", signal=row.per, factor=1.0, per="")
            for row in self.rows
            if row.per not in ("", PER_SECOND)
        }

    @cached_property
    def requested(self) -> tuple[str, ...]:
        """Names of all metrics to request, with divisors."""
        return tuple(dict.fromkeys([*self.metrics, *self.divisors]))

    def read_as(self, metric: str) -> tuple[Meaning, ...]:
        """Return the rows of a metric: several where labels decide."""
        return self.metrics.get(metric) or ((self.divisors[metric],) if metric in self.divisors else ())

    def meaning(self, labels: Labels) -> Meaning | None:
        """Return the row for a series. None for a metric or labels outside of the catalog, and for gpureport's own metrics."""
        labels = self.spelled(labels)
        if labels.get(PUBLISHER_LABEL) == PUBLISHER:
            return None
        for row in self.read_as(labels.get(METRIC_LABEL, "")):
            if not row.labels or row.matches(labels):
                return row
        return None

    def candidates(self, signal: str) -> tuple[Meaning, ...]:
        """Return the rows for a signal in order of preference."""
        return tuple(row for row in self.rows if row.signal == signal and not row.is_respelled)

    def unread(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of metrics that have accelerator names and are not in the catalog."""
        known = {*self.metrics, *self.divisors}
        return {
            metric: count
            for metric, count in sorted(counts.items())
            if metric not in known and not metric.startswith(_OF_SCHEDULING) and re.fullmatch(ACCELERATOR_METRICS, metric)
        }

    @cached_property
    def version(self) -> str:
        """Version of the catalog: twelve hex digits that change with any row."""
        return hashlib.sha256(repr((self.rows, self.boards, self.own_labels)).encode()).hexdigest()[:12]


def load_catalog(own_rows: Iterable[Mapping[str, str]] = (), own_labels: Mapping[str, str] | None = None) -> Catalog:
    """Load the bundled catalog with the user's rows first. A user's row replaces bundled rows of the same metric and labels."""
    own = (_meaning({"factor": "1", "source": "configuration", **row}, "signals") for row in own_rows)
    return _with_own(tuple(own), tuple(sorted((own_labels or {}).items())))


@cache  # a night of several clusters needs it once for each
def _with_own(own: tuple[Meaning, ...], labels: tuple[tuple[str, str], ...]) -> Catalog:
    bundled = (each for row in catalog_rows("signal.csv") for each in _spellings(_meaning(row, "signal.csv")))
    replaced = {(row.metric, row.labels) for row in own}
    return Catalog((*own, *(row for row in bundled if (row.metric, row.labels) not in replaced)), _boards(), labels)


def _spellings(meaning: Meaning) -> Iterator[Meaning]:
    """Yield the row; OpenMetrics' name of a DCGM counter, OpenTelemetry's name without units, AMD's newer name of a clock."""
    yield meaning
    if "GPU_CLOCK_TYPE_" in meaning.labels:
        yield replace(meaning, labels=meaning.labels.replace("GPU_CLOCK_TYPE_", "").lower(), source=RESPELLED)
    is_counted = meaning.is_device and meaning.signal.endswith("_count")
    if (meaning.kind in ("counter", "rate") or is_counted) and meaning.metric.startswith("DCGM"):
        yield replace(meaning, metric=f"{meaning.metric}_total", source=RESPELLED)
    bare = re.sub("(_(ratio|joules|celsius|hertz|bytes|seconds))?(_total)?$", "", meaning.metric)
    if meaning.exporter == "opentelemetry-dcgm" and bare != meaning.metric:
        yield replace(meaning, metric=bare, source=RESPELLED)


def _boards() -> tuple[tuple[str, Board], ...]:
    rows = catalog_rows("gpu_model.csv")
    factors = {"board_watts": 1.0, "memory_gigabytes": 2.0**30}
    return tuple((row["gpu_model"], Board(*(float(row[name] or 0) * by for name, by in factors.items()))) for row in rows)


def _meaning(row: Mapping[str, str], where: str) -> Meaning:
    unknown = set(row) - set(COLUMNS)
    if unknown or not row.get("metric"):
        raise UsageError(f"{where}: a signal row needs {', '.join(_NEEDED)}; unknown: {', '.join(sorted(unknown)) or 'none'}")
    text = {column: str(row.get(column, "") or "") for column in COLUMNS}
    if text["kind"] == "info":
        text["signal"] = DEVICE_INFO
    _check(text, where)
    return Meaning(**{**text, "factor": float(text["factor"])})  # type: ignore[arg-type]


def _check(text: Mapping[str, str], where: str) -> None:
    metric = text["metric"]
    if text["kind"] not in get_args(Kind) or text["scope"] not in get_args(Scope):
        raise UsageError(f"{where}: {metric}: kind must be one of {get_args(Kind)} and scope one of {get_args(Scope)}")
    is_column = text["scope"] in ("board", "instance") and text["kind"] != "info"
    if is_column and text["signal"] not in SIGNAL_BY_NAME:
        raise UsageError(f"{where}: {metric}: {text['signal']!r} is not a device signal; see docs/schema.md, device_sample")
    if any("=" not in condition for condition in text["labels"].split()):
        raise UsageError(f"{where}: {metric}: labels {text['labels']!r} are not written as name=value name=*")
    try:
        is_factor = 0 < float(text["factor"]) < math.inf or text["kind"] == "bit"
    except ValueError:
        is_factor = False
    if not is_factor:
        raise UsageError(f"{where}: {metric}: factor {text['factor']!r} is not a number above 0")
    feeds = "gauge" if text["per"] else {"rate": "gauge", "bit": "bitmask"}.get(text["kind"], text["kind"])
    if is_column and SIGNAL_BY_NAME[text["signal"]].kind != feeds:
        raise UsageError(f"{where}: {metric}: {text['signal']} is no {text['kind']}; see docs/metrics.md for rows that feed it")
    if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", text["per"] or "x") or text["per"] == metric:
        raise UsageError(f"{where}: {metric}: per {text['per']!r} is neither {PER_SECOND} nor the metric of another counter")


@dataclass(frozen=True)
class Figure:
    """A figure's formula over facts, with the device signals (names in ``tables.SIGNALS``) that it needs."""

    formula: str
    signals: tuple[str, ...]
    absent: str
    """Condition of null; '' where it is 'no sample of its signals'."""
    ways: tuple[tuple[str, ...], ...]
    """Alternative sets of signals, each enough for the figure, the most direct first."""

    def missing(self, present: Set[str]) -> tuple[str, ...]:
        """Return the fewest signals to add so that the figure is known; () where it is known."""
        return min((tuple(signal for signal in way if signal not in present) for way in self.ways), key=len)


def _figure(row: dict[str, str]) -> Figure:
    signals = tuple(row["signals"].split())
    ways = tuple(tuple(way.split()) for way in row["ways"].split("|")) if row["ways"] else (signals,)
    return Figure(row["formula"], signals, row["absent"], ways)


GROUPS = {
    title: {row["figure"]: _figure(row) for row in rows}
    for title, rows in groupby(catalog_rows("figure.csv"), lambda row: row["group"])
}
"""The figures by group; the groups are the headings of ``docs/figures.md``."""
FIGURES = {name: figure for group in GROUPS.values() for name, figure in group.items()}
"""The figures of all report tables, in table order. The seconds behind a ratio are named after the ratio."""
REASONS = {row["reason"]: row["meaning"] for row in catalog_rows("reason.csv")}
"""The codes in ``unknown_reasons`` and ``report.coverage``, each with a sentence for readers."""
