"""Supply against demand in a sentence: the model of most free GPUs, and the model that most waiting GPUs are for."""

from __future__ import annotations

from gpureport.report.page.tables import Tables
from gpureport.values.text import formats

# All classes of a cluster have the same free GPUs: one of them is enough.
_FREE = """
    with class as (
        select * from report.supply_demand where waiting_pod_count > 0
        qualify dense_rank() over (partition by cluster order by wanted_model, size) = 1
    )
    select gpu_model as model, sum(free_gpus) as gpus from class group by gpu_model
"""
_WAITING = """
    select wanted_model as model, sum(gpus) as gpus from (
        select cluster, wanted_model, size, max(waiting_gpus) as gpus from report.supply_demand group by all
    ) group by wanted_model
"""
_WANTED = {"any": "may be of any model", "unknown": "are of no known model", "none": "fit no node of the cluster"}


def supply_sentence(tables: Tables) -> str:
    """Free and waiting GPUs at the period's end; '' where nothing waits."""
    free, waiting = _largest(tables, _FREE), _largest(tables, _WAITING)
    if waiting is None or not waiting[1]:
        return ""
    wanted, gpus = waiting
    parts = [f"{gpus} pending GPUs {_WANTED.get(wanted, f'are for {wanted}')}"]
    if free is not None:
        parts.insert(0, f"{free[1]} free GPUs are {free[0] or 'of an unknown model'}" if free[1] else "no GPU is free")
    said = "; ".join(parts)
    return f" At the window's end: {said}."


def _largest(tables: Tables, sql: str) -> tuple[str, str] | None:
    """The model with most GPUs and "some of all"; '' for none at all, None where unknown."""
    rows = [row for row in tables.rows(sql) if row["gpus"] is not None]
    if not rows:
        return None
    first, total = max(rows, key=lambda row: row["gpus"]), sum(row["gpus"] for row in rows)
    counted = " of ".join(formats.significant(round(each, 1)) for each in (first["gpus"], total))
    return first["model"], counted if total else ""
