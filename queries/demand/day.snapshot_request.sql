-- Accelerators that each pod requests, and its progress, from snapshots.
--
-- A state is valid until the next snapshot, but to and from when Kubernetes says that the pod had its node and was done; snapshots more than 15 minutes
-- apart leave unknown time between. A pod waits from its creation, also if the first snapshot shows it placed. Finished pods request nothing.
--
-- grain:  cluster, pod_uid, resource, start_at
-- reads:  day.accelerator_resource, day.state_snapshot, lake.pod, lake.pod_container
-- source: Pod spec and status; effective requests by the scheduler's rules
-- columns:
--   container_units  what its containers request: requests, else limits; null where only others of its parts do
with snapshot as (
    select *
    from day.state_snapshot
    where kind = 'pods'
),

entry as (
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

-- Most pods stay as they are for many snapshots: those of one state first, and in turn only where it came back.
state as (
    select
        effective.* exclude (observed_at),
        container.units as container_units,
        snapshot.run_number,
        list(snapshot.snapshot_number order by snapshot.snapshot_number) as snapshot_numbers
    from effective
    inner join snapshot
        using (cluster, observed_at)
    left join container
        using (cluster, observed_at, pod_uid, resource)
    group by all
),

life as (
    select
        columns('^(cluster|pod_uid)$'),
        min(created_at)::timestamp as created_at,
        min(scheduled_at)::timestamp as scheduled_at,
        max(finished_at)::timestamp as finished_at,
        min(observed_at)::timestamp as seen_from_at,
        min(observed_at) filter (where node_name != '')::timestamp as placed_from_at
    from lake.pod
    group by all
),

timed as (
    select
        if(node_name = '', scheduled_at, finished_at) as changed_at,
        shown.* exclude (previous_at, last_at, is_followed) replace (
            if(scheduled_at between previous_at and start_at and start_at = placed_from_at, scheduled_at, start_at) as start_at,
            if(changed_at between start_at and end_at, changed_at, end_at) as end_at
        ),
        life.created_at,
        if(start_at = seen_from_at, if(node_name = '', start_at, scheduled_at), null) as waited_until_at
    from snapshot_intervals(state, snapshot) as shown
    inner join life
        using (cluster, pod_uid)
)

select * exclude (changed_at, created_at, waited_until_at)
from timed
where start_at < end_at
union all by name
select
    * exclude (changed_at, created_at, waited_until_at) replace (
        '' as node_name,
        'Pending' as phase,
        if(node_name = '', stage, 'unscheduled') as stage,
        created_at as start_at,
        waited_until_at as end_at
    )
from timed
where created_at < waited_until_at
