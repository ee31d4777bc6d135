"""What a metric's name means: signal, factor to SI, kind and scope, from ``queries/catalog/signal.csv``.

The declared Prometheus TYPE is not consulted: violation "counters" are nanoseconds, PCIe and NVLink "counters" are
rates (DCGM field reference; dcgm-exporter 87, 589).
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from gpureport.errors import UsageError
from gpureport.resources import QUERIES
from gpureport.tables import SIGNAL_BY_NAME

Kind = Literal["gauge", "counter", "bitmask", "code", "rate"]
Scope = Literal["board", "instance", "pod", "cluster"]
COLUMNS = ("metric", "signal", "factor", "kind", "scope", "vendor", "exporter", "versions", "needs")


@dataclass(frozen=True)
class Meaning:
    """One catalogue row: how a metric is read."""

    metric: str
    signal: str
    factor: float
    kind: Kind
    scope: Scope
    vendor: str
    exporter: str
    versions: str
    needs: str

    @property
    def is_device(self) -> bool:
        """Whether it describes a device (a column of device_sample) and not a pod or the cluster."""
        return self.scope in ("board", "instance")

    @property
    def allows_infinite(self) -> bool:
        """Whether an infinite value means something (a quota without a limit)."""
        return "infinite" in self.needs


@dataclass(frozen=True)
class Catalog:
    """All rows, in order of preference: where several metrics carry one signal, the first that is there serves."""

    rows: tuple[Meaning, ...]

    @cached_property
    def by_metric(self) -> Mapping[str, Meaning]:
        """Meaning by metric name."""
        return {row.metric: row for row in self.rows}

    @cached_property
    def version(self) -> str:
        """Twelve hex digits that change when any row does."""
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()[:12]


def load_catalog(own_rows: Iterable[Mapping[str, str]] = (), path: Path = QUERIES / "catalog" / "signal.csv") -> Catalog:
    """The bundled catalogue with the user's own rows before it; a user's row replaces a bundled one of its metric."""
    with path.open(newline="") as file:
        bundled = [_meaning(row, path.name) for row in csv.DictReader(file)]
    own = [_meaning({"factor": "1", **row}, "signals") for row in own_rows]
    replaced = {row.metric for row in own}
    return Catalog((*own, *(row for row in bundled if row.metric not in replaced)))


def _meaning(row: Mapping[str, str], where: str) -> Meaning:
    unknown = set(row) - set(COLUMNS)
    if unknown or not row.get("metric"):
        raise UsageError(f"{where}: a signal row needs {', '.join(COLUMNS[:5])}; unknown: {', '.join(sorted(unknown)) or 'none'}")
    text = {column: str(row.get(column, "") or "") for column in COLUMNS}
    _check(text, where)
    return Meaning(**{**text, "factor": float(text["factor"])})  # type: ignore[arg-type]


def _check(text: Mapping[str, str], where: str) -> None:
    metric = text["metric"]
    if text["kind"] not in get_args(Kind) or text["scope"] not in get_args(Scope):
        raise UsageError(f"{where}: {metric}: kind must be one of {get_args(Kind)} and scope one of {get_args(Scope)}")
    if text["scope"] in ("board", "instance") and text["signal"] not in SIGNAL_BY_NAME:
        raise UsageError(f"{where}: {metric}: {text['signal']!r} is no device signal; see docs/schema.md, device_sample")
    try:
        float(text["factor"])
    except ValueError:
        raise UsageError(f"{where}: {metric}: factor {text['factor']!r} is not a number") from None
