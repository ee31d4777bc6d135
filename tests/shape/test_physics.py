"""What no board does is not believed: golden cases of known faults, and the property that one value cannot spoil a total."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shape.test_shape import CATALOG, every, gpu, run

from gpureport.collect.shape import Shaped
from gpureport.values.catalog import Meaning
from gpureport.values.tables import SIGNALS, Signal
from gpureport.values.tables.telemetry import SIGNAL_BY_NAME

WATTS = 300.0
STEP = 30.0
COUNT = 61
TRUTH = WATTS * STEP * (COUNT - 1)
MILLI = 1000.0  # DCGM counts millijoules


def counter(start: float, values: list[float] | None = None) -> list[float]:
    return values or [MILLI * (start + WATTS * STEP * number) for number in range(COUNT)]


def joules(shaped: Shaped) -> float:
    """The rule of energy: the counter's growth, growth over gaps, and where the counter tells nothing, power."""
    found = shaped.device_sample.to_pylist()
    grown = sum(row["energy_joules_increase"] or 0 for row in found)
    gaps = sum(row["energy_joules_gap_increase"] or 0 for row in found)
    by_power = sum(
        (row["power_watts"] or 0) * row["held_seconds"]
        for row in found[:-1]  # the last sample's time is nobody's measurement
        if row["energy_joules"] is None and row["energy_joules_increase"] is None
    )
    return float(grown + gaps + by_power)


def energy(values: list[float], watts: list[float] | None = None) -> Shaped:
    power = watts or [WATTS] * COUNT
    return run(
        (gpu("DEV_TOTAL_ENERGY_CONSUMPTION"), every(STEP, values)),
        (gpu("DEV_POWER_USAGE"), every(STEP, power)),
        (gpu("DEV_ENFORCED_POWER_LIMIT"), every(STEP, [700.0] * COUNT)),
    )


def dropped(shaped: Shaped, signal: str) -> dict[str, int]:
    [row] = [row for row in shaped.device_signal.to_pylist() if row["signal"] == signal]
    return dict(row["dropped"])


def changed(values: list[float], at: int, value: float) -> list[float]:
    return [value if number == at else each for number, each in enumerate(values)]


def fallen(start: float, at: int, by: float) -> list[float]:
    return [each - (MILLI * by if number >= at else 0) for number, each in enumerate(counter(start))]


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        # amdsmi 115: the counter goes back by 1 J and on from there.
        pytest.param(fallen(2.6e9, 30, 1 + WATTS * STEP), {"backward_step": 1}, id="a step back of an old counter"),
        # A young counter goes back by 25 kJ: what stands after it is more than can have come in 30 s.
        pytest.param(fallen(1.9e6, 30, 25_000), {"backward_step": 1}, id="a step back of a young counter"),
        pytest.param(changed(counter(2.6e9), 30, 0.0), {"outlier": 1}, id="reads 0 once"),
        pytest.param(changed(counter(2.6e9), 30, 9.2e18), {"outlier": 1}, id="reads the largest integer once"),
        pytest.param(changed(counter(2.6e9), 0, 0.0), {"beyond_bound": 1}, id="reads 0 first"),
        pytest.param(changed(counter(2.6e9), COUNT - 1, 9.1e18), {"beyond_bound": 1}, id="reads the largest integer last"),
        # amdsmi 38, rocm_smi_lib 180: stuck for 20 of 30 minutes, then it goes on as if nothing had been.
        pytest.param(
            [MILLI * (2.6e9 + WATTS * STEP * max(0, number - 40)) for number in range(COUNT)], {"stuck": 40}, id="stuck"
        ),
        # Stuck, and then what it missed in one step.
        pytest.param(
            [MILLI * (2.6e9 + WATTS * STEP * (0 if number < 40 else number)) for number in range(COUNT)],
            {"stuck": 40},
            id="stuck and caught up",
        ),
        pytest.param([each / 1000 for each in counter(2.6e9)], {"stuck": 60}, id="joules under a name of millijoules"),
        pytest.param(
            [each if number < 30 else each / 1000 for number, each in enumerate(counter(2.6e9))],
            {"coarser_unit": 31},
            id="from millijoules to joules",
        ),
        pytest.param(
            [each if number >= 30 else each / 1000 for number, each in enumerate(counter(2.6e9))],
            {"coarser_unit": 30},
            id="from joules to millijoules",
        ),
        # A tenth and a fifth of what power shows all the time: one of the two is wrong, and no board draws so little under load.
        pytest.param(
            [MILLI * (2.6e9 + 0.1 * WATTS * STEP * number) for number in range(COUNT)], {"stuck": 60}, id="a tenth of power"
        ),
        pytest.param(
            [MILLI * (2.6e9 + 0.2 * WATTS * STEP * number) for number in range(COUNT)], {"stuck": 60}, id="a fifth of power"
        ),
        pytest.param(
            [0.0 if number in (30, 31) else each for number, each in enumerate(counter(2.6e9))],
            {"outlier": 2},
            id="reads 0 twice",
        ),
        pytest.param(
            [{30: 0.0, 31: 9e18}.get(number, each) for number, each in enumerate(counter(2.6e9))],
            {"outlier": 2},
            id="0, then 9e18",
        ),
        # The driver is loaded anew: what the counter has grown to since is less than what power tells of that step.
        pytest.param(counter(2.6e9)[:30] + [MILLI * (4000 + 9000 * number) for number in range(31)], {}, id="reset"),
    ],
)
def test_energy_is_right_beside_a_counter_that_is_not(values: list[float], reasons: dict[str, int]) -> None:
    shaped = energy(values)
    assert joules(shaped) == pytest.approx(TRUTH, rel=1e-9)
    assert dropped(shaped, "energy_joules") == reasons


@pytest.mark.parametrize(
    ("last_watts", "jump", "total"),
    [
        # 70 W all the time: 20 steps (42 kJ by power) without growth, then all of it in one step, which the board could draw.
        pytest.param(70.0, 21 * 70 * STEP, 60 * 70 * STEP, id="caught up"),
        # It goes on without what it missed.
        pytest.param(70.0, 70 * STEP, 60 * 70 * STEP, id="as if nothing had been"),
        # Work begins in the step after: 600 W x 30 s, of which 70 W at its start tell little.
        pytest.param(600.0, 600 * STEP, (29 * 70 + 31 * 600) * STEP, id="work begins"),
    ],
)
def test_a_stuck_counter_of_an_idle_board_adds_its_time_once(last_watts: float, jump: float, total: float) -> None:
    before, after = [70 * STEP * min(number, 9) for number in range(30)], [last_watts * STEP * number for number in range(31)]
    values = [MILLI * (1e6 + each) for each in [*before, *(before[-1] + jump + each for each in after)]]
    shaped = energy(values, [70.0] * 30 + [last_watts] * 31)
    assert joules(shaped) == pytest.approx(total, rel=1e-9)
    assert dropped(shaped, "energy_joules")["stuck"] >= 20


def test_copies_of_a_counter_that_differ_and_drop_out_are_no_steps_back() -> None:
    """dcgm-exporter 317: each MIG instance prints the board's counter, some of them 5.3 J behind."""
    high = [sample for number, sample in enumerate(every(STEP, counter(1e6))) if number not in (20, 40, 41)]
    low = [(at, value - 5_300) for at, value in every(STEP, counter(1e6))]
    shaped = run(
        (gpu("DEV_TOTAL_ENERGY_CONSUMPTION", GPU_I_ID="1"), high), (gpu("DEV_TOTAL_ENERGY_CONSUMPTION", GPU_I_ID="2"), low)
    )
    assert joules(shaped) == pytest.approx(TRUTH, rel=1e-9)


@pytest.mark.parametrize("model", ["", "NVIDIA H200"])
def test_a_reset_without_power_is_one_only_to_what_can_have_come_since(model: str) -> None:
    values = counter(2.6e9)[:30] + [MILLI * (4000 + 9000 * number) for number in range(31)]
    shaped = run((gpu("DEV_TOTAL_ENERGY_CONSUMPTION", modelName=model), every(STEP, values)))
    # 29 steps before, 4 kJ known of the reset's own step, 30 steps after it.
    assert joules(shaped) == pytest.approx(29 * 9000 + 4000 + 30 * 9000, rel=1e-9)
    assert dropped(shaped, "energy_joules") == {}


def test_a_counter_that_stands_still_while_its_board_is_on_tells_nothing() -> None:
    shaped = run((gpu("DEV_TOTAL_ENERGY_CONSUMPTION", modelName="NVIDIA H200"), every(STEP, [2.6e12] * COUNT)))
    assert {row["energy_joules_increase"] for row in shaped.device_sample.to_pylist()} == {None}
    assert dropped(shaped, "energy_joules") == {"stuck": 60}


def test_a_missing_sensor_of_an_unknown_model_is_no_energy() -> None:
    """Power and energy are 0 for five hours, in which any board that is on draws 1 W: 18 kJ."""
    amd = {"serial_number": "S", "gpu_partition_id": "0", "job": "amd"}
    names = ("gpu_average_package_power", "gpu_energy_consumed", "gpu_gfx_activity")
    values = ([0.0] * 61, [0.0] * 61, [50.0] * 61)
    shaped = run(*(({**amd, "__name__": name}, every(300, each)) for name, each in zip(names, values, strict=True)))
    found = shaped.device_sample.to_pylist()
    assert {(row["power_watts"], row["energy_joules_increase"], row["gpu_util_ratio"]) for row in found} == {(None, None, 0.5)}
    assert dropped(shaped, "energy_joules") == {"stuck": 60}


def test_a_staircase_is_no_fault() -> None:
    """An exporter that refreshes every 2 minutes and is scraped every 30 s."""
    values = [MILLI * (2.6e9 + WATTS * STEP * 4 * (number // 4)) for number in range(COUNT)]
    shaped = energy(values)
    assert joules(shaped) == pytest.approx(TRUTH, rel=1e-9)
    assert dropped(shaped, "energy_joules") == {}


@pytest.mark.parametrize("value", [65_535.0, 1e6, 1051.0])
def test_power_beyond_the_bound_is_dropped(value: float) -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE"), every(STEP, changed([WATTS] * COUNT, 7, value))),
        (gpu("DEV_ENFORCED_POWER_LIMIT"), every(STEP, [700.0] * COUNT)),
    )
    assert sum(row["power_watts"] * row["held_seconds"] for row in shaped.device_sample.to_pylist()) == WATTS * STEP * COUNT
    assert dropped(shaped, "power_watts") == {"implausible": 1}


def test_a_power_limit_that_no_board_has_lifts_no_bound() -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE", modelName="NVIDIA H200"), every(STEP, [50, 60_000, 50])),
        (gpu("DEV_ENFORCED_POWER_LIMIT", modelName="NVIDIA H200"), every(STEP, [65_535] * 3)),
    )
    assert [row["power_watts"] for row in shaped.device_sample.to_pylist()] == [50, 50]
    assert dropped(shaped, "power_limit_watts") == {"implausible": 3}


def test_a_model_on_a_series_of_its_own_bounds_power_and_knows_the_memory() -> None:
    """nvidia_gpu_exporter shows the model on its info series alone. A T4 draws at most 1.5 × 70 W and has 16 GiB."""
    smi = {"uuid": "01234567-89ab-cdef-0123-456789abcdef", "instance": "n1:9835"}
    shaped = run(
        ({**smi, "__name__": "nvidia_smi_power_draw_watts"}, every(STEP, [60, 200, 60])),
        ({**smi, "__name__": "nvidia_smi_memory_used_bytes"}, every(STEP, [2**30] * 3)),
        ({**smi, "__name__": "nvidia_smi_gpu_info", "name": "Tesla T4"}, every(STEP, [1] * 3)),
    )
    assert {row["power_watts"] for row in shaped.device_sample.to_pylist()} == {60}
    assert dropped(shaped, "power_watts") == {"implausible": 1}
    assert {row["fb_free_bytes"] for row in shaped.device_sample.to_pylist()} == {15 * 2**30}


@pytest.mark.parametrize(
    ("metric", "value", "signal"),
    [("PROF_PCIE_TX_BYTES", 3.9e12, "pcie_tx_bytes_per_second"), ("DEV_XID_ERRORS", 1_000_000_007, "xid_code")],
)
def test_what_no_link_carries_and_no_code_is_dropped(metric: str, value: float, signal: str) -> None:
    shaped = run((gpu(metric, modelName="NVIDIA H200"), every(STEP, [0, value, 0])))
    assert [row[signal] for row in shaped.device_sample.to_pylist()] == [0, 0]
    assert sum(dropped(shaped, signal).values()) == 1


def test_one_impossible_amount_of_memory_leaves_the_others_their_share() -> None:
    shaped = run((gpu("DEV_FB_USED", modelName="NVIDIA H200"), every(STEP, [1000, 3e6, 1000])))
    rest = 141 * 2**30 - 1000 * 2**20
    assert [row["fb_free_bytes"] for row in shaped.device_sample.to_pylist()] == [rest, None, rest]


def test_memory_of_no_size_is_the_data_sheets() -> None:
    shaped = run(
        (gpu("DEV_FB_USED", modelName="NVIDIA H200"), every(STEP, [1000] * 3)),
        (gpu("DEV_FB_TOTAL", modelName="NVIDIA H200"), every(STEP, [0] * 3)),
    )
    assert {row["fb_used_bytes"] for row in shaped.device_sample.to_pylist()} == {1000 * 2**20}
    assert {row["fb_total_bytes"] for row in shaped.device_sample.to_pylist()} == {141 * 2**30}


def test_memory_in_all_without_a_sample_is_what_it_was() -> None:
    total = [80, float("nan"), *[80] * 4]
    shaped = run((gpu("DEV_FB_USED"), every(STEP, [20] * 6)), (gpu("DEV_FB_TOTAL"), every(STEP, total)))
    assert [row["fb_free_bytes"] for row in shaped.device_sample.to_pylist()] == [60 * 2**20] * 6


@pytest.mark.parametrize(
    "metric", ["DCGM_FI_DEV_POWER_USAGE", "gpu_average_package_power", "xpum_power_watts", "npu_chip_info_power"]
)
def test_a_board_that_is_on_never_draws_nothing(metric: str) -> None:
    """Exporters print 0 where they cannot read, or where another board's sensor counts the power of both."""
    names = {"serial_number": "S", "gpu_partition_id": "0", "id": "0", "dev_name": "0", "uuid": "u"}
    labels = {**gpu(""), **names, "__name__": metric}
    shaped = run((labels, every(STEP, [300, 300, 0, 0, 0, 0])))
    assert [row["power_watts"] for row in shaped.device_sample.to_pylist()] == [300, 300]
    assert dropped(shaped, "power_watts") == {"implausible": 4}
    assert not run((labels, every(STEP, [0, 0]))).device_sample.num_rows


def test_a_link_counter_that_reads_0_once_counts_no_traffic_twice() -> None:
    sent = [1e9 * STEP * number for number in range(COUNT)]
    shaped = run((gpu("PROF_PCIE_TX_BYTES_TOTAL"), every(STEP, changed(sent, 20, 0.0))))
    assert {row["pcie_tx_bytes_per_second"] for row in shaped.device_sample.to_pylist()} == {1e9}


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param({30: 1e18}, id="a spike"),
        pytest.param({40: 0.0}, id="0 once"),
        pytest.param(dict.fromkeys(range(30, 33), 255.0), id="255 for three scrapes"),
        pytest.param(dict.fromkeys(range(30, 45), 1e18), id="the largest for longer than outliers last"),
        pytest.param(dict.fromkeys(range(30, 45), 4294967295.0) | {33: 1e18, 36: 65_535.0}, id="garbage of many sizes"),
    ],
)
def test_an_xid_counter_counts_errors_and_no_garbage(garbage: dict[int, float]) -> None:
    """It comes to 5 by and by, which five errors are, and stands there before and after what it cannot have counted."""
    values = [garbage.get(number, min(number // 4, 5.0)) for number in range(COUNT)]
    shaped = run(({**gpu(""), "__name__": "DCGM_EXP_XID_ERRORS_TOTAL", "xid": "79"}, every(STEP, values)))
    grown = [(row["increase"] or 0.0) + (row["gap_increase"] or 0.0) for row in shaped.sample.to_pylist()]
    assert sum(grown) == 5


@pytest.mark.parametrize("value", [1e-320, 255.0])
def test_a_row_could_not_be_remapped_or_could_and_nothing_else(value: float) -> None:
    shaped = run((gpu("DEV_ROW_REMAP_FAILURE"), every(STEP, [0, value, 0])))
    assert [row["row_remap_failure_count"] for row in shaped.device_sample.to_pylist()] == [0, 0]


def test_a_pods_part_of_a_gpu_is_at_most_all_of_it() -> None:
    labels = {"__name__": "Device_utilization_desc_of_container", "deviceuuid": "GPU-a", "podname": "p", "podnamespace": "ns"}
    shaped = run((labels, every(STEP, [40, 4294967295, 40])))
    assert [row["value"] for row in shaped.sample.to_pylist()] == [0.4, 0.4]


def test_kilowatts_under_a_name_of_watts_are_no_power() -> None:
    shaped = run((gpu("DEV_POWER_USAGE", modelName="NVIDIA H200"), every(STEP, [0.3, 0.07, 0.5])))
    assert dropped(shaped, "power_watts") == {"implausible": 3}


def test_power_under_another_name_serves_where_the_preferred_one_is_none() -> None:
    shaped = run(
        (gpu("DEV_BOARD_POWER_WATTS", modelName="NVIDIA H200"), every(STEP, [0.3] * 3)),
        (gpu("DEV_POWER_USAGE", modelName="NVIDIA H200"), every(STEP, [300] * 3)),
    )
    assert {row["power_watts"] for row in shaped.device_sample.to_pylist()} == {300}


@pytest.mark.parametrize(("model", "kept"), [("NVIDIA H200", 1050.0), ("NVIDIA L4", 108.0), ("a model of tomorrow", 3000.0)])
def test_the_bound_is_the_models_where_no_limit_is_exported(model: str, kept: float) -> None:
    shaped = run((gpu("DEV_POWER_USAGE", modelName=model), every(STEP, [50, kept, kept + 1, 50])))
    assert [row["power_watts"] for row in shaped.device_sample.to_pylist()] == [50, kept, 50]


def test_a_violation_counter_grows_no_faster_than_time() -> None:
    """It reads 0 once, and once jumps by 2^32: a tenth of the time is held back all the same."""
    values = [1e9 * (1e6 + 3 * number) for number in range(COUNT)]
    for at, value in ((20, 0.0), (40, 1e9 * 2**32)):
        shaped = run((gpu("DEV_POWER_VIOLATION"), every(STEP, changed(values, at, value))))
        grown = [row["power_violation_seconds_increase"] for row in shaped.device_sample.to_pylist()]
        assert sum(value for value in grown if value) == pytest.approx(3 * (COUNT - 1))
        assert dropped(shaped, "power_violation_seconds") == {"outlier": 1}


@pytest.mark.parametrize("changes_at", [30, 1, 60])
@pytest.mark.parametrize("factor", [1e-3, 1e-6])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_violation_counter_whose_unit_changes_goes_on(changes_at: int, factor: float, is_first: bool) -> None:
    """Nanoseconds, and microseconds and coarser before or after: 0.1 of the time in violation throughout."""
    values = [5e16 + 0.1e9 * STEP * number for number in range(COUNT)]
    coarse = [each * (factor if (number < changes_at) == is_first else 1) for number, each in enumerate(values)]
    shaped = run((gpu("DEV_POWER_VIOLATION"), every(STEP, coarse)))
    grown = [row["power_violation_seconds_increase"] for row in shaped.device_sample.to_pylist()]
    assert sum(each or 0 for each in grown) == pytest.approx(0.1 * STEP * (COUNT - 1), rel=1e-5)
    assert dropped(shaped, "power_violation_seconds") == {"coarser_unit": changes_at if is_first else COUNT - changes_at}


def test_a_counter_that_grows_too_fast_all_the_time_is_not_believed() -> None:
    """Of 2 s each second, and of 2,000 W where 1,050 can be, the first step may be of a refresh before; no other."""
    held = run((gpu("DEV_POWER_VIOLATION"), every(STEP, [2e9 * STEP * number for number in range(COUNT)])))
    grown = [row["power_violation_seconds_increase"] for row in held.device_sample.to_pylist()]
    assert (grown[0], set(grown[1:])) == (pytest.approx(2 * STEP), {None})
    assert dropped(held, "power_violation_seconds") == {"beyond_bound": COUNT - 2}
    shaped = energy([MILLI * 2000 * STEP * number for number in range(COUNT)])
    assert joules(shaped) == pytest.approx(TRUTH + (2000 - WATTS) * STEP)


CARRIERS: dict[str, Meaning] = {}
for row in CATALOG.rows:
    if row.signal in SIGNAL_BY_NAME and row.per in ("", "second") and not (row.labels or row.may_be_percent or row.is_respelled):
        CARRIERS.setdefault(row.signal, row)
"""A metric of each signal; some signals are the growth of a counter, per second."""


def usual(signal: Signal) -> list[float]:
    """What a signal shows all the time, in its own unit; of a counter what it has come to."""
    if signal.kind == "counter":
        step = {"joules": WATTS, "seconds": 0.1, "count": 2.0}[signal.unit] * STEP
        return [1e9 + step * number for number in range(COUNT)]
    if signal.kind in ("code", "bitmask"):
        return [4.0] * COUNT
    if CARRIERS[signal.name].per:
        return [signal.highest / 2 * STEP * number for number in range(COUNT)]
    highest = {"power_watts": 2 * WATTS, "power_limit_watts": 1400.0}.get(signal.name, signal.highest)
    return [highest / 2 if signal.unit in ("watts", "ratio", "celsius", "bytes", "hertz", "second") else 1.0] * COUNT


def bound(signal: Signal) -> float:
    """The most that a second of a signal can add to its total."""
    if signal.kind == "counter":
        return {"joules": 1050.0, "seconds": 1.05, "count": 1e6}[signal.unit]
    return {"power_watts": 1050.0, "power_limit_watts": 1400.0}.get(signal.name, signal.highest)


MIG = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"}


def total(signal: Signal, values: list[float], is_mig: bool = False) -> float:
    """Its total beside power and its limit: energy by the rule of energy, of other counters growth, of all else value x time."""
    given = {"power_watts": [WATTS] * COUNT, "power_limit_watts": [700.0] * COUNT, signal.name: values}
    series = []
    for name, each in given.items():
        meaning = CARRIERS[name]
        labels = {
            "__name__": meaning.metric,
            "UUID": "GPU-a",
            "Hostname": "n1",
            "job": meaning.exporter,
            "instance": "10.0.0.1:9400",
            **(MIG if is_mig else {}),
        }
        series.append((labels, every(STEP, [value / meaning.factor for value in each])))
    shaped = run(*series)
    if signal.name == "energy_joules":
        return joules(shaped)
    column, weighs = (signal.name, True) if signal.kind != "counter" else (signal.increase_name, False)
    found: list[dict[str, Any]] = shaped.device_sample.to_pylist()
    return math.fsum((row[column] or 0.0) * (row["held_seconds"] if weighs else 1.0) for row in found)


@cache
def usual_total(signal: Signal, is_mig: bool) -> float:
    return total(signal, usual(signal), is_mig)


ANY = st.one_of(st.floats(width=64), st.floats(0, 1e7), st.integers(0, 2**64).map(float))


@settings(max_examples=400, deadline=None)
@given(signal=st.sampled_from(SIGNALS), is_mig=st.booleans(), at=st.integers(0, COUNT - 1), value=ANY)
@example(signal=SIGNAL_BY_NAME["sw_power_cap_active_ratio"], is_mig=False, at=9, value=45.0)  # what it showed six samples before
@example(signal=SIGNAL_BY_NAME["sw_power_cap_active_ratio"], is_mig=False, at=9, value=30.0)
@example(signal=SIGNAL_BY_NAME["sw_power_cap_active_ratio"], is_mig=False, at=COUNT - 1, value=795.0)
def test_no_single_value_changes_a_total_by_more_than_its_own_step_at_the_bound(
    signal: Signal, is_mig: bool, at: int, value: float
) -> None:
    """Its step: the time to its neighbours on both sides, and where it is left out that which they then fill, three steps."""
    with np.errstate(all="ignore"):
        found = total(signal, changed(usual(signal), at, value), is_mig)
    expected = usual_total(signal, is_mig)
    assert abs(found - expected) <= bound(signal) * 3 * STEP + 1e-6 * expected


@settings(max_examples=60, deadline=None)
@given(at=st.integers(1, COUNT - 2), value=ANY)
def test_no_single_value_of_an_xid_counter_adds_an_error(at: int, value: float) -> None:
    """Where the counter stands still around it: what it then shows at most once is what came before it or after it."""
    labels = {**gpu(""), "__name__": "DCGM_EXP_XID_ERRORS_TOTAL", "xid": "79"}
    with np.errstate(all="ignore"):
        shaped = run((labels, every(STEP, changed([5.0] * COUNT, at, value))))
    assert sum((row["increase"] or 0.0) + (row["gap_increase"] or 0.0) for row in shaped.sample.to_pylist()) == 0
