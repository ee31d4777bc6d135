"""The lake's ``source`` table: what was asked of whom, what came, what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpureport import __version__
from gpureport.catalog import Catalog
from gpureport.shape import Tally
from gpureport.tables import SOURCE
from gpureport.window import Window

_DROPPED = ("duplicate", "copy", "blank", "nan", "infinite", "out_of_range", "not_applicable", "nameless")


@dataclass(frozen=True)
class Origin:
    """Where samples came from: ``kind`` is prometheus, file or simulation."""

    kind: str
    server: str
    read_path: str
    warnings: Sequence[str] = ()


def add_tallies(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """The tallies of several groups of series as one."""
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
    """One row per metric of the catalogue, also for those of which nothing came."""
    rows = [_row(metric, tallies.get(metric, Tally()), catalog, origin, window) for metric in catalog.asked]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["asked"])), SOURCE.schema)


def _row(metric: str, tally: Tally, catalog: Catalog, origin: Origin, window: Window) -> dict[str, object]:
    return {
        "kind": origin.kind,
        "asked": metric,
        "signal": ", ".join(dict.fromkeys(row.signal for row in catalog.read_as(metric))),
        "server": origin.server,
        "read_path": origin.read_path,
        "start_at": np.datetime64(window.start_ms, "ms"),
        "end_at": np.datetime64(window.end_ms, "ms"),
        "series_count": tally.series_count,
        "sample_count": tally.sample_count,
        **{f"{reason}_count": tally.dropped[reason] for reason in _DROPPED},
        "joined_ratio": tally.joined_count / tally.row_count if tally.row_count else None,
        "warnings": list(origin.warnings),
        "reason": _reason(tally),
        "catalog_version": catalog.version,
        "gpureport_version": __version__,
    }


def _reason(tally: Tally) -> str:
    if tally.series_count:
        return ""
    return "no series carries a UUID label" if tally.dropped["nameless"] else "no series of this name in the window"
