"""Days whose facts were made again from other samples: what was said of them before, kept beside their facts.

Late data makes a day grow after it was reported. What the first report could say stays beside what can be said now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import duckdb

from gpureport.compute.identity import basis_entry
from gpureport.lake import DamagedError, Lake, Partition
from gpureport.lake.views import create_view, rows_of
from gpureport.values.window import Window

_TABLE = "facts/ledger_hour"
_ROWS, _STATED = "sample_rows", "stated_before"


def note_entries(lake: Lake, samples: Partition) -> dict[str, str]:
    """Entry about a day's facts: the samples that they are made of, and earlier results from fewer or more samples."""
    rows = str(samples.row_count)
    entries = {_ROWS: rows, **basis_entry(lake, samples.cluster, samples.date)}
    if before := lake.partition(_TABLE, samples.cluster, samples.date):
        note = lake.note(samples.cluster, samples.date)
        stated = note.get(_STATED, "")
        if note.get(_ROWS, rows) != rows and not stated:
            with suppress(DamagedError):  # what was said of the day is lost
                stated = json.dumps(_totals(before))
        if stated:
            entries[_STATED] = stated
    return entries


def restated_days(lake: Lake, window: Window) -> str:
    """The days of the window that were made again from other samples, and what was said of them first: JSON for the queries."""
    return json.dumps(list(_restated(lake, window)), sort_keys=True)


def _restated(lake: Lake, window: Window) -> Iterator[dict[str, Any]]:
    days = set(window.days())
    for partition in lake.partitions(_TABLE):
        stated = lake.note(partition.cluster, partition.date).get(_STATED) if partition.date in days else None
        if stated:
            yield {"cluster": partition.cluster, "day": partition.date.isoformat(), **json.loads(stated)}


def _totals(partition: Partition) -> dict[str, float]:
    """GPU-hours that were seen and that were held, by facts as they are."""
    with duckdb.connect() as con:
        con.execute("create schema facts")
        create_view(con, "facts.ledger_hour", rows_of([partition]), {})
        found = con.execute(
            """
            select
                coalesce(sum(gpu_seconds) filter (where activity != 'unseen'), 0) / 3600,
                coalesce(sum(gpu_seconds) filter (where activity != 'unseen' and pod != '' and not is_reserved), 0) / 3600
            from facts.ledger_hour
            """
        ).fetchall()
    return {"previous_seen_gpu_hours": found[0][0], "previous_allocated_gpu_hours": found[0][1]}
