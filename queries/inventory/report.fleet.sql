-- Clusters side by side: capacity, data coverage and unknown time.
--
-- A cluster without readable data has a row as long as its devices are expected (period.device_day): its time is unknown. Hours are of whole GPUs.
--
-- grain:  cluster
-- reads:  report.coverage, report.energy_balance, report.gpu_hour_balance
-- columns: cluster, node_count, device_count, capacity_gpu_hours, allocated_gpu_hours, free_gpu_hours, unknown_gpu_hours, unavailable_gpu_hours,
--          energy_joules, coverage_ratio, expected_device_seconds, observed_device_seconds, unknown_device_seconds, reason, last_seen_day
--   allocated_gpu_hours      h allocated, active or not
--   energy_joules            J measured; null where no energy is known
--   reason                   most likely reason of most unknown time, a code; '' for none
with seen as (
    select
        cluster,
        count(distinct nullif(node_name, '')) as node_count,
        sum(columns('^(expected_device_seconds|observed_device_seconds|unknown_device_seconds)$')),
        max(day) filter (where observed_device_seconds > 0) as last_seen_day
    from report.coverage
    where signal = 'any'
    group by cluster
),

lacking as (
    select
        cluster,
        reason,
        sum(unknown_device_seconds) as unknown_device_seconds
    from report.coverage
    where signal = 'any' and reason != ''
    group by all
)

select
    seen.cluster,
    seen.node_count,
    balance.device_count,
    balance.capacity_gpu_hours,
    balance.effective_gpu_hours + balance.underutilized_gpu_hours
    + balance.active_unmeasured_gpu_hours + balance.allocated_unmeasured_gpu_hours + balance.allocated_idle_gpu_hours as allocated_gpu_hours,
    balance.* similar to '^(free|unknown|unavailable)_gpu_hours$',
    energy.energy_joules,
    seen.observed_device_seconds / nullif(seen.expected_device_seconds, 0) as coverage_ratio,
    seen.* similar to '^(expected|observed|unknown)_device_seconds$',
    coalesce((
        select arg_max(lacking.reason, struct_pack(seconds := lacking.unknown_device_seconds, code := lacking.reason))
        from lacking
        where lacking.cluster = seen.cluster
    ), '') as reason,
    seen.last_seen_day
from seen
left join report.gpu_hour_balance as balance on seen.cluster = balance.cluster and balance.dimension = 'cluster'
left join report.energy_balance as energy on seen.cluster = energy.cluster and energy.dimension = 'cluster'
