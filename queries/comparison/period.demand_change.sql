-- Pending demand in the window and in the previous period, of the resource that the window has most of.
--
-- grain:  cluster, period
-- reads:  period.demand, previous.demand
-- source: period.demand of both windows
with most_allocatable as (
    select
        cluster,
        arg_max(resource, { 'is_all': resource = 'gpu', 'hours': coalesce(allocatable_unit_hours, 0), 'name': resource }) as resource
    from period.demand
    group by cluster
)

select
    most_allocatable.*,
    period.name as period,
    demand.unscheduled_unit_hours
from most_allocatable
cross join (values ('before'), ('now')) as period (name)
left join both_periods(previous.demand, period.demand) as demand
    on
        period.name = demand.period
        and most_allocatable.cluster = demand.cluster
        and most_allocatable.resource = demand.resource
