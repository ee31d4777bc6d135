-- Cost of each team in the month of the window's last day, projected to the whole month, and its budget. Without prices the table is omitted.
--
-- Costs are lower bounds unless all hours have a price (priced_gpu_hours). The month is in the report's time zone; of a UTC day partly in the month before, each hour costs the same.
--
-- grain:  team
-- reads:  period.charge
-- params: budgets, since_at, timezone, until_at
-- source: period.charge; prices.budgets of the configuration
-- columns: team, month, month_cost, projected_cost, gpu_hours, priced_gpu_hours, budget_cost, budget_ratio, unknown_reasons
--   team            the namespace's team, else the namespace
with part as (
    select
        * exclude (gpu_hours, hours_cost),
        date_trunc('month', local_time($until_at::timestamp - interval 1 millisecond, $timezone))::date as month,
        greatest($since_at::timestamp, timezone('UTC', timezone($timezone, month::timestamp))) as from_at,
        overlap_ms(day, day + interval 1 day, from_at, $until_at::timestamp) as month_ms,
        month_ms / 86400000 as day_ratio,
        -- In other time zones, a UTC day may be partly in the month before.
        month_ms / overlap_ms(day, day + interval 1 day, $since_at::timestamp, $until_at::timestamp) as month_ratio,
        columns('^(gpu_hours|hours_cost)$') * month_ratio as "\0",
        -- Unknown hours of a node cost as much as its known hours of that day.
        hours_cost * month_ratio * sum(gpu_hours) over node_day / sum(gpu_hours) filter (where bucket != 'unknown') over node_day as whole_day_cost
    from period.charge
    window node_day as (partition by cluster, node_name, day)
    qualify month_ms > 0
),

node_day as (
    select
        columns('^(cluster|node_name|day|day_ratio)$'),
        bool_or(bucket != 'unknown') as is_known
    from part
    group by all
),

-- A day without any known hour of a node costs as much as its other days.
node as (
    select
        columns('^(cluster|node_name)$'),
        sum(day_ratio) / sum(day_ratio) filter (where is_known) as whole_ratio
    from node_day
    group by all
),

cluster_day as (
    select
        cluster,
        sum(day_ratio) as day_ratio
    from (
        select distinct columns('^(cluster|day|day_ratio)$')
        from node_day
    ) as every_day
    group by cluster
),

spent as (
    select
        part.team,
        part.month,
        sum(part.hours_cost) as month_cost,
        sum(part.whole_day_cost * node.whole_ratio / cluster_day.day_ratio) * (
            epoch(timezone($timezone, part.month + interval 1 month)) - epoch(timezone($timezone, part.month::timestamp))
        ) / 86400 as projected_cost,
        sum(part.gpu_hours) as gpu_hours,
        coalesce(sum(part.gpu_hours) filter (where part.hour_cost is not null), 0) as priced_gpu_hours
    from part
    inner join node
        using (cluster, node_name)
    inner join cluster_day
        using (cluster)
    where part.team != ''
    group by part.team, part.month
)

select
    spent.*,
    budget.value::double as budget_cost,
    projected_cost / nullif(budget_cost, 0) as budget_ratio,
    unknown_reasons([(name, if(month_cost is null, 'not_configured', null)) for name in ['month_cost', 'projected_cost']] || [
        ('budget_cost', if(budget_cost is null, 'not_configured', null)),
        ('budget_ratio', if(month_cost is null or coalesce(budget_cost, 0) = 0, 'not_configured', null))
    ]) as unknown_reasons
from spent
left join json_each($budgets::json) as budget on spent.team = budget.key
