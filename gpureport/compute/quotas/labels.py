"""``day.quota_pod_label`` and ``day.quota_exposure``: labels of nos and possible preemptions, at each change.

scheduler-plugins has no labels and its own rules of preemption.
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
    """Intervals of values by scope and key; a change of any value requires all values of its scope again."""

    def __init__(self, is_cut_by_value: bool = True) -> None:
        """Start without intervals. If ``is_cut_by_value`` is false, an interval keeps the key's first value."""
        self._is_cut_by_value = is_cut_by_value
        self._open: dict[Key, dict[Key, tuple[datetime, str]]] = defaultdict(dict)
        self._closed: list[tuple[str | datetime, ...]] = []

    def put(self, scope: Key, at: datetime, values: Mapping[Key, str]) -> None:
        """Set the values of a scope from an instant on; intervals of keys that are missing end."""
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
        """Return all ended intervals, sorted: scope, key, start, end and value."""
        return sorted(self._closed)

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return ``rows`` as a table."""
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
"""Time of a pod's placement, with the name of all pods that preemption treats equally."""
_EXPOSED = pa.schema(
    [(name, pa.string()) for name in ("cluster", "system", "alike", "by_quota", "condition")]
    + [("start_at", _AT), ("end_at", _AT), ("evidence", pa.string())]
)


def quota_label_tables(con: duckdb.DuckDBPyConnection, order: Sequence[str] = ORDER) -> tuple[pa.Table, pa.Table]:
    """Return labels and exposures for each cluster with quotas of nos or scheduler-plugins, while its pods are known.

    ``order`` is the order in which a quota's pods are counted: as in nos, except in a what-if.
    """
    labels, alike, exposed = Runs(), Runs(), Runs(is_cut_by_value=False)
    pods, terms = _sorted_by(con, _PODS, "cluster", "system"), _sorted_by(con, _TERMS, "cluster", "system")
    watch = _sorted_by(con, _WATCH, "cluster")
    for cluster, system in sorted(terms):
        scene = Scene(system, pods[cluster, system], terms[cluster, system], watch[cluster,], order)
        for at, changed_quotas in scene.steps():
            for quota in changed_quotas:
                labels.put((cluster, quota), at, scene.labels(quota))
                alike.put((cluster, system, quota), at, scene.alike(quota))
            exposed.put((cluster, system), at, scene.exposures())
    return labels.table(QUOTA_POD_LABEL.schema), _of_pods(con, alike.table(_ALIKE), exposed.table(_EXPOSED))


def _of_pods(con: duckdb.DuckDBPyConnection, alike: pa.Table, exposed: pa.Table) -> pa.Table:
    """Return ``day.quota_exposure``: a pod is exposed while its group (``alike``) is exposed."""
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
