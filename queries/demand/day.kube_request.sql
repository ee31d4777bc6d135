-- Accelerators that each pod requests, and its progress, from kube-state-metrics.
--
-- A pod requests the sum of its containers, or its largest init container if that is more: these metrics do not distinguish sidecars. It waits from
-- its creation, even before the first sample. A bound pod stays bound. A refusal by the scheduler counts for all of the wait before binding.
--
-- grain:  cluster, pod_uid, resource, start_at
-- reads:  day.accelerator_resource, day.kube_series, lake.sample
-- source: kube_pod_status_phase, _created, _status_scheduled_time, _status_unschedulable, _info, _container_resource_requests, _init_container_…
-- columns:
--   container_units  units that its app containers request; null if they request none
with reported as (
    select
        series.*,
        sample.value,
        sample.seen_at::timestamp as start_at,
        held_until(sample.seen_at, sample.held_seconds) as end_at
    from day.kube_series as series
    inner join lake.sample
        using (cluster, series_id)
    where
        series.pod_uid != ''
        and regexp_matches(series.signal, '^kube_pod_(info|created|(init_)?container_resource_requests|status_(phase|scheduled_time|unschedulable))$')
        and series.phase in ('', 'Pending', 'Running', 'Unknown')
),

container as (
    select
        reported.* similar to '^(cluster|namespace|pod|pod_uid)$',
        name.resource,
        name.is_opencosts,
        reported.signal = 'kube_pod_init_container_resource_requests' as is_init,
        reported.container,
        max(reported.value) as units
    from reported
    inner join day.accelerator_resource as name
        on
            reported.cluster = name.cluster
            and reported.resource = name.written_as
    where reported.signal in ('kube_pod_container_resource_requests', 'kube_pod_init_container_resource_requests')
    group by all
),

request as (
    select
        * exclude (is_init, container, units),
        sum(units) filter (where not is_init) as container_units,
        greatest(coalesce(sum(units) filter (where not is_init), 0), coalesce(max(units) filter (where is_init), 0)) as effective_units
    from container
    group by all
    having effective_units > 0
),

binding as (
    select
        columns('^(cluster|pod_uid)$'),
        min(epoch_ms((value * 1000)::bigint)) filter (where signal = 'kube_pod_created') as created_at,
        min(epoch_ms((value * 1000)::bigint)) filter (where signal = 'kube_pod_status_scheduled_time') as scheduled_at,
        min(start_at) filter (where signal = 'kube_pod_info' and node_name != '') as seen_bound_at,
        coalesce(scheduled_at, seen_bound_at) as bound_at,
        max(node_name) filter (where signal = 'kube_pod_info') as node_name,
        bool_or(signal = 'kube_pod_status_unschedulable' and value = 1) as is_refused
    from reported
    where signal in ('kube_pod_created', 'kube_pod_info', 'kube_pod_status_scheduled_time', 'kube_pod_status_unschedulable')
    group by all
    having bool_or(signal != 'kube_pod_created')
),

phase as (
    select *
    from reported
    where signal = 'kube_pod_status_phase' and value = 1
),

run as (
    select
        *,
        -- One kube-state-metrics may still report Pending when another reports Running.
        min(start_at) filter (where phase = 'Running') over (partition by cluster, pod_uid) as running_at,
        min(start_at) over (partition by cluster, pod_uid) as seen_from_at
    from merged_runs(phase, '^(cluster|pod_uid|phase)$')
),

staged as (
    select
        run.* similar to '^(cluster|pod_uid|phase)$',
        unnest(
            case
                when run.phase != 'Pending'
                    then [{ 'stage': 'placed', 'start_at': run.start_at, 'end_at': run.end_at, 'node_name': binding.node_name }]
                when binding.pod_uid is null
                    then [{ 'stage': null, 'start_at': run.start_at, 'end_at': run.end_at, 'node_name': '' }]
                else [
                    {
                        'stage': if(binding.is_refused, 'refused', 'unscheduled'),
                        'start_at': run.start_at,
                        'end_at': least(run.end_at, coalesce(binding.bound_at, run.end_at), coalesce(run.running_at, run.end_at)),
                        'node_name': ''
                    },
                    {
                        'stage': 'bound',
                        'start_at': greatest(run.start_at, coalesce(binding.bound_at, run.end_at)),
                        'end_at': least(run.end_at, coalesce(run.running_at, run.end_at)),
                        'node_name': binding.node_name
                    }
                ]
            end,
            recursive := true
        )
    from run
    left join binding
        using (cluster, pod_uid)
    union all by name
    select distinct
        run.cluster,
        run.pod_uid,
        'Pending' as phase,
        if(binding.is_refused, 'refused', 'unscheduled') as stage,
        binding.created_at as start_at,
        least(run.start_at, coalesce(binding.bound_at, run.start_at)) as end_at
    from run
    inner join binding
        using (cluster, pod_uid)
    where run.start_at = run.seen_from_at and (run.phase = 'Pending' or binding.scheduled_at is not null)
)

select
    request.* exclude (container_units, effective_units),
    coalesce(staged.node_name, '') as node_name,
    staged.* exclude (cluster, pod_uid, node_name),
    request.container_units,
    request.effective_units
from request
inner join staged
    using (cluster, pod_uid)
where staged.start_at < staged.end_at
