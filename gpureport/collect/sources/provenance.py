"""The lake's ``source`` table: the requests to each server, the results, and the dropped values with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from gpureport import __version__
from gpureport.collect.shape import Tally
from gpureport.values.catalog import Catalog
from gpureport.values.tables import SOURCE
from gpureport.values.window import Window, to_ms

_DROPPED = ("duplicate", "copy", "blank", "nan", "infinite", "out_of_range", "not_applicable", "nameless")


@dataclass(frozen=True)
class Origin:
    """Source of samples. ``kind`` is prometheus, file or simulation."""

    kind: str
    server: str
    read_path: str
    warnings: Sequence[str] = ()


def add_tallies(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """Add up the tallies of several groups of series."""
    total: dict[str, Tally] = {}
    for part in parts:
        for metric, tally in part.items():
            found = total.setdefault(metric, Tally())
            found.series_count += tally.series_count
            found.sample_count += tally.sample_count
            found.dropped.update(tally.dropped)
            found.joined_count += tally.joined_count
            found.row_count += tally.row_count
            found.unit.merge(tally.unit)
    return total


def source_table(tallies: Mapping[str, Tally], catalog: Catalog, origin: Origin, window: Window) -> pa.Table:
    """Return one row per metric of the catalog, also without any sample."""
    rows = []
    for metric in catalog.requested:
        tally, signals = tallies.get(metric, Tally()), dict.fromkeys(row.signal for row in catalog.read_as(metric))
        rows.append(_row(metric, tally, origin, _reason(tally), ", ".join(signals), catalog.version))
    return _table(rows, window.start_ms, window.end_ms)


def _table(rows: Iterable[dict[str, object]], start_ms: int, end_ms: int) -> pa.Table:
    within = {"start_at": np.datetime64(start_ms, "ms"), "end_at": np.datetime64(end_ms, "ms")}
    return pa.Table.from_pylist([row | within for row in sorted(rows, key=lambda row: str(row["asked"]))], SOURCE.schema)


def _row(asked: str, tally: Tally, origin: Origin, reason: str, signal: str = "", catalog_version: str = "") -> dict[str, object]:
    return {
        "kind": origin.kind,
        "asked": asked,
        "signal": signal,
        "server": origin.server,
        "read_path": origin.read_path,
        "series_count": tally.series_count,
        "sample_count": tally.sample_count,
        **{f"{name}_count": tally.dropped[name] for name in _DROPPED},
        "joined_ratio": tally.joined_count / tally.row_count if tally.row_count else None,
        "warnings": list(origin.warnings),
        "reason": reason,
        "catalog_version": catalog_version,
        "gpureport_version": __version__,
    }


def _reason(tally: Tally) -> str:
    if tally.series_count:
        return ""
    return "no series carries a UUID label" if tally.dropped["nameless"] else "no series of this name in the window"


@dataclass(frozen=True)
class Listed:
    """Request for a kind of Kubernetes object, by its kubectl name, and the result."""

    name: str
    server: str
    api_version: str = ""
    object_count: int = 0
    warnings: tuple[str, ...] = ()
    reason: str = ""


def listed_table(listed: Iterable[Listed], observed_at: datetime) -> pa.Table:
    """Return one row per requested kind, also without any object."""
    origins = ((each, Origin("kubernetes", each.server, each.api_version, each.warnings)) for each in listed)
    rows = [_row(each.name, Tally(each.object_count), origin, each.reason) for each, origin in origins]
    return _table(rows, to_ms(observed_at), to_ms(observed_at))
