"""Whatever came, and however: no share beyond 0..1, no time beyond what was expected, and observed + unknown = expected.

Samples go the whole way, through ``shape`` into a lake, through compute into facts, into the tables of a report.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest

from gpureport.collect.shape import shape
from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.period import ReportSettings, WindowTables
from gpureport.compute.query import connection
from gpureport.lake import Lake, open_lake
from gpureport.values.catalog import load_catalog
from gpureport.values.series import STALE_BITS, SeriesBatch
from gpureport.values.window import Window

CATALOG = load_catalog()
DAY = date(2026, 3, 1)
MIDNIGHT_MS = 1_772_323_200_000
STALE = float(np.array([STALE_BITS], np.uint64).view(np.float64)[0])
BLANK = 9_223_372_036_854_775_794.0
WINDOWS = [
    Window.of_day(DAY),
    Window(datetime(2026, 3, 1, 11, tzinfo=UTC), datetime(2026, 3, 1, 14, tzinfo=UTC)),
    Window(datetime(2026, 3, 1, 11, 20, tzinfo=UTC), datetime(2026, 3, 1, 13, 40, tzinfo=UTC)),
]
GAUGES = {
    # metric: largest true value
    "DCGM_FI_DEV_POWER_USAGE": 700,
    "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1,
    "DCGM_FI_PROF_SM_ACTIVE": 1,
    "DCGM_FI_DEV_FB_USED": 40_000,
    "DCGM_FI_DEV_FB_FREE": 40_000,
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 255,
}
COUNTERS = {
    # metric: growth per second of time, at most
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 700_000,
    "DCGM_FI_DEV_POWER_VIOLATION": 1_000_000_000,
}
Sample = tuple[int, float]


class Trouble(NamedTuple):
    """How a device's samples are spoilt."""

    start_s: int
    length: int
    step_s: int
    drop_ratio: float
    gap_s: int
    reset_ratio: float
    spoilt_ratio: float
    copies: int
    instance: str
    seed: int


def troubled_devices(seed: int) -> list[Trouble]:
    """The troubles of 28 devices, each by chance."""
    chance = random.Random(seed)
    return [
        Trouble(
            start_s=chance.randint(-600, 86_500),
            length=chance.randint(1, 60),
            step_s=chance.choice([15, 30, 60, 600]),
            drop_ratio=chance.choice([0.0, 0.2, 0.9]),
            gap_s=chance.choice([0, 200, 7_200, 40_000]),
            reset_ratio=chance.choice([0.0, 0.1]),
            spoilt_ratio=chance.choice([0.0, 0.1, 1.0]),
            copies=chance.randint(1, 2),
            instance=chance.choice(["", "3"]),
            seed=chance.randrange(2**16),
        )
        for _ in range(28)
    ]


def series_of(number: int, trouble: Trouble) -> list[tuple[dict[str, str], list[Sample]]]:
    """All series of a device: gauges and counters of one exporter, each sample of each copy there, twice, or lost."""
    mixed = random.Random(trouble.seed)
    instants = _instants(trouble, mixed)
    found = []
    for metric in [*GAUGES, *COUNTERS]:
        values = _values(metric, instants, trouble, mixed)
        for copy in range(trouble.copies):
            kept = [each for each in values if mixed.random() >= trouble.drop_ratio]
            kept += [each for each in kept if mixed.random() < 0.1]
            mixed.shuffle(kept)
            if kept:
                found.append((_labels(metric, number, copy, trouble), kept))
    return found


def _instants(trouble: Trouble, mixed: random.Random) -> list[int]:
    gap_at = mixed.randrange(trouble.length)
    second, found = trouble.start_s, []
    for position in range(trouble.length):
        second += trouble.step_s + (trouble.gap_s if position == gap_at else 0)
        found.append(MIDNIGHT_MS + second * 1000 + mixed.randrange(-500, 500))
    return found


def _values(metric: str, instants: Sequence[int], trouble: Trouble, mixed: random.Random) -> list[Sample]:
    found, counted, before = [], 0.0, instants[0]
    for instant in instants:
        if metric in GAUGES:
            value = GAUGES[metric] * mixed.choice([0.0, mixed.random(), 1.0])
        else:
            counted += COUNTERS[metric] * (instant - before) / 1000 * mixed.random()
            value = counted = 0.0 if mixed.random() < trouble.reset_ratio else counted
        before = instant
        spoilt = mixed.choice([math.nan, math.inf, BLANK, -1.0, 808_334_905.0, STALE])
        found.append((instant, spoilt if mixed.random() < trouble.spoilt_ratio else math.floor(value) if value > 1 else value))
    return found


def _labels(metric: str, number: int, copy: int, trouble: Trouble) -> dict[str, str]:
    labels = {
        "__name__": metric,
        "UUID": f"GPU-{number}",
        "Hostname": f"n{number % 10}",
        "instance": f"10.0.0.{copy}",
        "job": "dcgm",
    }
    instance = {"GPU_I_ID": trouble.instance, "GPU_I_PROFILE": "3g.40gb"} if trouble.instance else {}
    owner = {"pod": f"p{trouble.seed % 3}", "namespace": "ns", "container": "main"} if trouble.seed % 2 else {}
    return labels | instance | owner


def fill(lake: Lake, cluster: str, troubles: Sequence[Trouble]) -> None:
    """The day that these devices leave."""
    series = [each for number, trouble in enumerate(troubles) for each in series_of(number, trouble)]
    samples = [sample for _, found in series for sample in found]
    batch = SeriesBatch(
        labels=[labels for labels, _ in series],
        offsets=np.cumsum([0, *(len(found) for _, found in series)]).astype(np.int64),
        times_ms=np.array([time for time, _ in samples], np.int64),
        values=np.array([value for _, value in samples], np.float64),
    )
    with lake.change() as change:
        for table, rows in shape(batch, CATALOG, Window.of_day(DAY)).tables().items():
            change.write(table, cluster, DAY, rows)


def rows(con: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    relation = con.table(table)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two clusters, each with its own troubles."""
    lake = open_lake(tmp_path_factory.mktemp("coverage") / "lake", create=True)
    for seed in (1, 2):
        fill(lake, f"c{seed}", troubled_devices(seed))
    compute_days(lake, [("c1", DAY), ("c2", DAY)], ComputeSettings(threads=1), "1")
    return lake


@pytest.mark.parametrize("window", WINDOWS, ids=["day", "hours", "parts of hours"])
def test_observed_and_unknown_are_what_was_expected_and_no_share_is_beyond_one(lake: Lake, window: Window) -> None:
    with connection() as con:
        chosen = [f"report.{name}" for name in ("coverage", "device", "container_saturation", "container")]
        WindowTables(con, lake, window, ReportSettings(figure_min_coverage_ratio=0.0)).build(chosen)
        ledger, devices = rows(con, "report.coverage"), rows(con, "report.device")
        containers = [*rows(con, "report.container_saturation"), *rows(con, "report.container")]
    for row in ledger:
        expected, observed, unknown = (row[f"{name}_device_seconds"] for name in ("expected", "observed", "unknown"))
        assert round(observed + unknown, 3) == expected, row
        assert observed >= 0 and unknown >= 0 and 0 <= row["coverage_ratio"] <= 1, row
        assert (row["reason"] == "") == (unknown <= 0.01 * expected), row
        assert expected <= row["expected_device_count"] * 86_400, row
    for row in [*devices, *containers]:
        shares = {name: found for name, found in row.items() if "_ratio" in name and isinstance(found, float)}
        assert {name: found for name, found in shares.items() if not 0 <= found <= 1 + 1e-9} == {}
    for cluster in ("c1", "c2"):
        seen = dict[str, float]()
        for row in devices:
            if row["cluster"] == cluster:
                seen[row["device_uuid"]] = max(seen.get(row["device_uuid"], 0.0), row["observed_seconds"])
        any_observed = (row["observed_device_seconds"] for row in ledger if (row["cluster"], row["signal"]) == (cluster, "any"))
        assert math.fsum(any_observed) == pytest.approx(math.fsum(seen.values()), abs=0.01)
