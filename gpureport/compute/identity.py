"""Identity of facts: revisions, the settings that change them by value, and the samples that they are made of.

Facts of another version but of the same revisions are the same facts. An older version recorded neither: its tables are of the
first revision, its settings unknown. A run killed between export and compute leaves facts of other samples than the lake has.

Late data makes a day grow after it was reported: the totals of its first facts are kept beside today's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb

from gpureport.compute.fact_views import TELEMETRY, ClusterDay
from gpureport.compute.query import Query, of_life
from gpureport.lake import DamagedError, Lake, Partition
from gpureport.lake.views import create_view, rows_of
from gpureport.values.tables import DEVICE_SAMPLE, SOURCE, STATE_TABLES
from gpureport.values.window import Window

_BASIS = "samples_hash"
_TABLES = (DEVICE_SAMPLE.name, SOURCE.name, *TELEMETRY)


def basis_entry(lake: Lake, cluster: str, day: date) -> dict[str, str]:
    """Entry about what a day's facts rest on."""
    return {_BASIS: hashlib.sha256("\n".join(_basis(lake, cluster, day)).encode()).hexdigest()[:12]}


def are_current(lake: Lake, cluster: str, day: date, made: MadeWith) -> bool:
    """Whether the lake holds facts of the day, made from the samples that it holds, of these revisions and with these settings.

    Facts whose samples were removed for their age are what there is.
    """
    note = lake.note(cluster, day)
    if not note or not _basis(lake, cluster, day):
        return bool(note)
    wanted = {**made.entries, **basis_entry(lake, cluster, day)}
    return all(note.get(name) == value for name, value in wanted.items())


def outdated_days(lake: Lake) -> dict[str, list[date]]:
    """By cluster the days whose facts are of other samples than the lake holds, or rest on a day before them whose were."""
    found: dict[str, list[date]] = {}
    for cluster, day in ((each.cluster, each.date) for each in lake.computed_days()):
        if _basis(lake, cluster, day) and lake.note(cluster, day).get(_BASIS) != basis_entry(lake, cluster, day)[_BASIS]:
            found.setdefault(cluster, []).append(day)
    return found


def left_behind(lake: Lake, notes: Mapping[ClusterDay, Mapping[str, str]]) -> dict[ClusterDay, dict[str, str]]:
    """The days after those whose facts are of other samples than before, which rest on them: the entry that makes each due."""
    others = [each for day in lake.computed_days() if (each := (day.cluster, day.date)) not in notes]
    changed = [each for each, note in notes.items() if note[_BASIS] != lake.note(*each).get(_BASIS)]
    following = (next((each for each in others if each[0] == cluster and each[1] > day), None) for cluster, day in changed)
    return {each: {_BASIS: ""} for each in following if each}


def _basis(lake: Lake, cluster: str, day: date) -> list[str]:
    """A day's files of samples or, where it never had any, the rows of its snapshots; empty once they are removed."""
    held = ((table, lake.partition(table, cluster, day)) for table in _TABLES)
    parts = [(table, file) for table, found in held if found for file in found.stored if not file.is_observed]
    if not parts:
        return [f"{each.name} {found.row_count}" for each in STATE_TABLES if (found := lake.partition(each.name, cluster, day))]
    if all(table == SOURCE.name for table, _ in parts):
        return []
    # the names of the first lakes, so that their facts stay current
    return sorted(f"{table}/part-{file.number:04d}.parquet {file.byte_count} {file.row_count}" for table, file in parts)


_REVISIONS, _SETTINGS = "revisions", "settings"


@dataclass(frozen=True)
class MadeWith:
    """Revisions above the first by table, and settings by name, both as JSON; '' for settings that nobody recorded."""

    revisions: str
    settings: str

    @property
    def entries(self) -> dict[str, str]:
        """Identity as entries of the lake's root."""
        return {_REVISIONS: self.revisions, _SETTINGS: self.settings}

    def has_other_settings(self, other: MadeWith) -> bool:
        """Whether settings differ, as far as they are known."""
        return bool(self.settings and other.settings) and self.settings != other.settings

    def revised(self, other: MadeWith) -> list[str]:
        """The tables of which the other one has another revision."""
        own, theirs = json.loads(self.revisions), json.loads(other.revisions)
        return sorted(table for table in {*own, *theirs} if own.get(table, 1) != theirs.get(table, 1))

    def differences(self, other: MadeWith) -> str:
        """The settings that the other one has with another value, and both values."""
        own, theirs = json.loads(self.settings), json.loads(other.settings)
        names = sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name))
        return ", ".join(f"{name} {json.dumps(own.get(name))} instead of {json.dumps(theirs.get(name))}" for name in names)


def made_with(queries: Mapping[str, Query], settings: Mapping[str, Any]) -> MadeWith:
    """Identity of facts that are made now."""
    revisions = {table: queries[table].revision for table in of_life(queries, "facts") if queries[table].revision > 1}
    return MadeWith(json.dumps(revisions, sort_keys=True), json.dumps(settings, sort_keys=True))


def recorded(note: Mapping[str, str]) -> MadeWith:
    """Identity recorded with a day's facts."""
    return MadeWith(note.get(_REVISIONS, "{}"), note.get(_SETTINGS, ""))


_TABLE = "facts/ledger_hour"
_ROWS, _FIRST = "sample_rows", "stated_before"


def note_entries(lake: Lake, samples: Partition) -> dict[str, str]:
    """Entry about a day's facts: the samples that they are made of, and previous results from fewer or more samples."""
    rows = str(samples.row_count)
    entries = {_ROWS: rows, **basis_entry(lake, samples.cluster, samples.date)}
    if before := lake.partition(_TABLE, samples.cluster, samples.date):
        note = lake.note(samples.cluster, samples.date)
        first = note.get(_FIRST, "")
        if note.get(_ROWS, rows) != rows and not first:
            with suppress(DamagedError):  # its first totals are lost
                first = json.dumps(_totals(before))
        if first:
            entries[_FIRST] = first
    return entries


def restated_days(lake: Lake, window: Window) -> str:
    """The days of the window that were made again from other samples, and their first totals: JSON for the queries."""
    days = set(window.days())
    held = [each for each in lake.partitions(_TABLE) if each.date in days]
    first = [(each, lake.note(each.cluster, each.date).get(_FIRST)) for each in held]
    entries = [{"cluster": each.cluster, "day": str(each.date), **json.loads(text)} for each, text in first if text]
    return json.dumps(entries, sort_keys=True)


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
