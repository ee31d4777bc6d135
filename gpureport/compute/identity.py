"""Identity of facts: revisions, the settings that change values, and the samples that facts are made from.

Facts of another version with the same revisions are the same facts. Old versions recorded no revisions and no settings: their
tables have the first revision, their settings are unknown. After a run that was killed between export and compute, the lake
has facts of other samples. Late data changes a day that was already reported: the totals of its first facts are kept too.
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
from gpureport.lake.commit import BASIS
from gpureport.lake.views import create_view, rows_of
from gpureport.values.tables import DEVICE_SAMPLE, SOURCE, STATE_TABLES
from gpureport.values.window import Window

_TABLES = (DEVICE_SAMPLE.name, SOURCE.name, *TELEMETRY)


def basis_entry(lake: Lake, cluster: str, day: date) -> dict[str, str]:
    """Entry that identifies the samples behind a day's facts."""
    return {BASIS: hashlib.sha256("\n".join(_basis(lake, cluster, day)).encode()).hexdigest()[:12]}


def are_current(lake: Lake, cluster: str, day: date, made: MadeWith) -> bool:
    """Whether the lake has facts of the day, made from the samples that it has now, with these revisions and settings.

    Facts are current too where retention has removed their samples.
    """
    note = lake.note(cluster, day)
    if not note or not _basis(lake, cluster, day):
        return bool(note)
    wanted = {**made.entries, **basis_entry(lake, cluster, day)}
    return all(note.get(name) == value for name, value in wanted.items())


def outdated_days(lake: Lake) -> dict[str, list[date]]:
    """By cluster, the days whose facts are made from other samples than the lake has, or follow a day with such facts."""
    found: dict[str, list[date]] = {}
    for cluster, day in ((each.cluster, each.date) for each in lake.computed_days()):
        if _basis(lake, cluster, day) and lake.note(cluster, day).get(BASIS) != basis_entry(lake, cluster, day)[BASIS]:
            found.setdefault(cluster, []).append(day)
    return found


def outdated_entries(lake: Lake, notes: Mapping[ClusterDay, Mapping[str, str]]) -> dict[ClusterDay, dict[str, str]]:
    """By day, the entry that marks facts as outdated: the next day with facts after a day that has new samples."""
    others = [each for day in lake.computed_days() if (each := (day.cluster, day.date)) not in notes]
    changed = [each for each, note in notes.items() if note[BASIS] != lake.note(*each).get(BASIS)]
    following = (next((each for each in others if each[0] == cluster and each[1] > day), None) for cluster, day in changed)
    return {each: {BASIS: ""} for each in following if each}


def _basis(lake: Lake, cluster: str, day: date) -> list[str]:
    """A day's files of samples; row counts of its snapshots if it never had samples; empty once its samples are removed."""
    held = ((table, lake.partition(table, cluster, day)) for table in _TABLES)
    parts = [(table, file) for table, found in held if found for file in found.stored if not file.is_observed]
    if not parts:
        return [f"{each.name} {found.row_count}" for each in STATE_TABLES if (found := lake.partition(each.name, cluster, day))]
    if all(table == SOURCE.name for table, _ in parts):
        return []
    # file names as in the first lakes, so that their facts stay current
    return sorted(f"{table}/part-{file.number:04d}.parquet {file.byte_count} {file.row_count}" for table, file in parts)


_REVISIONS, _SETTINGS = "revisions", "settings"


@dataclass(frozen=True)
class MadeWith:
    """Revisions above the first by table, and settings by name, both as JSON; '' for settings that were not recorded."""

    revisions: str
    settings: str

    @property
    def entries(self) -> dict[str, str]:
        """Revisions and settings as entries of a day's note in the lake."""
        return {_REVISIONS: self.revisions, _SETTINGS: self.settings}

    def has_other_settings(self, other: MadeWith) -> bool:
        """Whether settings differ; False where either side is unknown."""
        return bool(self.settings and other.settings) and self.settings != other.settings

    def revised(self, other: MadeWith) -> list[str]:
        """The tables whose revision differs in the other one."""
        own, theirs = json.loads(self.revisions), json.loads(other.revisions)
        return sorted(table for table in {*own, *theirs} if own.get(table, 1) != theirs.get(table, 1))

    def differences(self, other: MadeWith) -> str:
        """The settings whose values differ, and both values."""
        own, theirs = json.loads(self.settings), json.loads(other.settings)
        names = sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name))
        return ", ".join(f"{name} {json.dumps(own.get(name))} instead of {json.dumps(theirs.get(name))}" for name in names)


def made_with(queries: Mapping[str, Query], settings: Mapping[str, Any]) -> MadeWith:
    """Identity of facts that are made by these queries and settings."""
    revisions = {table: queries[table].revision for table in of_life(queries, "facts") if queries[table].revision > 1}
    return MadeWith(json.dumps(revisions, sort_keys=True), json.dumps(settings, sort_keys=True))


def recorded(note: Mapping[str, str]) -> MadeWith:
    """Identity that is recorded in the note of a day."""
    return MadeWith(note.get(_REVISIONS, "{}"), note.get(_SETTINGS, ""))


_TABLE = "facts/ledger_hour"
_ROWS, _FIRST = "sample_rows", "stated_before"


def note_entries(lake: Lake, samples: Partition) -> dict[str, str]:
    """Entries about a day's facts: their samples, and the totals of its first facts if these had fewer or more samples."""
    rows = str(samples.row_count)
    entries = {_ROWS: rows, **basis_entry(lake, samples.cluster, samples.date)}
    if before := lake.partition(_TABLE, samples.cluster, samples.date):
        note = lake.note(samples.cluster, samples.date)
        first = note.get(_FIRST, "")
        if note.get(_ROWS, rows) != rows and not first:
            with suppress(DamagedError):  # the totals of its first facts are lost
                first = json.dumps(_totals(before))
        if first:
            entries[_FIRST] = first
    return entries


def restated_days(lake: Lake, window: Window) -> str:
    """The window's days that were computed again from other samples, with their first totals: JSON for the queries."""
    days = set(window.days())
    held = [each for each in lake.partitions(_TABLE) if each.date in days]
    first = [(each, lake.note(each.cluster, each.date).get(_FIRST)) for each in held]
    entries = [{"cluster": each.cluster, "day": str(each.date), **json.loads(text)} for each, text in first if text]
    return json.dumps(entries, sort_keys=True)


def _totals(partition: Partition) -> dict[str, float]:
    """GPU-hours with data, and allocated GPU-hours among them, of the stored facts."""
    with duckdb.connect() as con:
        create_view(con, "ledger_hour", rows_of([partition]), {})
        found = con.execute(
            """
            select
                coalesce(sum(gpu_seconds) filter (where activity != 'unseen'), 0) / 3600,
                coalesce(sum(gpu_seconds) filter (where activity != 'unseen' and pod != '' and not is_reserved), 0) / 3600
            from ledger_hour
            """
        ).fetchall()
    return {"previous_seen_gpu_hours": found[0][0], "previous_allocated_gpu_hours": found[0][1]}
