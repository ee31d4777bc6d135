"""The Kubernetes objects behind the samples, as list replies of a 1.36 API server at the end of the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpureport.simulate import objects
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import NodeStory, stories
from gpureport.simulate.workload import NAMESPACES, Pod
from gpureport.values.errors import GpureportError
from gpureport.values.window import rfc3339

Object = dict[str, Any]


def write_kubernetes(plan: SimulationPlan, out: Path) -> list[Path]:
    """Write nodes, pods, namespaces, resourceclaims and resourceslices as JSON lists, and ``observed_at.txt``.

    Finished pods are still listed, as nobody deleted their jobs; their claims are no longer allocated.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        observed = out / "observed_at.txt"
        observed.write_text(rfc3339(plan.window.end_at) + "\n")
        told = tuple(stories(plan))
        pods = [pod for story in told for pod in story.pods]
        made = lists(plan, told, (objects.pod(plan, pod) for pod in pods), (pod for pod in pods if pod.node.is_dra))
        return [*(write_list(out, *each) for each in made), observed]
    except OSError as error:
        raise GpureportError(f"{out} cannot be written ({error.strerror or error}); give --out a folder with space") from error


def lists(
    plan: SimulationPlan, told: Sequence[NodeStory], pods: Iterable[Object], claimed: Iterable[Pod]
) -> Iterator[tuple[str, str, str, Iterable[Object]]]:
    """File, kind, API version and objects of each list."""
    dra = "resource.k8s.io/v1"
    yield "nodes.json", "NodeList", "v1", (objects.node(plan, story.node) for story in told)
    yield "pods.json", "PodList", "v1", pods
    yield "namespaces.json", "NamespaceList", "v1", (objects.namespace(plan, name) for name in NAMESPACES)
    yield "resourceclaims.json", "ResourceClaimList", dra, (objects.claim(plan, pod) for pod in claimed)
    slices = (objects.slice_of(plan, story.node) for story in told if story.node.is_dra)
    yield "resourceslices.json", "ResourceSliceList", dra, slices


def write_list(out: Path, name: str, kind: str, version: str, items: Iterable[Object]) -> Path:
    """Write a list, one object a line, so that any number of them takes no memory."""
    path = out / name
    with path.open("w") as file:
        file.write(f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"resourceVersion":"1"}},"items":[')
        for number, item in enumerate(items):
            file.write((",\n" if number else "\n") + json.dumps(item, separators=(",", ":")))
        file.write("\n]}\n")
    return path
