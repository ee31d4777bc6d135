"""Meaning of a metric's name: signal, factor to SI, kind and scope, from ``queries/catalog/signal.csv``.

The declared Prometheus TYPE is not consulted: violation "counters" are nanoseconds, PCIe and NVLink "counters" are
rates (DCGM field reference; dcgm-exporter 87, 589).
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from gpureport.values.errors import UsageError
from gpureport.values.runtime.resources import QUERIES, catalog_rows
from gpureport.values.series import METRIC_LABEL, Labels
from gpureport.values.tables import SIGNAL_BY_NAME

Kind = Literal["gauge", "counter", "bitmask", "code", "rate", "bit", "info"]
Scope = Literal["board", "instance", "pod", "detail", "cluster"]
_NEEDED = ("metric", "signal", "kind", "scope")
PER_SECOND = "second"
DEVICE_INFO = "device_info"
"""Signal of the metrics whose labels describe a device and whose value is of no use."""


ACCELERATOR_METRICS = "(?i).*(dcgm|nvidia|gpu|xpum|npu_|tpu_|rocm|habana|gaudi|neuron|ascend|accelerator).*"
"""Names of metrics that are of accelerators, most likely; an expression that servers understand too."""
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
"""On gauges of ours whose names are OpenCost's: a run that read its own words as OpenCost's would agree with itself."""


_STEADY = (
    *("_resource_requests", "_resource_limits", "_allocatable", "_capacity"),
    *("quota_guaranteed", "quota_cap", "quota_borrowing_limit", "quota_lending_limit", "quota_weight"),
)


@dataclass(frozen=True)
class Meaning:
    """One catalog row: how a metric is read.

    ``kind`` bit: a 0/1 flag that stands for bit ``factor`` of the mask; info: only the labels count. ``scope`` detail: of a
    device, but split further (as per XID code). ``per``: what a counter's growth is divided by to feed a gauge:
    "second", or another counter's metric.
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
    """``none``: of the whole host; a workload on its series is whose scrape it was, and holds nothing."""
    source: str

    @property
    def is_of_host(self) -> bool:
        """Whether its series never name who holds a device."""
        return self.holder == "none"

    @property
    def is_respelled(self) -> bool:
        """Whether it stands for another row's metric under its name in OpenMetrics or OpenTelemetry."""
        return self.source == RESPELLED

    @property
    def is_device(self) -> bool:
        """Whether it describes a device (a column of device_sample) and not a pod or the cluster."""
        return self.scope in ("board", "instance") and self.kind != "info"

    @property
    def names_device(self) -> bool:
        """Whether its series carry a device's identity."""
        return self.scope in ("board", "instance", "detail")

    @property
    def is_whole(self) -> bool:
        """Whether its values are bits, codes or counts, of which there is no half."""
        return self.kind in ("bit", "bitmask", "code") or (self.kind == "gauge" and self.signal.endswith("_count"))

    @property
    def is_instant(self) -> bool:
        """Whether its values are seconds since 1970 at which something of Kubernetes happened."""
        return self.exporter == "kube-state-metrics" and self.signal.endswith(("_created", "_time", "_timestamp", "_started"))

    @property
    def is_steady(self) -> bool:
        """Whether its values stay the same: when something happened, what a pod requests, what a node or a quota has."""
        return self.is_instant or (self.scope == "cluster" and self.signal.endswith(_STEADY))

    @property
    def allows_infinite(self) -> bool:
        """Whether an infinite value means something (a quota without a limit)."""
        return "infinite" in self.needs

    @property
    def may_be_percent(self) -> bool:
        """Whether the name is of a ratio and a version exports percent (DCGM 4.6 aliases): decided per cluster and day."""
        return "ratio or percent" in self.needs

    @cached_property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """Labels that a series must carry, and their values; ``*`` is any."""
        pairs = (condition.partition("=") for condition in self.labels.split())
        return tuple((name, value) for name, _, value in pairs)

    def matches(self, labels: Labels) -> bool:
        """Whether a series of the metric is meant."""
        return all((found := labels.get(name, "")) != "" and value in ("*", found) for name, value in self.conditions)


COLUMNS = tuple(each.name for each in fields(Meaning))


class Board(NamedTuple):
    """Value of a model's data sheet; 0 where it is not known."""

    watts: float
    memory_bytes: float


UNKNOWN_BOARD = Board(0.0, 0.0)


@dataclass(frozen=True)
class Catalog:
    """All rows, in order of preference: where several metrics carry one signal, the first that is there serves."""

    rows: tuple[Meaning, ...]
    boards: tuple[tuple[str, Board], ...] = ()
    """Patterns of models, and the values of their data sheets."""
    own_labels: tuple[tuple[str, str], ...] = ()
    """The user's own label names, each with the name that it is read as."""

    def board(self, model: str) -> Board:
        """Values of the model's data sheet."""
        known = self._known_boards
        if model not in known:
            known[model] = next((board for pattern, board in self.boards if fnmatchcase(model, pattern)), UNKNOWN_BOARD)
        return known[model]

    @cached_property
    def _known_boards(self) -> dict[str, Board]:
        return {}

    def spelled(self, labels: Labels) -> Labels:
        """Labels under the names that are read, where the user has own ones."""
        own = {name: labels[mine] for mine, name in self.own_labels if labels.get(mine)}
        return {**labels, **own} if own else labels

    @cached_property
    def metrics(self) -> Mapping[str, tuple[Meaning, ...]]:
        """Rows by metric: more than one where labels decide, or growths are divided."""
        found: dict[str, list[Meaning]] = defaultdict(list)
        for row in self.rows:
            found[row.metric].append(row)
        return {metric: tuple(rows) for metric, rows in found.items()}

    @cached_property
    def rank(self) -> Mapping[tuple[str, str], int]:
        """Place in the order of preference, by metric and labels."""
        return {(row.metric, row.labels): number for number, row in enumerate(self.rows)}

    @cached_property
    def divisors(self) -> Mapping[str, Meaning]:
        """Counters by whose growth another one's is divided, by metric; their signal is the metric's name."""
        return {
            row.per: replace(row, metric=row.per, labels="", signal=row.per, factor=1.0, per="")
            for row in self.rows
            if row.per not in ("", PER_SECOND)
        }

    @cached_property
    def requested(self) -> tuple[str, ...]:
        """Names of all metrics to request, divisors among them."""
        return tuple(dict.fromkeys([*self.metrics, *self.divisors]))

    def read_as(self, metric: str) -> tuple[Meaning, ...]:
        """Every row of a metric; more than one where labels decide."""
        return self.metrics.get(metric) or ((self.divisors[metric],) if metric in self.divisors else ())

    def meaning(self, labels: Labels) -> Meaning | None:
        """Reading of a series; None for a metric or labels that are not in the catalog, and for gpureport's own metrics."""
        labels = self.spelled(labels)
        if labels.get(PUBLISHER_LABEL) == PUBLISHER:
            return None
        for row in self.read_as(labels.get(METRIC_LABEL, "")):
            if not row.labels or row.matches(labels):
                return row
        return None

    def candidates(self, signal: str) -> tuple[Meaning, ...]:
        """The rows that can carry a signal, preferred first."""
        return tuple(row for row in self.rows if row.signal == signal and not row.is_respelled)

    def unread(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Of counts by metric those that are of accelerators, by their names, and not in the catalog."""
        known = {*self.metrics, *self.divisors}
        return {
            metric: count
            for metric, count in sorted(counts.items())
            if metric not in known and not metric.startswith(_OF_SCHEDULING) and re.fullmatch(ACCELERATOR_METRICS, metric)
        }

    @cached_property
    def version(self) -> str:
        """Twelve hex digits that change when any row does."""
        return hashlib.sha256(repr((self.rows, self.boards, self.own_labels)).encode()).hexdigest()[:12]


def load_catalog(
    own_rows: Iterable[Mapping[str, str]] = (),
    own_labels: Mapping[str, str] | None = None,
    path: Path = QUERIES / "catalog" / "signal.csv",
) -> Catalog:
    """The bundled catalog with the user's own rows before it; a user's row replaces bundled ones of its metric and labels."""
    with path.open(newline="", encoding="utf-8") as file:
        bundled = [meaning for row in csv.DictReader(file) for meaning in _spellings(_meaning(row, path.name))]
    labels = tuple(sorted((own_labels or {}).items()))
    own = [_meaning({"factor": "1", "source": "configuration", **row}, "signals") for row in own_rows]
    replaced = {(row.metric, row.labels) for row in own}
    return Catalog((*own, *(row for row in bundled if (row.metric, row.labels) not in replaced)), _boards(), labels)


def _spellings(meaning: Meaning) -> Iterator[Meaning]:
    """The row, also as OpenMetrics names what DCGM declares a counter, and as OpenTelemetry does without suffixes of units."""
    yield meaning
    if meaning.kind in ("counter", "rate") and meaning.metric.startswith("DCGM"):
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
    """A figure's formula over facts and the device signals (names of ``tables.SIGNALS``) that it needs."""

    formula: str
    signals: tuple[str, ...]
    absent: str
    """Condition of null, where that is not simply 'no sample of its signals'."""
    ways: tuple[tuple[str, ...], ...]
    """Sets of its signals of which one is enough, the most direct first."""

    def missing(self, present: Set[str]) -> tuple[str, ...]:
        """The signals to add so that it becomes known: of the way that lacks the fewest; () where it is known."""
        return min((tuple(signal for signal in way if signal not in present) for way in self.ways), key=len)


def _figure(row: dict[str, str]) -> Figure:
    signals = tuple(row["signals"].split())
    ways = tuple(tuple(way.split()) for way in row["ways"].split("|")) if row["ways"] else (signals,)
    return Figure(row["formula"], signals, row["absent"], ways)


GROUPS = {
    title: {row["figure"]: _figure(row) for row in rows}
    for title, rows in groupby(catalog_rows("figure.csv"), lambda row: row["group"])
}
"""The figures by what they are about, under the headings of ``docs/figures.md``."""
FIGURES = {name: figure for group in GROUPS.values() for name, figure in group.items()}
"""Every figure of the report tables, in the order of the tables; seconds behind a ratio are named after it."""
REASONS = {row["reason"]: row["meaning"] for row in catalog_rows("reason.csv")}
"""The codes in ``unknown_reasons`` and in ``report.coverage``, each with a sentence for people."""
