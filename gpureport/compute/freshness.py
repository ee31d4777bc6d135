"""Whether the facts of a day are those of the samples that the lake holds: a run may have been killed between the two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date

from gpureport.compute.identity import MadeWith
from gpureport.compute.lake_days import TELEMETRY
from gpureport.lake import Lake
from gpureport.values.tables import DEVICE_SAMPLE, SOURCE

_BASIS = "samples_hash"
_TABLES = (DEVICE_SAMPLE.name, SOURCE.name, *TELEMETRY)


def basis_entry(lake: Lake, cluster: str, day: date) -> dict[str, str]:
    """Entry about the samples behind a day's facts: parts, sizes and rows of the files."""
    described = "\n".join(sorted(_files(lake, cluster, day)))
    return {_BASIS: hashlib.sha256(described.encode()).hexdigest()[:12]}


def are_current(lake: Lake, cluster: str, day: date, made: MadeWith) -> bool:
    """Whether the lake holds facts of the day, made from the samples that it holds, of these revisions and with these settings.

    Facts whose samples were removed for their age are what there is.
    """
    note = lake.note(cluster, day)
    if not note or not any(lake.partition(table, cluster, day) for table in (DEVICE_SAMPLE.name, *TELEMETRY)):
        return bool(note)
    wanted = {**made.entries, **basis_entry(lake, cluster, day)}
    return all(note.get(name) == value for name, value in wanted.items())


def _files(lake: Lake, cluster: str, day: date) -> Iterator[str]:
    for table in _TABLES:
        found = lake.partition(table, cluster, day)
        for file in found.stored if found else ():
            if not file.is_observed:  # the names of the first lakes, so that their facts stay current
                yield f"{table}/part-{file.number:04d}.parquet {file.byte_count} {file.row_count}"
