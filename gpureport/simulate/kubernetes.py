"""The Kubernetes objects behind the samples, as list replies of a 1.36 API server at the end of the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gpureport.simulate import objects
from gpureport.simulate.plan import SimulationPlan
from gpureport.simulate.story import stories
from gpureport.simulate.workload import NAMESPACES
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
        return [*(write_list(out, *lists) for lists in _lists(plan)), observed]
    except OSError as error:
        raise GpureportError(f"{out} cannot be written ({error.strerror or error}); give --out a folder with space") from error


def _lists(plan: SimulationPlan) -> Iterator[tuple[str, str, str, Iterable[Object]]]:
    """File, kind, API version and objects of each list."""
    told = tuple(stories(plan))
    pods = [pod for story in told for pod in story.pods]
    dra_nodes = [story.node for story in told if story.node.is_dra]
    dra = "resource.k8s.io/v1"
    yield "nodes.json", "NodeList", "v1", (objects.node(plan, story.node) for story in told)
    yield "pods.json", "PodList", "v1", (objects.pod(plan, pod) for pod in pods)
    yield "namespaces.json", "NamespaceList", "v1", (objects.namespace(plan, name) for name in NAMESPACES)
    claims = (objects.claim(plan, pod) for pod in pods if pod.node.is_dra)
    yield "resourceclaims.json", "ResourceClaimList", dra, claims
    yield "resourceslices.json", "ResourceSliceList", dra, (objects.slice_of(plan, node) for node in dra_nodes)


def write_list(out: Path, name: str, kind: str, version: str, items: Iterable[Object]) -> Path:
    """Write a list, one object a line, so that any number of them takes no memory."""
    path = out / name
    with path.open("w") as file:
        file.write(f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"resourceVersion":"1"}},"items":[')
        for number, item in enumerate(items):
            file.write((",\n" if number else "\n") + json.dumps(item, separators=(",", ":")))
        file.write("\n]}\n")
    return path
