"""Quantities are exact, in the base unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.values.quantity import NANO, amount, amounts, nano_units

SMALL = {"m": 10**3, "u": 10**6, "n": 10**9}
POWERS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{prefix}i": 2 ** (10 * power) for power, prefix in enumerate("KMGTPE", start=1)
}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("81559Mi", 85_520_809_984),
        ("15472384Ki", 15_843_721_216),
        ("500m", 0.5),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("12e-1", 1.2),
        ("1.5Gi", 1_610_612_736),
        (".5", 0.5),
        ("5.", 5),
        ("-1", -1),
        ("+2k", 2000),
        ("250u", 0.00025),
        ("3n", 3e-9),
        ("0", 0),
        ("143771Mi", 150_754_820_096),
        (40, 40),
        (0.5, 0.5),
        (-1, -1),
    ],
)
def test_a_quantity_is_its_number_of_base_units(written: str | float, expected: float) -> None:
    assert amount(written) == expected


def test_less_than_a_billionth_is_rounded_up_as_kubernetes_does() -> None:
    assert nano_units("0.0000000001") == 1
    assert nano_units("1.0000000001") == NANO + 1


@pytest.mark.parametrize(
    "written",
    [
        "",
        "Mi",
        "1 Gi",
        "1GB",
        "0x10",
        "1e",
        "ten",
        None,
        True,
        [],
        {},
        float("nan"),
        "1e3Ki",
        "1K",
        "1_000",
        "1mi",
        "Infinity",
        " 1",
    ],
)
def test_what_is_no_quantity_is_unknown(written: object) -> None:
    assert amount(written) is None


def test_a_resource_list_keeps_what_it_cannot_read_as_unknown() -> None:
    assert amounts({"cpu": "250m", "odd": "many"}) == {"cpu": 0.25, "odd": None}
    assert amounts(None) == {}
    assert amounts(["cpu"]) == {}


@given(st.integers(0, 10**12), st.sampled_from(["", *POWERS]))
def test_every_number_and_suffix_is_their_product(millionths: int, suffix: str) -> None:
    written = f"{millionths // 10**6}.{millionths % 10**6:06}{suffix}"
    assert nano_units(written) == -(-millionths * POWERS.get(suffix, 1) * NANO // 10**6)


@given(st.integers(0, 10**30 - 1), st.sampled_from([*SMALL]))
def test_parts_of_a_unit_are_rounded_up(number: int, suffix: str) -> None:
    assert nano_units(f"{number}{suffix}") == -(-number * NANO // SMALL[suffix])
