-- Pending and allocatable units of each accelerator resource over the window.
--
-- One source counts for each hour, chosen as in report.scheduler_pressure: snapshots of Kubernetes' state, or kube-state-metrics if it has
-- data for more than twice the time. A device may be advertised under several names: never add resources.
--
-- grain:  cluster, resource
-- reads:  facts.scheduler_hour
-- params: since_at, until_at
-- source: facts.scheduler_hour
with hour as (
    from facts.scheduler_hour
    where
        is_in_period(hour_start_at, $since_at, $until_at)
        and source != 'opencost'
        and gauge in ('unscheduled_units', 'schedulable_units', 'allocatable_units')
    qualify gauge != 'allocatable_units' or not bool_or(gauge = 'schedulable_units') over (partition by cluster, resource, hour_start_at, source)
),

chosen as (
    select columns('^(cluster|resource|hour_start_at|source)$')
    from hour
    group by cluster, resource, hour_start_at, source
    qualify row_number() over (
        partition by cluster, resource, hour_start_at
        order by max(observed_seconds) * if(source = 'snapshot', 2, 1) desc, source desc
    ) = 1
)

select
    hour.cluster,
    hour.resource,
    sum(hour.value_unit_seconds) filter (where hour.gauge != 'unscheduled_units') / 3600 as allocatable_unit_hours,
    sum(hour.value_unit_seconds) filter (where hour.gauge = 'unscheduled_units') / 3600 as unscheduled_unit_hours
from hour
inner join chosen
    using (cluster, resource, hour_start_at, source)
group by hour.cluster, hour.resource
