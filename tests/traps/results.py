"""A test's samples, and what the report shows of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest
from golden_case import Row, by_mark, marked_rows, rows_of

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Samples:
    """A test's samples in the notation of ``notation.py``."""

    text: str
    step_seconds: float
    is_alone: bool
    """Whether they are a cluster of their own: for what is decided over all devices of a cluster."""


def samples(text: str, step_seconds: float = 60, is_alone: bool = False) -> Callable[[Test], Test]:
    """A test with its samples."""

    def with_samples(test: Test) -> Test:
        test.samples = Samples(text, step_seconds, is_alone)  # type: ignore[attr-defined]
        return test

    return with_samples


def about(value: float) -> Any:
    """The nine digits that are printed."""
    return pytest.approx(value, rel=5e-9, abs=1e-12)


@dataclass(frozen=True)
class Results:
    """What was made of one test's samples."""

    lake: Path
    database: Path
    cluster: str
    mark: str
    """The mark behind the names of this test's devices, nodes, namespaces and jobs; '' where the cluster is its own."""

    def rows(self, table: str) -> list[Row]:
        """Rows of a table of the report's database, as ``report.device``."""
        return [row for row in marked_rows(self.database, table)[self.mark] if row["cluster"] == self.cluster]

    def lake_rows(self, table: str) -> list[Row]:
        """Rows of a lake table."""
        return file_rows(self.lake / table / f"cluster={self.cluster}")[self.mark]

    def device(self, uuid: str = "GPU-a", instance_id: str = "") -> Row:
        """The one row of a device."""
        [found] = [
            row for row in self.rows("report.device") if (row["device_uuid"], row["gpu_instance_id"]) == (uuid, instance_id)
        ]
        return found

    def container(self, pod: str = "p") -> Row:
        """The one row of a pod's only container on its only device."""
        [found] = [row for row in self.containers() if row["pod"] == pod]
        return found

    def containers(self) -> list[Row]:
        """All holders."""
        return self.rows("report.container_saturation")

    def pods(self) -> list[str]:
        """The names of all holders."""
        return sorted(row["pod"] for row in self.containers())

    def signal(self, name: str, uuid: str = "GPU-a", instance_id: str = "") -> Row:
        """Where a device's signal came from and what was left out of it."""
        key = (uuid, instance_id, name)
        rows = self.lake_rows("device_signal")
        [found] = [row for row in rows if (row["device_uuid"], row["gpu_instance_id"], row["signal"]) == key]
        return found

    def dropped(self, name: str, uuid: str = "GPU-a", instance_id: str = "") -> dict[str, int]:
        """The values that were left out of a device's signal, by reason."""
        found = self.signal(name, uuid, instance_id)["dropped"]
        return {reason: count for reason, count in dict(found).items() if count}


@cache
def file_rows(folder: Path) -> dict[str, list[Row]]:
    """Rows of a lake table of one cluster by mark."""
    with duckdb.connect() as con:
        return by_mark(rows_of(con.execute("from read_parquet(?)", [f"{folder}/**/*.parquet"])))


def reason(row: Row, figure: str) -> str | None:
    """Why a figure is null; a figure that is not fails the test."""
    assert row[figure] is None, f"{figure} is {row[figure]!r}"
    found: str | None = row["unknown_reasons"].get(figure)
    return found
