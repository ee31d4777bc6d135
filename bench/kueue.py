"""Quota facts of a busy Kueue cluster: 5,000 Workloads and 2,000 pods a day, 20 ClusterQueues in 4 cohorts; and their replay.

CPU seconds of the facts of one day, and of a what-if over DAYS (30). LOOKS (96) snapshots a day.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from heapq import heappop, heappush
from io import StringIO
from pathlib import Path
from typing import Any

from bench.measure import CACHE, machine, measure, print_table
from gpureport.cli import main as gpureport
from gpureport.collect.snapshot import import_folder
from gpureport.compute.fact_views import Batch
from gpureport.compute.query import connection, load
from gpureport.compute.quotas import quota_facts_of_day
from gpureport.lake import open_lake
from gpureport.schedulers.model import Rules

FIRST, CLUSTER, GPU = date(2026, 11, 1), "bench", "nvidia.com/gpu"
WORKLOADS, PODS, QUEUES, COHORTS, NOMINAL = 5_000, 2_000, 20, 4, 24
LOOKS = int(os.environ.get("LOOKS", "96"))
DAYS = int(os.environ.get("DAYS", "30"))
_KEPT_HOURS = 1
"""How long Kueue keeps finished Workloads."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """One Workload, times in seconds since the first day began."""

    number: int
    queue: int
    gpus: int
    priority: int
    created: float
    reserved: float
    finished: float

    @property
    def has_pod(self) -> bool:
        """Whether its pod is listed; the others' run elsewhere."""
        return self.number % 5 < 5 * PODS // WORKLOADS


def works(days: int) -> list[Work]:
    """Let in first come, first served by cohort, within all that its queues have."""
    chance, capacity = random.Random(5), NOMINAL * QUEUES // COHORTS
    free, running = [capacity] * COHORTS, list[tuple[float, int, int]]()
    clock = [0.0] * COHORTS
    found = []
    for number, created in enumerate(sorted(chance.uniform(0, days * 86_400) for _ in range(days * WORKLOADS))):
        queue, gpus = chance.randrange(QUEUES), chance.choice((1, 1, 2, 2, 4, 8))
        cohort = queue % COHORTS
        at = max(created, clock[cohort])
        mine = [each for each in running if each[2] >> 8 == cohort]
        mine.sort()
        for end, held, _ in list(mine):
            if end > at and free[cohort] >= gpus:
                break
            at = max(at, end)
            free[cohort] += held
            running.remove((end, held, _))
        clock[cohort] = at
        finished = at + chance.expovariate(1 / (0.7 * 3600))
        free[cohort] -= gpus
        running.append((finished, gpus, cohort << 8 | number % 256))
        found.append(Work(number, queue, gpus, chance.choice((0, 0, 10)), created, at, finished))
    return found


def _time(seconds: float) -> str:
    return (datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC) + timedelta(seconds=int(seconds))).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def _named(name: str, namespace: str = "", created: float = -86_400, **more: Any) -> Object:
    return {"name": name, "namespace": namespace, "uid": f"u-{namespace}-{name}", "creationTimestamp": _time(created), **more}


def _workload(work: Work, now: float) -> Object:
    name, queue = f"w{work.number}", f"q{work.queue}"
    requests = {GPU: str(work.gpus), "cpu": str(4 * work.gpus), "memory": f"{16 * work.gpus}Gi"}
    conditions, status = [], dict[str, Any]()

    def said(kind: str, value: str, at: float, reason: str = "") -> None:
        conditions.append({"type": kind, "status": value, "lastTransitionTime": _time(at), "reason": reason, "message": ""})

    if work.reserved > now:
        said("QuotaReserved", "False", work.created, "Pending")
    else:
        said("QuotaReserved", "True", work.reserved)
        said("Admitted", "True", work.reserved)
        flavors = {GPU: "h100", "cpu": "default-flavor", "memory": "default-flavor"}
        given = {"name": "main", "flavors": flavors, "resourceUsage": requests, "count": 1}
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": [given]}
    if work.finished <= now:
        said("Finished", "True", work.finished, "Succeeded")
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
    return {
        "metadata": _named(name, queue, work.created, ownerReferences=[{"kind": "Job", "name": name, "controller": True}]),
        "spec": {"queueName": queue, "priority": work.priority, "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {**status, "conditions": conditions},
    }


def _pod(work: Work, now: float) -> Object:
    name, queue = f"w{work.number}-0", f"q{work.queue}"
    requests = {GPU: str(work.gpus), "cpu": "4"}
    is_over = work.finished <= now
    state = {"terminated": {"startedAt": _time(work.reserved), "finishedAt": _time(work.finished), "exitCode": 0}}
    return {
        "metadata": _named(
            name,
            queue,
            work.reserved,
            labels={"kueue.x-k8s.io/queue-name": queue},
            ownerReferences=[{"kind": "Job", "name": f"w{work.number}", "controller": True}],
        ),
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], "nodeName": f"n{work.number % 60}"},
        "status": {
            "phase": "Succeeded" if is_over else "Running",
            "startTime": _time(work.reserved),
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(work.reserved)}],
            "containerStatuses": [
                {"name": "main", "state": state if is_over else {"running": {"startedAt": _time(work.reserved)}}}
            ],
        },
    }


def _fixed() -> dict[str, list[Object]]:
    offered = {GPU: "8", "cpu": "64", "memory": "512Gi"}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": _time(-86_400)}]
    said = [{"cpu": "512", "memory": "4Ti"}, {GPU: str(NOMINAL)}]
    groups = [
        {
            "coveredResources": sorted(each),
            "flavors": [{"name": flavor, "resources": [{"name": r, "nominalQuota": n} for r, n in each.items()]}],
        }
        for flavor, each in zip(("default-flavor", "h100"), said, strict=True)
    ]
    return {
        "clusterqueues": [
            {
                "metadata": _named(f"q{n}"),
                "spec": {
                    "cohortName": f"c{n % COHORTS}",
                    "resourceGroups": groups,
                    "preemption": {"reclaimWithinCohort": "Any" if n % 2 else "Never"},
                },
            }
            for n in range(QUEUES)
        ],
        "localqueues": [{"metadata": _named(f"q{n}", f"q{n}"), "spec": {"clusterQueue": f"q{n}"}} for n in range(QUEUES)],
        "resourceflavors": [
            {"metadata": _named("default-flavor"), "spec": {}},
            {"metadata": _named("h100"), "spec": {"nodeLabels": {"gpu": "h100"}}},
        ],
        "nodes": [
            {
                "metadata": _named(f"n{n}", labels={"gpu": "h100"}),
                "spec": {},
                "status": {"allocatable": offered, "capacity": offered, "conditions": ready},
            }
            for n in range(QUEUES * NOMINAL // 8)
        ],
        "namespaces": [{"metadata": _named(f"q{n}")} for n in range(QUEUES)],
    }


_KINDS = {
    "pods": ("Pod", "v1"),
    "nodes": ("Node", "v1"),
    "namespaces": ("Namespace", "v1"),
    "clusterqueues": ("ClusterQueue", "kueue.x-k8s.io/v1beta2"),
    "localqueues": ("LocalQueue", "kueue.x-k8s.io/v1beta2"),
    "resourceflavors": ("ResourceFlavor", "kueue.x-k8s.io/v1beta2"),
    "workloads": ("Workload", "kueue.x-k8s.io/v1beta2"),
}


def _looks(days: int) -> Iterator[tuple[float, dict[str, list[Object]]]]:
    """Snapshots in order, each with what is there then."""
    coming, there = works(days), list[tuple[float, int, Work]]()
    fixed, first = _fixed(), 0
    for look in range(days * LOOKS):
        now = (look + 0.5) * 86_400 / LOOKS
        while first < len(coming) and coming[first].created <= now:
            heappush(there, (coming[first].finished + 3600 * _KEPT_HOURS, first, coming[first]))
            first += 1
        while there and there[0][0] < now - 86_400 / LOOKS:  # nobody goes without having been listed as finished
            heappop(there)
        seen = [work for _, _, work in there]
        pods = [_pod(work, now) for work in seen if work.has_pod and work.reserved <= now]
        yield now, {**fixed, "workloads": [_workload(work, now) for work in seen], "pods": pods}


def lake_of(days: int) -> Path:
    """Made once."""
    path = CACHE / f"lake-of-kueue-{days}-days-{LOOKS}-looks"
    if not (path / "filled").exists():
        print(f"filling {path} (once) …", flush=True)
        objects = path.with_name(f"{path.name}-objects")
        objects.mkdir(parents=True, exist_ok=True)
        for now, lists in _looks(days):
            for name, items in lists.items():
                kind, api = _KINDS[name]
                body = {"kind": f"{kind}List", "apiVersion": api, "metadata": {}, "items": items}
                (objects / f"{name}.json").write_text(json.dumps(body))
            at = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC) + timedelta(seconds=int(now))
            import_folder(path, objects, CLUSTER, at, at)
        open_lake(path).pack_observations(FIRST + timedelta(days=days - 1))  # as a night leaves it: all but the last day
        (path / "filled").touch()
    return path


def facts(path: Path, day: date) -> None:
    """The facts of a day, unwritten; prints CPU seconds."""
    load()  # once a process
    start = time.process_time()
    with connection("1GB", 1) as con:
        found = quota_facts_of_day(con, open_lake(path), Batch(CLUSTER, [day]), Rules())
    print(f"{time.process_time() - start:.2f} {' '.join(f'{name} {rows.num_rows}' for name, rows in found.items())}")


def replay(path: Path, days: int) -> None:
    """A what-if over all days; prints CPU seconds and the first line of the answer."""
    start, out = time.process_time(), StringIO()
    window = ["--since", str(FIRST), "--until", str(FIRST + timedelta(days=days))]
    with redirect_stdout(out):
        code = gpureport(["whatif", *window, "--set", "quota.q1.nominalQuota[nvidia.com/gpu]=40", "--lake", str(path)])
    print(f"{time.process_time() - start:.2f} exit {code}: {out.getvalue().splitlines()[:1]}")


def main() -> None:
    """Measure and print."""
    print(machine())
    rows = []
    for what, days in (("facts", 3), ("replay", DAYS)):
        run = measure([sys.executable, "-m", "bench.kueue", what, lake_of(days), str(days)])
        print(run.stdout)
        rows.append([what, days, float(run.stdout.split()[0]), run.process_mb])
    print_table("Kueue: 5,000 Workloads a day", ["what", "days", "CPU s", "peak MB"], rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        place, days = Path(sys.argv[2]), int(sys.argv[3])
        facts(place, FIRST + timedelta(days=1)) if sys.argv[1] == "facts" else replay(place, days)
    else:
        main()
