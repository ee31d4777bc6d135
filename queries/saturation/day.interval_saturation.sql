-- Sums per ownership interval of the hours in which holders change: one constant set of holders each.
--
-- A row that a change cuts is split by seconds. Events at its start (the scrape, a gap's growth) stay with the start.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.ownership_interval, day.sample_sum, facts.xid_event
-- source: day.sample_sum; XID events by instant
with part as (
    select
        step.* exclude (
            start_at, end_at, counter_integral_joules, counter_compared_joules, counter_active_seconds, counter_active_joules, counter_unknown_seconds,
            begun_joules, powered_seconds, powered_joules, powered_active_seconds, powered_active_joules, powered_unknown_seconds,
            active_watts_max
        ),
        ownership_interval.start_at,
        ownership_interval.end_at,
        step.start_at >= ownership_interval.start_at as holds_start,
        case
            when step.start_at >= ownership_interval.start_at and step.end_at <= ownership_interval.end_at then 1
            else
                epoch(least(step.end_at, ownership_interval.end_at) - greatest(step.start_at, ownership_interval.start_at))
                / epoch(step.end_at - step.start_at)
        end as share_ratio
    from day.sample_sum as step
    inner join day.ownership_interval
        using (cluster, device_uuid, hour_start_at)
    where
        step.start_at < ownership_interval.end_at
        and (step.end_at > ownership_interval.start_at or step.start_at >= ownership_interval.start_at)
),

event as (
    select
        xid_event.* similar to '^(cluster|device_uuid|gpu_instance_id)$',
        ownership_interval.start_at,
        sum(xid_event.event_count)::bigint as event_count,
        list(distinct xid_event.xid_code order by xid_event.xid_code) as codes
    from facts.xid_event
    inner join day.ownership_interval
        using (cluster, device_uuid)
    where xid_event.seen_at >= ownership_interval.start_at and xid_event.seen_at < ownership_interval.end_at
    group by all
)

select
    part.* similar to '^(cluster|device_uuid|gpu_instance_id|hour_start_at|start_at|end_at)$',
    -- A row that the interval cuts counts in proportion; values of a single time count in the interval of that time.
    sum(columns(lambda name: regexp_matches(name, '_(seconds|joules|bytes)$|_replay_count$') and not contains(name, '_gap_')) * share_ratio) as "\0",
    sum(columns('_gap_')) filter (where holds_start) as "\0",
    sum(columns('sample_count$')) filter (where holds_start)::bigint as "\0",
    max(columns('_max$')) as "\0",
    coalesce(any_value(event.event_count), if(count(part.xid_seen_seconds) > 0, 0, null)) as xid_event_count,
    coalesce(any_value(event.codes), if(count(part.xid_seen_seconds) > 0, []::integer[], null)) as xid_codes
from part
left join event
    using (cluster, device_uuid, gpu_instance_id, start_at)
group by part.cluster, part.device_uuid, part.gpu_instance_id, part.hour_start_at, part.start_at, part.end_at
