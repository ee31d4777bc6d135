-- Requested and allocatable units of each accelerator resource per hour: mean over time and maximum.
--
-- Figures as OpenCost defines them prefer kube-state-metrics; figures as Kubernetes defines them prefer snapshots. The other source is used if
-- it has data for more than twice the time. OpenCost's own gauges follow. Never add resources: a device may have several names.
--
-- grain:  cluster, resource, hour_start_at
-- reads:  facts.scheduler_hour
-- params: since_at, until_at
-- source: facts.scheduler_hour
-- columns: cluster, resource, hour_start_at, is_opencosts, source, observed_seconds, pending_pod_count_avg, pending_pod_count_max, pending_request_units_avg,
--          pending_request_units_max, requested_units_avg, allocatable_units_avg, requested_allocatable_ratio_avg, requested_allocatable_ratio_max,
--          demand_source, demand_observed_seconds, unscheduled_pod_count_avg, unscheduled_pod_count_max, unscheduled_units_avg, unscheduled_units_max,
--          gated_pod_count_avg, bound_pending_pod_count_avg, bound_pending_pod_count_max, bound_pending_units_avg, allocated_units_avg,
--          schedulable_units_avg, cordoned_units_avg, not_ready_units_avg, demand_schedulable_ratio_avg, demand_schedulable_ratio_max,
--          opencost_pending_pod_count_avg, opencost_pending_request_units_avg, opencost_requested_allocatable_ratio_avg, unknown_reasons
--   is_opencosts                              whether OpenCost itself counts the resource
--   source                                    source of OpenCost's figures: kube-state-metrics or snapshot; '' for none
--   observed_seconds                          s with that source's data on pods, or on nodes
with hour as (
    select
        *,
        value_unit_seconds / observed_seconds as value_units_avg,
        gauge in (
            'unscheduled_pod_count', 'unscheduled_units', 'gated_pod_count', 'bound_pending_pod_count', 'bound_pending_units',
            'allocated_units', 'schedulable_units', 'cordoned_units', 'not_ready_units', 'demand_schedulable_ratio'
        ) as is_kubernetes
    from facts.scheduler_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
),

chosen as (
    select
        columns('^(cluster|resource|hour_start_at|is_kubernetes|source)$'),
        max(observed_seconds) as observed_seconds
    from hour
    where source != 'opencost'
    group by cluster, resource, hour_start_at, is_kubernetes, source
    qualify row_number() over (
        partition by cluster, resource, hour_start_at, is_kubernetes
        order by max(observed_seconds) * if(is_kubernetes = (source = 'snapshot'), 2, 1) desc, is_kubernetes = (source = 'snapshot') desc
    ) = 1
),

reported as (
    select
        hour.*,
        hour.source = 'opencost' as is_own,
        chosen.observed_seconds as sense_seconds
    from hour
    left join chosen
        using (cluster, resource, hour_start_at, is_kubernetes, source)
    where hour.source = 'opencost' or chosen.source is not null
),

wide as (
    select
        columns('^(cluster|resource|hour_start_at)$'),
        bool_or(is_opencosts) as is_opencosts,
        coalesce(max(source) filter (where not is_kubernetes and not is_own), '') as source,
        coalesce(max(sense_seconds) filter (where not is_kubernetes), 0) as observed_seconds,
        max(value_units_avg) filter (where gauge = 'pending_pod_count' and not is_own) as pending_pod_count_avg,
        max(value_units_max) filter (where gauge = 'pending_pod_count' and not is_own) as pending_pod_count_max,
        max(value_units_avg) filter (where gauge = 'pending_request_units' and not is_own) as pending_request_units_avg,
        max(value_units_max) filter (where gauge = 'pending_request_units' and not is_own) as pending_request_units_max,
        max(value_units_avg) filter (where gauge = 'requested_units' and not is_own) as requested_units_avg,
        max(value_units_avg) filter (where gauge = 'allocatable_units' and not is_own) as allocatable_units_avg,
        max(value_units_avg) filter (where gauge = 'requested_allocatable_ratio' and not is_own) as requested_allocatable_ratio_avg,
        max(value_units_max) filter (where gauge = 'requested_allocatable_ratio' and not is_own) as requested_allocatable_ratio_max,
        coalesce(max(source) filter (where is_kubernetes), '') as demand_source,
        coalesce(max(sense_seconds) filter (where is_kubernetes), 0) as demand_observed_seconds,
        max(value_units_avg) filter (where gauge = 'unscheduled_pod_count' and not is_own) as unscheduled_pod_count_avg,
        max(value_units_max) filter (where gauge = 'unscheduled_pod_count' and not is_own) as unscheduled_pod_count_max,
        max(value_units_avg) filter (where gauge = 'unscheduled_units' and not is_own) as unscheduled_units_avg,
        max(value_units_max) filter (where gauge = 'unscheduled_units' and not is_own) as unscheduled_units_max,
        max(value_units_avg) filter (where gauge = 'gated_pod_count' and not is_own) as gated_pod_count_avg,
        max(value_units_avg) filter (where gauge = 'bound_pending_pod_count' and not is_own) as bound_pending_pod_count_avg,
        max(value_units_max) filter (where gauge = 'bound_pending_pod_count' and not is_own) as bound_pending_pod_count_max,
        max(value_units_avg) filter (where gauge = 'bound_pending_units' and not is_own) as bound_pending_units_avg,
        max(value_units_avg) filter (where gauge = 'allocated_units' and not is_own) as allocated_units_avg,
        max(value_units_avg) filter (where gauge = 'schedulable_units' and not is_own) as schedulable_units_avg,
        max(value_units_avg) filter (where gauge = 'cordoned_units' and not is_own) as cordoned_units_avg,
        max(value_units_avg) filter (where gauge = 'not_ready_units' and not is_own) as not_ready_units_avg,
        max(value_units_avg) filter (where gauge = 'demand_schedulable_ratio' and not is_own) as demand_schedulable_ratio_avg,
        max(value_units_max) filter (where gauge = 'demand_schedulable_ratio' and not is_own) as demand_schedulable_ratio_max,
        max(value_units_avg) filter (where gauge = 'pending_pod_count' and is_own) as opencost_pending_pod_count_avg,
        max(value_units_avg) filter (where gauge = 'pending_request_units' and is_own) as opencost_pending_request_units_avg,
        max(value_units_avg) filter (where gauge = 'requested_allocatable_ratio' and is_own) as opencost_requested_allocatable_ratio_avg
    from reported
    group by cluster, resource, hour_start_at
)

select
    *,
    map_from_entries([
        {
            'key': figure.key,
            'value': case
                when starts_with(figure.key, 'requested_allocatable_ratio') and allocatable_units_avg = 0 then 'none_allocatable'
                when starts_with(figure.key, 'demand_schedulable_ratio') and schedulable_units_avg = 0 then 'none_allocatable'
                else 'not_collected'
            end
        }
        for figure in map_entries(cast(to_json(wide) as map (varchar, varchar))) if figure.value is null
    ]) as unknown_reasons
from wide
