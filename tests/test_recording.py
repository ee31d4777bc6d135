"""The recording of a real H200 under four workloads: every figure against the oracle, and against what the four did."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import oracle
import pytest
from golden_case import Row, gpureport, report_rows, rows_of
from lake_rows import seen
from report_tables import report_tables

FOLDER = Path(__file__).parent.parent / "data" / "fixtures" / "h200-recording"
RECORDING = FOLDER / "metrics.openmetrics.txt.gz"
TRUTH = json.loads((FOLDER / "ground_truth.json").read_text())
PODS = [each["pod"] for each in TRUTH["pods"]]
NINE_DIGITS = 5e-9
GIB = 1024.0**3


@pytest.fixture(scope="module")
def database(recorded: Path) -> Path:
    return recorded / "out" / "gpureport.duckdb"


@pytest.fixture(scope="module")
def containers(database: Path) -> dict[str, Row]:
    return {row["pod"]: row for row in report_rows(database, "container_saturation")}


@pytest.fixture(scope="module")
def device(database: Path) -> Row:
    [row] = report_rows(database, "device")
    return row


@pytest.fixture(scope="module")
def truth() -> oracle.Device:
    [found] = oracle.devices(oracle.read_openmetrics(RECORDING)).values()
    return found


def lake_digests(lake: Path) -> dict[str, str]:
    """The digest of every file that a reader finds."""
    return {name: sha256(data).hexdigest() for name, data in seen(lake).items()}


def assert_figures(row: Row, expected: oracle.Figures) -> None:
    wrong = {name: (row[name], value) for name, value in expected.items() if not is_close(row[name], value)}
    assert not wrong, f"(reported, oracle) = {wrong}"


def is_close(value: Any, expected: Any) -> bool:
    if expected is None or isinstance(expected, list):
        return bool(value == expected)
    return value is not None and bool(value == pytest.approx(expected, rel=NINE_DIGITS, abs=1e-12))


@pytest.mark.parametrize("pod", PODS)
def test_every_figure_of_a_container_is_the_oracles(pod: str, containers: dict[str, Row], truth: oracle.Device) -> None:
    [owner] = [owner for owner in truth.owners if owner[1] == pod]
    assert_figures(containers[pod], oracle.container_figures(truth, owner))


def test_every_figure_of_the_device_is_the_oracles(device: Row, truth: oracle.Device) -> None:
    assert_figures(device, oracle.device_figures(truth))


def test_the_device_adds_up_to_480_seconds_and_what_its_counter_measured(device: Row) -> None:
    assert device["observed_seconds"] == 480
    assert device["energy_joules"] == pytest.approx(149_906.558, rel=NINE_DIGITS)


def test_the_training_pod_was_power_capped_and_its_memory_full_as_known(containers: dict[str, Row]) -> None:
    trainer = containers["train-llm-0"]
    assert trainer["observed_seconds"] == 406
    assert trainer["power_violation_ratio"] == pytest.approx(0.234, abs=0.0005)
    assert trainer["memory_pressure_ratio"] == pytest.approx(0.113, abs=0.0005)


@pytest.mark.parametrize("pod", TRUTH["pods"], ids=lambda pod: pod["pod"])
def test_each_process_was_seen_for_as_long_as_it_ran(pod: dict[str, Any], containers: dict[str, Row]) -> None:
    row = containers[pod["pod"]]
    assert (row["namespace"], row["pod_uid"], row["container"]) == (pod["namespace"], pod["uid"], pod["container"])
    assert row["device_uuid"] == TRUTH["gpu"]["uuid"]
    # 1 Hz scrapes see a start and an end up to a second late each.
    assert row["observed_seconds"] == pytest.approx(pod["end"] - pod["start"], abs=1.001)
    assert row["sharing_mode"] == "time-sliced"


def test_memory_was_fullest_while_the_trainer_held_128_gib(database: Path, containers: dict[str, Row], recorded: Path) -> None:
    # hold 45 gib=128 ran while all four shared the device, hold 40 gib=60 while the trainer had it alone.
    assert {row["memory_used_ratio_max"] for row in containers.values()} == {containers["train-llm-0"]["memory_used_ratio_max"]}
    seen = during(
        recorded / "lake", command("hold 45"), "max(fb_used_bytes) as used, max(fb_used_bytes + fb_free_bytes) as total"
    )
    assert 128 * GIB <= seen["used"] < 136 * GIB
    assert containers["train-llm-0"]["memory_used_ratio_max"] == pytest.approx(seen["used"] / seen["total"], rel=NINE_DIGITS)
    alone = during(recorded / "lake", command("hold 40"), "max(fb_used_bytes) as used")
    assert 60 * GIB <= alone["used"] < 64 * GIB


def test_the_pod_that_computed_alone_saw_the_tensor_cores_work_most(containers: dict[str, Row]) -> None:
    """The trainer's 80 s of matrix products came before the others started; they shared only its half-duty minute."""
    others = [row["tensor_active_avg"] for pod, row in containers.items() if pod != "train-llm-0"]
    assert containers["train-llm-0"]["tensor_active_avg"] > 3 * max(others)


def test_each_kind_of_work_shows_where_it_must(recorded: Path) -> None:
    lake = recorded / "lake"
    columns = (
        "avg(tensor_active_ratio) as tensor, avg(dram_active_ratio) as dram, avg(power_watts) as watts, "
        "avg(pcie_rx_bytes_per_second) as pcie, avg(gr_engine_active_ratio) as engine, avg(fp32_active_ratio) as fp32"
    )
    gemm, copy, pcie, fp32, hold = (
        during(lake, command(name), columns) for name in ("gemm 80", "copy 40", "pcie 30", "fp32 30", "hold 40")
    )
    assert gemm["tensor"] > 0.5
    assert max(copy["tensor"], pcie["tensor"], hold["tensor"]) < 0.01
    assert gemm["watts"] > 650
    assert copy["dram"] > 0.6 > gemm["dram"]
    assert pcie["pcie"] > 10e9
    assert max(gemm["pcie"], copy["pcie"], hold["pcie"]) < 1e9
    assert pcie["engine"] < 0.01
    assert fp32["fp32"] > 0.3
    assert max(copy["fp32"], pcie["fp32"], hold["fp32"]) < 0.01
    assert 100 < hold["watts"] < 150 and hold["engine"] < 0.01


def test_only_the_time_of_the_pcie_copies_gives_the_loaders_neighbours_their_pcie_mean(containers: dict[str, Row]) -> None:
    """The copies ran while trainer, vllm and loader were there and before the notebook came: same bytes over other times."""
    moved = {pod: row["pcie_rx_bytes_per_second_avg"] * row["observed_seconds"] for pod, row in containers.items()}
    assert moved["infer-0"] == pytest.approx(moved["train-llm-0"], rel=0.01)
    assert moved["loader-0"] == pytest.approx(moved["train-llm-0"], rel=0.01)
    assert moved["jupyter-0"] < 0.1 * moved["loader-0"]


def command(text: str) -> tuple[float, float]:
    """When a command ran: from two seconds after it was given to two seconds before it was to end."""
    [found] = [each for each in TRUTH["commands"] if each["cmd"].startswith(text)]
    return found["t"] + 2, found["t"] + float(text.split()[1]) - 2


def during(lake: Path, period: tuple[float, float], columns: str) -> Row:
    """Aggregates over the device's samples of a period."""
    start, end = (datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None) for seconds in period)
    files = str(lake / "device_sample" / "**" / "*.parquet")
    with duckdb.connect() as con:
        found = con.execute(f"select {columns} from read_parquet(?) where seen_at >= ? and seen_at < ?", [files, start, end])
        return rows_of(found)[0]


SHIFTS = {"crosses-midnight": 5.0, "begins-10-s-after-midnight": 8.5, "crosses-23": -55.0}
"""How many minutes later."""


def test_the_same_minutes_at_another_time_of_day_give_the_same_totals(
    containers: dict[str, Row], device: Row, tmp_path: Path
) -> None:
    """Each a cluster of one lake."""
    lake, days = tmp_path / "lake", ("2026-11-20", "2026-11-22")
    for cluster, minutes in SHIFTS.items():
        gpureport("import", shift(RECORDING, minutes * 60, tmp_path), "--cluster", cluster, "--lake", lake)
    gpureport("compute", "--since", days[0], "--until", days[1], "--lake", lake)
    with report_tables(lake, *days) as report:
        rows, devices = (rows_of(report.execute(f"from report.{table}")) for table in ("container_saturation", "device"))
    for cluster in SHIFTS:
        found = [row for row in rows if row["cluster"] == cluster]
        assert len(found) == len(containers)
        for row in found:
            assert_same_row(row, {**containers[row["pod"]], "cluster": cluster})
        [moved] = [row for row in devices if row["cluster"] == cluster]
        assert_same_row({**moved, "coverage_ratio": None}, {**device, "coverage_ratio": None, "cluster": cluster})


def shift(recording: Path, seconds: float, folder: Path) -> Path:
    """The recording, its clock moved: the instants of its samples, and those that its samples tell."""

    def moved(match: re.Match[bytes]) -> bytes:
        return b" %.3f\n" % (float(match[1]) + seconds)

    def moved_value(match: re.Match[bytes]) -> bytes:
        return b"%s %d " % (match[1], int(match[2]) + seconds)

    path = folder / "shifted.txt"
    text = re.sub(rb" (\d{10}\.\d{3})\n", moved, gzip.decompress(recording.read_bytes()))
    path.write_bytes(re.sub(rb"(?m)^(kube_pod_(?:created|start_time|completion_time)\{.*\}) (\d{10}) ", moved_value, text))
    return path


def assert_same_row(row: Row, expected: Row) -> None:
    assert row.keys() == expected.keys()
    wrong = {name: (row[name], value) for name, value in expected.items() if not is_same_cell(row[name], value)}
    assert not wrong, f"(shifted, recorded) = {wrong}"


def is_same_cell(value: Any, expected: Any) -> bool:
    """Equal; numbers to the 9 digits that are printed, for sums of parts round otherwise than sums of wholes."""
    if isinstance(expected, float) and value is not None:
        return bool(value == pytest.approx(expected, rel=2 * NINE_DIGITS, abs=1e-12))
    return bool(value == expected)


def test_importing_the_same_file_twice_changes_nothing(recorded: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(recorded / "lake", tmp_path / "lake")
    gpureport("import", RECORDING, "--cluster", "lab", "--lake", lake)
    assert lake_digests(lake) == lake_digests(recorded / "lake")


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The recording cut in the middle of its time: half the instants in each file."""
    lines = [line for line in gzip.decompress(RECORDING.read_bytes()).decode().splitlines() if not line.startswith("#")]
    middle, folder = (TRUTH["start"] + TRUTH["end"]) / 2, tmp_path_factory.mktemp("halves")
    found: tuple[list[str], list[str]] = ([], [])
    for line in lines:
        found[float(line.rpartition(" ")[2]) >= middle].append(line)
    paths = folder / "early.txt", folder / "late.txt"
    for path, half in zip(paths, found, strict=True):
        path.write_text("\n".join([*half, "# EOF\n"]))
    return paths


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["early half first", "late half first"])
def test_halves_imported_one_after_the_other_give_the_lake_of_the_whole(
    order: tuple[int, int], recorded: Path, halves: tuple[Path, Path], tmp_path: Path
) -> None:
    for number in order:
        gpureport("import", halves[number], "--cluster", "lab", "--lake", tmp_path / "parts")
    whole = lake_digests(recorded / "lake")
    assert lake_digests(tmp_path / "parts") == {name: whole[name] for name in whole if not name.startswith("facts/")}
