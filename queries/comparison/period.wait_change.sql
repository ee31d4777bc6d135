-- Waits of pods in the window and in the previous period, of the most common size of request in the window.
--
-- Quantiles of several sizes cannot be added, and the mix may change: only like is held against like.
--
-- grain:  cluster, period
-- reads:  period.wait, previous.wait
-- source: period.wait of both windows
with commonest as (
    select
        cluster,
        size
    from period.wait
    where placed_pod_count > 0
    qualify row_number() over (partition by cluster order by placed_pod_count desc, size asc) = 1
)

select
    commonest.*,
    period.name as period,
    wait.placed_pod_count,
    wait.placing_seconds_p95
from commonest
cross join (values ('before'), ('now')) as period (name)
left join both_periods(previous.wait, period.wait) as wait
    on
        period.name = wait.period
        and commonest.cluster = wait.cluster
        and commonest.size = wait.size
