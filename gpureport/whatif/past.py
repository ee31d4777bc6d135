"""Past use of KAI's queues before the window, from facts of the days before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

import duckdb

from gpureport.compute.query import define_functions
from gpureport.lake import Lake, views
from gpureport.lake.views import make_way
from gpureport.schedulers.model import Past, Rules
from gpureport.values.window import Window, plain

_FACTS = ("facts.quota_hour", "facts.node_allocation")
_HOURS = """
with hour as (
    select
        cluster,
        hour_start_at,
        map_from_entries(list((quota, delivered_native_hours))) as used
    from facts.quota_hour
    where system = 'kai' and resource = 'gpu' and hour_start_at < $until and hour_start_at >= $since
    group by all
)

select
    hour.cluster,
    epoch_ms(hour.hour_start_at + interval 1 hour),
    hour.used,
    sum(node.gpu_count * overlap_ms(node.start_at, node.end_at, hour_start_at, hour_start_at + interval 1 hour)) / 3600000
from hour
inner join facts.node_allocation as node
    on hour.cluster = node.cluster and node.start_at < hour_start_at + interval 1 hour and node.end_at > hour_start_at
group by all
order by all
"""


def past_use(con: duckdb.DuckDBPyConnection, lake: Lake, window: Window, rules: Rules) -> Mapping[str, Sequence[Past]]:
    """Hour by hour, by cluster; hours of which use or nodes are not known are not there."""
    found: dict[str, list[Past]] = defaultdict(list)
    since = window.start_at - timedelta(hours=rules.window_hours)
    days = list(Window(since, window.start_at).days()) if rules.k_value and rules.window_hours else []
    made = views(con, lake, [name.replace(".", "/") for name in _FACTS] if days else [], dates=days)
    if len(made) == len(_FACTS):
        define_functions(con, _HOURS)
        hours = con.execute(_HOURS, {"since": plain(since), "until": plain(window.start_at)}).fetchall()
        for cluster, end_ms, used, offered in hours:
            found[cluster].append(Past(end_ms, used, float(offered)))
    for name in made:
        make_way(con, name)
    return found
