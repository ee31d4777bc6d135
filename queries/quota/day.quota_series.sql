-- Quota series of schedulers and kube-state-metrics with the same names: runs of one value.
--
-- Kueue reports a limit that is not set as 0 or infinite, by version. Where no limit of the cluster is infinite, 0 is ambiguous and left out, so that
-- the object's value counts. Infinite, or -1 for KAI, is no limit. KAI's scheduler names queues by their display name. Of several replicas, the
-- leader's series count.
--
-- grain:  cluster, system, quota, resource, flavor, field, start_at
-- reads:  lake.quota_term, lake.sample, lake.series
-- source: Kueue, Koordinator, Volcano and KAI metrics; kube_resourcequota; kube-state-metrics of custom resources
-- columns:
--   flavor         flavor; for evicted the reason and other labels of the counter
--   field          guaranteed, cap, weight, borrowing_limit, lending_limit, delivered, demanded, pending, fair_share or evicted
--   amount_native  value in the resource's own unit; for weight and evicted a number
with shown_as as (
    select
        cluster,
        display_name,
        min(quota) as quota
    from lake.quota_term
    where system = 'kai' and display_name != ''
    group by all
    having count(distinct quota) = 1
),

series as (
    select
        series.cluster,
        series_id,
        replace(signal, 'quota_', '') as field,
        case
            when metric like 'kueue%' then 'kueue'
            when metric like 'scheduler_elastic_quota%' then 'koordinator'
            when metric like 'volcano%' then 'volcano'
            when metric like 'kai%' then 'kai'
            when metric = 'kube_resourcequota' then 'kubernetes'
            else coalesce(labels['system'], '')
        end as system,
        coalesce(labels['exported_namespace'], labels['namespace'], '') || '/' as in_namespace,
        case system
            when 'kueue' then labels['cluster_queue']
            when 'koordinator' then labels['name']
            when 'volcano' then labels['queue_name']
            when 'kai' then coalesce(labels['queue_metadata_name'], shown_as.quota, labels['queue_name'], labels['queue'])
            when 'kubernetes' then in_namespace || labels['resourcequota']
            else coalesce(labels['quota'], in_namespace || labels['name'])
        end as quota,
        if(system = 'kai', 'gpu', coalesce(labels['resource'], '')) as resource,
        coalesce(
            labels['flavor'], if(field = 'evicted', concat_ws('/', labels['reason'], labels['underlying_cause'], labels['priority_class']), '')
        ) as flavor,
        coalesce(labels['parent'], 'cohort/' || nullif(labels['cohort'], ''), '') as parent,
        coalesce(labels['is_parent'], '') = 'true' as is_parent,
        coalesce(labels['tree'], '') as tree,
        coalesce(labels['replica_role'], '') as replica_role
    from lake.series
    left join shown_as
        on
            series.cluster = shown_as.cluster
            and series.metric = 'kai_queue_fair_share_gpu'
            and labels['queue_name'] = shown_as.display_name
    where starts_with(signal, 'quota_')
),

-- Only values of the leader count; a follower repeats them.
served as (
    from series
    where quota is not null
    qualify replica_role != 'follower' or bool_and(replica_role = 'follower') over (partition by cluster, system)
),

valued as (
    select
        served.* exclude (in_namespace, replica_role),
        sample.seen_at::timestamp as start_at,
        start_at + to_milliseconds(round(sample.held_seconds * 1000)::bigint) as end_at,
        case
            when field = 'guaranteed' and system = 'kai' and sample.value < 0 then 1e999
            -- Koordinator reports cores in thousandths.
            when system = 'koordinator' and resource = 'cpu' then sample.value / 1000
            else sample.value
        end as amount_native
    from served
    inner join lake.sample
        using (cluster, series_id)
    where not isnan(sample.value)
    qualify
        field not like '%_limit'
        or amount_native != 0
        or bool_or(isinf(amount_native) and field like '%_limit') over (partition by cluster, system)
),

-- Copies with the same time count once; a later copy ends the earlier one.
instant as (
    select
        * exclude (series_id, end_at, amount_native),
        max(end_at) as reach_at,
        max(amount_native) as amount_native
    from valued
    group by all
),

followed as (
    select
        * exclude (reach_at),
        least(reach_at, lead(start_at) over (
            partition by cluster, system, quota, resource, flavor, field
            order by start_at
        )) as end_at
    from instant
    qualify row_number() over (partition by cluster, system, quota, resource, flavor, field, start_at order by parent desc) = 1
)

select *
from merged_runs(followed, '^(cluster|system|quota|resource|flavor|field|parent|is_parent|tree|amount_native)$')
