-- Accelerators that each pod requests, and its progress, from snapshots.
--
-- A state is valid until the next snapshot; snapshots more than 15 minutes apart leave unknown time between. Finished pods request nothing.
--
-- grain:  cluster, pod_uid, resource, start_at
-- reads:  day.accelerator_resource, day.state_snapshot, lake.pod, lake.pod_container
-- source: Pod spec and status; effective requests by the scheduler's rules
-- columns:
--   container_units  units that its app containers request: requests, else limits; null if they request none
with entry as (
    select
        columns('^(cluster|observed_at|pod_uid)$'),
        unnest(map_entries(requests)) as requested
    from lake.pod_container
    where container_kind = 'app'
),

container as (
    select
        entry.cluster,
        entry.observed_at::timestamp as observed_at,
        entry.pod_uid,
        name.resource,
        sum(entry.requested.value) as units
    from entry
    inner join day.accelerator_resource as name
        using (cluster)
    where entry.requested.key = name.written_as
    group by all
),

pod_entry as (
    select
        cluster,
        observed_at::timestamp as observed_at,
        columns('^(namespace|pod|pod_uid|node_name|phase)$'),
        case
            when node_name != '' then if(phase = 'Pending', 'bound', 'placed')
            when unschedulable_reason = 'SchedulingGated' then 'gated'
            when unschedulable_at is not null then 'refused'
            else 'unscheduled'
        end as stage,
        unnest(map_entries(effective_requests)) as requested
    from lake.pod
    where phase in ('Pending', 'Running', 'Unknown')
),

effective as (
    select
        pod_entry.* exclude (requested),
        name.resource,
        name.is_opencosts,
        sum(pod_entry.requested.value) as effective_units
    from pod_entry
    inner join day.accelerator_resource as name
        using (cluster)
    where pod_entry.requested.key = name.written_as
    group by all
    having sum(pod_entry.requested.value) > 0
),

-- Most pods are the same in many snapshots: equal states are grouped first, and only states that came back are split into runs.
state as (
    select
        effective.* exclude (observed_at),
        container.units as container_units,
        snapshot.* similar to '^(kind|run_number)$',
        list(snapshot.snapshot_number order by snapshot.snapshot_number) as snapshot_numbers
    from effective
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    left join container
        using (cluster, observed_at, pod_uid, resource)
    where snapshot.kind = 'pods'
    group by all
)

select * exclude (last_at, is_followed)
from snapshot_intervals(state, day.state_snapshot)
