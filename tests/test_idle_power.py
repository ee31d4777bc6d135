"""What a GPU draws at idle: by its own free time of four weeks, its model elsewhere, the configuration; never by later days."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from few_facts import compute_only

from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.compute.idle_power import later_days_without
from gpureport.compute.query import connection
from gpureport.config import load_config
from gpureport.lake import Lake, open_lake, views
from gpureport.values.errors import UsageError
from gpureport.values.tables import DEVICE_LABEL, DEVICE_SAMPLE, OWNER_LABEL, Table

DAY = date(2026, 3, 28)
Idle = tuple[float | None, str]


def fill(lake: Lake, cluster: str, day: date, parts: list[dict[str, tuple[float, bool]]], model: str = "M") -> None:
    """A day of GPUs of one model, or each of its own, part by part: an hour at so many watts each, held and busy or free."""
    with lake.change() as change:
        for number, gpus in enumerate(parts):
            rows = [hour(device, day, watts, is_allocated, model or device) for device, (watts, is_allocated) in gpus.items()]
            names = {0: DEVICE_SAMPLE, 1: OWNER_LABEL, 2: DEVICE_LABEL}
            for position, table in names.items():
                found = [row[position] for row in rows if row[position]]
                change.write(table.name, cluster, day, arrow(table, found), number)


def hour(
    device: str, day: date, watts: float, is_allocated: bool, model: str
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]:
    start = datetime(day.year, day.month, day.day)
    times = {"start_at": start, "end_at": start + timedelta(hours=1)}
    key = {"device_uuid": device, "gpu_instance_id": ""}
    sample = {**key, "seen_at": start, "held_seconds": 3600.0, "is_carried": False, "is_step_guessed": False, "joined_count": 0}
    signals = {"power_watts": watts, "gpu_util_ratio": 1.0 if is_allocated else 0.0}
    owner = {**key, "namespace": "ns", "pod": "a", "pod_uid": "", "container": "main", **times}
    label = {**dict.fromkeys(DEVICE_LABEL.schema.names, ""), **key, **times, "gpu_model": model}
    return {**sample, **signals}, owner if is_allocated else None, label


def arrow(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in table.schema.names} for row in rows], schema=table.schema)


FREE_ON = {"GPU-28": -28, "GPU-27": -27, "GPU-1": -1, "GPU-later": 1}
"""When a GPU of a model of its own was free at 80 W, in days from that on which it was busy."""
CONFIGURED = {"GPU-a": 50.0, "M": 60.0, "all": 70.0}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Of clusters by what is asked of them; what is configured is of ``configured`` alone, for free time is learned as it was."""
    lake = open_lake(tmp_path_factory.mktemp("idle") / "lake", create=True)
    for device, days in FREE_ON.items():
        fill(lake, "borrows", DAY + timedelta(days=days), [{device: (80.0, False)}], model="")
    fill(lake, "borrows", DAY, [{device: (300.0, True)} for device in FREE_ON], model="")
    fill(lake, "parts", DAY, [{"GPU-a": (300.0, True)}, {"GPU-b": (70.0, False), "GPU-c": (74.0, False), "GPU-d": (90.0, False)}])
    fill(lake, "configured", DAY, [{"GPU-a": (80.0, False), "GPU-b": (80.0, False)}])
    fill(lake, "other-model", DAY, [{"GPU-c": (80.0, False)}], model="N")
    others = [("borrows", DAY + timedelta(days=days)) for days in FREE_ON.values()]
    before = [*others, ("configured", DAY), ("other-model", DAY)]
    with pytest.MonkeyPatch.context() as patch:
        compute_only(patch, "facts.idle_power_hour", "facts.device_power_hour")
        assert compute_days(lake, before, ComputeSettings(idle_watts=CONFIGURED)).failures == []
        assert compute_days(lake, [("borrows", DAY), ("parts", DAY)], ComputeSettings()).failures == []
    return lake


def idle(lake: Lake, cluster: str) -> dict[str, Idle]:
    """Of each device of the day what it is taken to draw at idle, and by what."""
    with connection() as con:
        views(con, lake.of_cluster(cluster), ["facts/device_power_hour"], dates=[DAY])
        found = con.execute("select device_uuid, idle_watts, idle_source from facts.device_power_hour").fetchall()
    return {device: (watts, source) for device, watts, source in found}


def test_a_day_without_free_time_borrows_from_the_27_days_before_it_and_never_from_a_later_one(computed: Lake) -> None:
    assert idle(computed, "borrows") == {
        "GPU-1": (80.0, "observed"),
        "GPU-27": (80.0, "observed"),
        "GPU-28": (None, "unknown"),
        "GPU-later": (None, "unknown"),
    }


def test_days_that_were_made_without_an_earlier_one_are_named(tmp_path: Path) -> None:
    empty = open_lake(tmp_path / "lake", create=True)
    with empty.change() as change:
        for days in (0, 1, 28):
            change.write("facts/idle_power_hour", "c", DAY + timedelta(days), pa.table({"device_uuid": ["GPU-a"]}))
    # Baselines read 27 days back: that of the 28th day on from DAY reads neither DAY nor what was before it.
    assert later_days_without(empty, "c", DAY - timedelta(2)) == [DAY, DAY + timedelta(1)]
    assert later_days_without(empty, "other", DAY - timedelta(2)) == []
    assert later_days_without(empty, "c", DAY) == []  # there already: made in turn, or now made again


def test_the_same_model_in_another_part_serves(computed: Lake) -> None:
    assert idle(computed, "parts")["GPU-a"] == (74.0, "same_model")


def test_what_is_configured_comes_first_by_device_then_model_then_all(computed: Lake) -> None:
    assert idle(computed, "configured") == {"GPU-a": (50.0, "configured"), "GPU-b": (60.0, "configured")}
    assert idle(computed, "other-model") == {"GPU-c": (70.0, "configured")}


def test_the_configuration_takes_idle_watts_by_name_and_refuses_what_is_no_power(tmp_path: Path) -> None:
    file = tmp_path / "gpureport.toml"
    file.write_text('[power.idle_watts]\n"NVIDIA H200" = 84\nall = 60\n')
    config, _ = load_config(file, {}, {})
    assert config.power.idle_watts == {"NVIDIA H200": 84.0, "all": 60.0}
    file.write_text('[power.idle_watts]\n"NVIDIA H200" = -1\n')
    with pytest.raises(UsageError, match=r"power\.idle_watts"):
        load_config(file, {}, {})
