"""``day.quota_weighted_share``: Kueue's weighted shares at each snapshot, as it says them and from what queues have reserved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import duckdb
import pyarrow as pa

from gpureport.compute.quotas.rows import Row
from gpureport.schedulers.kueue import MAX_WEIGHTED_SHARE, Cohorts, Node
from gpureport.schedulers.model import Terms
from gpureport.tables.rules import QUOTA_WEIGHTED_SHARE
from gpureport.window import Window, plain

_OBJECTS = """
select
    term.cluster,
    term.quota,
    greatest(snapshot.observed_at, $since) as start_at,
    least(snapshot.stands_until_at, $until) as end_at,
    term.* similar to '^(parent|is_parent|weight|resource|flavor|guaranteed|borrowing_limit|lending_limit|delivered)$',
    try_cast(object.status ->> '$.fairSharing.weightedShare' as double) as reported
from lake.quota_term as term
inner join lake.quota as object
    using (cluster, kind, name, observed_at)
inner join day.state_snapshot as snapshot
    using (cluster, kind, observed_at)
where term.system = 'kueue' and snapshot.observed_at < $until and snapshot.stands_until_at > $since
qualify bool_or(reported is not null) over (partition by term.cluster, snapshot.observed_at)
order by term.cluster, snapshot.observed_at, term.quota
"""


def quota_weighted_share_table(con: duckdb.DuckDBPyConnection, window: Window) -> pa.Table:
    """A row for each queue and cohort of which Kueue says one; those of weight 0 that borrow are left out."""
    limits = {"since": plain(window.start_at), "until": plain(window.end_at)}
    rows = con.sql(_OBJECTS, params=limits).to_arrow_table().to_pylist()
    snapshots = groupby(rows, itemgetter("cluster", "start_at"))
    return pa.Table.from_pylist([each for _, found in snapshots for each in _shares(list(found))], QUOTA_WEIGHTED_SHARE.schema)


def _shares(rows: Sequence[Row]) -> Iterator[Row]:
    said = {quota: list(each) for quota, each in groupby(rows, itemgetter("quota"))}
    trees = Cohorts(_node(quota, each) for quota, each in said.items())
    is_known = all(row["delivered"] is not None or row["is_parent"] for row in rows)
    for quota, (first, *_) in said.items():
        if first["reported"] is not None and first["reported"] < MAX_WEIGHTED_SHARE and quota in trees.nodes:
            share = trees.weighted_share(quota).as_status if is_known else None
            yield {**first, "reported_native": first["reported"], "recomputed_native": share}


def _node(quota: str, rows: Sequence[Row]) -> Node:
    named = {(row["flavor"], row["resource"]): row for row in rows if row["resource"]}
    terms = {
        key: Terms(row["guaranteed"], None, None, None, row["borrowing_limit"], row["lending_limit"])
        for key, row in named.items()
    }
    usage = {key: row["delivered"] or 0.0 for key, row in named.items() if not row["is_parent"]}
    return Node(quota, rows[0]["parent"], terms, 1.0 if rows[0]["weight"] is None else rows[0]["weight"], usage)
