"""Numbers as people read them: units by column name, unknown never zero, a trace never nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.report.page.words import Money
from gpureport.values.text import formats


@pytest.mark.parametrize(
    ("column", "found", "shown"),
    [
        ("gpu_usage_avg", None, "—"),
        ("gpu_usage_avg", 0.0, "0"),
        ("gpu_usage_avg", 0.00004, "< 0.1"),
        ("gpu_usage_avg", 0.2344, "23.4"),
        ("coverage_ratio", 0.99997, "> 99.9"),
        ("coverage_ratio", 1.0, "100.0"),
        ("coverage_ratio", 1 - 2e-16, "100.0"),  # sums of the same parts in another order
        ("coverage_ratio", -0.0, "0"),
        ("energy_joules", -0.0, "0"),
        ("power_violation_ratio", 1.25, "125.0"),  # a fault of the source, shown as it is
        ("observed_seconds", 86399.0, "86,399"),
        ("unscheduled_pod_count_avg", 1.5, "1.5"),  # a mean of counts is no share
        ("contested_gpus_max", 4.0, "4"),
        ("power_watts_avg", 312.3, "312"),
        ("xid_error_count", 12, "12"),
        ("energy_joules", 0.0000004, "< 0.001"),
    ],
)
def test_a_value_is_written_by_its_columns_unit(column: str, found: Any, shown: str) -> None:
    assert formats.value(column, found) == shown


@pytest.mark.parametrize(
    ("column", "unit"),
    [("gpu_usage_avg", "%"), ("power_watts_avg", "W"), ("gpu_temp_celsius_max", "°C"), ("nvlink_rx_bytes_per_second_avg", "B/s"),
     ("observed_seconds", "s"), ("free_gpu_hours", "GPU-h"), ("xid_error_count", ""), ("pod", "")],
)  # fmt: skip
def test_a_heading_has_the_unit(column: str, unit: str) -> None:
    assert formats.unit(column) == unit


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "—"), (0, "0 s"), (480, "8 min"), (90, "1 min 30 s"), (93_600, "1 d 2 h"), (2_592_000, "30 d")]
)
def test_a_duration_has_two_units_at_most(seconds: float | None, shown: str) -> None:
    assert formats.duration(seconds) == shown


def test_a_trace_is_not_rounded_to_nothing() -> None:
    found = [formats.rounded(each, 2) for each in (0.0, 1e-17, 0.004, 0.006, 1.234, 1_234.5)]
    assert found == ["0", "0", "< 0.01", "0.01", "1.23", "1,235"]
    assert formats.rounded(0.004, 2, is_least=True) == "≥ 0"


def test_a_lower_bound_is_no_trace_and_no_cost_of_0() -> None:
    """Of 0.03 % at least, more than 0 is known; of a cost without any known part, nothing."""
    assert [formats.percent(each, True) for each in (0.0003, 0.25, 0.9997, 0.0)] == ["> 0 %", "≥ 25.0 %", "> 99.9 %", "≥ 0 %"]
    assert (formats.gpu_hours(0.0002, True), formats.energy(1.0, True)) == ("> 0 GPU-h", "> 0 Wh")
    assert [Money("$")(each, True) for each in (0.0004, 5.0, 0.0, None)] == ["> $0", "≥ $5", "—", "—"]
    assert [Money(currency)(0.0004) for currency in ("$", "EUR", "")] == ["< $0.001", "< 0.001 EUR", "< 0.001"]


def test_a_half_is_rounded_up_as_the_script_of_the_page_does() -> None:
    """Of sums too, whose last digits are noise; 2.675 itself is a trace less in memory."""
    found = [formats.significant(each) for each in (100.5, 12.25, 2.675, 100.49999999999999, 1_234.5, -100.5, 2.6749)]
    assert found == ["101", "12.3", "2.68", "101", "1,235", "-101", "2.67"]
    assert [formats.percent(each) for each in (0.0125, 0.1225)] == ["1.3 %", "12.3 %"]
    assert (formats.duration(100.5), formats.rounded(2.25, 1)) == ("1 min 41 s", "2.3")
    assert (Money("$")(100.5), Money()(12.25)) == ("$101", "12.3")


def test_headings_spell_names_as_the_field_does() -> None:
    assert formats.words("gpu_util avg") == "GPU utilization avg"
    assert formats.words("nvlink_rx") == "NVLink received"


def test_a_prefix_leaves_at_least_one_before_the_point() -> None:
    found = [formats.scaled(each, formats.IEC) for each in (1023, 2.0**30, 150_754_820_096.0)]
    assert found == ["1,023", "1 Gi", "140 Gi"]
    assert [formats.energy(each) for each in (149_906.558, 3.6e6, None)] == ["41.6 Wh", "1 kWh", "—"]


@given(st.floats(min_value=1e-300, max_value=1 - 1e-9))
def test_a_share_that_is_neither_nothing_nor_all_is_not_shown_as_either(share: float) -> None:
    assert formats.value("any_ratio", share) not in ("0", "0.0", "100.0")
