-- Each quota with itself and the quotas that contain it, known or not, over time: a quota is in its parent until it is seen elsewhere or in none.
--
-- grain:  cluster, system, quota, above, start_at
-- reads:  day.quota_terms
-- source: parents that quota objects and series name
-- columns:
--   start_at  UTC, start of the containment; null for itself
--   end_at    UTC, end of the containment; null for itself
with recursive moved as (
    select
        columns('^(cluster|system|quota|parent|start_at)$'),
        max(end_at) over (partition by cluster, system, quota) as last_at
    from day.quota_terms
    where parent != '' or system = 'kueue' or source != 'series'
    qualify parent is distinct from lag(parent) over (partition by cluster, system, quota order by start_at, parent)
),

link as (
    select
        * exclude (last_at),
        coalesce(lead(start_at) over (partition by cluster, system, quota order by start_at, parent), last_at) as end_at
    from moved
),

contained as (
    select distinct
        columns('^(cluster|system|quota)$'),
        quota as above,
        1 as depth_count,
        null::timestamp as start_at,
        null::timestamp as end_at
    from day.quota_terms
    union all
    select
        contained.* similar to '^(cluster|system|quota)$',
        link.parent as above,
        contained.depth_count + 1 as depth_count,
        greatest(contained.start_at, link.start_at) as start_at,
        least(contained.end_at, link.end_at) as end_at
    from contained
    inner join link
        on
            contained.cluster = link.cluster
            and contained.system = link.system
            and contained.above = link.quota
            and link.parent not in (contained.quota, '')
            and contained.depth_count < 8
            and coalesce(contained.start_at < link.end_at and contained.end_at > link.start_at, true)
)

select
    columns('^(cluster|system|quota|above)$'),
    min(depth_count) as depth_count,
    min(start_at) as start_at,
    max(end_at) as end_at
from numbered_runs(contained, (cluster, system, quota, above))
group by cluster, system, quota, above, run_number
