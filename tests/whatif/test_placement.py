"""Pods placed anew: by hand, against a slow scheduler that really had the nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from random import Random

import duckdb
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpureport.values.errors import LakeError, UsageError
from gpureport.values.window import Window
from gpureport.whatif.nodes import NAMES, NodeScenario, _hourly, _like, _rows, _scenes, parse_counts
from gpureport.whatif.placement import Node, Pod, Request, Scene, Use, calibrated, outcome, replayed
from gpureport.whatif.pods import PodChange, returned_gpu_hours

KIND = ("nvidia_com_gpu", "any")
STEP = 100
"""s between two cycles of the slow scheduler: more than what counts as the same start."""


def node(name: str, gpus: float, model: str = "H100") -> Node:
    return Node(name, model, ((0.0, gpus),))


def scene(pods: list[Pod], nodes: list[Node], until: float = 1000.0) -> Scene:
    return Scene(0.0, until, pods, nodes, {KIND: [each.name for each in nodes]})


def test_who_waits_longest_and_fits_goes_first() -> None:
    """One node of 8. The second pod needs 8 and waits for the first, which ends at 300; the third, of 2, fits beside it."""
    pods = [Pod(6, 0, 0, 300, "a", KIND), Pod(8, 10, 400, 700, "a", KIND), Pod(2, 20, 20, 400, "a", KIND)]
    recorded = calibrated(scene(pods, [node("a", 8)]))[0]
    assert (recorded.held, replayed(recorded, "spread")) == ({}, [0, 400, 20])
    more = recorded.with_nodes(1, recorded.nodes[0])
    starts = replayed(more, "spread")
    assert starts == [0, 10, 20]
    found = outcome(more, starts, [0, 400, 20])
    assert found.placeable_gpus == 16
    assert found.allocated_gpu_hours == pytest.approx((6 * 300 + 8 * 300 + 2 * 380) / 3600)
    assert (found.pending_gpu_hours, found.wait_seconds_p50, found.wait_seconds_p95, found.moved_pod_count) == (0, 0, 0, 1)


def test_a_pod_that_had_room_and_no_place_keeps_its_start() -> None:
    """4 of 8 are free while it waits until 500: more nodes do not help it. One that never ran is held for good."""
    pods = [Pod(4, 0, 0, None, "a", KIND), Pod(4, 10, 500, None, "a", KIND), Pod(2, 20, None, None, "", KIND)]
    recorded = calibrated(scene(pods, [node("a", 8)]))[0]
    assert recorded.held == {1: 500, 2: inf}
    assert replayed(recorded.with_nodes(3, recorded.nodes[0]), "spread") == [0, 500, None]


def test_as_few_nodes_more_as_it_takes() -> None:
    """Four pods of 8 GPUs come at once and run for 300 s: on one node they wait 0, 300, 600 and 900 s, on two 0, 0, 300 and 300.

    For a p95, of four pods the longest, below 5 min it takes four nodes, below 5 min and a second two; one is there.
    """
    pods = [Pod(8, 10, 10 + 300 * number, 310 + 300 * number, "a", KIND, Use("ns/w")) for number in range(4)]
    there = scene(pods, [node("a", 8)], until=2000)
    counts = [
        next(
            row[3]
            for _, row in _rows("c", there, there.nodes[0], NodeScenario((0,), wait_seconds=wait), {"H100": [None]})
            if row[1] == "changed"
        )
        for wait in (300, 301, 901)
    ]
    assert counts == [3, 1, 0]
    held = scene([Pod(8, 10, None, None, "", KIND, Use("ns/w"))], [node("a", 8)], until=2000)
    with pytest.raises(LakeError, match="even 1,000 more nodes do not reach"):
        list(_rows("c", held, held.nodes[0], NodeScenario((0,), wait_seconds=60), {"H100": [None]}))


def test_nodes_of_another_resource_are_of_another_kind() -> None:
    """Five H100 nodes of 8 GPUs: b, c and e have whole GPUs, a and d have MIG instances alone.

    A pod of 8 GPUs waits until 400 s. An added node is like most nodes, like b: the pod starts at once. Nodes like a are a and d.
    """
    small = ("nvidia_com_mig_1g_10gb", "any")
    units = {"a": {small[0]: 56, KIND[0]: 0}, "b": {KIND[0]: 8}, "c": {KIND[0]: 8}, "d": {small[0]: 56}, "e": {KIND[0]: 8}}
    nodes = [node(name, 8)._replace(units=each) for name, each in units.items()]
    pods = [Pod(8, 0, 0, 400, name, KIND) for name in "bce"] + [Pod(8, 10, 400, None, "b", KIND)]
    there = Scene(0, 1000, pods, nodes, {KIND: ["b", "c", "e"], small: ["a", "d"]})
    like = _like(there, "")
    assert like
    assert like.name == "b"
    assert replayed(there.with_nodes(1, like), "spread")[3] == 10
    assert [each.name for each in there.with_nodes(-1, nodes[0]).nodes] == ["a", "b", "c", "e"]
    assert [each.name for each in there.with_nodes(-3, like).nodes] == ["a", "d"]


def test_a_wait_since_an_unknown_creation_is_unknown_and_not_zero() -> None:
    """Three pods run from an unknown creation on, the first from before the window; a fourth waits 300 s for 4 GPUs.

    The only known wait is 300 s: at the median too, where three waits of 0 s would make it 0. Without it no wait is known.
    """
    pods = [Pod(2, start, start, 400, "a", KIND, is_wait_known=False) for start in (0, 50, 60)]
    waiting = Pod(4, 100, 400, None, "a", KIND)
    there = scene([*pods, waiting], [node("a", 8)])
    found = [
        outcome(each, [pod.start for pod in each.pods], [pod.start for pod in each.pods])
        for each in (there, replace(there, pods=pods))
    ]
    assert [(each.wait_seconds_p50, each.wait_seconds_p95) for each in found] == [(300, 300), (None, None)]
    assert [each.pending_gpu_hours for each in found] == [pytest.approx(4 * 300 / 3600), None]
    note, _ = next(_rows("c", there, there.nodes[0], NodeScenario((0,)), {"H100": [None]}))
    assert "3 pods of unknown wait, left out of quantiles" in note
    with pytest.raises(LakeError, match="waits are unknown"):
        list(_rows("c", replace(there, pods=pods), there.nodes[0], NodeScenario((0,), wait_seconds=60), {"H100": [None]}))


def test_a_node_costs_what_is_in_force_in_each_hour() -> None:
    """8 GPUs for a day at 2 and a day at 4: 8 x 24 x 6. 24 GPU-hours that are returned cost 48 at 2, else unknown."""
    idle = scene([Pod(1, 0, 0, 86400.0, "a", KIND, Use("ns/w", 0.0))], [node("a", 8)], until=172_800)
    own, window = (
        NodeScenario((1,), pods=PodChange(returns_idle=True)),
        Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)),
    )
    found = {}
    for day in ("2026-11-21", "2026-11-22", "2026-11-20"):
        prices = {"H100": {day: 4.0}, "all": {"2026-01-01": 2.0}}
        row = dict(
            zip(NAMES, [*_rows("c", idle, idle.nodes[0], own, {"H100": _hourly(prices, "H100", window)})][-1][1], strict=True)
        )
        found[day] = (row["node_cost"], row["returned_cost"])
    assert found == {"2026-11-21": (1152, None), "2026-11-22": (768, 48), "2026-11-20": (1536, 96)}
    assert {*_hourly({"all": {"2026-11-21": 2.0}}, "H100", window)} == {None, 2.0}


def test_a_day_without_data_is_no_time_without_gpus() -> None:
    """8 GPUs on the first and the third of three days, all held on the first: 8 on average, 4 free; with one node more 16, 12."""
    day = 86400.0
    there = Node("a", "H100", ((0.0, 8.0), (day, 0.0), (2 * day, 8.0)))
    lost = replace(scene([Pod(8, 0, 0, day, "a", KIND)], [there], until=3 * day), gaps=[(day, 2 * day)])
    found = [outcome(each, replayed(each, "spread"), [0]) for each in (lost, lost.with_nodes(1, there))]
    assert [(each.placeable_gpus, each.free_gpus, each.allocated_gpu_hours) for each in found] == [(8, 4, 192), (16, 12, 192)]
    whole = replace(lost, pods=[Pod(8, 0, 0, None, "a", KIND)])  # 8 of 8 GPUs on both days, 384 h; of 4 idle ones 192 h
    found = outcome(whole, replayed(whole, "spread"), [0])
    assert (found.placeable_gpus, found.free_gpus, found.allocated_gpu_hours) == (8, 0, 384)
    half = replace(lost, pods=[Pod(4, 0, 0, None, "a", KIND)])
    assert returned_gpu_hours(whole, half, [0]) == {"a": 192}


def test_days_before_the_first_requests_are_left_out_of_averages() -> None:
    """An exporter shows 8 GPUs on three days; requests are known on the third: 8 GPUs on average, 24 h x 2 allocated, 6 free."""
    window = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC))
    with duckdb.connect() as con:
        con.execute("""
            create schema facts;
            create schema period;
            create table facts.node_allocation as select 'c' as cluster, 'a' as node_name, timestamp '2026-11-22' as start_at;
            create table period.capacity as select 'c' as cluster, 'a' as node_name, 'unseen' as unseen_cause,
                unnest([date '2026-11-20', date '2026-11-21', date '2026-11-22']) as day;
            create table period.node_placeable as select 'c' as cluster, 'a' as node_name, 'H100' as gpu_model,
                null::double as node_cpu_cores, null::double as node_memory_bytes, null::double as replica_gpus,
                null as resource_units, unnest([timestamp '2026-11-22', timestamp '2026-11-23']) as start_at,
                unnest([8e0, 0e0]) as placeable_gpus;
            create table period.pod_run as select 'c' as cluster, 'ns' as namespace, 'p' as pod, 'u' as pod_uid, '' as resource,
                'any' as wanted_model, 2e0 as requested_gpus, 2e0 as placed_gpus, null::double as requested_units,
                null::double as unit_gpus, null::double as cpu_cores, null::double as host_memory_bytes, 'a' as node_name,
                timestamp '2026-11-19' as created_at, timestamp '2026-11-20' as start_at, null::timestamp as end_at;
            create table period.pod_place as select 'c' as cluster, '' as resource, 'any' as wanted_model, 'a' as node_name;
        """)
        ((_, found),) = _scenes(con, window, PodChange())
    made = outcome(found, replayed(found, "spread"), [None])
    assert (made.placeable_gpus, made.allocated_gpu_hours, made.free_gpus) == (8, 48, 6)


def test_cpu_is_the_bound() -> None:
    """A node of 8 GPUs and 32 cores. Four pods of one GPU and 8 cores fill it; the fifth waits until the first ends at 300.

    On a second node it begins at once; on one whose cores are unknown no CPU is short. Memory alike.
    """
    pods = [Pod(1, number, number, 300 if number == 0 else None, "a", KIND, host=(8, 1)) for number in range(4)]
    pods.append(Pod(1, 10, 300, None, "a", KIND, host=(8, 1)))
    small = Node("a", "H100", ((0.0, 8),), (32, 512))
    recorded = calibrated(scene(pods, [small]))[0]
    assert (recorded.held, replayed(recorded, "spread")[4]) == ({}, 300)
    assert replayed(recorded.with_nodes(1, small), "spread")[4] == 10
    assert calibrated(scene(pods, [small._replace(host=(inf, inf))]))[0].held == {4: 300}
    assert replayed(scene(pods, [small._replace(host=(inf, 4))]), "spread")[4] == 300
    never = [Pod(4, 0, 0, None, "a", KIND, host=(30, 1)), Pod(1, 10, None, None, "", KIND, host=(8, 1))]
    short = calibrated(scene(never, [small]))[0]
    assert (short.held, replayed(short, "spread")) == ({}, [0, None])
    assert replayed(short.with_nodes(1, small), "best-fit") == [0, 10]


def test_replicas_are_placed_by_units() -> None:
    """Two GPUs as five units, one of them four replicas, and a GPU as seven instances of one slice: 3 GPUs.

    One pod has the whole GPU for one unit, 1 GPU on average; three have a third of the other each. The fifth unit is free for the
    next, though both GPUs are allocated. The one after it waits until the first pod ends, though 1 GPU of instances is free. An
    instance has its place at once. On a node without replicas each unit takes a GPU: the fourth waits for the first.
    """
    shared = Node("a", "H100", ((0.0, 3),), unit_gpus=0.4, units={"nvidia_com_gpu": 5, "nvidia_com_mig_1g_10gb": 7})
    unit, instance = Request(0.4, 1), Request(1 / 7, 1, 1 / 7)
    averages = [1, 1 / 3, 1 / 3, 1 / 3, 1 / 4, 1 / 4]
    starts = [1, 2, 3, 4, 5, 300]
    ends = [300, None, None, None, None, None]
    pods = [
        Pod(gpus, 1 + number, start, end, "a", KIND, requested=unit)
        for number, (gpus, start, end) in enumerate(zip(averages, starts, ends, strict=True))
    ]
    small = ("nvidia_com_mig_1g_10gb", "any")
    pods.append(Pod(1 / 7, 20, 20, None, "a", small, requested=instance))
    there = Scene(0, 1000, pods, [shared], {KIND: ["a"], small: ["a"]})
    again = calibrated(there)[0]
    assert (again.held, replayed(again, "spread")) == ({}, [*starts, 20])
    assert replayed(again.with_nodes(1, shared), "spread") == [1, 2, 3, 4, 5, 6, 20]
    whole = Scene(0, 1000, pods[:5], [node("w", 3)], {KIND: ["w"]})
    assert replayed(whole, "spread") == [1, 2, 3, 300, None]


def test_fewer_nodes_send_their_pods_elsewhere() -> None:
    """Both ran from before the window. Without b its pod waits until a's ends at 300, and runs the 600 s that it had left."""
    pods = [Pod(8, -50, 0, 300, "a", KIND), Pod(8, -50, 0, 600, "b", KIND)]
    less = scene(pods, [node("a", 8), node("b", 8)]).with_nodes(-1, node("a", 8))
    starts = replayed(less, "spread")
    assert starts == [0, 300]
    assert outcome(less, starts, starts).allocated_gpu_hours == pytest.approx((8 * 300 + 8 * 600) / 3600)


def test_a_pod_goes_where_its_resource_and_model_are_and_leaves_when_it_gave_up() -> None:
    pods = [Pod(1, 0, None, 400, "", KIND)]
    only = Scene(0, 1000, pods, [node("a", 8, "A100"), Node("b", "H100", ((0, 0), (300, 4)))], {KIND: ["b"]})
    assert replayed(only, "spread") == [300]
    late = Scene(0, 1000, pods, [node("a", 8, "A100"), Node("b", "H100", ((0, 0), (500, 4)))], {KIND: ["b"]})
    assert replayed(late, "spread") == [None]
    assert outcome(late, [None], [None]).pending_gpu_hours == pytest.approx(400 / 3600)


def test_a_pod_that_leaves_as_gpus_become_free_waited_for_them() -> None:
    """The second gives up at 300, when the first ends and the third takes its GPUs: with a node more, it has them at 100."""
    pods = [Pod(8, 0, 0, 300, "a", KIND), Pod(8, 100, None, 300, "", KIND), Pod(8, 200, 300, None, "a", KIND)]
    recorded = calibrated(scene(pods, [node("a", 8)]))[0]
    assert (recorded.held, replayed(recorded, "spread")) == ({}, [0, None, 300])
    assert replayed(recorded.with_nodes(1, recorded.nodes[0]), "spread") == [0, 100, 300]


def scheduled(requests: list[tuple[int, int, int]], nodes: dict[str, float], cycles: int) -> list[tuple[int | None, str]]:
    """(start, node) of each request (units, created, lasting): at each cycle the oldest first, to the node with most free GPUs.

    Nodes of 8 GPUs, each with the GPUs in a unit.
    """
    found: list[tuple[int | None, str]] = [(None, "")] * len(requests)
    for now in range(0, cycles * STEP, STEP):
        for number in sorted(range(len(requests)), key=lambda each: (requests[each][1], each)):
            if found[number][0] is None and requests[number][1] <= now:
                free = dict.fromkeys(nodes, 8.0)
                for (units, _, lasting), (start, on) in zip(requests, found, strict=True):
                    if start is not None and start + lasting > now:
                        free[on] -= units * nodes[on]
                fitting = [name for name in nodes if free[name] >= requests[number][0] * nodes[name]]
                if fitting:
                    found[number] = (now, min(fitting, key=lambda name: (-free[name], name)))
    return found


def simulated(
    seed: int, sizes: list[int], units: list[float], cycles: int = 400, busy: float = 0.3
) -> tuple[list[tuple[int, int, int]], Scene]:
    """Requests in random order, and the scene that a cluster of nodes with so many GPUs in a unit recorded of them.

    On nodes that share GPUs a pod has any part of its units on average.
    """
    random = Random(seed)
    requests = [
        # None at the window's beginning: who runs then was placed before it, and stays.
        (random.choice(sizes), STEP * random.randrange(1, int(cycles * busy)), STEP * random.randrange(5, 40))
        for _ in range(30)
    ]
    nodes = {f"n{number}": unit for number, unit in enumerate(units)}
    until = cycles * STEP
    pods = []
    for (size, created, lasting), (start, on) in zip(requests, scheduled(requests, nodes, cycles), strict=True):
        end = None if start is None or start + lasting >= until else float(start + lasting)
        unit = nodes.get(on, 1)
        gpus = size if unit == 1 else size * random.uniform(unit, 1)
        pods.append(Pod(gpus, created, start, end, on, KIND, requested=Request(size * unit, size)))
    return requests, scene(
        pods, [node(name, 8)._replace(unit_gpus=unit, units={KIND[0]: 8 / unit}) for name, unit in nodes.items()], until
    )


UNITS = st.lists(st.sampled_from([1.0, 0.25, 0.5]), min_size=3, max_size=3)


@given(seed=st.integers(0, 2**32), units=UNITS)
def test_what_was_recorded_comes_out_again(seed: int, units: list[float]) -> None:
    """Whatever the sizes, and whether GPUs are shared: who waited for GPUs waits as long, and no one is held who need not be."""
    _, recorded = simulated(seed, [1, 2, 4, 8], units)
    again, policy = calibrated(recorded)
    assert (again.held, policy) == ({}, "spread")
    assert replayed(again, "spread") == [pod.start for pod in recorded.pods]


@given(seed=st.integers(0, 2**32), more=st.integers(0, 3), units=UNITS)
def test_more_nodes_are_as_if_they_had_been_there(seed: int, more: int, units: list[float]) -> None:
    """To the second, whatever the sizes, and whether GPUs are shared: where nodes are equally free both go by name."""
    requests, recorded = simulated(seed, [1, 2, 4, 8], units)
    assume(all(pod.end is not None for pod in recorded.pods))  # how long the others would have run is not known
    scene_of_more = calibrated(recorded)[0].with_nodes(more, recorded.nodes[0])
    real = scheduled(requests, {node.name: node.unit_gpus for node in scene_of_more.nodes}, 400)
    assert replayed(scene_of_more, "spread") == [start for start, _ in real]


@pytest.mark.parametrize(("text", "counts"), [("+4", (4,)), ("-3", (-3,)), ("-1..+2", (-1, 0, 1, 2))])
def test_numbers_of_nodes(text: str, counts: tuple[int, ...]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["four", "2..1", "0..99", "1.5", "+9999999"])
def test_what_is_no_number_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--nodes"):
        parse_counts(text)
