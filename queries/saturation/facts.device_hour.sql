-- Sums of each device per hour, which add up over hours and devices.
--
-- Only the row of the whole GPU has board figures: a MIG instance has none of its own.
--
-- revision: 3
-- grain:  cluster, device_uuid, gpu_instance_id, hour_start_at
-- reads:  day.device_run, day.sample_sum, facts.xid_event
-- params: memory_threshold_ratio
-- source: day.sample_sum; labels of the device's own series
-- columns: those of day.sample_sum without start_at, end_at, is_whole_hour, counter_integral_joules, counter_compared_joules,
--          counter_active_seconds, counter_active_joules, counter_unknown_seconds, begun_joules, powered_seconds, powered_joules, powered_active_seconds,
--          powered_active_joules, powered_unknown_seconds, active_watts_max; xid_event_count, xid_codes,
--          memory_threshold_ratio, node_name, gpu_index, gpu_device, gpu_model, gpu_instance_profile, pci_bus_id, driver_version, make
-- Columns that only energy queries read are left out.
with part as (
    select
        * exclude (
            end_at, counter_integral_joules, counter_compared_joules, counter_active_seconds, counter_active_joules,
            counter_unknown_seconds, begun_joules, powered_seconds, powered_joules, powered_active_seconds, powered_active_joules,
            powered_unknown_seconds, active_watts_max
        )
    from day.sample_sum
),

-- Whole hours are single rows already; the parts of other hours are added up.
summed as (
    select * exclude (start_at, is_whole_hour)
    from part
    where is_whole_hour
    union all by name
    select
        columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at)$'),
        sum(columns('_(seconds|joules|bytes)$|_replay(_gap)?_count$')) as "\0",
        sum(columns('sample_count$'))::bigint as "\0",
        max(columns('_max$')) as "\0"
    from part
    where not is_whole_hour
    group by all
),

event as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id)$'),
        date_trunc('hour', seen_at) as hour_start_at,
        sum(event_count)::bigint as event_count,
        list(distinct xid_code order by xid_code) as codes
    from facts.xid_event
    group by all
),

run as (
    select
        summed.* similar to '^(cluster|device_uuid|gpu_instance_id|hour_start_at)$',
        least(run.end_at, summed.hour_start_at + interval 1 hour) as end_at,
        run.* exclude (cluster, device_uuid, gpu_instance_id, end_at)
    from summed
    inner join day.device_run as run
        using (cluster, device_uuid, gpu_instance_id)
    where
        run.start_at < summed.hour_start_at + interval 1 hour
        and run.end_at > summed.hour_start_at
),

-- The last value of each label in the hour: an exporter without a label does not remove another exporter's value.
labelled as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at)$'),
        arg_max(
            nullif(columns('^(node_name|gpu_(index|device|model|instance_profile)|pci_bus_id|driver_version|make)$'), ''),
            (end_at, start_at, columns('^(node_name|gpu_(index|device|model|instance_profile)|pci_bus_id|driver_version|make)$'))
        ) as "\0"
    from run
    group by all
)

select
    summed.*,
    coalesce(event.event_count, if(summed.xid_seen_seconds is null, null, 0)) as xid_event_count,
    coalesce(event.codes, if(summed.xid_seen_seconds is null, null, []::integer[])) as xid_codes,
    $memory_threshold_ratio::double as memory_threshold_ratio,
    coalesce(columns(labelled.* exclude (cluster, device_uuid, gpu_instance_id, hour_start_at)), '')
from summed
left join labelled
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
left join event
    using (cluster, device_uuid, gpu_instance_id, hour_start_at)
