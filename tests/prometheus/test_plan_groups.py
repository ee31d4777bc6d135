"""Groups of series: together they are everything, no series is in two, and no device is torn apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.collect.sources.prometheus import Group, Matcher, Outline, plan_groups
from gpureport.values.series import METRIC_LABEL, Labels

UUID_LABELS = ("UUID", "uuid", "gpu_uuid")

HOSTS = ["gpu-node-1", "gpu-node-10", "gpu.node+1", "a|b", "(x)", 'quote"d', "back\\slash", "[z]", "日本"]
UUIDS = ["GPU-1", "1", "GPU-2", "GPU-22", "GPU-3", "MIG-4", "5"]
DEVICE_METRICS = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_SM_ACTIVE"]
KUBE_METRICS = ["kube_pod_info", "kube_node_status_allocatable", "DCGM_FI_DEV_GPU_UTIL"]


def is_match(matcher: Matcher, labels: Labels) -> bool:
    """As Prometheus has it: an absent label is an empty one, and a regular expression must match all of it."""
    value = labels.get(matcher.name, "")
    if matcher.operator in ("=", "!="):
        return (value == matcher.value) == (matcher.operator == "=")
    return (re.fullmatch(matcher.value, value) is not None) == (matcher.operator == "=~")


def members(group: Group, series: Sequence[Labels]) -> list[Labels]:
    """What the group's questions bring; a series that two of them match comes twice."""
    return [
        labels for query in group.queries for labels in series if all(is_match(matcher, labels) for matcher in query.matchers)
    ]


def device_of(labels: Labels) -> str:
    uuid = next((labels[name] for name in UUID_LABELS if labels.get(name)), "")
    return uuid.removeprefix("GPU-")


def plan(series: Sequence[Labels], budget: int, samples_per_series: int) -> list[Group]:
    outline = Outline(UUID_LABELS)
    outline.add(series, device_of)
    return plan_groups(outline, budget, samples_per_series)


@st.composite
def fleets(draw: st.DrawFn) -> list[dict[str, str]]:
    """Device series of one exporter or of several that disagree on labels, and series of kube-state-metrics."""
    uuid_labels = draw(
        st.sampled_from([["UUID"], ["uuid"], ["gpu_uuid"], ["UUID", "uuid"], ["UUID", "gpu_uuid"], list(UUID_LABELS)])
    )
    host_labels = draw(
        st.sampled_from(
            [["Hostname"], ["hostname"], ["node"], ["instance"], [""], ["Hostname", "instance"], ["Hostname", "hostname", ""]]
        )
    )
    devices = st.fixed_dictionaries(
        {
            METRIC_LABEL: st.sampled_from(DEVICE_METRICS),
            "uuid label": st.sampled_from(uuid_labels),
            "host label": st.sampled_from(host_labels),
            "uuid": st.sampled_from(UUIDS),
            "host": st.sampled_from(HOSTS),
            "pod": st.sampled_from(["", "a", "b"]),
        }
    ).map(_device)
    kube = st.fixed_dictionaries(
        {METRIC_LABEL: st.sampled_from(KUBE_METRICS), "node": st.sampled_from(["", *HOSTS]), "pod": st.sampled_from(["a", "b"])}
    )
    found = [*draw(st.lists(devices, max_size=30)), *draw(st.lists(kube, max_size=10))]
    return [dict(pairs) for pairs in {frozenset(labels.items()) for labels in found}]


def _device(drawn: dict[str, str]) -> dict[str, str]:
    labels = {METRIC_LABEL: drawn[METRIC_LABEL], drawn["uuid label"]: drawn["uuid"], "pod": drawn["pod"]}
    return {**labels, drawn["host label"]: drawn["host"]} if drawn["host label"] else labels


@settings(max_examples=300)
@given(fleets(), st.integers(1, 40), st.integers(1, 3))
def test_every_series_is_in_exactly_one_group_and_no_device_in_two(
    series: list[dict[str, str]], budget: int, samples_per_series: int
) -> None:
    groups = plan(series, budget, samples_per_series)
    found = [members(group, series) for group in groups]
    times_seen = Counter(frozenset(labels.items()) for group in found for labels in group)
    assert times_seen == Counter(frozenset(labels.items()) for labels in series)
    groups_of_device = Counter(uuid for group in found for uuid in {device_of(labels) for labels in group} - {""})
    assert all(count == 1 for count in groups_of_device.values())
    expected = [sum(query.expected_samples for query in group.queries) for group in groups]
    assert expected == [len(group) * samples_per_series for group in found]


@settings(max_examples=100)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=9), st.integers(1, 60))
def test_a_group_is_within_the_budget_or_one_node(device_counts: list[int], budget: int) -> None:
    series = [
        {METRIC_LABEL: "DCGM_FI_DEV_GPU_UTIL", "UUID": f"GPU-{host}-{number}", "Hostname": HOSTS[host]}
        for host, count in enumerate(device_counts)
        for number in range(count)
    ]
    for group in plan(series, budget, samples_per_series=2):
        hosts = {labels["Hostname"] for labels in members(group, series)}
        assert sum(query.expected_samples for query in group.queries) <= budget or len(hosts) == 1


def test_nodes_of_kube_state_metrics_stay_out_of_device_groups() -> None:
    device = {METRIC_LABEL: "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "node": "n1"}
    stray = {METRIC_LABEL: "DCGM_FI_DEV_GPU_UTIL", "node": "n1"}
    kube = {METRIC_LABEL: "kube_pod_info", "node": "n1", "pod": "a"}
    of_devices, others = plan([kube, device, stray], 100, 1)
    assert members(of_devices, [kube, device, stray]) == [device]
    assert members(others, [kube, device, stray]) == [kube, stray]


def test_nothing_to_read_is_no_group() -> None:
    assert plan([], 100, 1) == []


def test_exporters_that_name_a_device_differently_are_asked_apart_and_shaped_together() -> None:
    def named(uuid_label: str, uuid: str, host_label: str, host: str) -> dict[str, str]:
        return {METRIC_LABEL: "DCGM_FI_DEV_GPU_UTIL", uuid_label: uuid, host_label: host}

    one = [named("UUID", "GPU-1", "Hostname", "n1"), named("uuid", "1", "instance", "10.0.0.1:9835")]
    other = [named("UUID", "GPU-2", "Hostname", "n2"), named("uuid", "2", "instance", "10.0.0.2:9835")]
    groups = plan([*one, *other], 2, 1)
    assert [members(group, [*one, *other]) for group in groups] == [one, other]
    assert [len(group.queries) for group in groups] == [2, 2]
