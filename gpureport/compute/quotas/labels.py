"""``day.quota_pod_label`` and ``day.quota_exposure``: nos' labels, and who may preempt whom, change by change.

scheduler-plugins has no labels, and preempts by rules of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.scene import Row, Scene
from gpureport.schedulers.nos import ORDER
from gpureport.values.tables.rules import QUOTA_EXPOSURE, QUOTA_POD_LABEL

Key = tuple[str, ...]


class Runs:
    """By scope and key the time of each value; all values of a scope are put again when any of them changes."""

    def __init__(self, is_cut_by_value: bool = True) -> None:
        """Without ``is_cut_by_value`` a key's first value reports the whole run."""
        self._is_cut_by_value = is_cut_by_value
        self._open: dict[Key, dict[Key, tuple[datetime, str]]] = defaultdict(dict)
        self._closed: list[tuple[str | datetime, ...]] = []

    def put(self, scope: Key, at: datetime, values: Mapping[Key, str]) -> None:
        """New labels of the scope; labels that are no longer among them have ended."""
        there = self._open[scope]
        ended = there.keys() - values.keys()
        if self._is_cut_by_value:
            ended |= {key for key, (_, value) in there.items() if values.get(key, value) != value}
        for key in ended:
            since, value = there.pop(key)
            self._closed.append((*scope, *key, since, at, value))
        for key in values.keys() - there.keys():
            there[key] = (at, values[key])

    def rows(self) -> list[tuple[str | datetime, ...]]:
        """All that has ended, in order: scope, key, start, end and value."""
        return sorted(self._closed)

    def table(self, schema: pa.Schema) -> pa.Table:
        """The same as a table."""
        rows = self.rows()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


_PODS = """
select
    member.cluster, member.system, member.quota,
    pod.* exclude (cluster),
    epoch_ms(pod.created_at) as created_at_ms, native.amounts
from day.quota_member as member
inner join day.quota_pod as pod
    using (cluster, pod_uid)
inner join (
    select
        system, requests,
        map_from_entries(list((resource, amount_native) order by resource)) as amounts
    from day.quota_native
    where system in ('nos', 'scheduler-plugins')
    group by system, requests
) as native
    on
        member.system = native.system
        and pod.requests::text = native.requests
order by member.cluster, member.system, member.quota, pod.pod_uid
"""
_TERMS = """
select cluster, system, quota, resource, start_at, end_at, namespaces, guaranteed_native, cap_native
from day.quota_terms
where system in ('nos', 'scheduler-plugins') and coalesce(guaranteed_native, cap_native) is not null
order by all
"""
_EXPOSURES = """
select
    exposed.cluster, exposed.system, alike.pod_uid, exposed.by_quota, exposed.condition,
    greatest(exposed.start_at, alike.start_at) as start_at, least(exposed.end_at, alike.end_at) as end_at,
    exposed.evidence
from _exposed as exposed
inner join _alike as alike
    on
        exposed.cluster = alike.cluster
        and exposed.system = alike.system
        and exposed.alike = alike.alike
        and exposed.start_at < alike.end_at
        and exposed.end_at > alike.start_at
order by all
"""
_WATCH = "select cluster, start_at, end_at from day.quota_watch where watched = 'pods' order by all"

_AT = pa.timestamp("us")
_ALIKE = pa.schema(
    [(name, pa.string()) for name in ("cluster", "system", "quota", "pod_uid")]
    + [("start_at", _AT), ("end_at", _AT), ("alike", pa.string())]
)
"""Time of a pod's placement, and the pods that preemption treats like it."""
_EXPOSED = pa.schema(
    [(name, pa.string()) for name in ("cluster", "system", "alike", "by_quota", "condition")]
    + [("start_at", _AT), ("end_at", _AT), ("evidence", pa.string())]
)


def quota_label_tables(con: duckdb.DuckDBPyConnection, order: Sequence[str] = ORDER) -> tuple[pa.Table, pa.Table]:
    """Labels and exposures of every cluster that nos' or scheduler-plugins' quotas govern, while its pods are known.

    ``order`` is that in which a quota's pods are counted: nos' own, unless a what-if has another.
    """
    labels, alike, exposed = Runs(), Runs(), Runs(is_cut_by_value=False)
    pods, terms = _sorted_by(con, _PODS, "cluster", "system"), _sorted_by(con, _TERMS, "cluster", "system")
    watch = _sorted_by(con, _WATCH, "cluster")
    for cluster, system in sorted(terms):
        scene = Scene(system, pods[cluster, system], terms[cluster, system], watch[cluster,], order)
        for at, touched in scene.steps():
            for quota in touched:
                labels.put((cluster, quota), at, scene.labels(quota))
                alike.put((cluster, system, quota), at, scene.alike(quota))
            exposed.put((cluster, system), at, scene.exposures())
    return labels.table(QUOTA_POD_LABEL.schema), _of_pods(con, alike.table(_ALIKE), exposed.table(_EXPOSED))


def _of_pods(con: duckdb.DuckDBPyConnection, alike: pa.Table, exposed: pa.Table) -> pa.Table:
    """``day.quota_exposure``: each pod is exposed while it is one of those that are."""
    con.register("_alike", alike)
    con.register("_exposed", exposed)
    found = con.sql(_EXPOSURES).to_arrow_table().cast(QUOTA_EXPOSURE.schema)
    con.unregister("_alike")
    con.unregister("_exposed")
    return found


def _sorted_by(con: duckdb.DuckDBPyConnection, statement: str, *names: str) -> Mapping[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    rows: list[Row] = con.sql(statement).to_arrow_table().to_pylist()
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found
