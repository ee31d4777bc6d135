"""Whether a lake and a report are whole: the old ones, the new ones, and nothing between."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
from kube.lake import query
from lake_rows import seen

from gpureport.lake import open_lake
from gpureport.report import NOTICE
from gpureport.store import ObjectAddress, Place

_TONIGHT = date(2026, 11, 21)
_OBSERVED = """
select 'node', observed_at, count(*) from lake.node group by all
union all select 'pod', observed_at, count(*) from lake.pod group by all
"""


def lake_files(folder: Path, lake: Place | None = None) -> dict[str, bytes]:
    """What a reader of the lake finds, which is beside the report if nothing is said."""
    return seen(lake or folder / "lake")


def report_files(folder: Path) -> dict[str, bytes]:
    """What a reader of the report finds, but its database, whose bytes are DuckDB's."""
    files = {path.relative_to(folder / "out"): path for path in sorted((folder / "out").rglob("*")) if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in files.items()
        if name.suffix != ".duckdb" and not name.parts[0].startswith(".")
    }


def _days_of(files: dict[str, bytes], *tables: str) -> dict[str, bytes]:
    """The day's own files of some tables, without observations."""
    return {
        name: data
        for name, data in files.items()
        if name.startswith(tables) and "/2026-11-20/" in name and "-" not in name.rpartition("/")[2]
    }


def assert_nothing_is_half_there(folder: Path, nights: Path, is_reported_anew: bool = False, lake: Place | None = None) -> None:
    """Samples are the old or the new ones, so are facts; observations are all there; every file of the report is whole.

    One that was made anew, of old samples and tonight's observations, is like neither. A kill in a move leaves a notice.
    """
    files = lake_files(folder, lake)
    before, after = (lake_files(each) for each in (nights / "before", nights / "after"))
    for tables in (("device_sample", "sample", "series", "owner_label"), ("facts/",)):
        assert _days_of(files, *tables) in (_days_of(before, *tables), _days_of(after, *tables))
    found = set(query(lake or folder / "lake", _OBSERVED))
    assert found >= set(query(nights / "before" / "lake", _OBSERVED))
    assert found <= set(query(nights / "after" / "lake", _OBSERVED))
    old, new = (report_files(nights / each) for each in ("before", "after"))
    for name, data in report_files(folder).items():
        assert is_reported_anew or name == NOTICE or data in (old.get(name), new.get(name)), name
    with duckdb.connect(str(folder / "out" / "gpureport.duckdb"), read_only=True) as con:
        assert con.execute("select count(*) from report.device").fetchone() == (2,)


def assert_as_never_disturbed(folder: Path, nights: Path, lake: Place | None = None) -> None:
    """All is as after a night in which nothing went wrong, and no debris lies about."""
    if isinstance(lake, ObjectAddress):
        open_lake(lake).pack_observations(_TONIGHT)  # in a bucket two snapshots of a day wait for a third
    assert lake_files(folder, lake) == lake_files(nights / "after")
    assert report_files(folder) == report_files(nights / "after")
    assert {path.name for path in folder.glob("*/.*")} <= {".lock", ".run.lock", ".made-of"}
