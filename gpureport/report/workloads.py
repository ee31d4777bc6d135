"""Which workload each pod is of: what made it, where that is known, else its name without what a controller put behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from gpureport.report.timelines import Key

BY_NAME = "by the pods' names"
_ALONE = "Pod"
_GENERATED = re.compile(
    # What controllers put behind a name: a ReplicaSet's hash and five letters, five letters, a number, a number and five letters.
    r"-(?:[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}|(?:\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)$"
)


@dataclass(frozen=True)
class Workload:
    """What pods belong to; two of one name and different kinds are two. ``kind`` is '' where only the pods' names tell."""

    kind: str
    name: str

    @property
    def is_made(self) -> bool:
        """Whether something is known to have made its pods."""
        return self.kind not in ("", _ALONE)

    @property
    def told_kind(self) -> str:
        """Its kind, or that it is a guess."""
        return self.kind or BY_NAME


def read_workloads(con: duckdb.DuckDBPyConnection) -> dict[Key, Workload]:
    """By pod (cluster, namespace, name, uid), of those whose maker is known; {} where the report has no such facts."""
    there = "select 1 from duckdb_tables() where schema_name = 'period' and table_name = 'workload'"
    if not con.execute(there).fetchone():
        return {}
    rows = con.execute(
        "select cluster, namespace, pod, pod_uid, workload_kind, workload from period.workload where workload != ''"
    ).fetchall()
    return {row[:4]: Workload(*row[4:]) for row in rows}


def workload_of(pod: Key, known: Mapping[Key, Workload]) -> Workload:
    """The workload of a pod (cluster, namespace, name, uid)."""
    return known.get(pod) or Workload("", _GENERATED.sub("", pod[2]) or pod[2])
