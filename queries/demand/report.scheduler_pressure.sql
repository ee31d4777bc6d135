-- Requested and allocatable units of each accelerator resource per hour: mean over time and maximum.
--
-- First in OpenCost's sense: its three gauges and what they are made of, for every resource. Then in Kubernetes' sense. Then OpenCost's own
-- gauges, where Prometheus has them. Each sense has one source: kube-state-metrics for OpenCost's, looks at Kubernetes' state for
-- Kubernetes', or the other one if that saw more than twice the time. A device may be offered under several names, so never add resources.
--
-- grain:  cluster, resource, hour_start_at
-- reads:  facts.scheduler_hour
-- params: scheduler_gauges, since_at, until_at
-- source: facts.scheduler_hour
-- columns:
--   cluster                                   cluster name
--   resource                                  extended resource, or <class>.deviceclass.resource.k8s.io/devices
--   hour_start_at                             UTC, start of the hour
--   is_opencosts                              OpenCost itself would count it
--   source                                    what told of OpenCost's sense: kube-state-metrics or snapshot; '' where nothing did
--   observed_seconds                          s in which that told of pods, or of nodes
--   pending_pod_count_avg                     pods of phase Pending that ask for it, with a node or without, mean over time
--   pending_pod_count_max                     the same, largest
--   pending_request_units_avg                 units that their containers ask for: requests, else limits, mean over time
--   pending_request_units_max                 the same, largest
--   requested_units_avg                       units that containers of pending and running pods ask for, mean over time
--   allocatable_units_avg                     units of all nodes, cordoned and not ready ones too, mean over time
--   requested_allocatable_ratio_avg           requested ÷ allocatable, above 1 where more is asked for than there is, mean over time
--   requested_allocatable_ratio_max           the same, largest
--   demand_source                             what told of Kubernetes' sense: snapshot or kube-state-metrics; '' where nothing did
--   demand_observed_seconds                   s in which that told of pods, or of nodes
--   unscheduled_pod_count_avg                 pods that wait for a node, mean over time
--   unscheduled_pod_count_max                 the same, largest
--   unscheduled_units_avg                     effective units that they ask for, mean over time
--   unscheduled_units_max                     the same, largest
--   gated_pod_count_avg                       pods that are held back before the scheduler sees them, mean over time
--   bound_pending_pod_count_avg               pods that have a node and do not run yet, mean over time
--   bound_pending_pod_count_max               the same, largest
--   bound_pending_units_avg                   effective units of theirs, mean over time
--   held_units_avg                            effective units of all pods that have a place, mean over time
--   schedulable_units_avg                     units of nodes that are ready and take pods, mean over time
--   cordoned_units_avg                        units of cordoned nodes, mean over time
--   not_ready_units_avg                       units of nodes that are not ready, mean over time
--   demand_schedulable_ratio_avg              held and unscheduled ÷ schedulable units, mean over time
--   demand_schedulable_ratio_max              the same, largest
--   opencost_pending_pod_count_avg            OpenCost's own gauge, mean over time
--   opencost_pending_request_units_avg        OpenCost's own gauge, mean over time
--   opencost_requested_allocatable_ratio_avg  OpenCost's own gauge, mean over time
--   unknown_reasons                           why figures are null, by figure
with hour as (
    select
        *,
        value_unit_seconds / observed_seconds as value_units_avg,
        gauge in (
            'unscheduled_pod_count', 'unscheduled_units', 'gated_pod_count', 'bound_pending_pod_count', 'bound_pending_units',
            'held_units', 'schedulable_units', 'cordoned_units', 'not_ready_units', 'demand_schedulable_ratio'
        ) as is_kubernetes
    from facts.scheduler_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
),

sense as (
    select
        cluster,
        resource,
        hour_start_at,
        is_kubernetes,
        source,
        is_kubernetes = (source = 'snapshot') as is_preferred,
        max(observed_seconds) as observed_seconds
    from hour
    where source != 'opencost'
    group by all
),

chosen as (
    select *
    from sense
    qualify row_number() over (
        partition by cluster, resource, hour_start_at, is_kubernetes
        order by observed_seconds * if(is_preferred, 2, 1) desc, is_preferred desc
    ) = 1
),

told as (
    select
        hour.*,
        hour.source = 'opencost' as is_own,
        coalesce($scheduler_gauges::json ->> hour.gauge, 'true') = 'true' as is_enabled,
        chosen.observed_seconds as sense_seconds
    from hour
    left join chosen
        using (cluster, resource, hour_start_at, is_kubernetes, source)
    where hour.source = 'opencost' or chosen.source is not null
),

wide as (
    select
        cluster,
        resource,
        hour_start_at,
        bool_or(is_opencosts) as is_opencosts,
        coalesce(max(source) filter (where not is_kubernetes and not is_own), '') as source,
        coalesce(max(sense_seconds) filter (where not is_kubernetes), 0) as observed_seconds,
        max(value_units_avg) filter (where gauge = 'pending_pod_count' and not is_own and is_enabled) as pending_pod_count_avg,
        max(value_units_max) filter (where gauge = 'pending_pod_count' and not is_own and is_enabled) as pending_pod_count_max,
        max(value_units_avg) filter (where gauge = 'pending_request_units' and not is_own and is_enabled) as pending_request_units_avg,
        max(value_units_max) filter (where gauge = 'pending_request_units' and not is_own and is_enabled) as pending_request_units_max,
        max(value_units_avg) filter (where gauge = 'requested_units' and not is_own) as requested_units_avg,
        max(value_units_avg) filter (where gauge = 'allocatable_units' and not is_own) as allocatable_units_avg,
        max(value_units_avg) filter (where gauge = 'requested_allocatable_ratio' and not is_own and is_enabled) as requested_allocatable_ratio_avg,
        max(value_units_max) filter (where gauge = 'requested_allocatable_ratio' and not is_own and is_enabled) as requested_allocatable_ratio_max,
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
        max(value_units_avg) filter (where gauge = 'held_units' and not is_own) as held_units_avg,
        max(value_units_avg) filter (where gauge = 'schedulable_units' and not is_own) as schedulable_units_avg,
        max(value_units_avg) filter (where gauge = 'cordoned_units' and not is_own) as cordoned_units_avg,
        max(value_units_avg) filter (where gauge = 'not_ready_units' and not is_own) as not_ready_units_avg,
        max(value_units_avg) filter (where gauge = 'demand_schedulable_ratio' and not is_own) as demand_schedulable_ratio_avg,
        max(value_units_max) filter (where gauge = 'demand_schedulable_ratio' and not is_own) as demand_schedulable_ratio_max,
        max(value_units_avg) filter (where gauge = 'pending_pod_count' and is_own and is_enabled) as opencost_pending_pod_count_avg,
        max(value_units_avg) filter (where gauge = 'pending_request_units' and is_own and is_enabled) as opencost_pending_request_units_avg,
        max(value_units_avg) filter (where gauge = 'requested_allocatable_ratio' and is_own and is_enabled) as opencost_requested_allocatable_ratio_avg
    from told
    group by cluster, resource, hour_start_at
)

select
    *,
    map_from_entries([
        {
            'key': entry.name,
            'value': case
                when $scheduler_gauges::json ->> entry.gauge = 'false' then 'disabled'
                when entry.divisor = 0 then 'none_allocatable'
                else 'not_collected'
            end
        }
        for entry in [
            { 'name': 'pending_pod_count_avg', 'gauge': 'pending_pod_count', 'value': pending_pod_count_avg, 'divisor': null },
            { 'name': 'pending_pod_count_max', 'gauge': 'pending_pod_count', 'value': pending_pod_count_max, 'divisor': null },
            { 'name': 'pending_request_units_avg', 'gauge': 'pending_request_units', 'value': pending_request_units_avg, 'divisor': null },
            { 'name': 'pending_request_units_max', 'gauge': 'pending_request_units', 'value': pending_request_units_max, 'divisor': null },
            { 'name': 'requested_units_avg', 'gauge': 'requested_units', 'value': requested_units_avg, 'divisor': null },
            { 'name': 'allocatable_units_avg', 'gauge': 'allocatable_units', 'value': allocatable_units_avg, 'divisor': null },
            { 'name': 'requested_allocatable_ratio_avg', 'gauge': 'requested_allocatable_ratio', 'value': requested_allocatable_ratio_avg, 'divisor': allocatable_units_avg },
            { 'name': 'requested_allocatable_ratio_max', 'gauge': 'requested_allocatable_ratio', 'value': requested_allocatable_ratio_max, 'divisor': allocatable_units_avg },
            { 'name': 'unscheduled_pod_count_avg', 'gauge': 'unscheduled_pod_count', 'value': unscheduled_pod_count_avg, 'divisor': null },
            { 'name': 'unscheduled_pod_count_max', 'gauge': 'unscheduled_pod_count', 'value': unscheduled_pod_count_max, 'divisor': null },
            { 'name': 'unscheduled_units_avg', 'gauge': 'unscheduled_units', 'value': unscheduled_units_avg, 'divisor': null },
            { 'name': 'unscheduled_units_max', 'gauge': 'unscheduled_units', 'value': unscheduled_units_max, 'divisor': null },
            { 'name': 'gated_pod_count_avg', 'gauge': 'gated_pod_count', 'value': gated_pod_count_avg, 'divisor': null },
            { 'name': 'bound_pending_pod_count_avg', 'gauge': 'bound_pending_pod_count', 'value': bound_pending_pod_count_avg, 'divisor': null },
            { 'name': 'bound_pending_pod_count_max', 'gauge': 'bound_pending_pod_count', 'value': bound_pending_pod_count_max, 'divisor': null },
            { 'name': 'bound_pending_units_avg', 'gauge': 'bound_pending_units', 'value': bound_pending_units_avg, 'divisor': null },
            { 'name': 'held_units_avg', 'gauge': 'held_units', 'value': held_units_avg, 'divisor': null },
            { 'name': 'schedulable_units_avg', 'gauge': 'schedulable_units', 'value': schedulable_units_avg, 'divisor': null },
            { 'name': 'cordoned_units_avg', 'gauge': 'cordoned_units', 'value': cordoned_units_avg, 'divisor': null },
            { 'name': 'not_ready_units_avg', 'gauge': 'not_ready_units', 'value': not_ready_units_avg, 'divisor': null },
            { 'name': 'demand_schedulable_ratio_avg', 'gauge': 'demand_schedulable_ratio', 'value': demand_schedulable_ratio_avg, 'divisor': schedulable_units_avg },
            { 'name': 'demand_schedulable_ratio_max', 'gauge': 'demand_schedulable_ratio', 'value': demand_schedulable_ratio_max, 'divisor': schedulable_units_avg },
            { 'name': 'opencost_pending_pod_count_avg', 'gauge': 'pending_pod_count', 'value': opencost_pending_pod_count_avg, 'divisor': null },
            { 'name': 'opencost_pending_request_units_avg', 'gauge': 'pending_request_units', 'value': opencost_pending_request_units_avg, 'divisor': null },
            { 'name': 'opencost_requested_allocatable_ratio_avg', 'gauge': 'requested_allocatable_ratio', 'value': opencost_requested_allocatable_ratio_avg, 'divisor': null }
        ] if entry.value is null
    ]) as unknown_reasons
from wide
