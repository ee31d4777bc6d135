-- Requested and allocatable units of each accelerator resource in steps; nothing changes within a step.
--
-- Figures in OpenCost's sense: all pending pods, requests of containers, all nodes, and here every resource. Figures in Kubernetes' sense: effective
-- requests, with unscheduled pods separate from bound ones, and unavailable nodes separate. Never add sources or resources: the resource gpu is all
-- of them, in GPUs, where a pod with claims and requests is one pod. A figure is null where its source has no data for it; phases alone show no
-- requests. 0 is an observed 0. Claims that cannot be listed may be for GPUs: while a pod has one, demand and supply of GPUs are unknown.
--
-- grain:  cluster, source, resource, start_at
-- reads:  day.allocatable, day.gpu_allocatable, day.gpu_request, day.kube_series, day.request, day.state_snapshot, lake.pod, lake.sample
-- source: day.request, day.allocatable
-- columns:
--   resource                 extended resource, <class>.deviceclass.resource.k8s.io/devices, or gpu: GPUs under any name
--   allocatable_units        units of all nodes
--   schedulable_units        units of nodes that are ready and accept pods, without unallocated tainted devices
with request as (
    select
        * replace (counted_resource as resource, is_opencosts and resource = counted_resource as is_opencosts),
        true as is_pod
    from day.request
    union all by name
    select
        * replace ('gpu' as resource),
        false as is_opencosts,
        effective_units as container_units,
        false as is_pod
    from day.gpu_request
    union all by name
    select
        *,
        'gpu' as resource,
        false as is_opencosts,
        0 as effective_units,
        true as is_pod
    from merged_runs('day.gpu_request', '^(cluster|source|pod_uid|phase|stage)$')
),

advertised as (
    from day.allocatable
    union all by name
    select
        * replace ('gpu' as resource),
        false as is_opencosts
    from day.gpu_allocatable
),

resource as (
    select columns('^(cluster|source|resource|is_opencosts)$')
    from request
    union by name
    select columns('^(cluster|source|resource|is_opencosts)$')
    from advertised
),

-- Times at which a source was read; other times have no value.
watch as (
    select
        cluster,
        'snapshot' as source,
        kind in ('pods', 'resourceclaims.resource.k8s.io') as is_of_pods,
        kind in ('resourceclaims.resource.k8s.io', 'resourceslices.resource.k8s.io') as is_of_classes,
        not bool_or(kind = 'resourceclaims.resource.k8s.io') over (partition by cluster, observed_at) and (cluster, observed_at) in (
            select (pod.cluster, pod.observed_at::timestamp) from lake.pod
            where pod.phase in ('Pending', 'Running', 'Unknown') and cardinality(pod.resource_claims) > 0
        ) as has_unlisted_claims,
        observed_at as start_at,
        stands_until_at as end_at
    from day.state_snapshot
    where kind in ('pods', 'nodes', 'resourceclaims.resource.k8s.io', 'resourceslices.resource.k8s.io')
    union all by name
    select distinct
        series.cluster,
        'kube-state-metrics' as source,
        series.signal = 'kube_pod_status_phase' as is_of_pods,
        false as is_of_classes,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where
        series.signal = 'kube_node_status_allocatable'
        or series.signal = 'kube_pod_status_phase' and series.cluster in (
            select requested.cluster from day.kube_series as requested
            where requested.signal like '%resource_requests'
        )
),

change as (
    select
        columns('^(cluster|source|resource)$'),
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        (phase = 'Pending' and is_pod and (coalesce(container_units, 1) > 0 or is_claim))::bigint as pending_pods,
        if(phase = 'Pending', coalesce(container_units, 0), 0) as pending_units,
        if(phase in ('Pending', 'Running', ''), coalesce(container_units, 0), 0) as requested,
        (stage = 'gated' and is_pod)::bigint as gated_pods,
        (stage in ('unscheduled', 'refused') and is_pod)::bigint as unscheduled_pods,
        if(stage in ('unscheduled', 'refused'), effective_units, 0) as unscheduled,
        (stage = 'bound' and is_pod)::bigint as bound_pods,
        if(stage = 'bound', effective_units, 0) as bound,
        if(stage in ('bound', 'placed'), effective_units, 0) as allocated,
        (stage is null)::bigint as unstaged,
        (effective_units is null)::bigint as unsized,
        (stage in ('bound', 'placed') and effective_units is null)::bigint as unsized_allocated,
        (stage = 'bound' and effective_units is null)::bigint as unsized_bound,
        (stage in ('unscheduled', 'refused') and effective_units is null)::bigint as unsized_unscheduled
    from request
    union all by name
    select
        columns('^(cluster|source|resource)$'),
        unnest([{ 'changed_at': start_at, 'sign': 1 }, { 'changed_at': end_at, 'sign': -1 }], recursive := true),
        allocatable_units as allocatable,
        if(state = 'schedulable', allocatable_units, 0) as schedulable,
        if(state = 'cordoned', allocatable_units, 0) as cordoned,
        if(state = 'not_ready', allocatable_units, 0) as not_ready,
        (state is null)::bigint as unjudged,
        1 as advertised_count
    from advertised
    union all by name
    select
        watch.cluster,
        watch.source,
        resource.resource,
        unnest([{ 'changed_at': watch.start_at, 'sign': 1 }, { 'changed_at': watch.end_at, 'sign': -1 }], recursive := true),
        watch.is_of_pods::bigint as pod_watches,
        (not watch.is_of_pods)::bigint as node_watches,
        (watch.has_unlisted_claims and resource.resource = 'gpu')::bigint as unlisted
    from watch
    inner join resource
        using (cluster, source)
    where watch.is_of_classes = ends_with(resource.resource, '.deviceclass.resource.k8s.io/devices')
),

summed as (
    select
        columns('^(cluster|source|resource|changed_at)$'),
        sum(sign * columns(* exclude (cluster, source, resource, changed_at, sign)))
    from change
    group by all
),

running as (
    select
        columns('^(cluster|source|resource)$'),
        changed_at as start_at,
        lead(changed_at) over in_order as end_at,
        -- The sum of GPU fractions may be 1e-16 instead of 0.
        coalesce(round(sum(columns(* exclude (cluster, source, resource, changed_at))) over in_order, 9) + 0, 0)
    from summed
    window in_order as (partition by cluster, source, resource order by changed_at)
),

-- A class without an allocatable device may be a class whose devices cannot be counted.
known as (
    select
        *,
        node_watches > 0 and unlisted = 0 and (advertised_count > 0 or not ends_with(resource, '.deviceclass.resource.k8s.io/devices')) as is_allocatable_known
    from running
)

select
    running.* similar to '^(cluster|source|resource)$',
    resource.is_opencosts,
    running.start_at,
    running.end_at,
    if(running.pod_watches > 0 and running.unlisted = 0, running.pending_pods, null)::bigint as pending_pod_count,
    if(running.pod_watches > 0 and running.unsized + running.unlisted = 0, running.pending_units, null)::double as pending_request_units,
    if(running.pod_watches > 0 and running.unsized + running.unlisted = 0, running.requested, null)::double as requested_units,
    if(running.is_allocatable_known, running.allocatable, null)::double as allocatable_units,
    if(running.pod_watches > 0 and running.unstaged + running.unlisted = 0, running.gated_pods, null)::bigint as gated_pod_count,
    if(running.pod_watches > 0 and running.unstaged + running.unlisted = 0, running.unscheduled_pods, null)::bigint as unscheduled_pod_count,
    if(running.pod_watches > 0 and running.unstaged = 0 and running.unsized_unscheduled + running.unlisted = 0, running.unscheduled, null)::double as unscheduled_units,
    if(running.pod_watches > 0 and running.unstaged = 0, running.bound_pods, null)::bigint as bound_pending_pod_count,
    if(running.pod_watches > 0 and running.unstaged = 0 and running.unsized_bound + running.unlisted = 0, running.bound, null)::double as bound_pending_units,
    if(running.pod_watches > 0 and running.unstaged = 0 and running.unsized_allocated + running.unlisted = 0, running.allocated, null)::double as allocated_units,
    if(running.is_allocatable_known and running.unjudged = 0, columns('^(schedulable|cordoned|not_ready)$'), null)::double as '\1_units'
from known as running
inner join resource
    using (cluster, source, resource)
where running.end_at is not null and (running.pod_watches > 0 or running.node_watches > 0)
