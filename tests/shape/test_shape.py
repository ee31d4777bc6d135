"""From series to intervals, one rule at a time; values worked out by hand."""

from __future__ import annotations

from datetime import date
from statistics import median
from typing import Any

import numpy as np
import pytest

from gpureport.collect.shape import Shaped, shape
from gpureport.collect.shape.copies import Points
from gpureport.collect.shape.loops import hourly_medians
from gpureport.collect.shape.wide import long_rows
from gpureport.values.catalog import load_catalog
from gpureport.values.series import STALE_BITS, SeriesBatch
from gpureport.values.window import Window

DAY = date(2026, 11, 20)
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
STALE = np.array([STALE_BITS], np.uint64).view(np.float64)[0]
CATALOG = load_catalog()
Samples = list[tuple[float, float]]


def batch(*series: tuple[dict[str, str], Samples]) -> SeriesBatch:
    lengths = [len(samples) for _, samples in series]
    return SeriesBatch(
        labels=[labels for labels, _ in series],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        times_ms=np.array([round((NOON + t) * 1000) for _, samples in series for t, _ in samples], np.int64),
        values=np.array([v for _, samples in series for _, v in samples], np.float64),
    )


def gpu(metric: str, **labels: str) -> dict[str, str]:
    known = {"UUID": "GPU-a", "Hostname": "n1", "job": "dcgm", "instance": "10.0.0.1:9400"}
    return {"__name__": f"DCGM_FI_{metric}", **known, **labels}


def owned(metric: str, pod: str, **labels: str) -> dict[str, str]:
    return gpu(metric, pod=pod, namespace="ns", container="c", **labels)


def run(*series: tuple[dict[str, str], Samples]) -> Shaped:
    return shape(batch(*series), CATALOG, Window.of_day(DAY), keep_raw=True)


def rows(shaped: Shaped, *columns: str) -> list[tuple[Any, ...]]:
    table = shaped.device_sample.to_pylist()
    return [tuple(seconds(row[column]) for column in columns) for row in table]


def seconds(value: Any) -> Any:
    """Instants as seconds after noon, everything else as it is."""
    return value.timestamp() - NOON if hasattr(value, "timestamp") else value


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def every(step: float, values: list[float], start: float = 0) -> Samples:
    return [(start + number * step, value) for number, value in enumerate(values)]


def test_a_sample_holds_until_the_next_and_the_last_one_a_median_step() -> None:
    shaped = run((gpu("DEV_POWER_USAGE"), every(30, [100, 110, 120, 130])))
    assert rows(shaped, "held_seconds", "power_watts") == [(30, 100), (30, 110), (30, 120), (30, 130)]


@pytest.mark.parametrize("count", range(2, 40))
def test_the_median_of_an_hour_is_that_of_its_steps_in_any_order(count: int) -> None:
    steps = np.random.default_rng(count).integers(1, 50, count)
    times = NOON * 1000 + np.concatenate([[0], np.cumsum(steps)])
    assert hourly_medians(times, 3_600_000, 2).tolist() == [int(median(steps.tolist()))]


def test_a_gap_holds_three_median_steps_and_no_more() -> None:
    samples = [*every(30, [1, 1, 1, 1]), *every(30, [2, 2, 2, 2], start=600)]
    held = rows(run((gpu("DEV_POWER_USAGE"), samples)), "held_seconds")
    assert held == [(30,), (30,), (30,), (90,), (30,), (30,), (30,), (30,)]


def test_a_counter_grows_to_the_next_sample_and_over_a_reset_elsewhere() -> None:
    shaped = run((gpu("DEV_PCIE_REPLAY_COUNTER"), every(30, [3, 4, 1, 2])))
    columns = ("pcie_replay_count_increase", "pcie_replay_count_gap_increase")
    assert rows(shaped, *columns) == [(1, None), (None, None), (1, 1), (None, None)]


def test_growth_over_a_gap_stands_on_the_row_after_it() -> None:
    samples = [*every(30, [0, 1, 2, 3]), *every(30, [103, 104, 105, 106], start=600)]
    shaped = run((gpu("DEV_PCIE_REPLAY_COUNTER"), samples))
    gaps = [gap for (gap,) in rows(shaped, "pcie_replay_count_gap_increase") if gap is not None]
    increases = [grown for (grown,) in rows(shaped, "pcie_replay_count_increase") if grown is not None]
    assert (gaps, sum(increases)) == ([100], 6)


def test_a_span_across_a_full_hour_is_two_rows_with_its_growth_in_proportion() -> None:
    # 12:59:50 + 30 s: ten seconds before one o'clock, twenty after; 6 replays are 2 and 4.
    shaped = run((gpu("DEV_PCIE_REPLAY_COUNTER"), every(30, [0, 6, 12, 18, 24], start=3590 - 90)))
    found = rows(shaped, "seen_at", "held_seconds", "is_carried", "pcie_replay_count_increase")
    assert found[3:5] == [(3590, 10, False, 2), (3600, 20, True, 4)]


def test_midnight_is_cut_like_any_hour_and_the_margin_is_left_out() -> None:
    midnight = 12 * 3600
    series = (gpu("DEV_PCIE_REPLAY_COUNTER"), every(30, [0, 6, 12, 18, 24], start=midnight - 100))
    today = shape(batch(series), CATALOG, Window.of_day(DAY))
    tomorrow = shape(batch(series), CATALOG, Window.of_day(date(2026, 11, 21)))
    total = [table.device_sample["pcie_replay_count_increase"].to_pylist() for table in (today, tomorrow)]
    assert total == [
        [6, 6, 6, 2],
        [4, None],
    ]  # the last span before midnight: 10 s of 30 s, then 20 s; the last sample grows no more
    assert [sum(table.device_sample["held_seconds"].to_pylist()) for table in (today, tomorrow)] == [100, 20 + 30]


def test_virtual_gpu_copies_are_one_device_and_several_owners() -> None:
    shaped = run(
        (owned("DEV_POWER_USAGE", "a", vgpu="0"), every(30, [100, 110, 120, 130])),
        (owned("DEV_POWER_USAGE", "b", vgpu="1"), every(30, [110, 120], start=30)),
    )
    assert rows(shaped, "held_seconds", "power_watts") == [(30, 100), (30, 110), (30, 120), (30, 130)]
    owners = [(row["pod"], seconds(row["start_at"]), seconds(row["end_at"])) for row in shaped.owner_label.to_pylist()]
    assert owners == [("a", 0, 120), ("b", 30, 90)]


def test_labelled_memory_with_an_unlabelled_twin_is_a_pods() -> None:
    shaped = run(
        (gpu("DEV_FB_USED"), every(30, [30, 30, 30, 30])), (owned("DEV_FB_USED", "a", vgpu="0"), every(30, [10, 10, 10, 10]))
    )
    assert rows(shaped, "fb_used_bytes") == [(30 * 2**20,)] * 4
    assert [row["scope"] for row in shaped.series.to_pylist() if row["pod"] == "a"] == ["pod"]
    assert shaped.sample["value"].to_pylist() == [10 * 2**20] * 4


def test_labelled_memory_without_a_twin_is_the_devices() -> None:
    shaped = run((owned("DEV_FB_USED", "a"), every(30, [10, 10, 10])), (gpu("DEV_FB_USED"), every(30, [0, 0, 0], start=90)))
    assert rows(shaped, "fb_used_bytes") == [(10 * 2**20,)] * 3 + [(0,)] * 3
    assert shaped.sample.num_rows == 0


def test_board_values_repeated_on_mig_instances_are_one_boards() -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE", GPU_I_ID="1", GPU_I_PROFILE="3g.20gb"), every(30, [52.6, 52.6, 52.6])),
        (gpu("DEV_POWER_USAGE", GPU_I_ID="2", GPU_I_PROFILE="3g.20gb"), every(30, [52.6, 52.6, 52.6])),
        (gpu("PROF_GR_ENGINE_ACTIVE", GPU_I_ID="1", GPU_I_PROFILE="3g.20gb"), every(30, [0.5, 0.5, 0.5])),
    )
    found = rows(shaped, "gpu_instance_id", "power_watts", "gr_engine_active_ratio")
    assert found == [("", 52.6, None)] * 3 + [("1", None, 0.5)] * 3


def test_of_two_replicas_one_serves_until_it_is_silent() -> None:
    full = every(30, [1] * 14)
    thin = [sample for number, sample in enumerate(every(30, [2] * 18, start=7)) if number % 3]
    shaped = run((gpu("DEV_POWER_USAGE", prometheus_replica="a"), full), (gpu("DEV_POWER_USAGE", prometheus_replica="b"), thin))
    values = [value for (value,) in rows(shaped, "power_watts")]
    # The first is silent from 390 s on, for longer than 90 s; the second speaks at 397, 427, 487 and 517 s.
    assert values == [1] * 14 + [2] * 4
    assert sum(held for (held,) in rows(shaped, "held_seconds")) == 517 + 30


def test_a_replica_that_ends_a_little_later_adds_nothing() -> None:
    first, second = every(30, [1] * 10), every(30, [2] * 10, start=7)
    shaped = run(
        (gpu("DEV_POWER_USAGE", prometheus_replica="a"), first), (gpu("DEV_POWER_USAGE", prometheus_replica="b"), second)
    )
    assert rows(shaped, "power_watts") == [(1,)] * 10
    assert sum(held for (held,) in rows(shaped, "held_seconds")) == 300


def test_an_exporter_restart_does_not_break_a_counter() -> None:
    shaped = run(
        (gpu("DEV_PCIE_REPLAY_COUNTER"), [*every(30, [0, 1, 2, 3]), (120, STALE)]),
        (gpu("DEV_PCIE_REPLAY_COUNTER", instance="10.0.0.9:9400"), every(30, [4, 5, 6, 7], start=125)),
    )
    assert sum(grown for (grown,) in rows(shaped, "pcie_replay_count_increase") if grown is not None) == 7
    assert sum(held for (held,) in rows(shaped, "held_seconds")) == 125 + 120


@pytest.mark.parametrize(
    ("marker", "start", "held"),
    [(120, 101, [30, 30, 30, 11, 30, 30, 30]), (120, 140, [30, 30, 30, 50, 30, 30, 30]), (120, 240, [30] * 7)],
    ids=["within the new series' first step", "before it", "with a gap after it"],
)
def test_a_series_whose_labels_change_goes_on_within_the_gap_limit(marker: float, start: float, held: list[float]) -> None:
    """After a change of relabeling, Prometheus ends the old series a scrape later, and scrapes the new one at other times."""
    shaped = run(
        (gpu("DEV_PCIE_REPLAY_COUNTER"), [*every(30, [0, 1, 2, 3]), (marker, STALE)]),
        (gpu("DEV_PCIE_REPLAY_COUNTER", team="x"), every(30, [4, 5, 6], start=start)),
    )
    assert [length for (length,) in rows(shaped, "held_seconds")] == held
    grown = [rows(shaped, f"pcie_replay_count_{kind}") for kind in ("increase", "gap_increase")]
    gap = start - marker > 90
    assert [sum(value for (value,) in each if value is not None) for each in grown] == [6 - gap, gap]


@pytest.mark.parametrize("change", [{"team": "x"}, {"instance": "10.0.0.9:9400"}], ids=["of a label", "of the target"])
def test_a_series_that_has_ended_does_not_end_the_one_after_it(change: dict[str, str]) -> None:
    """The marker at 120 s is of the old series. The new one, seen at 101 s, ends at 191 s, and is seen again from 600 s on."""
    old, new = [*every(30, [1, 1, 1, 1]), (120, STALE)], [(101, 1), (191, STALE), *every(30, [1, 1, 1, 1], start=600)]
    shaped = run((gpu("DEV_POWER_USAGE"), old), (gpu("DEV_POWER_USAGE", **change), new))
    assert sum(held for (held,) in rows(shaped, "held_seconds")) == 191 + 120


def test_a_gap_begins_where_the_series_of_the_last_target_ended() -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE"), [*every(30, [1, 1, 1, 1]), (120, STALE)]),
        (gpu("DEV_POWER_USAGE", instance="10.0.0.9:9400"), every(30, [1, 1, 1, 1], start=600)),
    )
    assert sum(held for (held,) in rows(shaped, "held_seconds")) == 120 + 120


def test_a_staleness_marker_ends_the_last_span() -> None:
    shaped = run((gpu("DEV_POWER_USAGE"), [*every(30, [1, 1, 1, 1]), (100, STALE)]))
    assert [held for (held,) in rows(shaped, "held_seconds")] == [30, 30, 30, 10]
    assert shaped.raw_sample is not None
    assert shaped.raw_sample["value"].to_pylist() == [1, 1, 1, 1, None]


@pytest.mark.parametrize(
    ("value", "reason"),
    [(float("nan"), "nan"), (float("inf"), "infinite"), (2147483632.0, "blank"), (9223372036854775794.0, "blank")],
)
def test_values_that_are_none_are_left_out_and_counted(value: float, reason: str) -> None:
    shaped = run((gpu("DEV_POWER_USAGE"), every(30, [1, 1, value, 1])))
    assert rows(shaped, "power_watts") == [(1,), (1,), (1,)]
    assert shaped.tallies["DCGM_FI_DEV_POWER_USAGE"].dropped[reason] == 1


def test_duplicates_and_disorder_change_nothing() -> None:
    straight = run((gpu("DEV_POWER_USAGE"), every(30, [1, 2, 3, 4])))
    shuffled = run((gpu("DEV_POWER_USAGE"), [(60, 3), (0, 1), (90, 4), (30, 2), (60, 3)]))
    assert shuffled.device_sample.equals(straight.device_sample)
    assert shuffled.tallies["DCGM_FI_DEV_POWER_USAGE"].dropped["duplicate"] == 1


def test_a_value_without_a_partner_takes_the_one_in_force() -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE"), every(30, [100, 200, 300, 400])),
        (gpu("DEV_GPU_TEMP", job="other"), every(30, [40, 50, 60, 70], start=10)),
    )
    found = rows(shaped, "seen_at", "held_seconds", "power_watts", "gpu_temp_celsius", "joined_count")
    assert found[:4] == [(0, 10, 100, None, 0), (10, 20, 100, 40, 1), (30, 10, 200, 40, 1), (40, 20, 200, 50, 1)]


@pytest.mark.parametrize(
    ("samples", "events"), [([0, 13, 13, 31], [13, 31]), ([13, 13, 13, 13], []), ([0, 43, 0, 43], [43, 43]), ([0, 0, 0, 0], [])]
)
def test_xid_events_are_changes_to_a_new_code(samples: list[float], events: list[float]) -> None:
    shaped = run((gpu("DEV_XID_ERRORS"), every(30, samples)))
    assert [code for (code,) in rows(shaped, "xid_event_code") if code is not None] == events


def test_an_xid_series_that_appears_later_is_an_event() -> None:
    shaped = run(
        (gpu("DEV_POWER_USAGE"), every(30, [1, 1, 1, 1, 1])),
        (gpu("DEV_XID_ERRORS", err_code="43"), every(30, [43, 43, 43], start=60)),
    )
    assert [(at, code) for at, code in rows(shaped, "seen_at", "xid_event_code") if code is not None] == [(60, 43)]


def test_an_old_xid_is_no_event_where_another_exporter_was_scraped_before() -> None:
    """The first scrape of dcgm-exporter, 7 s after that of nvidia_gpu_exporter, shows the code of an error before it."""
    smi = {"__name__": "nvidia_smi_power_draw_watts", "uuid": "GPU-a", "job": "smi", "instance": "10.0.0.1:9835"}
    dcgm = [(gpu("DEV_XID_ERRORS"), every(30, [43, 43, 0, 43], 7)), (gpu("DEV_GPU_UTIL"), every(30, [0, 0, 0, 0], 7))]
    shaped = run((smi, every(30, [100, 100, 100, 100])), *dcgm)
    assert [row for row in rows(shaped, "seen_at", "xid_event_code") if row[1] is not None] == [(97, 43)]


def test_xid_codes_on_series_of_their_own_are_one_signal() -> None:
    shaped = run(
        (gpu("DEV_XID_ERRORS", err_code="0"), every(30, [0, 0])),
        (gpu("DEV_XID_ERRORS", err_code="43"), every(30, [43, 43], start=60)),
    )
    assert [code for (code,) in rows(shaped, "xid_event_code")] == [None, None, 43, None]


def test_a_pod_uid_known_from_one_series_names_the_run() -> None:
    shaped = run(
        (owned("DEV_POWER_USAGE", "a"), every(30, [1, 1, 1])), (owned("DEV_GPU_UTIL", "a", pod_uid="u-1"), every(30, [5, 5, 5]))
    )
    assert [(row["pod"], row["pod_uid"]) for row in shaped.owner_label.to_pylist()] == [("a", "u-1")]


def test_of_two_metrics_for_one_signal_the_preferred_serves() -> None:
    shaped = run(
        (gpu("DEV_CLOCK_THROTTLE_REASONS"), every(30, [1, 1, 1])), (gpu("DEV_CLOCKS_EVENT_REASONS"), every(30, [4, 4, 4]))
    )
    assert rows(shaped, "throttle_reasons") == [(4,), (4,), (4,)]


def test_a_lonely_sample_holds_a_guessed_minute_and_says_so() -> None:
    assert rows(run((gpu("DEV_POWER_USAGE"), [(0, 5)])), "held_seconds", "is_step_guessed") == [(60, True)]


def test_a_state_that_stays_is_one_interval_an_hour() -> None:
    state = ({"__name__": "kube_pod_status_phase", "pod": "a", "phase": "Running"}, every(30, [1] * 10 + [0] * 10))
    found = run(state).sample.to_pylist()
    assert [(row["value"], row["held_seconds"]) for row in found] == [(1, 300), (0, 300)]


def test_a_counter_that_stands_still_is_one_interval_and_keeps_what_it_grows_at_its_end() -> None:
    """7, 7, 7, 9, then 300 s of silence, 12, 12: it grew by 2 to the next sample, by 3 over the gap."""
    times = np.array([0, 30, 60, 90, 390, 420], np.int64) * 1000 + NOON * 1000
    values = np.array([7, 7, 7, 9, 12, 12], np.float64)
    found = long_rows(Points(times, values, np.empty(0, np.int64)), True, True, lambda: 30_000, Window.of_day(DAY))
    rows = zip(found.values, found.held_ms // 1000, found.increase, found.gap_increase, strict=True)
    assert [tuple(None if np.isnan(each) else float(each) for each in row) for row in rows] == [
        (7, 90, 2, None),
        (9, 90, None, None),
        (12, 30, 0, 3),
        (12, 30, None, None),
    ]


def test_compute_instances_have_their_own_activity_and_slices() -> None:
    """Two of one GPU instance; one that tells no id of its own is the GPU instance that it is in."""
    inner = [
        gpu("PROF_SM_ACTIVE", GPU_I_ID="1", GPU_CI_ID=number, GPU_I_PROFILE=f"{slices}c.3g.40gb")
        for number, slices in ("01", "12")
    ]
    whole = gpu("PROF_SM_ACTIVE", GPU_I_ID="2", GPU_I_PROFILE="1c.4g.40gb")
    shaped = run((inner[0], every(30, [0.9] * 4)), (inner[1], every(30, [0.3] * 4)), (whole, every(30, [0.5] * 4)))
    found = {(row["gpu_instance_id"], row["sm_active_ratio"]) for row in shaped.device_sample.to_pylist()}
    profiles = {(row["gpu_instance_id"], row["gpu_instance_profile"]) for row in shaped.device_label.to_pylist()}
    assert found == {("1/0", 0.9), ("1/1", 0.3), ("2", 0.5)}
    assert profiles == {("1/0", "1c.3g.40gb"), ("1/1", "2c.3g.40gb"), ("2", "4g.40gb")}


def test_restarts_of_a_container_are_counted_beyond_the_first() -> None:
    series = {"__name__": "kube_pod_container_status_restarts_total", "pod": "p", "uid": "u", "container": "c"}
    found = run((series, every(30, [0, 1, 1, 4, 4])))
    assert [(row["value"], row["increase"]) for row in found.sample.to_pylist()] == [(0, 1), (1, 3), (4, 0), (4, None)]


CREATED = {"__name__": "kube_pod_created", "namespace": "ns", "pod": "p", "uid": "u", "job": "ksm"}
QUOTA = {"__name__": "kueue_cluster_queue_nominal_quota", "cluster_queue": "a", "resource": "nvidia.com/gpu", "job": "kueue"}
CAPACITY = {"__name__": "kube_node_status_capacity", "node": "n", "resource": "nvidia_com_gpu", "job": "ksm"}


@pytest.mark.parametrize(
    ("labels", "values", "kept", "reasons"),
    [
        pytest.param(CREATED, [0, 0, 0], [], {"out_of_range": 3}, id="created in 1970"),
        pytest.param(CREATED, [1.7e12] * 3, [], {"out_of_range": 3}, id="milliseconds"),
        pytest.param(CREATED, [1.7e9, 1.5e9, 1.7e9, 1.7e9], [1.7e9], {"outlier": 1}, id="created otherwise once"),
        pytest.param(CAPACITY, [8, 800, 8, 8], [8], {"outlier": 1}, id="800 GPUs once"),
        pytest.param(QUOTA, [8, 8, 1e12, 8], [8], {"outlier": 1}, id="a quota of 1e12 once"),
        pytest.param(CAPACITY, [800, 8, 8, 8], [8], {"outlier": 1}, id="800 GPUs first"),
        pytest.param(CAPACITY, [8, 8, 8, 800], [8], {"outlier": 1}, id="800 GPUs last"),
        pytest.param(CAPACITY, [8, 8, 0, 8], [8, 0, 8], {}, id="none for a scrape"),
        pytest.param(CAPACITY, [0, 8, 8, 8], [0, 8], {}, id="some from the second scrape on"),
        pytest.param(CAPACITY, [8, 8, 16, 16], [8, 16], {}, id="more GPUs"),
    ],
)
def test_what_stands_still_in_kubernetes_changes_for_no_single_scrape(
    labels: dict[str, str], values: list[float], kept: list[float], reasons: dict[str, int]
) -> None:
    shaped = run((labels, every(30, values)))
    assert [row["value"] for row in shaped.sample.to_pylist()] == kept
    assert {reason: count for reason, count in shaped.tallies[labels["__name__"]].dropped.items() if count} == reasons
