"""The three sentences and the tile "Effective": a lower bound says that it is one, what nobody measured is not zero."""

from __future__ import annotations

from dataclasses import replace

from gpureport.report.answer import answer
from gpureport.report.header import Unseen
from gpureport.report.ledger import BUCKETS, Balance
from gpureport.report.tiles import effective, tiles
from gpureport.window import Window, parse_instant

from .conftest import a_header


def of_100_gpu_hours(**gpu_hours: float) -> Balance:
    return Balance("", 4, 100.0, 0.0, {bucket.name: gpu_hours.get(bucket.name, 0.0) for bucket in BUCKETS})


def sentences(whole: Balance) -> tuple[str, ...]:
    return answer(whole, {}, a_header())


def test_where_all_is_known_the_sentences_say_what_is() -> None:
    used, wasted, _ = sentences(of_100_gpu_hours(effective=40, allocated_ineffective=10, allocated_idle=20, free=30))
    assert used == "70.0 % of 100 GPU-h were allocated, 40.0 % effective: 40 GPU-h with half of the SMs or more at work."
    assert wasted == "20 GPU-h were held without being used; 30 GPU-h were free."


def test_busy_hours_without_sm_activity_are_not_called_ineffective() -> None:
    whole = of_100_gpu_hours(allocated_busy=60, allocated_idle=20, free=20)
    assert sentences(whole)[0] == (
        "80.0 % of 100 GPU-h were allocated, 60 GPU-h of them busy; how effectively is unknown, for SM activity is not measured."
    )
    assert effective(whole) == "—"
    (tile,) = (each for each in tiles({}, a_header(), whole, ()) if each.title == "Effective")
    assert (tile.value, tile.detail) == ("—", "of 60 GPU-h busy, SM activity is not known")


def test_where_sm_activity_of_some_busy_hours_is_unknown_the_share_is_a_lower_bound() -> None:
    whole = of_100_gpu_hours(effective=30, allocated_busy=25, allocated_idle=5, free=40)
    assert sentences(whole)[0] == (
        "60.0 % of 100 GPU-h were allocated, at least 30.0 % effective: 30 GPU-h with half of the SMs or more at work "
        "(of 25 GPU-h more that were busy, SM activity is not known)."
    )
    assert effective(whole) == "≥ 30.0 %"


def test_unknown_hours_make_every_share_a_lower_bound() -> None:
    whole = of_100_gpu_hours(effective=30, allocated_idle=5, free=40, unknown=25)
    used, wasted, _ = sentences(whole)
    assert used.startswith("At least 35.0 % of 100 GPU-h were allocated, at least 30.0 % effective")
    assert wasted == "At least 5 GPU-h were held without being used; at least 40 GPU-h were free."
    told = ledger_tiles(whole)
    assert told["Allocated"] == ("≥ 35.0 %", "35 GPU-h; 25 GPU-h are unknown")
    assert (told["Effective"][0], told["Held idle"][0], told["Free"][0]) == ("≥ 30.0 %", "≥ 5.0 %", "≥ 40.0 %")
    assert told["Unknown"] == ("25.0 %", "25 GPU-h")


def ledger_tiles(whole: Balance) -> dict[str, tuple[str, str]]:
    return {tile.title: (tile.value, tile.detail) for tile in tiles({}, a_header(), whole, ())}


def test_where_everything_is_unknown_nothing_is_said_to_be_zero() -> None:
    whole = of_100_gpu_hours(unknown=100)
    used, wasted, _ = sentences(whole)
    assert used == "None of 100 GPU-h is known to have been allocated."
    assert wasted == "None are known to have been held without being used; none are known to have been free."
    told = ledger_tiles(whole)
    assert {told[title][0] for title in ("Allocated", "Effective", "Held idle", "Free")} == {"—"}
    assert told["Free"][1] == "none known; 100 GPU-h are unknown"


def test_what_is_not_known_to_be_at_all_is_at_most_what_is_unknown() -> None:
    told = ledger_tiles(of_100_gpu_hours(free=60, unknown=40))
    assert {told[title][0] for title in ("Allocated", "Effective", "Held idle")} == {"≤ 40.0 %"}
    assert told["Free"][0] == "≥ 60.0 %"


def test_a_trace_beside_unknown_hours_is_more_than_zero() -> None:
    whole = of_100_gpu_hours(effective=0.01, free=79.99, unknown=20)
    assert sentences(whole)[0] == (
        "More than 0 % of 100 GPU-h were allocated, more than 0 % effective: 0.01 GPU-h with half of the SMs or more at work."
    )
    assert ledger_tiles(whole)["Allocated"][0] == "> 0 %"


def test_where_nothing_was_allocated_and_all_is_known_that_is_said() -> None:
    assert sentences(of_100_gpu_hours(free=100))[0] == "None of 100 GPU-h was allocated."


def test_hours_that_are_unknown_have_the_reason_of_holders_that_nobody_names() -> None:
    """All of it was seen; that nobody was named is why it is unknown."""
    header = replace(a_header(), unaccounted=(Unseen("no_pod_labels", 360_000.0, 1),))
    doubt = answer(of_100_gpu_hours(unknown=100), {}, header)[2]
    assert doubt.endswith(
        "what became of 100 GPU-h is unknown (mostly: the device was busy, or pods asked for one, and its series name nobody)."
    )


def test_a_lower_bound_of_nothing_is_said_in_words() -> None:
    used = sentences(of_100_gpu_hours(allocated_ineffective=5, allocated_idle=5, free=40, unknown=50))[0]
    assert used == (
        "At least 10.0 % of 100 GPU-h were allocated, none of it known to be effective, with half of the SMs or more at work."
    )


def test_where_nothing_was_active_effective_is_zero_and_known() -> None:
    assert effective(of_100_gpu_hours(allocated_idle=50, free=50)) == "0 %"


def test_almost_all_is_said_in_words() -> None:
    header = replace(a_header(), observed_seconds=99_999.0, expected_seconds=100_000.0)
    assert answer(of_100_gpu_hours(free=100), {}, header)[2].startswith("More than 99.9 % of the expected device time was seen")


def test_days_that_the_lake_lacks_are_said() -> None:
    """A year with one day of samples is not told as a year."""
    year = Window(parse_instant("2026-01-01T00:00:00Z"), parse_instant("2027-01-01T00:00:00Z"))
    one = replace(a_header(), window=year)
    assert answer(of_100_gpu_hours(free=100), {}, one)[2].startswith(
        "The lake holds 1 of the window's 365 days: a day without any trace of a GPU is in no figure. 90.0 % of the expected"
    )
    source = one.sources[0]
    two = replace(one, clusters=("eu", "lab"), sources=(source, replace(source, day="2026-11-21")))
    assert (
        "The lake holds 0 of the window's 365 days of eu, nor all of 1 other cluster: " in answer(of_100_gpu_hours(), {}, two)[2]
    )
