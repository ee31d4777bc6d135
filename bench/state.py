"""A snapshot against downloading and parsing the same pages, from the same server, in turns.

PODS is about 10,000 at POD_LIFE_FACTOR=2.4, on 1,000 nodes with a ResourceSlice each; ROUNDS (5).
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import urllib3

from bench.measure import CACHE, Measured, fingerprint, machine, measure, median, print_table
from gpureport.simulate import SimulationPlan, write_kubernetes

POD_LIFE_FACTOR = float(os.environ.get("POD_LIFE_FACTOR", "2.4"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
PATHS = {
    "nodes.json": "/api/v1/nodes",
    "namespaces.json": "/api/v1/namespaces",
    "pods.json": "/api/v1/pods",
    "resourceslices.json": "/apis/resource.k8s.io/v1/resourceslices",
    "resourceclaims.json": "/apis/resource.k8s.io/v1/resourceclaims",
}
GROUPS = {"kind": "APIGroupList", "groups": [{"name": "resource.k8s.io", "versions": [{"version": "v1"}]}]}


def main() -> None:
    """Measure in turns and print."""
    shares = {"mig_share": 0, "sharing_share": 0, "dra_share": 1, "kube_state_step_seconds": 0}
    plan = SimulationPlan(8_000, 1, date(2026, 11, 20), pod_life_factor=POD_LIFE_FACTOR, **shares)
    folder = CACHE / f"kubernetes-{fingerprint(plan)}"
    if not (folder / "observed_at.txt").exists():
        write_kubernetes(plan, folder)
    counts = {name: len(orjson.loads((folder / name).read_bytes())["items"]) for name in PATHS}
    print(f"{machine()}; " + ", ".join(f"{count:,} {name.removesuffix('.json')}" for name, count in counts.items()))
    with _server(folder) as url:
        _compare(f"State of a cluster, median of {ROUNDS}", url)


def _compare(title: str, url: str) -> None:
    lake, config = CACHE / "lake-of-state", CACHE / "kubeconfig-of-state"
    config.write_text(json.dumps(_kubeconfig(url)))
    runs: dict[str, list[Measured]] = {"parse": [], "snapshot": []}
    for _ in range(ROUNDS):
        for name, found in runs.items():
            shutil.rmtree(lake, ignore_errors=True)
            found.append(measure([sys.executable, "-m", "bench.state", name, url, config, lake]))
    said = {name: [tuple(map(float, run.stdout.split())) for run in found] for name, found in runs.items()}
    wall, cpu = ({name: median([each[-number] for each in found]) for name, found in said.items()} for number in (2, 1))
    megabytes = said["parse"][0][0] / 1e6
    named = {"parse": f"download and orjson.loads of the same pages ({megabytes:.0f} MB)", "snapshot": "gpureport snapshot"}
    rows = [
        (
            what,
            wall[name],
            wall[name] / wall["parse"],
            cpu[name],
            cpu[name] / cpu["parse"],
            max(run.process_mb for run in runs[name]),
        )
        for name, what in named.items()
    ]
    columns = ("what", "s", "/ download and parse (≤ 1.3)", "own CPU s", "the same, CPU", "peak MB (≤ 300)")
    print_table(title, columns, rows)


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


# What is measured, in a process of its own; the last two words printed are its seconds and CPU seconds


def parse(url: str) -> None:
    """Every page one after the other, as fast as the parts allow."""
    gc.disable()
    http, total, begun = urllib3.PoolManager(), 0, _clocks()
    for path in PATHS.values():
        token = ""
        while True:
            asked = f"{url}{path}?limit=500" + (f"&continue={token}" if token else "")
            body = http.request("GET", asked, headers={"Accept-Encoding": "gzip"}).data
            total += len(body)
            token = orjson.loads(body)["metadata"].get("continue")
            if not token:
                break
    print(total, *_since(begun))


def snapshot(config: Path, lake: Path) -> None:
    """The command's work, from the first request to the last file in its place."""
    from gpureport.collect import snapshot as stage
    from gpureport.collect.sources.kubernetes import open_cluster
    from gpureport.config import Kubernetes

    cluster = open_cluster(Kubernetes(kubeconfig=str(config)), {})
    begun = _clocks()
    stage.take_snapshot(lake, cluster, "bench", datetime(2026, 11, 21, tzinfo=UTC))
    print(*_since(begun))


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begun: tuple[float, float]) -> tuple[float, ...]:
    return tuple(now - then for now, then in zip(_clocks(), begun, strict=True))


# The server, in a process of its own: pages are made beforehand, and compressed when asked for, as an API server does


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.state", "serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(folder: Path) -> None:
    """Serve the lists for ever; prints the address."""
    items = {path: _items(folder / name) for name, path in PATHS.items()}
    small = {"/apis": orjson.dumps(GROUPS), "/version": b'{"gitVersion":"v1.36.2"}'}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            body = small.get(asked.path) or _page(items, asked.path, parse_qs(asked.query))
            self.send_response(200 if body else 404)
            packed = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)

        def log_message(self, *_: object) -> None:
            """Not on the output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


def _items(file: Path) -> tuple[str, list[bytes]]:
    reply = orjson.loads(file.read_bytes())
    head = f'"kind":"{reply["kind"]}","apiVersion":"{reply["apiVersion"]}"'
    return head, [orjson.dumps(item) for item in reply["items"]]


def _page(items: dict[str, tuple[str, list[bytes]]], path: str, query: dict[str, list[str]]) -> bytes:
    if path not in items:
        return b""
    head, found = items[path]
    start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
    end = start + limit
    metadata = f'"resourceVersion":"1","continue":"{end}","remainingItemCount":{len(found) - end}' if end < len(found) else ""
    return f'{{{head},"metadata":{{{metadata}}},"items":['.encode() + b",".join(found[start:end]) + b"]}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["parse"]:
        parse(sys.argv[2])
    elif sys.argv[1:2] == ["snapshot"]:
        snapshot(Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
