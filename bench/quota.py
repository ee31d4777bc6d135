"""Facts of quotas of a day against reading the columns that they are made of, from the same lake.

Simulated nodes and pods, with a ResourceQuota in every namespace, looked at every two hours. GPUS ("1000,10000") and ROUNDS (3).
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

from bench.facts import CLUSTER, DAY, MEMORY_LIMIT, ROUNDS, SIZES, told
from bench.measure import CACHE, Measured, fingerprint, machine, measure, median, print_table
from gpureport.collect.snapshot import import_folder
from gpureport.compute.fact_views import Batch
from gpureport.compute.query import connection, load, needed
from gpureport.compute.quotas import QUOTA_FACTS, quota_facts_of_day, quota_lake
from gpureport.lake import open_lake
from gpureport.schedulers.model import Rules
from gpureport.simulate import SimulationPlan, write_kubernetes
from gpureport.values.window import Window, day_start

LOOKS = 12
PLANNED = {"kube_state_step_seconds": 0, "mig_share": 0.0, "sharing_share": 0.0, "dra_share": 0.5}


def main() -> None:
    """Measure in turns and print."""
    print(f"{machine()}; one thread, memory_limit {MEMORY_LIMIT}")
    rows = []
    for gpus in SIZES:
        runs = measured(gpus)
        scan, facts = (median([float(run.stdout.split()[1]) for run in runs[what]]) for what in ("scan", "facts"))
        rows.append([gpus, scan, facts, facts / scan, max(run.process_mb for run in runs["facts"])])
    print_table(f"Quotas, CPU time, median of {ROUNDS}", ["GPUs", "read CPU s", "facts CPU s", "facts / read", "peak MB"], rows)


def measured(gpus: int) -> dict[str, list[Measured]]:
    """Reading and facts, in turns; each prints its seconds and CPU seconds."""
    lake, runs = state_lake(gpus), dict[str, list[Measured]]()
    for _ in range(ROUNDS):
        for what in ("scan", "facts"):
            runs.setdefault(what, []).append(measure([sys.executable, "-m", "bench.quota", what, lake]))
    return runs


def state_lake(gpus: int) -> Path:
    """A day's looks at a simulated cluster with quotas, made once."""
    plan = SimulationPlan(gpus, 1, DAY, **PLANNED)  # type: ignore[arg-type]
    path = CACHE / f"lake-of-quotas-{gpus}-gpus-{fingerprint(plan, ('simulate', 'collect/state', 'lake'))}"
    if not (path / "filled").exists():
        print(f"filling {path} (once) …", flush=True)
        objects = path.with_name(f"{path.name}-objects")
        write_kubernetes(plan, objects)
        _write_quotas(objects)
        for look in range(LOOKS):
            at = day_start(DAY) + timedelta(hours=24 * (look + 1) / (LOOKS + 1))
            import_folder(path, objects, CLUSTER, at, at)
        (path / "filled").touch()
    return path


def _write_quotas(objects: Path) -> None:
    """Every namespace may ask for a quarter more than a hundred GPUs."""
    namespaces = json.loads((objects / "namespaces.json").read_bytes())["items"]
    items = [
        {
            "metadata": {"name": "gpu", "namespace": each["metadata"]["name"], "uid": f"quota-{number}"},
            "spec": {"hard": {"requests.nvidia.com/gpu": "125"}},
            "status": {"hard": {"requests.nvidia.com/gpu": "125"}, "used": {"requests.nvidia.com/gpu": "100"}},
        }
        for number, each in enumerate(namespaces)
    ]
    quotas = {"kind": "ResourceQuotaList", "apiVersion": "v1", "metadata": {}, "items": items}
    (objects / "resourcequotas.json").write_text(json.dumps(quotas))


def scan(path: Path) -> None:
    """Every column of every table that the facts of quotas read, once."""
    queries = load()
    with connection(MEMORY_LIMIT, 1) as con, told():
        quota_lake(con, open_lake(path), Window.of_day(DAY), [CLUSTER])
        tables = {name for query in needed(queries, QUOTA_FACTS) for name in query.reads if name.startswith("lake.")}
        for table in sorted(tables):
            con.execute(f"select {', '.join(f'count({name})' for name in con.table(table).columns)} from {table}").fetchall()


def facts(path: Path) -> None:
    """The facts, unwritten."""
    with connection(MEMORY_LIMIT, 1) as con, told():
        quota_facts_of_day(con, open_lake(path), Batch([(CLUSTER, DAY)]), Rules())


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"scan": scan, "facts": facts}[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
