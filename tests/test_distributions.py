"""Distributions: quantiles that bins give against those of the samples."""

from __future__ import annotations

from datetime import date
from random import Random

import duckdb
import numpy as np
import pytest

from gpureport.compute.query import define_functions, load

DAY = date(2026, 3, 1)
TOLERANCES = {"gpu_util_ratio": 0.01, "memory_used_ratio": 0.01, "power_watts": 5, "gpu_temp_celsius": 1}
SHARES = (0.5, 0.9, 0.95, 0.99)


@pytest.mark.parametrize("step", [0.37, 7, 30])
def test_quantiles_of_bins_are_those_of_the_samples(step: float) -> None:
    """Of a day of scrapes that come early and late: p50, p90, p95 and p99 within a percentage point, 5 W, 1 °C."""
    random, query = Random(int(step)), load()["day.value_time"]
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'; create schema lake; create schema day")
        define_functions(con, query.sql)
        con.execute(
            "create table day.ownership_interval (cluster varchar, device_uuid varchar, start_at timestamp, end_at timestamp)"
        )
        size, held, values = 20_000, [], {name: [] for name in TOLERANCES}
        for _ in range(size):
            held.append(step * random.uniform(0.9, 1.1))
            values["gpu_util_ratio"].append(max(0.0, min(1.0, random.gauss(0.5, 0.4))))
            values["memory_used_ratio"].append(random.betavariate(2, 5))
            values["power_watts"].append(random.uniform(60, 700))
            values["gpu_temp_celsius"].append(random.gauss(60, 9))
        given = {name: np.array(each) for name, each in values.items()}
        begun = np.cumsum([0, *held])[:-1] * 1000 % 86_400_000
        columns = {
            "cluster": np.full(size, "c"),
            "device_uuid": np.full(size, "GPU-1"),
            "gpu_instance_id": np.full(size, ""),
            "seen_at": np.datetime64(DAY, "ms") + begun.astype("timedelta64[ms]"),
            "held_seconds": np.array(held),
            **{name: given[name] for name in ("gpu_util_ratio", "power_watts", "gpu_temp_celsius")},
            "fb_used_bytes": given["memory_used_ratio"] * 80e9,
            "fb_free_bytes": (1 - given["memory_used_ratio"]) * 80e9,
        }
        missing = {name: np.full(size, np.nan) for name in ("sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")}
        con.register("given", {**columns, **missing})
        con.execute("create table lake.device_sample as from given")
        found = con.execute(f"""
            select signal, bin * bin_width(signal), sum(ms)
            from (select signal, unnest(bins) as bin, unnest(bin_milliseconds) as ms from ({query.sql}))
            group by all order by all
        """).fetchall()
    for signal, tolerance in TOLERANCES.items():
        bins = np.array([(value, ms) for name, value, ms in found if name == signal])
        for share in SHARES:
            assert quantile(*bins.T, share) == pytest.approx(quantile(given[signal], np.array(held), share), abs=tolerance)


def quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The smallest value at or below which so much of the weight is."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1])])
