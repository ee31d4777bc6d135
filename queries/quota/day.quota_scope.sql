-- Quotas of devices, with the scope of changes that start a new step.
--
-- A ResourceQuota has steps of its own. Kueue's queues share the steps of their tree of cohorts where Workloads were collected and no queue changed
-- its cohort. Quotas of other systems share their system's steps.
--
-- grain:  cluster, system, resource, flavor, quota
-- reads:  day.quota_above, day.quota_terms, day.quota_unit, day.quota_watch
-- columns:
--   scope  the quota, or the root of its tree, where only its changes count; else ''
with tree as (
    select
        columns('^(cluster|system|quota)$'),
        arg_max(above, depth_count) as root
    from day.quota_above
    group by all
),

moved as (
    select cluster
    from day.quota_terms
    where system = 'kueue'
    group by cluster, quota
    having count(distinct parent) > 1
)

select distinct
    term.* similar to '^(cluster|system|resource|flavor|quota)$',
    case
        when term.system = 'kubernetes' then term.quota
        when
            term.system = 'kueue'
            and unit.gpus_per_native is not null
            and term.cluster not in (select moved.cluster from moved)
            and term.cluster in (
                select watch.cluster
                from day.quota_watch as watch
                where watch.watched = 'workloads'
            )
            then tree.root
        else ''
    end as scope
from day.quota_terms as term
inner join day.quota_unit as unit
    using (system, resource)
inner join tree
    using (cluster, system, quota)
