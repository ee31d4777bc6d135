-- Allocatable units of each accelerator resource on each node, and whether the scheduler could place pods there, from snapshots.
--
-- A snapshot is valid until the next one, for 15 minutes at most.
--
-- grain:  cluster, node_name, resource, state, start_at
-- reads:  day.accelerator_resource, day.class_device, day.state_snapshot, lake.claim_device, lake.node
-- source: Node status.allocatable and .capacity, conditions and spec.unschedulable; ResourceSlices by class
-- columns:
--   node_name  node; '' for devices that do not belong to one node
--   state      schedulable, cordoned, not_ready or tainted (by the device's own taint, while no claim has it whole); null where unknown
with node_state as (
    select
        cluster,
        observed_at::timestamp as observed_at,
        node_name,
        columns('^(allocatable|capacity)$'),
        case when not is_ready then 'not_ready' when is_unschedulable then 'cordoned' when is_ready then 'schedulable' end as state
    from lake.node
),

node_entry as (
    select
        *,
        unnest(map_entries(allocatable)) as entry
    from node_state
),

held as (
    select distinct columns('^(cluster|observed_at|driver|pool|device)$')
    from lake.claim_device
    where share_id = '' and not is_admin_access
),

advertised as (
    select
        node_entry.cluster,
        node_entry.node_name,
        name.resource,
        name.is_opencosts,
        node_entry.state,
        sum(node_entry.entry.value) as allocatable_units,
        sum(greatest(0, node_entry.capacity[node_entry.entry.key] - node_entry.entry.value)) as unhealthy_units,
        snapshot.* similar to '^(kind|run_number|snapshot_number)$'
    from node_entry
    inner join day.accelerator_resource as name
        using (cluster)
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    where
        node_entry.entry.key = name.written_as
        and snapshot.kind = 'nodes'
    group by all
    union all by name
    select
        device.cluster,
        device.node_name,
        device.device_class || '.deviceclass.resource.k8s.io/devices' as resource,
        false as is_opencosts,
        if(device.is_tainted and held.device is null, 'tainted', node_state.state) as state,
        count(*)::double as allocatable_units,
        0 as unhealthy_units,
        snapshot.* similar to '^(kind|run_number|snapshot_number)$'
    from day.class_device as device
    left join node_state
        using (cluster, observed_at, node_name)
    left join held
        using (cluster, observed_at, driver, pool, device)
    inner join day.state_snapshot as snapshot
        using (cluster, observed_at)
    -- Without a list of claims, their devices would seem to be free.
    semi join day.state_snapshot as listed
        on device.cluster = listed.cluster and device.observed_at = listed.observed_at and listed.kind = 'resourceclaims.resource.k8s.io'
    where snapshot.kind = 'resourceslices.resource.k8s.io'
    group by all
),

-- Most nodes advertise the same in many snapshots: equal states are grouped first, and only states that came back are split into runs.
state as (
    select
        * exclude (snapshot_number),
        list(snapshot_number order by snapshot_number) as snapshot_numbers
    from advertised
    group by all
)

select * exclude (previous_at, last_at, is_followed)
from snapshot_intervals(state, day.state_snapshot)
