-- GPUs that two clusters report in one hour for longer than an hour in total: one cluster exported under two names counts twice.
--
-- UUIDs made of a node name and a number are left out: two clusters may have the same.
--
-- severity: warn
-- grain:  device_uuid
-- reads:  facts.device_hour
-- columns: device_uuid, clusters, first_hour_at, hour_count
--   first_hour_at  UTC, start of the first such hour
--   hour_count     hours in which two clusters report it
with shared as (
    select device_uuid
    from facts.device_hour
    where gpu_instance_id = '' and not contains(device_uuid, '/')
    group by device_uuid
    having min(cluster) != max(cluster)
),

hour as (
    select
        device_hour.device_uuid,
        device_hour.hour_start_at,
        list(distinct device_hour.cluster order by device_hour.cluster) as clusters
    from facts.device_hour
    inner join shared on device_hour.device_uuid = shared.device_uuid
    where device_hour.gpu_instance_id = ''
    group by device_hour.device_uuid, device_hour.hour_start_at
    having count(distinct device_hour.cluster) > 1 and sum(device_hour.observed_seconds) > 3600.001
)

select
    device_uuid,
    string_agg(distinct array_to_string(clusters, ', '), '; ' order by array_to_string(clusters, ', ')) as clusters,
    min(hour_start_at) as first_hour_at,
    count(*) as hour_count
from hour
group by device_uuid
