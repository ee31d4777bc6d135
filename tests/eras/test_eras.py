"""The same eight minutes of one GPU, told in each era's names and units and through each habit of labels: the same facts."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import duckdb
import oracle
import pytest
from built_once import built_once
from golden_case import Row, gpureport, report_rows
from report_tables import keep_tables

from eras import exporters, holders, targets
from eras import rewriting as era
from eras.comparing import ANY, EMPTY_OR_SAME, KEYS, Era, differences
from eras.names import LATER_DRIVER
from eras.recording import MARKED, Series, marked, openmetrics, recorded, samples, unmarked

NOT_THERE = "not_collected"
# dcgm-exporter 1.x had these fields neither by default nor under an old name.
LOST_BEFORE_2 = {
    "sm_active": NOT_THERE,
    "sm_occupancy": NOT_THERE,
    "nvlink": NOT_THERE,
    "throttle": NOT_THERE,
    "violations": NOT_THERE,
    # Used and free alone are less than the total by what the driver reserves.
    "memory_total": NOT_THERE,
}
# Whom nobody names nothing can be attributed to; and without holders the minute after one left counts as idle.
NOBODYS_ENERGY = {"idle_joules": ANY, "attributed_joules": 0.0, "unattributed_joules": ANY}
# nvidia-smi has no profiling counters, no violation counters, no PCIe replays by these names; XIDs are there once one happens.
LOST_TO_NVIDIA_SMI = {
    "unheld": "no_permission",
    "gpu_usage": NOT_THERE,
    "sm_active": NOT_THERE,
    "sm_occupancy": NOT_THERE,
    "tensor_active": NOT_THERE,
    "dram_active": NOT_THERE,
    "pcie": NOT_THERE,
    "nvlink": NOT_THERE,
    "violations": NOT_THERE,
    "xid": NOT_THERE,
    "pcie_replay": NOT_THERE,
}
# AMD's exporter names pods, but has no XIDs, no bitmask and no violation counters of these names; its profiler was not on.
LOST_TO_AMD = {**{lost: why for lost, why in LOST_TO_NVIDIA_SMI.items() if lost != "unheld"}, "throttle": NOT_THERE}
NO_UID = {"pod_uid": EMPTY_OR_SAME}
GUESSED_SHARING = {"sharing_mode": "time-sliced?", "sharing_evidence": ANY}

ERAS = {
    "as recorded": Era(era.as_recorded),
    "1.x names and labels": Era(era.with_old_namespace, lost=LOST_BEFORE_2, says=NO_UID),
    "2.x empty labels when idle": Era(era.with_empty_labels_when_idle, says=NO_UID),
    # Whole joules are floored: a device's first and last sample are each up to 1 J too low.
    "4.9 names and units": Era(era.with_dcgm_4_7_names, energy_within_joules=2),
    "4.6 ratios in percent": Era(era.with_ratios_in_percent),
    "exported labels": Era(era.with_exported_labels),
    "exported labels of an unknown exporter": Era(era.with_exported_labels_of_an_unknown_exporter),
    "hostname in lower case": Era(era.with_lower_case_hostname),
    "node of the scrape": Era(era.with_node_of_the_scrape),
    "uuids without prefix": Era(era.with_uuids_without_prefix),
    "two replicas": Era(targets.through_two_replicas),
    "two replicas with outages": Era(targets.through_two_replicas_with_outages),
    "two jobs": Era(targets.through_two_jobs),
    "two servers half a second apart": Era(targets.through_two_servers),
    "last pod wins in turn": Era(holders.with_the_last_pod_named, says={**NO_UID, **GUESSED_SHARING}),
    "no virtual GPUs": Era(
        holders.with_one_pod_named, says={**NO_UID, "sharing_mode": ANY, "sharing_evidence": ANY}, may_lack_containers=True
    ),
    "exporter restarts": Era(targets.with_a_restarted_exporter),
    "exporters overlap": Era(targets.with_exporters_that_overlap),
    "driver changes": Era(targets.with_another_driver, says={"driver_version": LATER_DRIVER}),
    "nvidia_gpu_exporter": Era(
        exporters.through_nvidia_smi, lost=LOST_TO_NVIDIA_SMI, says={"gpu_device": "", **NOBODYS_ENERGY}, may_lack_containers=True
    ),
    "beside nvidia_gpu_exporter": Era(exporters.beside_nvidia_smi),
    "AMD device-metrics-exporter": Era(
        exporters.through_amds_exporter,
        lost=LOST_TO_AMD,
        says={**NO_UID, "sharing_mode": ANY, "sharing_evidence": ANY, "gpu_device": "", "pci_bus_id": "", "driver_version": ""},
        may_lack_containers=True,
    ),
}
ON_MIG = "MIG copies"
ALONE = ("4.6 ratios in percent", "nvidia_gpu_exporter")
"""A metric has one unit in a cluster; and where no series names a pod, that is the reason of what is unknown."""


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eras in one lake, those that can as GPUs of one cluster; its folder, with tables of the day's report beside it."""
    return built_once("eras", tell, request, tmp_path_factory)


def tell(folder: Path) -> None:
    lake = str(folder / "lake")
    rewritings = {name: each.rewrite for name, each in ERAS.items()} | {ON_MIG: exporters.with_copies_on_mig_instances}
    told: dict[str, list[Series]] = defaultdict(list)
    for number, (name, rewrite) in enumerate(rewritings.items(), 1):
        told[cluster_of(name)] += marked(rewrite(recorded()), number)
    for cluster, series in told.items():
        file = folder / f"{cluster}.txt"
        file.write_text(openmetrics(series))
        gpureport("import", str(file), "--cluster", cluster, "--lake", lake)
    gpureport("compute", "--date", "2026-11-20", "--lake", lake)
    keep_tables(folder / "lake", "2026-11-20", None, [f"report.{table}" for table in KEYS], folder / "tables.duckdb")


def cluster_of(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name) if name in ALONE else "together"


def number_of(name: str) -> int:
    return [*ERAS, ON_MIG].index(name) + 1


@cache
def all_rows(told: Path, table: str) -> list[Row]:
    return report_rows(told / "tables.duckdb", table)


def rows_of(told: Path, table: str, name: str) -> list[Row]:
    """An era's rows, under the recording's names."""
    number = number_of(name)
    device, namespace = MARKED["58cba95d-ca2a"].format(number), f"~{number}"
    texts = ((row, [cell for cell in row.values() if isinstance(cell, str)]) for row in all_rows(told, table))
    found = [row for row, cells in texts if any(device in cell or cell.endswith(namespace) for cell in cells)]
    return [{key: unmarked(value, number) for key, value in row.items()} for row in found]


@pytest.mark.parametrize("table", KEYS)
@pytest.mark.parametrize("name", ERAS)
def test_every_era_tells_the_same_facts_or_says_why_not(name: str, table: str, told: Path) -> None:
    wrong = differences(table, ERAS[name], rows_of(told, table, "as recorded"), rows_of(told, table, name))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ERAS)
def test_nothing_of_a_real_gpu_is_taken_for_a_lie(name: str, told: Path) -> None:
    """Its PCIe phase (GPU_UTIL 100, engine 0) and its held contexts are true; only copies are left out."""
    files = told / "lake" / "device_signal" / f"cluster={cluster_of(name)}" / "**" / "*.parquet"
    device = f"%{MARKED['58cba95d-ca2a'].format(number_of(name))}%"
    with duckdb.connect() as con:
        signals = "select signal, sample_count, dropped from read_parquet(?) where device_uuid like ?"
        rows = con.execute(signals, [str(files), device]).fetchall()
    assert rows
    assert {reason for *_, dropped in rows for reason, count in dropped.items() if count} <= {"copy"}
    assert min(count for _, count, _ in rows) >= 239


def test_the_recording_itself_is_what_the_oracle_makes_of_it(told: Path) -> None:
    """So the eras are not merely wrong in the same way."""
    [truth] = oracle.devices(samples()).values()
    [device] = rows_of(told, "device", "as recorded")
    expected = oracle.device_figures(truth)
    assert device["xid_codes"] == expected.pop("xid_codes")
    assert {name: device[name] for name in expected} == pytest.approx(expected, rel=1e-8, abs=1e-12)


OF_THE_BOARD = (
    "energy",
    "counter",
    "attribution",
    "power",
    "temperature",
    "clocks",
    "pcie",
    "nvlink",
    "violations",
    "throttle",
    "xid",
    "pcie_replay",
    "gpu_util",
)
OF_THE_INSTANCE = ("gpu_usage", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "memory", "memory_total")
LOST_ON_MIG = {
    "instance": dict.fromkeys(OF_THE_BOARD, "board_scope"),
    # Nothing said how busy the whole GPU was: NVML's utilisation does not exist under MIG.
    "gpu": {**dict.fromkeys(OF_THE_INSTANCE, "instance_scope"), "unheld": "instance_scope", "gpu_util": NOT_THERE},
}


@pytest.mark.parametrize(("kind", "instance_id"), [("gpu", ""), ("instance", "1")])
def test_a_board_value_that_stands_on_every_mig_instance_counts_once_and_an_instances_own_stays_its_own(
    kind: str, instance_id: str, told: Path
) -> None:
    says = {"kind": "gpu" if kind == "gpu" else "mig", "gpu_instance_id": instance_id, "gpu_instance_profile": ANY}
    if kind == "instance":
        # The board's links and energy are no instance's.
        says |= {"nvlink_source": "", "energy_method": "none", "corrected_sample_count": None, "corrected_joules": None}
    [original] = rows_of(told, "device", "as recorded")
    found = [row for row in rows_of(told, "device", ON_MIG) if row["gpu_instance_id"] == instance_id]
    told_on_mig = Era(exporters.with_copies_on_mig_instances, lost=LOST_ON_MIG[kind], says=says, keeps_reasons=False)
    wrong = differences("device", told_on_mig, [{**original, "gpu_instance_id": instance_id}], found)
    assert not wrong, "\n".join(wrong)


def test_the_holder_of_a_mig_instance_has_the_instances_activity_and_the_boards_throttling(told: Path) -> None:
    [original] = [row for row in rows_of(told, "container_saturation", "as recorded") if row["pod"] == "train-llm-0"]
    says = {
        "gpu_instance_id": "1",
        "sharing_mode": "mig",
        "sharing_evidence": ANY,
        "throttle_scope": "board",
        "memory_scope": "instance",
        "scope": ANY,
    }
    told_on_mig = Era(exporters.with_copies_on_mig_instances, lost={"gpu_util": "board_scope"}, says=says)
    found = rows_of(told, "container_saturation", ON_MIG)
    wrong = differences("container_saturation", told_on_mig, [{**original, "gpu_instance_id": "1"}], found)
    assert not wrong, "\n".join(wrong)
