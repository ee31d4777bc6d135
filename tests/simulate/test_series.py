"""Determinism, and that the readings hang together as a real GPU's do."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from gpureport.simulate import SimulationPlan, simulate_batches
from gpureport.simulate.exporter import GroupSimulation
from gpureport.simulate.inventory import MODEL_OF_NODE
from gpureport.values.series import SeriesBatch, concatenate
from tests.simulate.conftest import Cluster, ms, series_of

ENERGY, POWER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE"
COUNTERS = (ENERGY, "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER")
POD_METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
MODEL_BY_NAME = {model.name: model for model in MODEL_OF_NODE}


def _is_equal(one: SeriesBatch, other: SeriesBatch) -> bool:
    arrays = ("offsets", "times_ms", "values")
    return one.labels == other.labels and all(np.array_equal(getattr(one, a), getattr(other, a)) for a in arrays)


def test_the_same_seed_gives_the_same_samples_and_another_seed_others(plan: SimulationPlan) -> None:
    small = replace(plan, gpus=8, days=1)
    assert _is_equal(*(concatenate(list(simulate_batches(small))) for _ in range(2)))
    assert not _is_equal(*(concatenate(list(simulate_batches(replace(small, seed=seed)))) for seed in (1, 2)))


def test_a_node_made_alone_is_the_node_of_the_cluster(plan: SimulationPlan) -> None:
    alone = GroupSimulation(plan, range(2, 3)).batch(0)
    together = GroupSimulation(plan, range(3)).batch(0)
    names = {"gpu-node-2"}
    theirs = [each for each in series_of(together) if each.labels.get("Hostname") in names]
    own = [each for each in series_of(alone) if "Hostname" in each.labels]
    assert [each.labels for each in own] == [each.labels for each in theirs]
    assert all(np.array_equal(a.values, b.values) for a, b in zip(own, theirs, strict=True))


def test_a_longer_plan_begins_like_the_shorter_one(plan: SimulationPlan) -> None:
    short, long = (next(simulate_batches(replace(plan, days=days))) for days in (1, 2))
    dcgm = [[each for each in series_of(batch) if "UUID" in each.labels] for batch in (short, long)]
    assert [each.labels for each in dcgm[0]] == [each.labels for each in dcgm[1]]
    assert all(np.array_equal(a.values, b.values) for a, b in zip(*dcgm, strict=True))


def test_every_sample_is_in_the_plans_days_and_no_series_repeats_an_instant(plan: SimulationPlan, cluster: Cluster) -> None:
    start, end = plan.window.start_ms, plan.window.end_ms
    assert all(each.times.min() >= start and each.times.max() < end for each in cluster.series)
    assert all((np.diff(each.times) > 0).all() for each in cluster.series)


def test_energy_grows_by_power_times_time_and_all_counters_only_fall_at_planted_resets(
    plan: SimulationPlan, cluster: Cluster, truth: dict
) -> None:
    resets = {(uuid, ms(reset["at"])) for reset in truth["resets"] for uuid in reset["device_uuids"]}
    for device in truth["devices"]:
        key = (device["device_uuid"], device["gpu_instance_id"])
        power = cluster.device(POWER, *key)
        for metric in COUNTERS:
            points = cluster.device(metric, *key)
            assert len(points) > 2000
            for (before, low), (after, high) in pairwise(points.items()):
                if (key[0], after) in resets:
                    assert high <= low
                    continue
                assert high >= low
                if metric == ENERGY and after - before == plan.step_seconds * 1000:
                    assert high - low == pytest.approx(power[before] * 1000 * plan.step_seconds, abs=1)
                if metric.endswith("_VIOLATION"):
                    assert high - low <= (after - before) * 1_000_000


def test_counters_go_on_over_midnight(plan: SimulationPlan, cluster: Cluster, truth: dict) -> None:
    midnight = plan.window.start_ms + timedelta(days=1) // timedelta(milliseconds=1)
    device = next(each["device_uuid"] for each in truth["devices"] if each["node"] == "gpu-node-2")
    energy, power = cluster.device(ENERGY, device), cluster.device(POWER, device)
    last, first = max(t for t in energy if t < midnight), min(t for t in energy if t >= midnight)
    assert energy[first] - energy[last] == pytest.approx(power[last] * (first - last), abs=1)


def test_power_stays_between_idle_and_the_limit_and_memory_adds_up(cluster: Cluster, truth: dict) -> None:
    for device in truth["devices"]:
        key = (device["device_uuid"], device["gpu_instance_id"])
        model = MODEL_BY_NAME[device["gpu_model"]]
        watts = cluster.device(POWER, *key)
        assert 0.95 * model.idle_watts <= min(watts.values())
        assert max(watts.values()) <= model.limit_watts
        free = cluster.device("DCGM_FI_DEV_FB_FREE", *key)
        used = cluster.device("DCGM_FI_DEV_FB_USED", *key)
        assert {used[t] + free[t] for t in free} == {device["usable_mib"]}


def test_a_gpu_that_works_draws_more_than_one_that_is_free(cluster: Cluster) -> None:
    activity, watts = [], []
    for each in cluster.of("DCGM_FI_PROF_SM_ACTIVE", modelName="NVIDIA H200", GPU_I_ID=""):
        power = cluster.device(POWER, each.labels["UUID"])
        activity += each.values.tolist()
        watts += [power[time] for time in each.times.tolist()]
    assert np.corrcoef(activity, watts)[0, 1] > 0.9


def test_copies_of_a_device_value_are_equal_and_board_values_are_repeated_on_every_instance(cluster: Cluster) -> None:
    """All series of a shared GPU, and the board's fields on all instances of a split one, show one value an instant."""
    seen: dict[tuple[str, ...], dict[int, float]] = defaultdict(dict)
    copies = 0
    for each in cluster.series:
        if "UUID" not in each.labels or ("vgpu" in each.labels and each.metric in POD_METRICS):
            continue
        is_board = "_PROF_" not in each.metric and "_FB_" not in each.metric
        key = (each.metric, each.labels["UUID"], "" if is_board else each.labels.get("GPU_I_ID", ""))
        for time, value in each.points().items():
            copies += time in seen[key]
            assert seen[key].setdefault(time, value) == value
    assert copies > 10_000


def test_a_split_gpu_shows_instances_alone_and_no_utilisation(cluster: Cluster) -> None:
    split = {each.labels["UUID"] for each in cluster.series if "GPU_I_ID" in each.labels}
    assert split
    whole = [each for each in cluster.series if each.labels.get("UUID") in split and "GPU_I_ID" not in each.labels]
    assert whole == []
    assert not [uuid for uuid in split if cluster.of("DCGM_FI_DEV_GPU_UTIL", UUID=uuid)]


def test_pods_on_a_shared_gpu_never_show_more_than_the_device(cluster: Cluster, truth: dict) -> None:
    shared = next(each["device_uuid"] for each in truth["devices"] if each["is_shared"])
    for metric in POD_METRICS:
        device = cluster.device(metric, shared)
        pods: dict[int, float] = defaultdict(float)
        for each in cluster.of(metric, UUID=shared):
            if "vgpu" in each.labels:
                for time, value in each.points().items():
                    pods[time] += value
        assert len(pods) > 1000
        assert set(pods) <= set(device)
        assert all(value <= device[time] for time, value in pods.items())


def test_instances_and_slots_hold_one_pod_at_a_time(cluster: Cluster) -> None:
    for uuid in {each.labels["UUID"] for each in cluster.series if "UUID" in each.labels}:
        owners: dict[tuple[str, str, int], str] = {}
        for each in cluster.of(POWER, UUID=uuid):
            slot = (each.labels.get("GPU_I_ID", ""), each.labels.get("vgpu", ""))
            for time in each.times.tolist():
                pod = each.labels.get("pod", "")
                assert owners.setdefault((*slot, time), pod) == pod
