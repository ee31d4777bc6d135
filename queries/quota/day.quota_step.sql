-- Outcome of each quota in each step: borrowed, lent, unmet, and beyond its fair share.
--
-- A quota's own amount is its guarantee; with Volcano the deserved amount of its queue, else of its plugin's computation. Lent amounts are inferred,
-- because no system records them: lenders lend in proportion to what they could lend. Kueue lends within a cohort, and between cohorts as their tree
-- and its limits allow (day.quota_lending). Koordinator lends within a tree, other systems among all their quotas. A Cohort borrows its queues' use
-- beyond its own and their guarantees. Quotas that contain others are neither lenders nor victims. Where the own amount of a quota is unknown, the
-- lent amounts of the others in its pool are unknown, and the pool may borrow more. Free GPUs are those of nodes with enough free GPUs or
-- MIG instances for the smallest waiting request. A free GPU may count as available to several quotas.
--
-- grain:  cluster, system, resource, flavor, quota, start_at
-- reads:  day.quota_amount, day.quota_capacity, day.quota_flavor_node, day.quota_free, day.quota_lending, day.quota_share, day.quota_unit
-- columns:
--   pool                     quotas of one pool lend to each other
--   delivered_native         allocated amount
--   share_reason             reason of an unknown fair share
with whole as (
    select
        cluster,
        flavor
    from day.quota_flavor_node
    group by cluster, flavor
    qualify count(*) = max(count(*)) over (partition by cluster)
),

-- Capacity by flavor is known only for a flavor of all nodes.
capacity as (
    select
        *,
        '' as flavor
    from day.quota_capacity
    union all by name
    select
        capacity.*,
        whole.flavor
    from day.quota_capacity as capacity
    inner join whole
        using (cluster)
    where capacity.system = 'kueue' and whole.flavor != ''
),

joined as (
    select
        amount.*
        -- An elastic quota guarantees 0 of a resource that has only a max.
        replace (coalesce(
            guaranteed_native,
            if(amount.system in ('nos', 'scheduler-plugins', 'koordinator') and uid != '' and cap_native is not null, 0, null)
        ) as guaranteed_native),
        unit.gpus_per_native,
        unit.native_unit,
        coalesce(amount.reported_share_native, share.fair_share_native) as fair_share_native,
        if(amount.reported_share_native is not null, 'reported', if(share.fair_share_native is not null, 'rules', '')) as share_source,
        if(fair_share_native is null, coalesce(share.reason, 'no_such_notion'), '') as share_reason,
        columns('^(lent|borrowed|others_borrowed)_native$') as 'tree_\0',
        case amount.system
            when 'kueue' then coalesce(nullif(amount.parent, ''), amount.quota)
            when 'koordinator' then amount.tree
            when 'kubernetes' then amount.quota
            else ''
        end as pool
    from day.quota_amount as amount
    inner join day.quota_unit as unit
        using (system, resource)
    left join day.quota_share as share
        using (cluster, system, resource, flavor, quota, start_at)
    left join day.quota_lending
        using (cluster, system, resource, flavor, quota, start_at)
),

owned as (
    select
        *,
        -- In Volcano a guarantee belongs to its queue alone: the unused part is not lent.
        case
            when system != 'volcano' then guaranteed_native
            when deserved_native is not null then greatest(deserved_native, guaranteed_native)
            else fair_share_native
        end as own_native,
        if(system = 'volcano', greatest(deserved_native, guaranteed_native), guaranteed_native) as promised_native,
        if(system = 'volcano', greatest(delivered_native, guaranteed_native), delivered_native) as kept_native,
        if(own_native is null, null, coalesce(tree_borrowed_native, greatest(0, delivered_native - own_native))) as borrowed_native,
        case
            when own_native is null then null
            when not may_lend or isinf(own_native) then 0
            else least(greatest(0, own_native - kept_native), coalesce(lending_limit_native, 1e999))
        end as lendable_native,
        if(
            promised_native is null or demanded_native is null,
            null,
            greatest(0, least(promised_native, demanded_native) - delivered_native)
        ) as unmet_native
    from joined
),

pool as (
    select
        owned.* similar to '^(cluster|system|resource|flavor|pool|start_at)$',
        sum(borrowed_native) filter (where not is_parent) as pool_borrowed_native,
        sum(lendable_native) filter (where not is_parent) as pool_lendable_native,
        -- A quota without terms for the resource, such as one that a what-if removes, is not part of the pool.
        bool_and(own_native is not null or guaranteed_native is null and cap_native is null and is_cap_known) filter (where not is_parent) as is_pool_known,
        sum(sum(delivered_native) filter (where not is_parent)) over (
            partition by cluster, system, resource, flavor, start_at
        ) as allocated_native
    from owned
    group by cluster, system, resource, flavor, pool, start_at
),

-- Free capacity is looked up only where requests are unmet. It is whole requests: their rounded size in GPUs (1/7 is 0.142857) is only a key.
short as (
    select
        owned.* similar to '^(cluster|system|resource|flavor|quota|start_at)$',
        coalesce(
            if(owned.start_at < free.end_at, round(free.free_gpus / free.request_gpus) * owned.waiting_pod_native, null),
            if(owned.start_at < capacity.end_at, greatest(0, capacity.capacity_native - pool.allocated_native), null)
        ) as free_native
    from owned
    inner join pool
        using (cluster, system, resource, flavor, pool, start_at)
    asof left join capacity
        on
            owned.cluster = capacity.cluster
            and owned.system = capacity.system
            and owned.resource = capacity.resource
            and owned.flavor = capacity.flavor
            and owned.start_at >= capacity.start_at
    asof left join day.quota_free as free
        on
            owned.cluster = free.cluster
            and owned.system = free.system
            and owned.resource = free.resource
            and owned.flavor = free.flavor
            and owned.waiting_part = free.part
            and round(owned.waiting_pod_native * owned.gpus_per_native, 6) = free.request_gpus
            and owned.start_at >= free.start_at
    where owned.unmet_native > 0
),

covered as (
    select
        owned.*,
        pool.pool_borrowed_native,
        pool.pool_lendable_native,
        pool.is_pool_known,
        short.free_native,
        coalesce(
            owned.tree_others_borrowed_native,
            greatest(0, coalesce(pool.pool_borrowed_native, 0) - coalesce(owned.borrowed_native, 0))
        ) as others_borrowed_native
    from owned
    inner join pool
        using (cluster, system, resource, flavor, pool, start_at)
    left join short
        using (cluster, system, resource, flavor, quota, start_at)
)

select
    * exclude (
        uid, created_at, namespaces, scopes, tree, priority, weight, may_lend, is_cap_known, guaranteed_native, deserved_native, own_native, kept_native, promised_native,
        borrowing_limit_native, lending_limit_native, waiting_native, waiting_pod_native, waiting_part, reported_share_native,
        tree_lent_native, tree_borrowed_native, tree_others_borrowed_native, pool_borrowed_native, pool_lendable_native, is_pool_known
    ),
    promised_native as guaranteed_native,
    case
        when is_parent or lendable_native is null then null
        when lendable_native = 0 then 0
        when tree_lent_native is not null then tree_lent_native
        when is_pool_known then lendable_native * least(1, coalesce(pool_borrowed_native, 0) / pool_lendable_native)
    end as lent_native,
    if(fair_share_native is null or own_native is null, null, greatest(0, fair_share_native - own_native)) as entitled_native,
    if(fair_share_native is null, null, greatest(0, delivered_native - fair_share_native)) as over_entitlement_native,
    case
        when is_parent then null
        when unmet_native <= others_borrowed_native + coalesce(free_native, 0) then unmet_native
        when is_pool_known then free_native + others_borrowed_native
    end as violated_native,
    case
        when cap_native is null then if(is_cap_known, false, null)
        when system = 'kubernetes' then coalesce(demanded_native, delivered_native) >= greatest(1, cap_native)
        when waiting_native is not null then delivered_native + waiting_native > cap_native
        when demanded_native is not null then delivered_native >= cap_native and demanded_native > delivered_native
    end as is_capped
from covered
