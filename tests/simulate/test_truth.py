"""What truth.json says was planted is what the series show."""

from dataclasses import replace

from gpureport.simulate import SimulationPlan, write_truth
from tests.simulate.conftest import Cluster, ms

SECONDS = 1000


def _node_times(cluster: Cluster, node: str) -> set[int]:
    return {time for each in cluster.of("DCGM_FI_DEV_POWER_USAGE", Hostname=node) for time in each.times.tolist()}


def test_every_kind_of_event_is_planted_even_in_a_small_cluster(truth: dict) -> None:
    for section in ("devices", "holders", "gaps", "exporter_restarts", "resets", "xids", "throttled"):
        assert truth[section], section
    assert {gap["cause"] for gap in truth["gaps"]} == {"scrape gap", "driver reload", "exporter restart"}
    assert any(holder["is_idle"] for holder in truth["holders"])
    assert {holder["requested_by"] for holder in truth["holders"]} > {"nvidia.com/gpu", "claim", "nvidia.com/mig-3g.40gb"}


def test_gaps_have_no_scrape_and_end_with_one(plan: SimulationPlan, cluster: Cluster, truth: dict) -> None:
    for gap in truth["gaps"]:
        times = _node_times(cluster, gap["node"])
        start, end = ms(gap["start_at"]), ms(gap["end_at"])
        assert not [time for time in times if start <= time < end]
        assert {start - plan.step_seconds * SECONDS, end} <= times
        assert gap["missing_scrapes"] * plan.step_seconds * SECONDS == end - start


def test_nothing_else_is_missing(plan: SimulationPlan, cluster: Cluster, truth: dict) -> None:
    for node in ("gpu-node-0", "gpu-node-1", "gpu-node-2"):
        missing = sum(gap["missing_scrapes"] for gap in truth["gaps"] if gap["node"] == node)
        assert len(_node_times(cluster, node)) == plan.step_count - missing


def test_an_exporter_restart_changes_the_instance(cluster: Cluster, truth: dict) -> None:
    for restart in truth["exporter_restarts"]:
        at = ms(restart["at"])
        old = cluster.of("DCGM_FI_DEV_POWER_USAGE", Hostname=restart["node"], instance=restart["was"])
        new = cluster.of("DCGM_FI_DEV_POWER_USAGE", Hostname=restart["node"], instance=restart["instance"])
        assert max(int(each.times[-1]) for each in old) < at == min(int(each.times[0]) for each in new)


def test_a_driver_reload_resets_the_energy_counter_and_no_pod_lives_through_it(cluster: Cluster, truth: dict) -> None:
    for reset in truth["resets"]:
        at = ms(reset["at"])
        for uuid in reset["device_uuids"]:
            found = cluster.of("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", UUID=uuid)
            assert {each.points()[at] for each in found if at in each.times} == {0}
            crossing = [each for each in found if "pod" in each.labels and each.times[0] < at <= each.times[-1]]
            assert crossing == []


def test_xids_appear_at_their_time_under_their_code(cluster: Cluster, truth: dict) -> None:
    planted = {(xid["device_uuid"], str(xid["code"])): ms(xid["at"]) for xid in truth["xids"]}
    seen: dict[tuple[str, str], int] = {}
    for each in cluster.of("DCGM_FI_DEV_XID_ERRORS"):
        if "err_code" in each.labels:
            key = (each.labels["UUID"], each.labels["err_code"])
            assert set(each.values) == {float(each.labels["err_code"])}
            seen[key] = min(seen.get(key, 1 << 62), int(each.times[0]))
        else:
            assert set(each.values) == {0.0}
    assert seen == planted


def test_throttled_phases_show_in_the_bitmask_and_in_the_counter_and_nowhere_else(
    plan: SimulationPlan, cluster: Cluster, truth: dict
) -> None:
    for device in {each["device_uuid"] for each in truth["devices"]}:
        instance = next(d["gpu_instance_id"] for d in truth["devices"] if d["device_uuid"] == device)
        reasons = cluster.device("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", device, instance)
        phases = [phase for phase in truth["throttled"] if phase["device_uuid"] == device]
        for bit, reason in ((0x4, "power"), (0x20, "thermal")):
            own = [(ms(each["start_at"]), ms(each["end_at"])) for each in phases if each["reason"] == reason]
            last = max(reasons)
            for time, mask in reasons.items():
                if time < last:  # the phase of a pod that outlives the plan is shown up to the last sample
                    assert bool(int(mask) & bit) == any(start <= time < end for start, end in own)


def test_the_counter_grows_in_a_phase_by_the_seconds_lost(cluster: Cluster, truth: dict) -> None:
    for phase in truth["throttled"]:
        metric = f"DCGM_FI_DEV_{phase['reason'].upper()}_VIOLATION"
        points = cluster.device(metric, phase["device_uuid"])
        start, end = ms(phase["start_at"]), ms(phase["end_at"])
        if start in points and end in points:
            assert abs(points[end] - points[start] - phase["lost_seconds"] * 1e9) < 1000
            assert 0 < phase["lost_seconds"] < phase["seconds"]


def test_holders_stand_on_their_devices_from_start_to_end(plan: SimulationPlan, cluster: Cluster, truth: dict) -> None:
    step = plan.step_seconds * SECONDS
    for holder in truth["holders"]:
        found = cluster.of("DCGM_FI_DEV_POWER_USAGE", namespace=holder["namespace"], pod=holder["pod"])
        times = sorted({time for each in found for time in each.times.tolist()})
        start = max(ms(holder["start_at"]), plan.window.start_ms)
        end = ms(holder["end_at"]) if holder["end_at"] else plan.window.end_ms
        due = [time for time in _node_times(cluster, holder["node"]) if start <= time < end]
        assert sorted(due) == times
        assert {each.device for each in found} <= {(d["device_uuid"], d["gpu_instance_id"]) for d in holder["devices"]}
        assert not times or times[0] - start < step or any(gap["node"] == holder["node"] for gap in truth["gaps"])
        is_dra = holder["requested_by"] == "claim"
        assert {each.labels.get("pod_uid", "") for each in found} <= {"" if is_dra else holder["pod_uid"]}


def test_idle_holders_hold_memory_and_never_compute(cluster: Cluster, truth: dict) -> None:
    idle = [holder for holder in truth["holders"] if holder["is_idle"] and holder["vgpu"] == ""]
    assert idle
    for holder in idle:
        for each in cluster.of("DCGM_FI_PROF_GR_ENGINE_ACTIVE", pod=holder["pod"], namespace=holder["namespace"]):
            assert set(each.values) == {0.0}
        for each in cluster.of("DCGM_FI_DEV_FB_USED", pod=holder["pod"], namespace=holder["namespace"]):
            assert (each.values > 0).all()


def test_memory_of_an_exclusive_holder_is_the_ratio_told(cluster: Cluster, truth: dict) -> None:
    for holder in truth["holders"]:
        for device in holder["devices"] if holder["vgpu"] == "" else ():
            key = (device["device_uuid"], device["gpu_instance_id"])
            free = cluster.device("DCGM_FI_DEV_FB_FREE", *key)
            for each in cluster.of("DCGM_FI_DEV_FB_USED", pod=holder["pod"], UUID=key[0], GPU_I_ID=key[1]):
                for time, used in each.points().items():
                    assert abs(used / (used + free[time]) - device["memory_used_ratio"]) < 1e-5


def test_truth_is_the_same_text_for_the_same_plan(plan: SimulationPlan, tmp_path) -> None:
    small = replace(plan, gpus=9, days=1)
    assert write_truth(small, tmp_path / "a").read_bytes() == write_truth(small, tmp_path / "b").read_bytes()
