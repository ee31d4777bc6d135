-- Evenness of delivery across quotas as one number per scheduler and resource. Derived: no scheduler aims at it.
--
-- A quota's service is what it held over what it was due: the lesser of its fair share (by its scheduler's rules) and what it requested.
-- Quotas that were due nothing are left out, and so are those that contain others.
--
-- grain:  cluster, scheduler, resource, flavor
-- reads:  facts.quota_hour
-- params: since_at, until_at
-- source: facts.quota_hour
-- columns: cluster, scheduler, resource, flavor, quota_count, due_gpu_hours, delivered_gpu_hours, fairness_gap_ratio, jain_ratio,
--          best_served_quota, least_served_quota, method, unknown_reasons
--   quota_count          quotas that were due something
--   due_gpu_hours        GPU-h that they were due
--   delivered_gpu_hours  GPU-h that they held while that was known
--   fairness_gap_ratio   service of the best served less that of the least served
--   jain_ratio           Jain's index of their service: 1 where all are served alike, 1 ÷ n where one has all
--   best_served_quota    quota with the most of what it was due; '' where none was due anything
--   least_served_quota   quota with the least; '' likewise
--   method               derived
with service as (
    select
        cluster,
        system,
        resource,
        flavor,
        quota,
        max(share_reason) as share_reason,
        sum(due_native_hours * gpus_per_native) as due_gpu_hours,
        sum(due_delivered_native_hours * gpus_per_native) as delivered_gpu_hours,
        delivered_gpu_hours / nullif(due_gpu_hours, 0) as ratio
    from facts.quota_hour
    where not is_parent and hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    group by cluster, system, resource, flavor, quota
),

summed as (
    select
        cluster,
        system,
        resource,
        flavor,
        max(share_reason) as share_reason,
        count(ratio) as quota_count,
        sum(due_gpu_hours) as due_gpu_hours,
        sum(delivered_gpu_hours) as delivered_gpu_hours,
        max(ratio) - min(ratio) as gap_ratio,
        sum(ratio) ** 2 / nullif(count(ratio) * sum(ratio ** 2), 0) as jain_ratio,
        arg_max(quota, (ratio, quota)) filter (where ratio is not null) as best_served_quota,
        arg_min(quota, (ratio, quota)) filter (where ratio is not null) as least_served_quota
    from service
    group by cluster, system, resource, flavor
)

select
    cluster,
    system as scheduler,
    resource,
    flavor,
    quota_count,
    due_gpu_hours,
    delivered_gpu_hours,
    gap_ratio as fairness_gap_ratio,
    jain_ratio,
    coalesce(best_served_quota, '') as best_served_quota,
    coalesce(least_served_quota, '') as least_served_quota,
    'derived' as method,
    map_from_entries([entry for entry in [
        {
            'figure': 'due_gpu_hours',
            'reason': if(due_gpu_hours is null, coalesce(nullif(share_reason, ''), 'demand_unknown'), null)
        },
        {
            'figure': 'delivered_gpu_hours',
            'reason': if(delivered_gpu_hours is null, coalesce(nullif(share_reason, ''), 'demand_unknown'), null)
        },
        {
            'figure': 'fairness_gap_ratio',
            'reason': case
                when gap_ratio is not null then null
                when due_gpu_hours is null then coalesce(nullif(share_reason, ''), 'demand_unknown')
                else 'nothing_due'
            end
        },
        {
            'figure': 'jain_ratio',
            'reason': case
                when jain_ratio is not null then null
                when due_gpu_hours is null then coalesce(nullif(share_reason, ''), 'demand_unknown')
                else 'nothing_due'
            end
        }
    ] if entry.reason is not null]) as unknown_reasons
from summed
