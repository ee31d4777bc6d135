"""Sharers of whom only Kepler tells, whose series name no GPU: an export puts them into a part of their own."""

from __future__ import annotations

from few_facts import compute_only
from lake_rows import DAY, arrow, at, facts, owner, sample

from gpureport.compute.day import ComputeSettings, compute_days
from gpureport.lake import Lake, open_lake
from gpureport.values.tables import DEVICE_LABEL, DEVICE_SAMPLE, OWNER_LABEL, SAMPLE, SERIES

SAMPLES = [
    sample(device, start, 1800, power_watts=watts, gpu_util_ratio=util)
    for device in ("GPU-a", "GPU-b")
    for start, watts, util in ((0, 100.0, 0.5), (1800, 40.0, 0.0))
]
OWNERS = [owner("GPU-a", "a", 0, 3600), owner("GPU-a", "b", 0, 3600), owner("GPU-b", "c", 0, 3600)]
WATTS = {1: ("a", 45.0), 2: ("b", 15.0), 3: ("c", 60.0)}


def test_keplers_watts_are_found_in_whichever_part_they_stand(tmp_path, monkeypatch):
    compute_only(monkeypatch, "facts.power_hour", "facts.kepler_hour")
    lake = open_lake(tmp_path / "lake", create=True)
    _fill(lake, "apart", [0, 1, 2])
    _fill(lake, "together", [0, 0, 0])
    compute_days(lake, [("apart", DAY), ("together", DAY)], ComputeSettings())
    # Idle power is unknown, so all of 100 W for 1800 s: three quarters of GPU-a's are a's; GPU-b has one holder.
    expected = [("a", 135_000.0, "kepler_share"), ("b", 45_000.0, "kepler_share"), ("c", 180_000.0, "exclusive")]
    measured = [("a", 162_000.0), ("b", 54_000.0), ("c", 216_000.0)]
    both = ("apart", "together")
    power = facts(lake, "power_hour", "cluster, pod, round(active_joules, 6), method")
    assert power == [(cluster, *row) for cluster in both for row in expected]
    assert facts(lake, "kepler_hour", "cluster, pod, kepler_joules") == [(cluster, *row) for cluster in both for row in measured]


def _fill(lake: Lake, cluster: str, parts: list[int]) -> None:
    """GPU-a in the first part, GPU-b in the second, Kepler's series in the third."""
    devices = ["GPU-a", "GPU-b", ""]
    with lake.change() as change:
        for part in dict.fromkeys(parts):
            held = {device for device, own in zip(devices, parts, strict=True) if own == part}
            for table, rows in ((DEVICE_SAMPLE, SAMPLES), (OWNER_LABEL, OWNERS), (DEVICE_LABEL, [])):
                change.write(table.name, cluster, DAY, arrow(table, [row for row in rows if row["device_uuid"] in held]), part)
            if "" in held:
                change.write("series", cluster, DAY, arrow(SERIES, [_series(number) for number in WATTS]), part)
                change.write("sample", cluster, DAY, arrow(SAMPLE, [_reading(number) for number in WATTS]), part)


def _series(number: int) -> dict[str, object]:
    names = {"namespace": "ns", "pod": WATTS[number][0], "pod_uid": "", "container": ""}
    kept = {"signal": "kepler_active_watts", "scope": "pod", "metric": "kepler_pod_gpu_watts", "exporter": "kepler"}
    empty = {"device_uuid": "", "gpu_instance_id": "", "labels": [], "external_labels": []}
    return {"series_id": number, **empty, "node_name": "", "sample_count": 1, **names, **kept}


def _reading(number: int) -> dict[str, object]:
    return {"series_id": number, "seen_at": at(0), "value": WATTS[number][1], "held_seconds": 3600.0, "is_carried": False}
