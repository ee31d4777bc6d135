-- Sums of each container's devices per hour while allocated to it.
--
-- Each owner of a shared device has the device's figures (scope device). On a MIG instance, memory and activity are the instance's own; power,
-- clocks, throttling and errors are the board's.
--
-- revision: 2
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.interval_saturation, day.ownership_interval, facts.device_hour, facts.ownership
-- parts:  5000 rows of facts.ownership by device_uuid
-- params: memory_threshold_ratio
-- source: facts.device_hour and day.interval_saturation over facts.ownership
-- columns: those of facts.device_hour without inactive_seconds, effective_seconds, ineffective_seconds, busy_seconds, unreported_seconds;
--          namespace, pod, pod_uid, container, sharing_mode, sharing_evidence, certainty, scope
with step as (
    -- Every interval with constant owners: whole hours without a change, and the parts of the other hours.
    select
        hour.* exclude (
            node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make, memory_threshold_ratio
        ),
        hour.hour_start_at as start_at,
        hour.hour_start_at + interval 1 hour as end_at
    from facts.device_hour as hour
    semi join facts.ownership as owner
        on
            hour.cluster = owner.cluster
            and hour.device_uuid = owner.device_uuid
            and hour.hour_start_at < owner.end_at
            and hour.hour_start_at + interval 1 hour > owner.start_at
    anti join day.ownership_interval
        using (cluster, device_uuid, hour_start_at)
    union all by name
    select *
    from day.interval_saturation
),

run as (
    select distinct columns('^(cluster|device_uuid|hour_start_at|start_at|end_at)$')
    from step
),

-- A MIG instance's own values, and values of its board.
own as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at|observed_seconds|sample_count)$'),
        columns('^(fb|memory_(seen|used|pressure)|gr_engine|sm_(active|occupancy)|tensor|fp[0-9]+|dram)_')
    from step
),

board as (
    select
        columns('^(cluster|device_uuid|start_at|observed_seconds|sample_count|xid_event_count|xid_codes)$'),
        columns(
            lambda name: regexp_matches(name, '_(seconds|joules|bytes|max)$|_(gap|replay|sample)_count$')
            and not regexp_matches(name, '^(fb|memory_(seen|used|pressure)|gr_engine|sm_(active|occupancy)|tensor|fp[0-9]+|dram)_|^(observed|inactive|effective|ineffective|busy|unreported)_seconds$')
        )
    from step
    where gpu_instance_id = ''
),

labelled as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at)$'),
        columns('^(node_name|gpu_(index|device|model|instance_profile)|pci_bus_id|driver_version|make)$')
    from facts.device_hour
),

-- Intervals are cut at each change of owners, so an interval that overlaps a run is within it.
allocated as (
    select
        ownership.* exclude (start_at, end_at, source, life_start_at, life_end_at),
        run.hour_start_at,
        run.start_at
    from facts.ownership
    inner join run
        using (cluster, device_uuid)
    where ownership.start_at < run.end_at and ownership.end_at > run.start_at
)

select
    allocated.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|hour_start_at)$',
    -- The least exclusive mode of the hour, in alphabetical order: 'exclusive' < 'mig' < 'mps' < 'shared-claim' < 'time-sliced' < 'time-sliced?'.
    max(allocated.sharing_mode) as sharing_mode,
    arg_max(allocated.sharing_evidence, allocated.sharing_mode) as sharing_evidence,
    min_by(allocated.certainty, list_position(['ambiguous', 'inferred', 'certain'], allocated.certainty)) as certainty,
    'device' as scope,
    sum(coalesce(own.observed_seconds, board.observed_seconds)) as observed_seconds,
    sum(coalesce(own.sample_count, board.sample_count))::bigint as sample_count,
    sum(columns('^[^o].*_(seconds|joules|bytes)$|_replay(_gap)?_count$')) as "\0",
    sum(columns('._sample_count$'))::bigint as "\0",
    max(columns('_max$')) as "\0",
    sum(board.xid_event_count)::bigint as xid_event_count,
    list_sort(list_distinct(flatten(list(board.xid_codes) filter (where board.xid_codes is not null)))) as xid_codes,
    $memory_threshold_ratio::double as memory_threshold_ratio,
    coalesce(any_value(columns(labelled.* exclude (cluster, device_uuid, gpu_instance_id, hour_start_at))), '') as "\0"
from allocated
left join own
    using (cluster, device_uuid, gpu_instance_id, start_at)
left join board
    using (cluster, device_uuid, start_at)
left join labelled
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
where own.start_at is not null or board.start_at is not null
group by
    allocated.cluster, allocated.namespace, allocated.pod, allocated.pod_uid, allocated.container,
    allocated.device_uuid, allocated.gpu_instance_id, allocated.hour_start_at
