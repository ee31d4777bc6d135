-- Accelerator requests of each container that ran, and the kind of each request.
--
-- Kinds: a resource claim (DRA); an extended resource with a claim made by the scheduler (the same devices); a MIG resource; Koordinator's
-- resources; any other extended resource (device plugin). Pods without snapshots come from kube-state-metrics: there, a resource that several
-- containers of a pod request has no amount.
--
-- revision: 2
-- grain:  cluster, namespace, pod, pod_uid, container
-- reads:  day.accelerator_resource, day.container_run, day.kube_request, day.kube_series, lake.pod_container
-- source: Pod spec and status.extendedResourceClaimStatus; kube_pod_container_resource_requests
-- columns: cluster, namespace, pod, pod_uid, container, request_source, requested, claims, start_at, end_at
--   requested  resources with known amounts, sorted; '' where it requested only claims
--   claims     names of its resource claims, sorted; '' where none
--   start_at   UTC, start of its first run
--   end_at     UTC, exclusive end of its last run, as far as known
with run as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        min(start_at) as start_at,
        max(end_at) as end_at
    from day.container_run
    group by cluster, namespace, pod, pod_uid, container
),

listed as (
    select
        columns('^(cluster|pod_uid|container)$'),
        arg_max(columns('^(requests|claims)$'), observed_at) as "\0"
    from lake.pod_container
    group by cluster, pod_uid, container
),

entry as (
    select
        * exclude (claims),
        unnest(map_entries(requests)) as request,
        [claim.resource for claim in claims] as claimed
    from listed
),

-- Pods that are known only from kube-state-metrics.
series as (
    select
        series.* similar to '^(cluster|namespace|pod|pod_uid|container)$',
        name.resource,
        count(*) over (partition by series.cluster, series.pod_uid, name.resource) as container_count
    from day.kube_series as series
    anti join run
        using (cluster, pod_uid)
    inner join day.accelerator_resource as name
        on
            series.cluster = name.cluster
            and series.resource = name.written_as
    where series.signal = 'kube_pod_container_resource_requests' and series.pod_uid != ''
    group by series.cluster, series.namespace, series.pod, series.pod_uid, series.container, name.resource
),

reported as (
    select
        run.*,
        name.resource,
        entry.request.value as units,
        list_contains(entry.claimed, entry.request.key) as is_claimed
    from run
    inner join entry
        using (cluster, pod_uid, container)
    inner join day.accelerator_resource as name
        using (cluster)
    where entry.request.key = name.written_as
    union all by name
    select
        series.* exclude (container_count),
        min(request.start_at) as start_at,
        max(request.end_at) as end_at,
        if(series.container_count = 1, max(request.container_units), null) as units,
        false as is_claimed
    from series
    inner join day.kube_request as request
        using (cluster, pod_uid, resource)
    where request.stage = 'placed'
    group by
        series.cluster, series.namespace, series.pod, series.pod_uid, series.container, series.resource, series.container_count
),

ways as (
    select
        *,
        case
            when is_claimed then 'extended resource'
            when resource like 'koordinator.sh/%' then 'Koordinator'
            when contains(resource, '/mig-') then 'MIG resource'
            else 'device plugin'
        end as way,
        resource || coalesce('=' || if(units = floor(units), units::bigint::varchar, units::varchar), '') as requested,
        '' as claim
    from reported
    union all by name
    select
        run.*,
        'DRA' as way,
        '' as requested,
        unnest([claim.claim for claim in listed.claims if claim.resource = '']) as claim
    from run
    inner join listed
        using (cluster, pod_uid, container)
)

select
    columns('^(cluster|namespace|pod|pod_uid|container)$'),
    string_agg(distinct way, ', ' order by way) as request_source,
    coalesce(string_agg(distinct requested, ', ' order by requested) filter (where requested != ''), '') as requested,
    coalesce(string_agg(distinct claim, ', ' order by claim) filter (where claim != ''), '') as claims,
    min(start_at) as start_at,
    max(end_at) as end_at
from ways
group by cluster, namespace, pod, pod_uid, container
