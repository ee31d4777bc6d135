"""The Kubernetes state of the simulated cluster at each midnight, with quotas of two systems, as an API server lists it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpureport.simulate import objects
from gpureport.simulate.kubernetes import lists, write_list
from gpureport.simulate.objects import Object
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import NodeStory, stories
from gpureport.simulate.workload import Pod

_LISTED_SECONDS = 7200
"""Time for which finished pods are still listed."""
QUOTAS: Mapping[str, Mapping[str, int]] = {
    "nos.nebuly.com/v1alpha1": {"vision": 9, "research": 16, "serving": 12},
    "scheduling.x-k8s.io/v1alpha1": {"search": 2, "notebooks": 4, "data": 6},
}
"""GPUs that each namespace is guaranteed, by the API of the system that guarantees them."""


def write_states(plan: SimulationPlan, folder: Path) -> Iterator[tuple[datetime, Path]]:
    """Write the state of each midnight after a simulated day, one after the other; when it was taken, and its folder."""
    told = tuple(stories(plan))
    for day in range(1, plan.days + 1):
        until = replace(plan, days=day)
        own = folder / f"{day:03d}"
        own.mkdir(parents=True)
        for name, kind, version, items in _lists(until, told):
            write_list(own, name, kind, version, items)
        yield until.window.end_at, own


def _lists(plan: SimulationPlan, told: Sequence[NodeStory]) -> Iterator[tuple[str, str, str, Iterable[Object]]]:
    """File, kind, API version and objects of each list at the plan's end."""
    at = plan.end_second
    pods = [pod for story in told for pod in story.pods if pod.life.created <= at < pod.life.end + _LISTED_SECONDS]
    claimed = [pod for pod in pods if pod.node.is_dra and pod.life.start <= at < pod.life.end]
    yield from lists(plan, told, (_pod(plan, pod) for pod in pods), claimed)
    for number, (version, guaranteed) in enumerate(QUOTAS.items()):
        found = (objects.elastic_quota(plan, name, gpus) for name, gpus in guaranteed.items())
        yield f"elasticquotas-{number}.json", "ElasticQuotaList", version, found


def _pod(plan: SimulationPlan, pod: Pod) -> Object:
    """The pod as it is at the plan's end; one that has no node yet is pending."""
    told = objects.pod(plan, pod)
    if pod.life.start <= plan.end_second:
        return told
    spec = {name: value for name, value in told["spec"].items() if name != "nodeName"}
    return {**told, "spec": spec, "status": {"phase": "Pending", "conditions": []}}
