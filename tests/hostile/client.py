"""A process of its own that asks hostile servers: prints (attack, exit code, sentence) a line, at last its peak of memory."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from kube.api_server import kubeconfig

from gpureport.collect.export import load_loops
from gpureport.collect.snapshot import take_snapshot
from gpureport.collect.sources import exchange
from gpureport.collect.sources.kubernetes import connection as kubernetes
from gpureport.collect.sources.kubernetes import open_cluster
from gpureport.collect.sources.prometheus import Matcher, Server, list_series, open_connection, read
from gpureport.commands.work import job_metrics
from gpureport.config import Kubernetes, Prometheus
from gpureport.config.servers import Metrics
from gpureport.values.catalog import load_catalog
from gpureport.values.errors import GpureportError
from gpureport.values.window import Window, parse_instant

WINDOW = Window(parse_instant("2026-11-20T00:00:00Z"), parse_instant("2026-11-20T00:02:00Z"))
MATCHERS = [Matcher("__name__", "=", "DCGM_FI_DEV_GPU_UTIL")]
IMPATIENT_SECONDS, PATIENT_SECONDS = 1.0, 30.0
DRIPS = ("drip", "headers")


def query_prometheus(url: str, path: str, seconds: float) -> None:
    connection = open_connection(Prometheus(url=url, read_timeout_seconds=seconds), {})
    if path == "series":
        list_series(connection, MATCHERS, WINDOW)
    else:
        read(connection, Server("", "", path), MATCHERS, WINDOW)  # type: ignore[arg-type]


def query_kubernetes(url: str, folder: Path, seconds: float) -> None:
    kubernetes._READ_SECONDS = seconds
    cluster = open_cluster(Kubernetes(kubeconfig=str(kubeconfig(folder, url))), {})
    if failure := take_snapshot(folder / "lake", cluster, "c", WINDOW.start_at).failure:
        raise failure


def push(url: str) -> None:
    job_metrics._PUSH_SECONDS = 2
    job_metrics._push(job_metrics._Job("job", "c", "last_success", True), Metrics(pushgateway_url=url), [])


def main(url: str, folder: Path, attacks: list[str]) -> None:
    exchange.RETRIES = 0
    load_loops(load_catalog([]))
    for attack in attacks:
        name, what = attack.split(":")
        try:
            seconds = IMPATIENT_SECONDS if name in DRIPS else PATIENT_SECONDS
            if what == "pushgateway":
                push(f"{url}/{name}")
            elif what == "kubernetes":
                query_kubernetes(f"{url}/{name}", folder, seconds)
            else:
                query_prometheus(f"{url}/{name}", what, seconds)
            print(json.dumps([attack, 0, ""]))
        except GpureportError as error:
            print(json.dumps([attack, error.exit_code, str(error)]))
    # VmHWM, not getrusage: a process begins with the peak of the one that started it in the latter.
    print(int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) // 1024)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
