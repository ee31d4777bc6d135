"""What the report says of its own coverage."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from gpureport.report.header import Absent, read_header
from gpureport.values.window import Window, parse_instant

from .conftest import COVERAGE, NOW, a_header, fill, small_queries

QUARTER = Window(parse_instant("2026-11-20T00:30:00Z"), parse_instant("2026-11-20T00:45:00Z"))


def test_coverage_is_seen_over_expected_and_the_rest_is_unknown() -> None:
    header = a_header()
    assert header.coverage_ratio == 0.9  # 3240 of 3600 s
    assert round(header.unknown_ratio or 0, 12) == 0.1


def test_a_window_that_cuts_an_hour_is_never_covered_more_than_wholly() -> None:
    header = replace(a_header(), window=QUARTER, expected_seconds=900.0)
    assert (header.coverage_ratio, header.unknown_ratio, header.window.is_whole_hours) == (1.0, 0.0, False)


def test_more_seen_than_whole_hours_hold_is_shown_as_it_is() -> None:
    assert replace(a_header(), observed_seconds=7200.0).coverage_ratio == 2.0


def test_coverage_without_a_device_is_unknown() -> None:
    header = replace(a_header(), device_count=0, expected_seconds=0.0, observed_seconds=0.0)
    assert (header.coverage_ratio, header.unknown_ratio) == (None, None)


def test_the_generated_json_has_no_clock() -> None:
    assert "generated_at" not in a_header().as_dict()


def test_a_signal_lacks_for_the_reason_of_most_device_time_and_a_lake_without_gpus_keeps_its_cluster() -> None:
    """Two nodes of one cluster do not collect the signal, 2 h; the other cluster's node was silent for 1.5 h."""
    nodes = (("a", "n1", "not_collected", 3600.0), ("a", "n2", "not_collected", 3600.0), ("b", "n1", "not_exported", 5400.0))
    with duckdb.connect() as con:
        con.execute("""
            create schema report; create schema lake;
            create table report.device (cluster varchar, device_uuid varchar, gpu_instance_id varchar);
            create table report.api_agreement (
                cluster varchar, compared varchar, snapshot_count bigint, differing_snapshot_count bigint
            );
            create table lake.source (
                cluster varchar, date date, server varchar, read_path varchar, kind varchar, series_count bigint,
                sample_count bigint, warnings varchar[], catalog_version varchar
            );
            insert into lake.source (cluster, kind) values ('lab', 'kubernetes');
        """)
        names = ("cluster", "node_name", "reason", "unknown_device_seconds")
        fill(con, small_queries()["report.coverage"], [{**COVERAGE, **dict(zip(names, node, strict=True))} for node in nodes])
        header = read_header(con, QUARTER, NOW, "", (), {})
        assert (header.clusters, header.absent) == (("a", "b"), (Absent("not_collected", ("dram_active_ratio",)),))
        con.execute("delete from report.coverage")
        header = read_header(con, QUARTER, NOW, "", (), {})
        assert (header.clusters, header.lacks) == (("lab",), ("lab: the lake has no telemetry of the period.",))
        # GPU m has series of its instances alone.
        con.execute("insert into report.device values ('a', 'm', '1'), ('a', 'm', '2'), ('a', 'w', ''), ('a', 'w', '1')")
        assert read_header(con, QUARTER, NOW, "", (), {}).device_count == 2
