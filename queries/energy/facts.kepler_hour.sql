-- Kepler's own active power of each pod's GPUs per hour.
--
-- Kepler shows a pod only while it has more than 0 W, and all its GPUs together. Kepler's joules are not used: they are a sum over the current
-- processes, so they fall when a process ends. Of several series of a pod and hour, the one with the most data counts.
--
-- grain:  cluster, namespace, pod, pod_uid, hour_start_at
-- reads:  day.kepler_series, lake.sample
-- source: kepler_pod_gpu_watts with state running
-- columns: cluster, namespace, pod, pod_uid, hour_start_at, kepler_seconds, kepler_joules, kepler_watts_max
--   kepler_joules     J, Kepler's watts x kepler_seconds
--   kepler_watts_max  W, Kepler's maximum
with hour as (
    select
        series.*,
        date_trunc('hour', sample.seen_at::timestamp) as hour_start_at,
        count(*) as sample_count,
        sum(sample.held_seconds) as kepler_seconds,
        sum(sample.value * sample.held_seconds) as kepler_joules,
        max(sample.value) as kepler_watts_max
    from lake.sample
    inner join day.kepler_series as series
        using (cluster, series_id)
    group by all
)

select * exclude (series_id, sample_count)
from hour
qualify row_number() over (
    partition by cluster, namespace, pod, pod_uid, hour_start_at
    order by sample_count desc, series_id asc
) = 1
