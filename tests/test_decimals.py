"""Decimals of the lake: the nearest whole number of the last place, or the column as it was."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.lake.parquet import scaled, write_parquet
from gpureport.values.tables import DEVICE_SAMPLE


@settings(max_examples=200)
@given(st.lists(st.floats(-1e11, 1e11) | st.integers(-4000, 4000).map(lambda eighths: eighths / 8), max_size=20))
def test_numbers_are_rounded_to_the_nearest_and_halves_to_the_even(numbers: list[float]) -> None:
    found = scaled(np.array(numbers, np.float64), 2.0, 1e18)
    assert found is not None
    assert found.tolist() == [int(Decimal(2 * number).quantize(Decimal(1), ROUND_HALF_EVEN)) for number in numbers]


def test_what_is_too_large_or_no_number_leaves_no_decimals() -> None:
    for number in (1e18, -1e18, float("inf"), float("nan")):
        assert scaled(np.array([1.0, number]), 1.0, 1e18) is None


def written(numbers: list[float | None], path: Path) -> pa.Array:
    power = next(column for column in DEVICE_SAMPLE.columns if column.name == "power_watts")
    rows = pa.table({"power_watts": pa.array(numbers, pa.float64())})
    write_parquet(rows, path, {}, replace(DEVICE_SAMPLE, columns=(power,)))
    return pq.read_table(path).column("power_watts").combine_chunks()


def test_watts_are_written_as_milliwatts_and_nulls_stay_where_they_are(tmp_path: Path) -> None:
    found = written([None, *(0.1 * at for at in range(9)), None, 700.0005], tmp_path / "rows.parquet")
    assert found.type == pa.decimal64(18, 3)
    assert found.to_pylist() == [None, *(Decimal(at) / 10 for at in range(9)), None, Decimal("700.000")]


def test_a_column_with_a_number_too_large_stays_double(tmp_path: Path) -> None:
    assert written([1.5, None, 1e300], tmp_path / "rows.parquet").to_pylist() == [1.5, None, 1e300]
