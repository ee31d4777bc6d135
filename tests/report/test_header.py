"""What the report says of its own coverage."""

from __future__ import annotations

from dataclasses import replace

from gpureport.values.window import Window, parse_instant

from .conftest import a_header

QUARTER = Window(parse_instant("2026-11-20T00:30:00Z"), parse_instant("2026-11-20T00:45:00Z"))


def test_coverage_is_seen_over_expected_and_the_rest_is_unknown() -> None:
    header = a_header()
    assert header.coverage_ratio == 0.9  # 3240 of 3600 s
    assert round(header.unknown_ratio or 0, 12) == 0.1


def test_a_window_that_cuts_an_hour_is_never_covered_more_than_wholly() -> None:
    header = replace(a_header(), window=QUARTER, expected_seconds=900.0)
    assert (header.coverage_ratio, header.unknown_ratio, header.is_whole_hours) == (1.0, 0.0, False)


def test_more_seen_than_whole_hours_hold_is_shown_as_it_is() -> None:
    assert replace(a_header(), observed_seconds=7200.0).coverage_ratio == 2.0


def test_coverage_without_a_device_is_unknown() -> None:
    header = replace(a_header(), device_count=0, expected_seconds=0.0, observed_seconds=0.0)
    assert (header.coverage_ratio, header.unknown_ratio) == (None, None)


def test_the_generated_json_has_no_clock() -> None:
    assert "generated_at" not in a_header().as_dict()
