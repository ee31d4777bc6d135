"""Whatever exporters print, no figure of a report is impossible: ratios above 1, less than nothing, more than a board can."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import duckdb
import pytest
from golden_case import NOON, gpureport
from report_tables import report_tables
from traps.notation import openmetrics

from gpureport.compute.query import load
from gpureport.values.tables.telemetry import SIGNAL_BY_NAME

HOURS, DEVICES = 2, 12
GAUGES = {
    "DCGM_FI_DEV_POWER_USAGE": 300.0,
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700.0,
    "DCGM_FI_DEV_GPU_UTIL": 80.0,
    "DCGM_FI_DEV_FB_USED": 40e3,
    "DCGM_FI_DEV_FB_FREE": 40e3,
    "DCGM_FI_DEV_FB_TOTAL": 81_920.0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.7,
    "DCGM_FI_PROF_SM_ACTIVE": 0.6,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.3,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 1e9,
    "DCGM_FI_PROF_NVLINK_TX_BYTES": 1e9,
    "DCGM_FI_DEV_GPU_TEMP": 60.0,
    "DCGM_FI_DEV_XID_ERRORS": 0.0,
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 4.0,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0.0,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0.0,
    "DCGM_EXP_XID_ERRORS_TOTAL": 5.0,
}
COUNTERS = {  # growth per second
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 300_000.0,
    "DCGM_FI_DEV_POWER_VIOLATION": 1e8,
    "DCGM_FI_DEV_THERMAL_VIOLATION": 1e7,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0.001,
}
LIMITS = {"NVIDIA H100 80GB HBM3": 1400.0, "NVIDIA A30": 1400.0, "Tesla T4": 1400.0, "": 2000.0}
"""The highest limit that is believed for the model, or else the one that is exported doubled, in W."""
GARBAGE = (
    *(math.nan, math.inf, -math.inf, -1.0, -1e9, 0.0, 0.5, 255.0, 65_535.0, 1e6, 1e300, 1e-300),
    *(2_147_483_632.0, 2_147_483_647.0, 4_294_967_295.0, 140_737_488_355_328.0, 9_223_372_036_854_775_792.0, 2.0**64),
)
Samples = list[tuple[float, float]]


def spoiled(random: Random, samples: Samples) -> Samples:
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        at, bad, last = random.randrange(len(samples)), random.choice(GARBAGE), len(samples)
        factor = random.choice([1e3, 1e-3, 1e6, 1e-6, 100, 0.01, 2, 0.5])
        step = random.choice([1, -1]) * random.choice([1, 5e3, 1e6, 1e9, 1e12])
        samples = random.choice(
            [
                [(when, bad if number == at else value) for number, (when, value) in enumerate(samples)],
                [(when, bad if at <= number < at + 12 else value) for number, (when, value) in enumerate(samples)],
                [(when, value - samples[at][1] if number >= at else value) for number, (when, value) in enumerate(samples)],
                [(when, value + step if number >= at else value) for number, (when, value) in enumerate(samples)],
                [(when, value * factor if number >= at else value) for number, (when, value) in enumerate(samples)],
                [(when, samples[at][1] if number >= at else value) for number, (when, value) in enumerate(samples)],
                [
                    (when + (random.choice([-400, -61, 90]) if number >= at else 0), value)
                    for number, (when, value) in enumerate(samples)
                ],
                [(when, bad if number % 2 else value) for number, (when, value) in enumerate(samples)],
                [(when, value % 2**32) for when, value in samples],
                [*samples[:at], (samples[at][0], bad), *samples[at:]],
                [*samples[:at], *samples[min(at + 20, last - 1) :]],
                [(when, -value) for when, value in samples],
                [(when, bad) for when, _ in samples],
            ]
        )
    return samples


def printed(seed: int) -> Iterator[str]:
    random = Random(seed)
    for device in range(DEVICES):
        node = f"{seed}-{device // 4}"
        step, model = random.choice([30, 60, 120, 300]), random.choice(list(LIMITS))
        parts = random.choice(["", "", "", ',GPU_I_ID="1",GPU_I_PROFILE="3g.40gb" ,GPU_I_ID="2",GPU_I_PROFILE="3g.40gb"'])
        pods = random.choice([[""], ["p"], ["p", "q"], ["p", "q", ""]])
        for metric, target, part, pod in product({**GAUGES, **COUNTERS}, random.choice(["a", "ab"]), parts.split(" "), pods):
            if random.random() < 0.25:
                continue
            times = [NOON + random.random() + number * step for number in range(HOURS * 3600 // step)]
            base = random.choice([0.0, 1e6, 1e12])
            grows = COUNTERS.get(metric)
            values = [GAUGES[metric] if grows is None else base + grows * (when - NOON) for when in times]
            labels = f'UUID="GPU-{seed}-{device}",Hostname="n{node}",job="dcgm",instance="{target}{node}:9400"{part}'
            labels += f',modelName="{model}"'
            labels += f',namespace="ns",pod="{pod}{seed}-{device}",container="c"' if pod else ""
            labels += ',xid="79"' if metric == "DCGM_EXP_XID_ERRORS_TOTAL" else ""
            for when, value in spoiled(random, list(zip(times, values, strict=True))):
                yield f"{metric}{{{labels}}} {str(value).replace('inf', 'Inf').replace('nan', 'NaN')} {when:.3f}"


UNBOUNDED = ("counter_integral_ratio", "error_ratio", "naive")
MAY_BE_NEGATIVE = ("difference", "closing_error", "temp", "change")


def impossible(con: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of a table that have a figure that cannot be."""
    told = con.sql(f"from {table}")
    names = [name for name, kind in zip(told.columns, told.types, strict=True) if kind == "DOUBLE"]
    found = con.execute(f"select [{', '.join(_impossible(table, name) for name in names)}]::boolean[] from {table}").fetchone()
    return [f"{table}.{name}" for name, is_found in zip(names, found[0] if found else [], strict=False) if is_found]


def _impossible(table: str, column: str) -> str:
    tests = [f"isnan({column})", f"isinf({column})"]
    if table != "report.gpu_hour_bridge" and not any(word in column for word in MAY_BE_NEGATIVE):
        tests.append(f"{column} < -1e-6")
    if column.endswith(("_ratio", "_ratio_avg", "_ratio_max")) and not any(word in column for word in UNBOUNDED):
        tests.append(f"{column} > 1 + 1e-9")  # a report's files have nine digits
    if "_watts" in column and "sm_active_watts" not in column and table in ("report.device", "report.container_power"):
        tests.append(f"{column} > 3000")
    return f"bool_or({' or '.join(tests)})"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster for each kind of garbage, all of one day."""
    folder = tmp_path_factory.mktemp("garbage")
    clusters = {
        "any": (line for seed in (1, 2, 5, 24) for line in printed(seed)),
        "devices": one_value_wrong(Random(7)),
        "kubernetes": one_value_of_kubernetes_wrong(Random(1)),
    }
    for cluster, lines in clusters.items():
        (folder / cluster).write_text(openmetrics(lines))
        gpureport("import", folder / cluster, "--cluster", cluster, "--lake", folder / "lake")
    gpureport("compute", "--date", "2026-11-20", "--lake", folder / "lake")
    return folder / "lake"


def test_no_figure_is_impossible(lake: Path) -> None:
    with report_tables(lake, "2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z", cluster="any") as con:
        # Nothing is compared with hours before the first, nothing has a price, and a cost's accuracy is a sum of two errors.
        made = [each for each in load().values() if each.life in ("report", "facts") and each.path.parent.name != "comparison"]
        tables = [query.table for query in made if query.table != "report.cost"]
        con.tables.open_named(" ".join(f"from {table};" for table in tables))
        assert [column for table in tables for column in impossible(con.con, table)] == []
        energy = con.rows("select gpu_model, energy_joules from report.device where energy_joules is not null")
        assert [each for each in energy if each[1] > 1.5 * LIMITS[each[0]] * HOURS * 3600] == []
        hours = con.rows("select sum(gpu_hours) from report.gpu_hour_ledger group by cluster, device_uuid")
        assert max(each[0] for each in hours) <= HOURS + 1e-6
        [(events,)] = con.rows("select sum(event_count) from facts.xid_event")
        assert (events or 0) <= 4 * 100 * HOURS * 3600 * DEVICES


STEP, STEPS = 60, 60
WATTS_MAX = 1.5 * 700.0


def one_value_wrong(random: Random) -> Iterator[str]:
    """Device 0 as it is; of each other one a single sample of one metric is any float."""
    for device in range(120):
        metrics = {**GAUGES, **COUNTERS, "DCGM_FI_DEV_FB_USED": 30e3}
        wrong = random.choice(list(metrics)) if device else ""
        at, value = random.randrange(STEPS), random.choice([*GARBAGE, random.uniform(0, 1e7), 10 ** random.uniform(-9, 19)])
        labels = f'UUID="GPU-{device}",Hostname="n{device // 8}",job="dcgm",modelName="NVIDIA H100 80GB HBM3"'
        for metric, usual in metrics.items():
            xid = ',xid="79"' if metric == "DCGM_EXP_XID_ERRORS_TOTAL" else ""
            pod = f',namespace="ns",pod="p{device}",container="c"'
            for number in range(STEPS):
                shown = 1e12 + usual * STEP * number if metric in COUNTERS else usual
                found = str(value if (metric, number) == (wrong, at) else shown).replace("inf", "Inf").replace("nan", "NaN")
                yield f"{metric}{{{labels}{xid}{pod}}} {found} {NOON + number * STEP:.3f}"


TOTALS = {  # most that 1 s can add
    "select device_uuid, sum(energy_joules) from report.device": WATTS_MAX,
    "select device_uuid, sum(active_joules) from report.container_power": WATTS_MAX,
    "select device_uuid, sum(allocated_idle_joules) from report.container_power": WATTS_MAX,
    "select device_uuid, sum(idle_joules) from report.container_power": WATTS_MAX,
    "select device_uuid, sum(gpu_hours) from report.gpu_hour_ledger": 1 / 3600,
    "select device_uuid, sum(gpu_hours) filter (bucket = 'effective') from report.gpu_hour_ledger": 1 / 3600,
    "select device_uuid, sum(allocated_gpu_hours) from report.device_allocation": 1 / 3600,
    **{
        f"select device_uuid, sum({name}_avg * {name}_seen_seconds) from report.container_saturation": most
        for name, most in {"sm_active": 1.0, "dram_active": 1.0, "gpu_usage": 1.0}.items()
    },
    "select device_uuid, sum(power_violation_ratio * observed_seconds) from report.container_saturation": 1.05,
    "select device_uuid, sum(thermal_violation_ratio * observed_seconds) from report.container_saturation": 1.05,
    "select device_uuid, sum(any_throttle_ratio * observed_seconds) from report.container_saturation": 1.0,
    "select device_uuid, sum(memory_used_ratio_avg * observed_seconds) from report.container_saturation": 1.0,
    **{
        f"select device_uuid, sum({name}_avg * observed_seconds) from report.container_saturation": SIGNAL_BY_NAME[name].highest
        for name in ("pcie_tx_bytes_per_second", "nvlink_tx_bytes_per_second")
    },
}


def test_no_single_sample_changes_a_total_of_the_report_by_more_than_its_own_step(lake: Path) -> None:
    with report_tables(lake, "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z", cluster="devices") as con:
        for query, most in TOTALS.items():
            found = dict(con.execute(f"{query} where device_uuid != '' group by all").fetchall())
            right = found["GPU-0"]
            assert right is not None, query
            wrong = {device: value for device, value in found.items() if value is None or abs(value - right) > most * 3 * STEP}
            assert wrong == {}, query


KUBE_STEP, KUBE_STEPS, NODES = 300, 68, 80
KUBE = 'job="ksm",instance="10.9.9.9:8080"'
INSTANTS = ("kube_pod_created", "kube_pod_status_scheduled_time", "kube_pod_start_time", "kube_pod_container_state_started")
BEFORE_2014 = 1.2e9


def one_value_of_kubernetes_wrong(random: Random) -> Iterator[str]:
    """Nodes of eight GPUs with a pod of two, without an exporter; of each but the first a single sample is anything."""
    for node in range(NODES):
        pod = f'namespace="ns",pod="p{node}",uid="u{node}"'
        gpus = f'node="n{node}",resource="nvidia_com_gpu"'
        series = {
            f'kube_node_info{{node="n{node}"': 1.0,
            f'kube_node_spec_unschedulable{{node="n{node}"': 0.0,
            f'kube_node_status_condition{{node="n{node}",condition="Ready",status="true"': 1.0,
            f"kube_node_status_capacity{{{gpus}": 8.0,
            f"kube_node_status_allocatable{{{gpus}": 8.0,
            f'kube_pod_info{{{pod},node="n{node}"': 1.0,
            f'kube_pod_status_phase{{{pod},phase="Running"': 1.0,
            f'kube_pod_container_resource_requests{{{pod},container="c",{gpus}': 2.0,
            **{f'{metric}{{{pod},container="c"': NOON - 60.0 for metric in INSTANTS},
        }
        wrong = random.choice(list(series)) if node else ""
        at, value = random.choice([0, 1, KUBE_STEPS - 1, random.randrange(KUBE_STEPS)]), random.choice([*GARBAGE, BEFORE_2014])
        for labels, usual in series.items():
            for number in range(KUBE_STEPS):
                shown = value if (labels, number) == (wrong, at) else usual
                found = str(shown).replace("inf", "Inf").replace("nan", "NaN")
                yield f"{labels},{KUBE}}} {found} {NOON + number * KUBE_STEP:.3f}"


def test_no_single_sample_of_kubernetes_changes_whose_gpu_hours_are_whose(lake: Path) -> None:
    """Of five hours two GPUs are the pod's and six free; a sample lasts five minutes, three times that where it is left out."""
    with report_tables(lake, "2026-11-20T12:00:00Z", "2026-11-20T17:00:00Z", cluster="kubernetes") as con:
        hours = con.execute("""
            select node_name, coalesce(sum(gpu_hours) filter (pod != ''), 0), coalesce(sum(gpu_hours) filter (bucket = 'free'), 0)
            from report.gpu_hour_ledger group by all
        """).fetchall()
        most = 3 * 8 * KUBE_STEP / 3600
        assert len(hours) == NODES
        assert [row for row in hours if abs(row[1] - 10) > most or abs(row[2] - 30) > most] == []
        waits = con.execute("select min(placing_seconds_p50), max(placing_seconds_max) from report.pod_wait").fetchone()
        assert waits is not None
        assert waits[0] is None or 0 <= waits[0] <= waits[1] <= 3 * KUBE_STEP
