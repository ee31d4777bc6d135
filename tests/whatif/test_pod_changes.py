"""Pods that would have been otherwise: stopped once idle, without unused GPUs, on MIG instances. Worked out by hand."""

from __future__ import annotations

import pytest

from gpureport.values.errors import UsageError
from gpureport.whatif.nodes import NodeScenario, _rows
from gpureport.whatif.placement import Node, Pod, Scene, Use, outcome, replayed
from gpureport.whatif.pods import PodChange, parse_duration, returned_gpu_hours

KIND = ("nvidia_com_gpu", "any")
HOUR = 3600.0


def scene(*pods: Pod, gpus: float = 8, model: str = "NVIDIA H100 80GB HBM3") -> Scene:
    return Scene(0.0, 10 * HOUR, pods, [Node("a", model, ((0.0, gpus),))], {KIND: ["a"]})


def test_an_idle_pod_ends_and_gives_its_room_to_who_waits() -> None:
    """8 GPUs, idle from the second hour to the seventh: with 2 h it ends after three, and who waits starts four earlier."""
    idle = Pod(8, 0, 0, 7 * HOUR, "a", KIND, Use("ns/notebook", 1.0, [(HOUR, 7 * HOUR)]))
    waiting = Pod(8, HOUR, 7 * HOUR, 8 * HOUR, "a", KIND, Use("ns/job", 1.0))
    before = scene(idle, waiting)
    after = PodChange(idle_timeout_seconds=2 * HOUR).apply_to(before)
    assert [pod.end for pod in after.pods] == [3 * HOUR, 8 * HOUR]
    starts = replayed(after, "spread")
    assert starts == [0, 3 * HOUR]
    assert returned_gpu_hours(before, after, [0, 7 * HOUR]) == {"a": 8 * 4}
    found = outcome(after, starts, [0, 7 * HOUR])
    assert found.allocated_gpu_hours == 8 * 3 + 8
    assert found.free_gpus == pytest.approx((80 - 32) / 10)
    assert found.pending_gpu_hours == 8 * 2
    assert found.moved_pod_count == 1


@pytest.mark.parametrize(
    ("runs", "end"),
    [
        ([(HOUR, 2 * HOUR)], None),  # an hour is shorter than two
        ([(0.0, 2.5 * HOUR)], 2.5 * HOUR),  # it began after half an hour: two hours from there
        ([(HOUR, 2 * HOUR), (4 * HOUR, 9 * HOUR)], 6 * HOUR),
    ],
)
def test_a_timeout_counts_from_when_the_pod_was_idle(runs: list[tuple[float, float]], end: float | None) -> None:
    pod = Pod(1, 0, HOUR / 2, None, "a", KIND, Use("ns/w", 1.0, runs))
    assert PodChange(idle_timeout_seconds=2 * HOUR).apply_to(scene(pod)).pods[0].end == end


def test_gpus_that_a_pod_never_used_are_returned() -> None:
    """Four of which one was used, two of which none was, and two of which nothing is known."""
    pods = [Pod(gpus, 0, 0, None, "a", KIND, Use("ns/w", ratio)) for gpus, ratio in ((4, 0.25), (2, 0.0), (2, None))]
    before = scene(*pods)
    after = PodChange(returns_idle=True).apply_to(before)
    assert [pod.gpus for pod in after.pods] == [1, 0, 2]
    starts = replayed(after, "spread")
    assert starts == [0, None, 0]
    found = outcome(after, starts, [0, 0, 0])
    assert (found.allocated_gpu_hours, found.placed_pod_count, found.waiting_pod_count, found.free_gpus) == (30, 2, 0, 5)
    assert returned_gpu_hours(before, after, [0, 0, 0]) == {"a": 3 * 10 + 2 * 10}


def test_unknown_use_makes_what_is_returned_a_lower_bound() -> None:
    """Of two pods that ran one was not seen all the time; a pod that waits has no use to be known."""
    pods = [
        Pod(4, 0, 0, None, "a", KIND, Use("ns/w", 0.5, is_unknown=True)),
        Pod(4, 0, 0, None, "a", KIND, Use("ns/w", 0.5)),
        Pod(4, 0, None, None, "", KIND, Use("ns/w", is_unknown=True)),
    ]
    there = scene(*pods)
    notes = [
        next(_rows("c", there, there.nodes[0], NodeScenario((0,), pods=change), {there.nodes[0].gpu_model: [None]}))[0]
        for change in (PodChange(returns_idle=True), PodChange(idle_timeout_seconds=HOUR), PodChange())
    ]
    assert ["1 pod of partly unknown use, counted as use: returned GPU-hours are a lower bound" in each for each in notes] == [
        True,
        True,
        False,
    ]


def test_what_a_cluster_without_any_known_use_returns_is_unknown_and_not_zero() -> None:
    """Another cluster has data of use, so the question is answered. A MIG instance saves six sevenths of 10 GPU-hours."""
    there = scene(Pod(1, 0, 0, None, "a", KIND, Use("ns/w", is_unknown=True)))
    slices = (("1g.10gb", "ns/*"),)
    found = [
        list(_rows("c", there, there.nodes[0], NodeScenario((0,), pods=change), {there.nodes[0].gpu_model: [None]}))[-1][1][4:6]
        for change in (
            PodChange(returns_idle=True),
            PodChange(idle_timeout_seconds=HOUR),
            PodChange(returns_idle=True, slices=slices),
        )
    ]
    assert found == [(None, None), (None, None), (1, pytest.approx(10 * 6 / 7))]


def test_mig_instances_in_place_of_whole_gpus() -> None:
    """Seven 1g.10gb or two 3g.40gb are made of an H100; other workloads and shares stay as they are."""
    pods = [Pod(gpus, 0, 0, None, "a", KIND, Use(name)) for gpus, name in ((1, "ns/small"), (2, "ns/other"), (0.5, "ns/small"))]
    found = PodChange(slices=(("1g.10gb", "ns/small"), ("3g.40gb", "ns/oth*"))).apply_to(scene(*pods))
    assert [pod.gpus for pod in found.pods] == [pytest.approx(1 / 7), 1, 0.5]


@pytest.mark.parametrize("model", ["NVIDIA L4", ""])
def test_a_profile_that_the_model_does_not_have_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match=r"--mig 1g\.10gb for ns/"):
        PodChange(slices=(("1g.10gb", "ns/*"),)).apply_to(scene(Pod(1, 0, 0, None, "a", KIND, Use("ns/w")), model=model))


def test_durations() -> None:
    assert [parse_duration(text) for text in ("2h", "90min", "1.5h", "1d")] == [7200, 5400, 5400, 86400]
    for text in ("2", "h", "0h", "-1h", "two"):
        with pytest.raises(UsageError, match="--idle-timeout"):
            parse_duration(text)
