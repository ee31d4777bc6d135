-- How many workloads each quota lost by eviction in each hour, where its system counts them.
--
-- grain:  cluster, system, quota, hour_start_at
-- reads:  clean.quota_series
-- params:
-- source: kueue_evicted_workloads_total
-- columns:
--   cluster         cluster name
--   system          quota system
--   quota           quota
--   hour_start_at   UTC hour in which the count was seen to have grown
--   evicted_count   workloads evicted; a count that begins anew counts from 0
with grown as (
    select
        cluster,
        system,
        quota,
        start_at,
        amount_native - lag(amount_native) over (
            partition by cluster, system, quota, resource, flavor
            order by start_at
        ) as growth,
        amount_native
    from clean.quota_series
    where field = 'evicted'
)

-- What was counted before the first sample is of another time.
select
    cluster,
    system,
    quota,
    date_trunc('hour', start_at) as hour_start_at,
    sum(case when growth is null then 0 when growth < 0 then amount_native else growth end)::bigint as evicted_count
from grown
group by cluster, system, quota, date_trunc('hour', start_at)
