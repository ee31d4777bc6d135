"""Observations of days that are over become one file a table, and say the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from lake_rows import files, seen

from gpureport.collect.sources.provenance import Origin, source_table
from gpureport.lake import open_lake
from gpureport.lake.root import ROOT
from gpureport.values.catalog import load_catalog
from gpureport.values.errors import LakeError
from gpureport.values.window import Window, to_ms
from kube.lake import RECORDING, everything, import_state, query

TIMES = ("2026-11-21T01:46:21Z", "2026-11-21T01:51:21Z", "2026-11-21T01:56:21Z")
DAY, NEXT = date(2026, 11, 21), date(2026, 11, 22)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three observations of a day, on which samples came too."""
    with open_lake(tmp_path / "lake", create=True).change() as change:
        origin = Origin("prometheus", "Prometheus 3", "remote-read")
        change.write("source", "lab", DAY, source_table({}, load_catalog(), origin, Window.of_day(DAY)))
    for time in TIMES:
        import_state(tmp_path / "lake", RECORDING, "--observed-at", time)
    return tmp_path / "lake"


def pack(lake: Path, before: date = NEXT) -> int:
    return open_lake(lake).pack_observations(before)


def ms(time: str) -> int:
    return to_ms(datetime.fromisoformat(time))


def filled(tables: dict[str, list[dict[str, Any]]]) -> int:
    """How many tables hold something; the others have no files."""
    return sum(bool(rows) for rows in tables.values())


def names(lake: Path, table: str) -> list[str]:
    return sorted(name.rpartition("/")[2] for name in seen(lake) if name.startswith(f"{table}/"))


def test_a_day_that_is_over_is_one_file_a_table_and_every_row_is_there(lake: Path) -> None:
    before = everything(lake)
    assert pack(lake) == 3 * filled(before)
    assert names(lake, "pod") == [f"{ms(TIMES[0])}-{ms(TIMES[2])}"]
    assert names(lake, "source") == ["0000", f"{ms(TIMES[0])}-{ms(TIMES[2])}"]
    after = everything(lake)
    assert after.keys() == before.keys()
    assert all(sorted(map(str, after[name])) == sorted(map(str, before[name])) for name in before)


def test_today_stays_as_it_is(lake: Path) -> None:
    assert pack(lake, before=DAY) == 0
    assert len(names(lake, "pod")) == 3


def test_packing_twice_changes_nothing(lake: Path) -> None:
    pack(lake)
    packed = seen(lake)
    assert pack(lake) == 0
    assert seen(lake) == packed


def test_an_observation_that_comes_late_is_joined_the_next_time(lake: Path) -> None:
    pack(lake)
    import_state(lake, RECORDING, "--observed-at", "2026-11-21T02:01:21Z")
    late = ms("2026-11-21T02:01:21Z")
    assert names(lake, "pod") == [f"{ms(TIMES[0])}-{ms(TIMES[2])}", f"{late}-{late}"]
    assert pack(lake) == 2 * filled(everything(lake))
    assert query(lake, "select count(*), count(distinct observed_at) from lake.pod") == [(4 * 21, 4)]


def test_an_observation_that_was_packed_and_comes_again_is_there_once(lake: Path) -> None:
    before = everything(lake)
    pack(lake)
    import_state(lake, RECORDING, "--observed-at", TIMES[1])
    after = everything(lake)
    assert all(sorted(map(str, after[name])) == sorted(map(str, before[name])) for name in before)
    pack(lake)
    assert query(lake, "select observed_at, count(*) from lake.claim_device group by 1 order by 1") == [
        (datetime.fromisoformat(time).astimezone(UTC).replace(tzinfo=None), 18) for time in TIMES
    ]


def test_an_export_leaves_what_was_packed(lake: Path) -> None:
    pack(lake)
    with open_lake(lake).change() as change:
        change.write("source", "lab", DAY, source_table({}, load_catalog(), Origin("file", "", ""), Window.of_day(DAY)))
    kinds = query(lake, "select kind, count(distinct start_at) from lake.source group by kind order by kind")
    assert kinds == [("file", 1), ("kubernetes", 3)]


def test_a_damaged_part_is_named_and_nothing_is_lost(lake: Path) -> None:
    damaged = files(lake, "pod")[1]
    damaged.write_bytes(b"PAR1")
    before = (lake / ROOT).read_bytes()
    with pytest.raises(LakeError, match=damaged.name):
        pack(lake)
    assert (lake / ROOT).read_bytes() == before


def test_the_nightly_job_packs_what_is_over_even_where_there_is_nothing_to_report(tmp_path: Path, lake: Path) -> None:
    from gpureport.commands.work import nightly
    from gpureport.config import Config, Kubernetes

    config = Config(lake=lake, out=tmp_path / "out", cluster="lab", kubernetes=Kubernetes(enabled=False))
    plan = nightly.NightPlan(config, {}, DAY, datetime(2026, 11, 22, 1, 30, tzinfo=UTC))
    with pytest.raises(LakeError):
        nightly.report_and_clean_up(plan, nightly.Watch(lambda: 0.0))
    assert names(lake, "pod") == [f"{ms(TIMES[0])}-{ms(TIMES[2])}"]


def test_a_night_takes_no_snapshot_right_after_another_one(tmp_path: Path, lake: Path) -> None:
    from gpureport.commands.work import nightly
    from gpureport.config import Config

    def is_seen(cluster: str, time: str) -> bool:
        plan = nightly.NightPlan(Config(lake=lake, cluster=cluster), {}, DAY, datetime.fromisoformat(time))
        return nightly._Cluster(plan, nightly.Watch(lambda: 0.0))._is_seen_lately()

    [cluster] = {each.cluster for each in open_lake(lake).partitions("node")}
    times = ("2026-11-21T01:56:21Z", "2026-11-21T02:01:00Z", "2026-11-21T02:06:21Z")  # of itself, 5 and 10 minutes later
    assert [is_seen(cluster, time) for time in times] == [False, True, False]
    assert not is_seen("other", times[1])
