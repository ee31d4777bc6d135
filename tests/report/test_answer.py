"""The three sentences and the tile "Effective": a lower bound says that it is one, what nobody measured is not zero."""

from __future__ import annotations

from dataclasses import replace

from gpureport.report.answer import answer
from gpureport.report.ledger import BUCKETS, Balance
from gpureport.report.tiles import effective, tiles

from .conftest import a_header


def of_100_gpu_hours(**gpu_hours: float) -> Balance:
    return Balance("", 4, 100.0, 0.0, {bucket.name: gpu_hours.get(bucket.name, 0.0) for bucket in BUCKETS})


def sentences(whole: Balance) -> tuple[str, ...]:
    return answer(whole, {}, a_header())


def test_where_all_is_known_the_sentences_say_what_is() -> None:
    used, wasted, _ = sentences(of_100_gpu_hours(effective=40, allocated_ineffective=10, allocated_idle=20, free=30))
    assert used == "70.0 % of 100 GPU-h were allocated, 40.0 % effective: 40 GPU-h with half of the SMs or more at work."
    assert wasted == "20 GPU-h were held without being used, 30 GPU-h were free."


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
        "(of 25 GPU-h more that were busy SM activity is not known)."
    )
    assert effective(whole) == "≥ 30.0 %"


def test_unknown_hours_make_every_share_a_lower_bound() -> None:
    used, wasted, _ = sentences(of_100_gpu_hours(effective=30, allocated_idle=5, free=40, unknown=25))
    assert used.startswith("At least 35.0 % of 100 GPU-h were allocated, at least 30.0 % effective")
    assert wasted.startswith("At least 5 GPU-h were held without being used")


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
