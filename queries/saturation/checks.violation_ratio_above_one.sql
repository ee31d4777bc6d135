-- Violation counters that grow faster than time: the unit is not nanoseconds, or the source is faulty.
--
-- severity: warn
-- grain:  cluster, device_uuid, gpu_instance_id, hour_start_at, violation
-- reads:  facts.device_hour
-- source: facts.device_hour; counters are nanoseconds (DCGM fields 240-243)
-- columns: cluster, device_uuid, gpu_instance_id, hour_start_at, violation, violation_seconds, seen_seconds
--   seen_seconds       s over which the counter grew
with counter as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at)$'),
        unnest([
            { 'violation': 'power', 'violation_seconds': power_violation_seconds, 'seen_seconds': power_violation_seen_seconds },
            { 'violation': 'thermal', 'violation_seconds': thermal_violation_seconds, 'seen_seconds': thermal_violation_seen_seconds },
            { 'violation': 'sync_boost', 'violation_seconds': sync_boost_violation_seconds, 'seen_seconds': sync_boost_violation_seen_seconds },
            { 'violation': 'board_limit', 'violation_seconds': board_limit_violation_seconds, 'seen_seconds': board_limit_violation_seen_seconds },
            { 'violation': 'low_util', 'violation_seconds': low_util_violation_seconds, 'seen_seconds': low_util_violation_seen_seconds },
            { 'violation': 'reliability', 'violation_seconds': reliability_violation_seconds, 'seen_seconds': reliability_violation_seen_seconds }
        ], recursive := true)
    from facts.device_hour
)

select *
from counter
where violation_seconds > violation_limit(seen_seconds)
