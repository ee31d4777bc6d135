"""Why a signal lacks: each reason from a few rows of facts, as a report would find them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from gpureport import lake
from gpureport.compute.query import LIVES, build, define_functions, load, needed
from gpureport.config.findings import expectations
from gpureport.values.tables import TABLE_BY_NAME

QUERIES = load()
READ = ("facts.device_hour", "facts.device_signal", "facts.node_day", "facts.ownership")
"""What the ledger is made from."""
DAY = date(2026, 3, 1)
START, END = datetime(2026, 3, 1), datetime(2026, 3, 2)
NONE_BEFORE = {"expected_before": "[]", "retired": "[]"}
PARAMS = {
    "since_at": START,
    "until_at": END,
    "memory_threshold_ratio": 0.9,
    **expectations(),
    "lacking_models": "[]",
    **NONE_BEFORE,
}
PROFILING = ("gr_engine_active_ratio", "tensor_active_ratio", "dram_active_ratio")
PLAIN = ("power_watts", "gpu_util_ratio", "gpu_temp_celsius")
METRIC = {name: f"DCGM_FI_PROF_{name.upper()}" for name in PROFILING}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The facts behind the ledger, empty, with the types of the real thing."""
    empty = lake.open_lake(tmp_path_factory.mktemp("lake"), create=True)
    with duckdb.connect() as con:
        lake.views(con, empty, TABLE_BY_NAME)
        define_functions(con)
        con.execute("; ".join(f"create schema if not exists {life}" for life in LIVES))  # no test's rollback takes them away
        for query in needed(QUERIES, READ):
            build(con, query, PARAMS)
        yield con


class Cluster:
    """Facts of one day, device by device; devices are seen for all of it unless told otherwise."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con

    def insert(self, table: str, **row: Any) -> None:
        marks = ", ".join("?" for _ in row)
        self._con.execute(f"insert into facts.{table} ({', '.join(row)}) values ({marks})", list(row.values()))

    def device(self, uuid: str, *signals: str, node: str = "n1", instance: str = "", **told: Any) -> None:
        """A device whose exporter told these signals for the whole day."""
        key = {"cluster": "c", "device_uuid": uuid, "gpu_instance_id": instance}
        description = {name: told.pop(name, "") for name in ("gpu_model", "driver_version")}
        seconds = {f"{name.rpartition('_')[0]}_seen_seconds": 86_400.0 for name in signals}
        self.insert(
            "device_hour", **key, hour_start_at=START, observed_seconds=86_400.0, node_name=node, **description, **seconds
        )
        for name in signals:
            self.signal(uuid, name, node=node, instance=instance, **told)

    def signal(self, uuid: str, name: str, *, node: str = "n1", instance: str = "", **told: Any) -> None:
        """What came of one signal of a device."""
        row = {
            "source_metric": METRIC.get(name, name.upper()),
            "exporter": "dcgm-exporter",
            "sample_count": 100,
            "series_count": 1,
        }
        key = {"cluster": "c", "device_uuid": uuid, "gpu_instance_id": instance, "day": DAY, "signal": name, "node_name": node}
        self.insert("device_signal", **key, **{**row, "start_at": START, "end_at": END, "dropped": {}, **told})

    def reason(self, signal: str, node: str = "n1") -> tuple[str, str]:
        """The ledger's reason and evidence for a signal of a node."""
        for query in needed(QUERIES, ["report.coverage"], READ):
            build(self._con, query, PARAMS)
        rows = self._con.execute(
            "select reason, evidence from report.coverage where signal = ? and node_name = ?", [signal, node]
        ).fetchall()
        ((reason, evidence),) = rows
        return reason, evidence


@pytest.fixture
def cluster(facts: duckdb.DuckDBPyConnection) -> Iterator[Cluster]:
    facts.begin()
    yield Cluster(facts)
    facts.rollback()


def test_a_violation_counter_is_in_no_stock_csv(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN)
    assert cluster.reason("power_violation_seconds")[0] == "not_in_exporter_config"


def test_a_stock_signal_that_gpus_of_the_model_have_elsewhere_lacks_in_this_nodes_exporter(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN, gpu_model="H200")
    cluster.device("GPU-b", *PLAIN, "memory_temp_celsius", node="n2", gpu_model="H200")
    reason, evidence = cluster.reason("memory_temp_celsius")
    assert (reason, "GPUs of the model that have this one: 1" in evidence) == ("not_in_exporter_config", True)


def test_a_profiling_signal_that_one_model_alone_lacks_is_the_models_226(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN, "dram_active_ratio", gpu_model="H200")
    cluster.device("GPU-b", *PLAIN, *PROFILING, node="n2", gpu_model="L40S")
    assert cluster.reason("gr_engine_active_ratio")[0] == "not_on_model"


def test_no_profiling_signal_at_all_is_no_dcp_395(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN, gpu_model="Tesla M60")
    assert cluster.reason("gr_engine_active_ratio") == ("no_dcp", "devices: 1; other signals: 3, no profiling signal")
    assert cluster.reason("sm_active_ratio")[0] == "no_dcp"


def test_utilisation_is_not_defined_under_mig_216(cluster: Cluster) -> None:
    cluster.device("GPU-a", "power_watts", "gpu_temp_celsius")
    cluster.device("GPU-a", "fb_used_bytes", *PROFILING, instance="3")
    assert cluster.reason("gpu_util_ratio")[0] == "mig"
    assert cluster.reason("pcie_tx_bytes_per_second")[0] == "mig"


def test_reserved_memory_needs_driver_510(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN, driver_version="470.82.01")
    cluster.device("GPU-b", *PLAIN, node="n2", driver_version="550.54.15")
    assert cluster.reason("fb_reserved_bytes") == ("driver", "devices: 1; driver 470.82.01")
    assert cluster.reason("fb_reserved_bytes", "n2")[0] == "not_collected"


def test_memory_of_h100_instances_needs_another_driver_than_535_512(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PROFILING, instance="3", gpu_model="NVIDIA H100 NVL", driver_version="535.104.05")
    assert cluster.reason("fb_used_bytes")[0] == "driver"


def test_xid_is_absent_until_the_first_error_700(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN)
    assert cluster.reason("xid_code")[0] == "xid_absent_until_first_error"


def test_an_exporter_of_the_old_namespace_says_zero_before_the_first_error(cluster: Cluster) -> None:
    cluster.device("GPU-a", "power_watts", source_metric="dcgm_power_usage")
    assert cluster.reason("xid_code")[0] == "not_collected"


def test_another_exporter_publishes_what_it_publishes(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN, exporter="nvidia_gpu_exporter")
    assert cluster.reason("tensor_active_ratio")[0] == "not_published"


@pytest.mark.parametrize(
    "why", ["dead", "ambiguous_unit", "blank", "nan", "out_of_range", "over_total", "not_applicable", "infinite"]
)
def test_values_that_were_left_out_are_the_reason(cluster: Cluster, why: str) -> None:
    cluster.device("GPU-a", *PLAIN)
    cluster.signal("GPU-a", "gr_engine_active_ratio", sample_count=0, dropped={"copy": 900, why: 50, "duplicate": 70})
    assert cluster.reason("gr_engine_active_ratio") == (why, "devices: 1; values left out: 50, kept: 0")


def test_a_few_values_left_out_do_not_explain_half_a_day(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN)
    cluster.signal("GPU-a", "xid_code", dropped={"nan": 1})
    cluster.insert("device_hour", cluster="c", device_uuid="GPU-a", gpu_instance_id="", hour_start_at=datetime(2026, 3, 1, 1),
                   observed_seconds=0.0, xid_seen_seconds=43_200.0, node_name="n1")  # fmt: skip
    assert cluster.reason("xid_code") == ("partial", "devices: 1; samples: 100, in 86400 s with data")


def test_one_sample_of_a_counter_tells_no_growth(cluster: Cluster) -> None:
    cluster.device("GPU-a", *PLAIN)
    cluster.signal("GPU-a", "energy_joules", sample_count=1)
    assert cluster.reason("energy_joules")[0] == "single_sample"


def test_a_gpu_that_is_shown_only_while_a_container_has_it_needs_no_exporter_that_is_down(cluster: Cluster) -> None:
    cluster.signal("GPU-a", "gpu_util_ratio", end_at=datetime(2026, 3, 1, 6), source_metric="container_accelerator_duty_cycle")
    cluster.insert("device_hour", cluster="c", device_uuid="GPU-a", gpu_instance_id="", hour_start_at=START,
                   observed_seconds=21_600.0, gpu_util_seen_seconds=21_600.0, node_name="n1")  # fmt: skip
    assert cluster.reason("any")[0] == "container_series"


def test_a_node_that_falls_silent_is_an_exporter_that_is_down(cluster: Cluster) -> None:
    for uuid in ("GPU-a", "GPU-b"):
        cluster.signal(uuid, "power_watts", end_at=datetime(2026, 3, 1, 6))
        cluster.insert("device_hour", cluster="c", device_uuid=uuid, gpu_instance_id="", hour_start_at=START,
                       observed_seconds=21_600.0, power_seen_seconds=21_600.0, node_name="n1")  # fmt: skip
    silent = "GPUs without data: 2 of 2, all signals at once, for 129600 s in total; last sample: 06:00:00"
    assert cluster.reason("any") == ("exporter_down", silent)
    assert cluster.reason("power_watts") == ("exporter_down", silent)


def test_hardware_without_a_driver_is_unknown_time(cluster: Cluster) -> None:
    node = {"cluster": "c", "day": DAY, "start_at": START, "end_at": END, "accelerator_resources": "", "accelerator_pod_count": 0}
    cluster.device("GPU-a", *PLAIN)
    cluster.insert("node_day", **node, node_name="n1", accelerator_count=1, hardware_make="nvidia", driver_version="550")
    cluster.insert("node_day", **node, node_name="n9", accelerator_count=0, hardware_make="nvidia", driver_version="")
    assert cluster.reason("any", "n9")[0] == "no_driver"
