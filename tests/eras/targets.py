"""The recording through several scrape targets and servers, and through changes in the middle of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eras.names import LATER_DRIVER
from eras.recording import Series
from eras.renaming import Told
from eras.rewriting import with_exported_labels

_NEVER = 1 << 60


def through_two_replicas(series: Told) -> list[Series]:
    """Two Prometheus servers of one name, their samples at equal instants: every series twice."""
    return [each.with_labels(prometheus_replica=f"prometheus-{number}") for number in (0, 1) for each in series]


def through_two_replicas_with_outages(series: Told) -> list[Series]:
    """The same, each of them down for a while, never both."""
    first_ms = min(time for each in series for time in each.points)
    told = []
    for number, (down, up) in enumerate([(60_000, 80_000), (200_000, 230_000)]):
        for each in series:
            kept = {time: value for time, value in each.points.items() if not first_ms + down <= time < first_ms + up}
            told.append(replace(each, points=kept).with_labels(prometheus_replica=f"prometheus-{number}"))
    return [each for each in told if each.points]


def through_two_jobs(series: Told) -> list[Series]:
    """One exporter scraped by two jobs, of which one lets the target's labels win."""
    relabelled = [each.with_labels(job="gpu-operator") for each in with_exported_labels(series) if each.is_gpu]
    return [*series, *relabelled]


def through_two_servers(series: Told) -> list[Series]:
    """Two Prometheus servers that scrape half a second apart: every value twice, at two instants."""
    late = [replace(each, points={time + 500: value for time, value in each.points.items()}) for each in series]
    return [
        *(each.with_labels(prometheus_replica="prometheus-0") for each in series),
        *(each.with_labels(prometheus_replica="prometheus-1") for each in late),
    ]


def with_a_restarted_exporter(series: Told) -> list[Series]:
    """In the middle a newer exporter takes over, as another scrape target and with other labels."""
    middle = _middle(series)
    told = []
    for each in series:
        if not each.is_gpu:
            told.append(each)
            continue
        restarted = each.between(middle, _NEVER).renamed_labels({"Hostname": "hostname"})
        told += [each.between(0, middle), restarted.with_labels(instance="10.244.1.31:9400", service="dcgm")]
    return [each for each in told if each.points]


def with_exporters_that_overlap(series: Told) -> list[Series]:
    """A rolling update: for five seconds the old exporter and the new one are both scraped."""
    middle = _middle(series)
    told = []
    for each in series:
        new = each.between(middle, _NEVER).with_labels(instance="10.244.1.31:9400")
        told += [each.between(0, middle + 5000), new] if each.is_gpu else [each]
    return [each for each in told if each.points]


def with_another_driver(series: Told) -> list[Series]:
    """The driver's version changes in the middle, and with it the labels of every series."""
    middle = _middle(series)
    told = []
    for each in series:
        after = each.between(middle, _NEVER)
        told += [each.between(0, middle), after.with_labels(DCGM_FI_DRIVER_VERSION=LATER_DRIVER)] if each.is_gpu else [each]
    return [each for each in told if each.points]


def _middle(series: Iterable[Series]) -> int:
    times = sorted({time for each in series for time in each.points})
    return times[len(times) // 2]
