"""Grams per kWh: a number for all time, or a grid's time series."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpureport.commands.work.settings import _carbon, intensities
from gpureport.config import Config
from gpureport.values.errors import UsageError


def test_nothing_configured_is_nothing() -> None:
    assert intensities("location", None) == []


def test_energy_of_the_facility_needs_neither_prices_nor_carbon() -> None:
    assert _carbon(Config.model_validate({"carbon": {"pue": 1.5}})) == {"pue": 1.5, "grams_per_kwh": []}
    assert _carbon(Config()) == {}


def test_a_number_holds_for_all_time() -> None:
    assert intensities("market", 120.0) == [{"basis": "market", "start_at": "0001-01-01T00:00:00", "grams_per_kwh": 120.0}]


def test_a_time_series_is_read_in_utc_and_in_order(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    file.write_text("time,grams_per_kwh\n2026-11-20T01:00:00+01:00,300\n2026-11-19T23:00:00Z,410.5\n")
    assert intensities("location", file) == [
        {"basis": "location", "start_at": "2026-11-19T23:00:00", "grams_per_kwh": 410.5},
        {"basis": "location", "start_at": "2026-11-20T00:00:00", "grams_per_kwh": 300.0},
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("when,grams\n", "the first line must be time,grams_per_kwh"),
        ("time,grams_per_kwh\nyesterday,3\n", "line 2"),
        ("time,grams_per_kwh\n0001-01-01T00:00:00+01:00,3\n", "line 2"),
        ("time,grams_per_kwh\n2026-11-20T00:00:00Z,-1\n", "give 0 or more"),
        ("time,grams_per_kwh\n2026-11-20T00:00:00Z\n", "line 2"),
        ("time,grams_per_kwh\n2026-11-20T00:00:00Z,3\n2026-11-20T01:00:00+01:00,5\n", "2026-11-20T00:00:00 occurs twice"),
        (f'time,grams_per_kwh\n"{"x" * 200_000}\n', "is not a CSV file"),
    ],
)
def test_what_is_no_time_series_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        intensities("location", file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        intensities("location", tmp_path / "none.csv")
