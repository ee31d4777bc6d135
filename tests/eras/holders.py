"""Which pod a device's series name where an exporter names one of several."""

from __future__ import annotations

from collections.abc import Mapping

from eras.recording import Series
from eras.renaming import Told


def with_the_last_pod_named(series: Told) -> list[Series]:
    """Without virtual GPUs a device has one series, and it is named after one of its pods, another at each scrape."""
    return _one_series_per_name(series, _in_turn(holders_at(series)))


def _in_turn(holders: Mapping[int, list[str]]) -> dict[int, str]:
    """One holder by instant: who comes or goes then, else who was not named for longest."""
    named: dict[int, str] = {}
    last_named: dict[str, int] = {}
    times = sorted(holders)
    for position, time in enumerate(times):
        before = holders[times[position - 1]] if position else []
        after = holders[times[position + 1]] if position + 1 < len(times) else []
        changing = [pod for pod in holders[time] if pod not in before or pod not in after]
        named[time] = min(changing or holders[time] or [""], key=lambda pod: last_named.get(pod, 0))
        last_named[named[time]] = time
    return named


def with_one_pod_named(series: Told) -> list[Series]:
    """Without virtual GPUs, and the kubelet's order puts the longest-lived pod last: the others are never named."""
    holders = holders_at(series)
    first = next(pods[0] for _, pods in sorted(holders.items()) if pods)
    return _one_series_per_name(series, {time: first if first in pods else "" for time, pods in holders.items()})


def holders_at(series: Told) -> dict[int, list[str]]:
    """The pods that hold the device at each instant, by the virtual-GPU copies of its power."""
    found: dict[int, list[str]] = {}
    for each in series:
        if each.metric == "DCGM_FI_DEV_POWER_USAGE":
            for time in each.points:
                found.setdefault(time, []).extend([each.pod] if each.pod else [])
    return found


def _one_series_per_name(series: Told, named: Mapping[int, str]) -> list[Series]:
    """One device series of each metric, cut into a label set for each name that it takes."""
    labels = {each.pod: each.without_labels("vgpu", "pod_uid").labels for each in series if each.is_gpu}
    told = [each for each in series if not each.is_gpu]
    for metric, points in device_points(series).items():
        for pod in dict.fromkeys(named.values()):
            mine = {time: value for time, value in points.items() if named[time] == pod}
            told += [Series(metric, labels[pod], mine)] if mine else []
    return told


def device_points(series: Told) -> dict[str, dict[int, float]]:
    """The device's own values by metric: of GPU_UTIL and FB_USED those without a pod, of the rest any copy."""
    found: dict[str, dict[int, float]] = {}
    for each in sorted(filter(lambda one: one.is_gpu, series), key=lambda one: one.pod != ""):
        is_the_pods = each.pod and each.metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
        if not is_the_pods:
            points = found.setdefault(each.metric, {})
            points |= {time: value for time, value in each.points.items() if time not in points}
    return {metric: dict(sorted(points.items())) for metric, points in found.items()}
