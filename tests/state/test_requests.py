"""A pod's effective request, by hand from the scheduler's rules."""

from typing import Any

import pytest

from gpureport.collect.state.pods import effective_requests

GPU = "nvidia.com/gpu"


def container(restart: str = "", **requests: str) -> dict[str, Any]:
    named = {GPU if name == "gpu" else name: written for name, written in requests.items()}
    return {"resources": {"requests": named}} | ({"restartPolicy": restart} if restart else {})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container(gpu="1"), container(gpu="2")]}, {GPU: 3}),
        # An init container runs before, alone: the larger of the two.
        ({"containers": [container(gpu="1")], "initContainers": [container(gpu="4")]}, {GPU: 4}),
        ({"containers": [container(gpu="3")], "initContainers": [container(gpu="2"), container(gpu="2")]}, {GPU: 3}),
        # Each resource by itself.
        ({"containers": [container(gpu="2", cpu="1")], "initContainers": [container(gpu="1", cpu="8")]}, {GPU: 2, "cpu": 8}),
        # A sidecar runs beside the containers, and beside the init containers after it: 4 + 1 against 2 + 1.
        ({"containers": [container(gpu="2")], "initContainers": [container("Always", gpu="1"), container(gpu="4")]}, {GPU: 5}),
        # An init container before the sidecar runs without it: 4 against 2 + 1.
        ({"containers": [container(gpu="2")], "initContainers": [container(gpu="4"), container("Always", gpu="1")]}, {GPU: 4}),
        # Two sidecars: at the second init step both run: 1 + 2 + 3 against 1 + 1 + 2.
        (
            {
                "containers": [container(gpu="1")],
                "initContainers": [container("Always", gpu="1"), container("Always", gpu="2"), container(gpu="3")],
            },
            {GPU: 6},
        ),
        # Overhead comes on top of whichever is larger.
        (
            {"containers": [container(cpu="250m")], "initContainers": [container(cpu="1")], "overhead": {"cpu": "100m"}},
            {"cpu": 1.1},
        ),
        # A request of the pod itself replaces the containers' sum.
        ({"containers": [container(cpu="1", gpu="1")], "resources": {"requests": {"cpu": "6"}}}, {"cpu": 6, GPU: 1}),
        # A limit alone is a request.
        ({"containers": [{"resources": {"limits": {GPU: "2"}}}]}, {GPU: 2}),
        ({"containers": [{"resources": {"limits": {GPU: "2"}, "requests": {GPU: "1"}}}]}, {GPU: 1}),
        ({"containers": None}, {}),
        ({"containers": [{}, {"resources": None}, "odd"], "overhead": None}, {}),
    ],
)
def test_what_the_scheduler_reckons_with(spec: dict[str, Any], expected: dict[str, float]) -> None:
    assert effective_requests(spec) == expected
