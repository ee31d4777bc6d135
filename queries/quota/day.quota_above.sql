-- Quotas and those that contain them, each itself among them.
--
-- grain:  cluster, system, quota, above
-- reads:  day.quota_terms
-- source: parents that quota objects and series name
with recursive quota as (
    select
        columns('^(cluster|system|quota)$'),
        max(parent) as parent
    from day.quota_terms
    group by all
),

contained as (
    select
        cluster,
        system,
        quota,
        quota as above,
        parent,
        1 as depth_count
    from quota
    union all
    select
        contained.cluster,
        contained.system,
        contained.quota,
        quota.quota as above,
        quota.parent,
        contained.depth_count + 1 as depth_count
    from contained
    inner join quota
        on
            contained.cluster = quota.cluster
            and contained.system = quota.system
            and contained.parent = quota.quota
            and contained.depth_count < 8
)

select
    columns('^(cluster|system|quota|above)$'),
    min(depth_count) as depth_count
from contained
group by all
