"""What an export holds in memory is a group of nodes, not the fleet."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest

from gpureport.values.series import METRIC_LABEL
from gpureport.values.window import Window

from . import fleet
from .backends import STREAMED, chunked, frame
from .replay import BUILD_INFO, Reply, Request, Routes, replaying, success
from .samples import bits
from .xor_oracle import encode

METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_POWER_USAGE")
GPUS_PER_NODE = 8
STEPS_PER_DAY = 2880  # one each 30 s
SAMPLES_PER_NODE = GPUS_PER_NODE * len(METRICS) * 120 * 25  # what an export plans for: an hour's 120, the margins counted in
# VmHWM, not getrusage: a process begins with the peak of the one that started it in the latter.
MAIN = """
import os, re, sys
from pathlib import Path
import numba
from gpureport.cli import main
from gpureport.collect import export
from gpureport.commands import collecting
from gpureport.commands.work import observing
for group, *flags in {groups!r}:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    os.environ["GPUREPORT_EXPORT__SAMPLES_PER_GROUP"] = group
    code = main(flags)
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1], flush=True)
    os._exit(code)
"""


@pytest.fixture(scope="module")
def chunks() -> list[bytes]:
    start_ms = Window.of_day(fleet.DAY).start_ms
    samples = [(start_ms + step * 30_000, bits(float(step % 97))) for step in range(STEPS_PER_DAY)]
    return [encode(samples[first : first + 120]) for first in range(0, STEPS_PER_DAY, 120)]


def labels_of(node: str) -> list[dict[str, str]]:
    return [
        {METRIC_LABEL: metric, "Hostname": node, "UUID": f"GPU-{node}-{gpu}", "gpu": str(gpu)}
        for gpu in range(GPUS_PER_NODE)
        for metric in METRICS
    ]


def routes(node_count: int, chunks: list[bytes]) -> Routes:
    nodes = [f"node-{number:02d}" for number in range(node_count)]
    bodies = {node: b"".join(frame(chunked(labels, chunks)) for labels in labels_of(node)) for node in nodes}

    def read(request: Request) -> Reply:
        """The nodes that the request's condition names."""
        named = re.findall(r"node-\d\d", bytes(cramjam.snappy.decompress_raw(request.body)).decode("latin-1"))
        return Reply(body=b"".join(bodies[node] for node in named), content_type=STREAMED)

    return {
        BUILD_INFO: success({"version": "2.99.0"}),
        "/api/v1/status/config": success({"yaml": ""}),
        "/api/v1/series": success([labels for node in nodes for labels in labels_of(node)]),
        "/api/v1/query": success({"resultType": "vector", "result": [{"metric": {}, "value": [0, "120"]}]}),
        "/api/v1/read": read,
    }


def test_memory_is_bounded_by_the_group_and_not_by_the_fleet(chunks: list[bytes], tmp_path: Path) -> None:
    """Peaks of exports of a node, of a fleet in groups, and of a fleet at once, each in a fork of one process."""
    with replaying(routes(1, chunks)) as alone, replaying(routes(12, chunks)) as fleet_of_12:
        groups = [
            [str(SAMPLES_PER_NODE * group), *fleet.export_command(server.url, tmp_path / f"lake-{number}")[3:]]
            for number, (server, group) in enumerate(((alone, 1), (fleet_of_12, 1), (fleet_of_12, 12)))
        ]
        done = subprocess.run(
            [sys.executable, "-c", MAIN.format(groups=groups)],
            env=fleet.environment(GPUREPORT_PROMETHEUS__MAX_CONCURRENCY="1"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert [server.count("/api/v1/read") for server in (alone, fleet_of_12)] == [1 + 1, (1 + 12) + (1 + 1)]
    one, in_groups, at_once = map(int, re.findall(r"(?m)^\d+$", done.stdout))
    assert in_groups - one < (at_once - one) / 2
