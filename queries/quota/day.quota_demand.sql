-- Demand and delivery of each quota in steps, without its terms: a month of steps is in memory.
--
-- A pod or a workload requests from its creation and is allocated from its binding until its end. Where no pod of a system is known by its queue, the
-- system's own report counts. The same holds for a ResourceQuota with scopes, where it is unknown whether pods are in them. A step with neither known
-- has no row.
--
-- grain:  terms_id, start_at
-- reads:  day.quota_request, day.quota_change, day.quota_member, day.quota_pod, day.quota_reported, day.quota_scope, day.quota_terms, day.quota_watch
-- columns:
--   terms_id                terms_id of day.quota_terms
--   delivered_native        amount allocated to pods
--   amount_source           workloads of Kueue, pods, or the system's own report: series or status
with pod_queue as (
    select
        request.cluster,
        request.quota,
        bool_or(coalesce(pod.owner_kind, '') in (
            'Job', 'JobSet', 'RayJob', 'RayCluster', 'MPIJob', 'PyTorchJob', 'TFJob', 'XGBoostJob', 'PaddleJob', 'JAXJob', 'TrainJob', 'AppWrapper'
        )) as has_jobs,
        bool_or(request.created_at + interval 1 minute < coalesce(request.bound_at, request.ended_at, 'infinity'::timestamp)) as has_waiting
    from day.quota_request as request
    left join day.quota_pod as pod
        on
            request.cluster = pod.cluster
            and request.request_uid = pod.pod_uid
    where request.system = 'kueue'
    group by request.cluster, request.quota
),

reported as (
    select
        report.*,
        known.scope
    from day.quota_reported as report
    inner join day.quota_scope as known
        using (cluster, system, resource, flavor, quota)
),

-- For a resource that no pod requests by name (devices of claims), only the quota itself reports usage.
way as (
    select
        known.* exclude (quota),
        case
            when (known.cluster, known.system, known.scope) in (
                select (uncertain.cluster, uncertain.system, uncertain.quota)
                from day.quota_member as uncertain
                where not uncertain.is_certain
            ) then max(reported.source) filter (where reported.field = 'delivered')
            when known.system = 'kueue' and known.cluster in (
                select watch.cluster
                from day.quota_watch as watch
                where watch.watched = 'workloads'
            ) then 'workloads'
            when (known.cluster, known.system, known.resource) in (
                select (quota_request.cluster, quota_request.system, quota_request.resource)
                from day.quota_request as quota_request
            ) then 'pods'
            when bool_or(reported.field = 'delivered') then max(reported.source) filter (where reported.field = 'delivered')
            when known.system in ('nos', 'scheduler-plugins', 'kubernetes') or (known.cluster, known.system) in (
                select (quota_request.cluster, quota_request.system)
                from day.quota_request as quota_request
            ) then 'pods'
        end as amount_source
    from day.quota_scope as known
    left join reported
        using (cluster, system, resource, flavor, scope)
    group by known.cluster, known.system, known.resource, known.flavor, known.scope
),

-- Pending pods are known if Kueue admits the pods themselves. For Jobs, pods are created only after admission.
governed as materialized (
    select
        known.*,
        row_number() over ()::uinteger as number,
        way.amount_source,
        coalesce(way.amount_source in ('pods', 'workloads'), false) as is_counted,
        known.system != 'kueue' or way.amount_source = 'workloads' or known.cluster in (
            select queue.cluster
            from pod_queue as queue
            where queue.has_waiting and not queue.has_jobs
        ) and (known.cluster, known.quota) not in (
            select (queue.cluster, queue.quota)
            from pod_queue as queue
            where queue.has_jobs
        ) as shows_waiting
    from day.quota_scope as known
    inner join way
        using (cluster, system, resource, flavor, scope)
),

request as materialized (
    select
        governed.number,
        quota_request.* similar to '^(created_at|bound_at|ended_at|amount_native|pod_native|part)$'
    from day.quota_request as quota_request
    inner join governed
        using (cluster, system, resource, flavor, quota)
),

change as (
    select
        number,
        unnest([
            { 'at': created_at, 'demanded': amount_native, 'delivered': 0 },
            { 'at': bound_at, 'demanded': 0, 'delivered': amount_native },
            { 'at': ended_at, 'demanded': -amount_native, 'delivered': if(bound_at is null, 0, -amount_native) }
        ]) as event
    from request
),

changed as (
    select
        number,
        event.at as start_at,
        sum(event.demanded::decimal(38, 9)) as demanded_growth,
        sum(event.delivered::decimal(38, 9)) as delivered_growth
    from change
    where event.at is not null
    group by all
),

reported_demand as (
    select
        way.* exclude (amount_source),
        watch.start_at,
        watch.end_at
    from way
    inner join day.quota_watch as watch
        using (cluster)
    where watch.watched = if(way.amount_source = 'workloads', 'workloads', 'pods')
    union by name
    select columns('^(cluster|system|resource|flavor|scope|start_at|end_at)$')
    from reported
),

-- Steps before the first known time become one sum.
since as (
    select
        * exclude (start_at, end_at),
        min(start_at) as first_at,
        max(end_at) as last_at
    from reported_demand
    group by all
),

followed as (
    select
        *,
        lead(start_at) over (
            partition by cluster, system, resource, flavor, scope
            order by start_at
        ) as end_at
    from day.quota_change
),

step as (
    select
        followed.*,
        watch.cluster is not null as is_watched
    from followed
    inner join since
        using (cluster, system, resource, flavor, scope)
    inner join way
        using (cluster, system, resource, flavor, scope)
    left join day.quota_watch as watch
        on
            followed.cluster = watch.cluster
            and watch.watched = if(way.amount_source = 'workloads', 'workloads', 'pods')
            and followed.start_at >= watch.start_at
            and followed.start_at < watch.end_at
    where
        followed.end_at > since.first_at
        and followed.start_at < since.last_at
),

before as (
    select
        number,
        sum(demanded_growth) as demanded,
        sum(delivered_growth) as delivered
    from changed
    inner join governed
        using (number)
    inner join since
        using (cluster, system, resource, flavor, scope)
    anti join step
        using (cluster, system, resource, flavor, scope, start_at)
    where changed.start_at < since.first_at
    group by all
),

summed as (
    select
        governed.number,
        step.* similar to '^(start_at|end_at|is_watched)$',
        (coalesce(before.demanded, 0) + coalesce(sum(changed.demanded_growth) over one, 0))::double as demanded,
        (coalesce(before.delivered, 0) + coalesce(sum(changed.delivered_growth) over one, 0))::double as delivered
    from step
    inner join governed
        using (cluster, system, resource, flavor, scope)
    left join changed
        using (number, start_at)
    left join before
        using (number)
    window one as (
        partition by governed.number
        order by step.start_at
        rows between unbounded preceding and current row
    )
),

-- Time in which pods wait, by requested amount: many pods request the same amount, so a step does not read each pod.
wait as (
    select
        columns('^(number|amount_native|pod_native|part)$'),
        created_at as start_at,
        coalesce(bound_at, ended_at, 'infinity'::timestamp) as end_at
    from request
    where created_at < coalesce(bound_at, ended_at, 'infinity'::timestamp)
),

waiting as (
    select
        summed.* similar to '^(number|start_at)$',
        min(run.amount_native) as waiting_native,
        min(run.pod_native) as waiting_pod_native,
        arg_min(run.part, (run.pod_native, run.part)) as waiting_part
    from summed
    inner join merged_runs(wait, '^(number|amount_native|pod_native|part)$') as run
        using (number)
    where
        summed.start_at >= run.start_at
        and summed.start_at < run.end_at
        and summed.demanded > summed.delivered
    group by all
),

report as (
    select
        summed.* similar to '^(number|start_at)$',
        max(amount_native) filter (where field = 'delivered') as delivered,
        max(amount_native) filter (where field = 'pending') as pending,
        coalesce(
            max(amount_native) filter (where field = 'demanded'),
            max(amount_native) filter (where field = 'delivered') + max(amount_native) filter (where field = 'pending')
        ) as demanded,
        max(amount_native) filter (where field = 'fair_share') as fair_share
    from reported
    inner join governed
        using (cluster, system, resource, flavor, quota)
    inner join summed
        using (number)
    where
        summed.start_at >= reported.start_at
        and summed.start_at < reported.end_at
    group by all
)

select
    term.terms_id,
    summed.start_at,
    summed.end_at,
    case
        when not governed.is_counted then if(report.demanded is null, null, greatest(report.demanded, report.delivered))
        when governed.system = 'kueue' and governed.amount_source = 'pods' and report.pending is not null then summed.delivered + report.pending
        when governed.shows_waiting then summed.demanded
    end as demanded_native,
    if(governed.is_counted, summed.delivered, report.delivered) as delivered_native,
    if(governed.is_counted, waiting.waiting_native, null) as waiting_native,
    if(governed.is_counted, waiting.waiting_pod_native, null) as waiting_pod_native,
    waiting.waiting_part,
    -- Volcano's share of a queue without requests is of an earlier time.
    if(governed.system = 'volcano' and report.demanded = 0, null, report.fair_share) as reported_share_native,
    governed.amount_source
from summed
inner join governed
    using (number)
left join waiting
    using (number, start_at)
left join report
    using (number, start_at)
inner join day.quota_terms as term
    using (cluster, system, resource, flavor, quota)
where
    summed.start_at >= term.start_at
    and summed.start_at < term.end_at
    and if(governed.is_counted, summed.is_watched, report.delivered is not null)
