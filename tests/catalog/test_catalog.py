"""The catalogue against itself, and against what one sample of each metric says by hand."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest

from gpureport.collect.shape import shape
from gpureport.compute.query import define_functions
from gpureport.values.catalog import PER_SECOND, Catalog, Meaning, load_catalog
from gpureport.values.errors import UsageError
from gpureport.values.runtime.resources import QUERIES, catalog_rows
from gpureport.values.series import SeriesBatch
from gpureport.values.tables import SIGNAL_BY_NAME
from gpureport.values.tables.table import DESCRIBED
from gpureport.values.window import Window

CATALOG = load_catalog()
DAY = Window.of_day(date(2026, 11, 20))
NOON_MS = DAY.start_ms + 43_200_000
PREFIXED = "amd_"


def _readings() -> list[dict[str, str]]:
    with (Path(__file__).parent / "readings.csv").open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


READINGS = _readings()


def _labels(metric: str, conditions: str) -> dict[str, str]:
    pairs = dict(condition.split("=") for condition in conditions.split())
    return {"__name__": metric, "UUID": "GPU-1", "instance": "node:9400", "job": "gpu", **pairs}


def _shaped(
    metric: str, conditions: str, values: list[float], also: dict[str, list[float]] | None = None
) -> dict[str, list[float]]:
    """The columns that a device's samples, a minute apart from noon, become."""
    every = {metric: values, **(also or {})}
    times = [NOON_MS + 60_000 * number for number in range(len(values))]
    batch = SeriesBatch(
        labels=[_labels(name, conditions) for name in every],
        offsets=np.arange(len(every) + 1, dtype=np.int64) * len(values),
        times_ms=np.array(times * len(every), np.int64),
        values=np.array([value for found in every.values() for value in found], np.float64),
    )
    return shape(batch, CATALOG, DAY).device_sample.to_pydict()  # type: ignore[no-any-return]


@pytest.mark.parametrize("reading", READINGS, ids=[f"{each['metric']} {each['labels']}".strip() for each in READINGS])
def test_a_sample_is_read_in_the_signals_unit(reading: dict[str, str]) -> None:
    for prefix in ("", PREFIXED) if "gpu_partition_id" in reading["labels"] else ("",):
        columns = _shaped(prefix + reading["metric"], reading["labels"], [float(reading["printed"])])
        assert columns[reading["signal"]][0] == pytest.approx(float(reading["value"]), rel=1e-12), prefix
        others = [name for name in SIGNAL_BY_NAME if name != reading["signal"] and columns[name][0] is not None]
        assert others == []


def test_every_device_metric_that_is_read_as_printed_has_a_reading_by_hand() -> None:
    known = {(each["metric"], each["signal"]) for each in READINGS}
    rows = [row for row in CATALOG.rows if row.is_device and not row.per and not row.is_respelled]
    assert [row.metric for row in rows if (row.metric.removeprefix(PREFIXED), row.signal) not in known] == []


def test_growth_per_second_feeds_a_gauge() -> None:
    per_second = {row.metric: row for row in CATALOG.rows if row.per == PER_SECOND}
    assert per_second["DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"].signal == "sw_power_cap_active_ratio"
    for row in per_second.values():
        # 15 s of every minute, or 15 units a minute, in the metric's own unit: a quarter per second.
        columns = _shaped(row.metric, row.labels.replace("*", "a"), [0, 15 / row.factor, 30 / row.factor])
        assert columns[row.signal] == pytest.approx([0.25, 0.25])  # the last sample's growth is unknown
        assert columns["held_seconds"] == [60, 60]


def test_growth_over_growth_feeds_a_gauge() -> None:
    elapsed = {"DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL": [0.0, 100, 300]}
    columns = _shaped("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", "", [0, 25, 125], elapsed)
    assert columns["sm_active_ratio"] == [0.25, 0.5]
    assert columns["held_seconds"] == [60, 60]


def test_growth_over_growth_that_no_device_has_is_unknown() -> None:
    """A counter of active cycles that jumps by 1e9, within 100 elapsed ones: not active 10,000,000 times over."""
    elapsed = {"DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL": [0.0, 100, 200, 300]}
    columns = _shaped("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", "", [0, 25, 1e9 + 25, 1e9 + 75], elapsed)
    assert columns["sm_active_ratio"] == [0.25, 0.5]


def test_a_divisor_that_does_not_come_leaves_nothing() -> None:
    assert _shaped("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", "", [0, 25, 125])["seen_at"] == []


def test_flags_of_one_exporter_make_one_mask() -> None:
    hot = {"nvidia_smi_clocks_event_reasons_hw_thermal_slowdown": [0.0, 1, 1]}
    columns = _shaped("nvidia_smi_clocks_event_reasons_sw_power_cap", "", [1, 1, 0], hot)
    assert columns["throttle_reasons"] == [4, 68, 64]


def test_a_flag_under_its_old_and_its_new_name_is_one_bit() -> None:
    old = {"nvidia_smi_clocks_throttle_reasons_sw_power_cap": [1.0, 1, 0]}
    columns = _shaped("nvidia_smi_clocks_event_reasons_sw_power_cap", "", [1, 1, 0], old)
    assert columns["throttle_reasons"] == [4, 4, 0]


def test_no_metric_means_two_things() -> None:
    rows = Counter((row.metric, row.labels) for row in CATALOG.rows)
    assert [key for key, count in rows.items() if count > 1] == []
    for metric, found in CATALOG.metrics.items():  # labels decide: the first row that fits, which hides no later one
        for before, after in combinations([set(row.conditions) for row in found], 2):
            assert not before <= after, metric


def test_the_smallest_partition_of_a_model_is_one_of_its_parts() -> None:
    with duckdb.connect() as con:
        define_functions(con, "partition_ratio(")
        for row in catalog_rows("gpu_model.csv"):
            smallest = {"AMD data sheet": "cpx", "Intel data sheet": ""}.get(row["source"], "1g.10gb")
            if int(row["compute_parts"] or 1) > 1:
                [found] = con.execute("select 1 / partition_ratio(?, ?)", [smallest, row["name"]]).fetchall()
                assert found == (int(row["compute_parts"]),), row["name"]


MODELS = {
    # The name that exporters give a GPU: board power (W) and memory (GB) of its vendor's data sheet.
    "NVIDIA B200": (1000, 180),
    "NVIDIA GB200": (1200, 186),
    "NVIDIA H200": (700, 141),
    "NVIDIA H200 NVL": (600, 141),
    "NVIDIA GH200 480GB": (900, 96),
    "NVIDIA H100 80GB HBM3": (700, 80),
    "NVIDIA H100 PCIe": (350, 80),
    "NVIDIA H100 NVL": (400, 94),
    "NVIDIA A100-SXM4-80GB": (400, 80),
    "NVIDIA A100 80GB PCIe": (300, 80),
    "NVIDIA A100-SXM4-40GB": (400, 40),
    "Tesla V100-SXM2-32GB": (300, 32),
    "Tesla V100-PCIE-16GB": (250, 16),
    "Tesla T4": (70, 16),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": (600, 96),
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": (600, 96),
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": (300, 96),
    "AMD Instinct MI300X OAM": (750, 192),
    # Each of its two dies is a GPU to ROCm, with half of the module's memory; both show the module's power.
    "AMD Instinct MI250X": (560, 64),
    "Intel(R) Data Center GPU Max 1550": (600, 128),
}


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_one_row_with_its_data_sheet(model: str) -> None:
    [row] = [row for row in catalog_rows("gpu_model.csv") if fnmatchcase(model, row["gpu_model"])]
    assert (float(row["board_watts"]), float(row["memory_gigabytes"])) == MODELS[model]


def test_every_row_says_where_it_is_from_and_in_which_versions() -> None:
    assert [row.metric for row in CATALOG.rows if not (row.source and row.versions and row.exporter)] == []


def test_every_row_feeds_a_signal_of_a_fitting_kind() -> None:
    fitting = {"gauge": {"gauge", "rate", "info"}, "counter": {"counter"}, "bitmask": {"bitmask", "bit"}, "code": {"code"}}
    for row in CATALOG.rows:
        if row.is_device:
            signal = SIGNAL_BY_NAME[row.signal]
            kinds = {"counter"} if row.per else fitting[signal.kind]
            assert row.kind in kinds, row
            assert row.scope == signal.scope, row


def test_every_signal_is_of_a_known_kind_and_scope() -> None:
    assert {signal.kind for signal in SIGNAL_BY_NAME.values()} == {"gauge", "counter", "bitmask", "code"}
    assert {signal.scope for signal in SIGNAL_BY_NAME.values()} == {"board", "instance"}


def test_every_table_has_columns_and_every_column_a_table() -> None:
    described = {row["table"] for row in catalog_rows("table_column.csv")}
    assert described == {*DESCRIBED}
    assert {table.made_of for table in DESCRIBED.values()} == {"samples", "state", "rules"}
    for table in DESCRIBED.values():
        names = [column.name for column in table.columns]
        assert len(names) == len({*names}), table.name
        assert {*table.grain} <= {*names}, table.name


def test_every_signal_can_be_had() -> None:
    assert [name for name in SIGNAL_BY_NAME if not CATALOG.candidates(name)] == []


def test_eras_of_dcgm_exporter_do_not_share_a_name() -> None:
    renamed = {row.metric for row in CATALOG.rows if row.exporter == "dcgm-exporter" and row.versions == "4.9-"}
    before = {row.metric for row in CATALOG.rows if row.exporter == "dcgm-exporter" and row.versions.endswith("4.8")}
    assert len(renamed) >= 19
    assert renamed & before == set()


def test_metrics_of_general_names_ask_for_a_label_of_their_exporter() -> None:
    general = [row for row in CATALOG.rows if row.metric in {"duty_cycle", "memory_used", "gpu_clock", "hw_power_watts"}]
    assert general
    assert all(row.conditions for row in general)
    assert CATALOG.meaning({"__name__": "memory_used", "host": "a"}) is None


def test_a_row_of_ones_own_comes_first_and_may_replace_a_bundled_one() -> None:
    own = {
        "metric": "tpu_duty",
        "signal": "gpu_util_ratio",
        "factor": "0.01",
        "kind": "gauge",
        "scope": "board",
        "vendor": "google",
    }
    catalog = load_catalog([own, {**own, "metric": "DCGM_FI_DEV_GPU_UTIL", "factor": "1"}])
    assert catalog.rows[0].metric == "tpu_duty"
    found = [row for row in catalog.rows if row.metric == "DCGM_FI_DEV_GPU_UTIL"]
    assert [(row.factor, row.source) for row in found] == [(1.0, "configuration")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"signal": "gpu_use"}, "'gpu_use' is not a device signal"),
        ({"kind": "histogram"}, "kind must be one of"),
        ({"scope": "rack"}, "scope one of"),
        ({"factor": "a third"}, "'a third' is not a number"),
        ({"labels": "type"}, "not written as name=value"),
        ({"colour": "red"}, "unknown: colour"),
    ],
)
def test_a_row_of_ones_own_that_makes_no_sense_is_refused(change: dict[str, str], said: str) -> None:
    own = {"metric": "tpu_duty", "signal": "gpu_util_ratio", "kind": "gauge", "scope": "board"}
    with pytest.raises(UsageError, match=said):
        load_catalog([{**own, **change}])


def test_the_version_changes_with_any_row() -> None:
    changed: list[Meaning] = [*CATALOG.rows[1:], CATALOG.rows[0]]
    assert Catalog(tuple(changed)).version != CATALOG.version


@pytest.mark.parametrize("path", sorted((QUERIES / "catalog").glob("*.csv")), ids=lambda path: path.name)
def test_each_row_of_a_catalog_has_a_field_per_column(path: Path) -> None:
    """A comma without quotes would cut the sentence there."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    assert [row for row in rows if len(row) != len(rows[0])] == []
