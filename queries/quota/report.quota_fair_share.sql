-- Fair share of each quota: guaranteed, demanded and delivered amounts, lent, borrowed and unmet.
--
-- Figures are exact integrals over known time. A figure known for less than --figure-min-coverage of observed_seconds is null. violated is null if
-- any part of it is undecided. Never add rows of several schedulers or resources, nor rows that contain others.
--
-- grain:  cluster, scheduler, quota, resource, flavor
-- reads:  facts.quota_eviction, facts.quota_hour, facts.quota_starvation, period.quota_pod
-- params: figure_min_coverage_ratio, since_at, until_at
-- columns: cluster, scheduler, quota, resource, flavor, parent, is_parent, native_unit, observed_seconds, coverage_ratio, demand_seconds, share_seconds,
--          guaranteed_gpu_hours, cap_gpu_hours, demanded_gpu_hours, delivered_gpu_hours, borrowed_gpu_hours, lent_gpu_hours, fair_share_gpu_hours,
--          entitled_gpu_hours, over_entitlement_gpu_hours, unmet_gpu_hours, violated_gpu_hours, guarantee_honoured_ratio, over_quota_share_ratio,
--          capped_seconds, starved_seconds, violated_seconds, longest_starvation_seconds, starvation_count, reclaim_seconds_avg, reclaim_seconds_max,
--          evicted_count, lost_gpu_hours, allocated_idle_gpu_hours, over_quota_gpu_hours, borrowed_idle_gpu_hours, guaranteed_native_hours, cap_native_hours,
--          demanded_native_hours, delivered_native_hours, borrowed_native_hours, lent_native_hours, fair_share_native_hours, entitled_native_hours,
--          over_entitlement_native_hours, unmet_native_hours, violated_native_hours, share_source, amount_source, inferred_seconds, unknown_reasons
--   scheduler                      quota system: nos, scheduler-plugins, koordinator, volcano, kai, kueue, or kubernetes for a ResourceQuota
--   observed_seconds               s in which its terms and its allocated amount are known
--   coverage_ratio                 observed_seconds over the window
--   guaranteed_gpu_hours           GPU-h guaranteed
--   demanded_gpu_hours             GPU-h requested
--   reclaim_seconds_avg            s, mean length of shortages that ended and in which others borrowed
--   reclaim_seconds_max            s, longest of these shortages
--   lost_gpu_hours                 GPU-h allocated to the evicted pods in the window
--   allocated_idle_gpu_hours       GPU-h allocated to its pods and idle, by the ledger
--   over_quota_gpu_hours           GPU-h of its pods while over quota by nos' rules: more than borrowed
with hour as (
    select
        * replace (
            -- Facts of older versions have no known time for own and lent amounts.
            coalesce(own_seconds, if(borrowed_native_hours is null, 0, observed_seconds)) as own_seconds,
            coalesce(lent_seconds, if(lent_native_hours is null, 0, observed_seconds)) as lent_seconds
        ),
        if(guaranteed_native_hours is null, null, sum(if(is_parent, null, guaranteed_native_hours)) over (
            partition by cluster, system, resource, flavor, pool, hour_start_at
        )) as pool_guaranteed_native_hours,
        if(cap_native_hours is null, 0, observed_seconds) as cap_seconds,
        columns('^(guaranteed|cap|demanded|delivered|borrowed|lent|fair_share|entitled|over_entitlement|unmet|violated)_native_hours$') * gpus_per_native as '\1_gpu_hours'
    from facts.quota_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
),

summed as (
    select
        columns('^(cluster|system|quota|resource|flavor)$'),
        arg_max(parent, hour_start_at) as parent,
        bool_or(is_parent) as is_parent,
        any_value(gpus_per_native) as gpus_per_native,
        any_value(native_unit) as native_unit,
        sum(columns('_(seconds|native_hours|gpu_hours)$')),
        max(share_reason) as share_reason,
        string_agg(distinct nullif(share_source, ''), ', ' order by nullif(share_source, '')) as share_source,
        string_agg(distinct amount_source, ', ' order by amount_source) as amount_source
    from hour
    group by cluster, system, quota, resource, flavor
),

-- Facts end at midnight, and here at the window's limits: a step across midnight is one step. Whether it has ended is known from the next hour.
short as (
    select
        * replace (
            greatest(start_at, $since_at) as start_at,
            least(end_at, $until_at) as end_at,
            end_at <= $until_at and (is_ended or (cluster, system, resource, flavor, quota, end_at) in (
                select (next.cluster, next.system, next.resource, next.flavor, next.quota, next.hour_start_at)
                from hour as next
                where next.unmet_seconds > 3599.9995
            )) as is_ended
        )
    from facts.quota_starvation
    where start_at < $until_at and end_at > $since_at
),

episode as (
    select
        columns('^(cluster|system|resource|flavor|quota)$'),
        epoch_ms(max(end_at) - min(start_at)) / 1000 as seconds,
        arg_max(is_ended, start_at) and bool_or(is_reclaim) as is_reclaim
    from numbered_runs(short, (cluster, system, resource, flavor, quota))
    group by cluster, system, resource, flavor, quota, run_number
),

starved as (
    select
        * exclude (seconds, is_reclaim),
        count(*) as starvation_count,
        max(seconds) as longest_seconds,
        avg(seconds) filter (where is_reclaim) as reclaim_seconds_avg,
        max(seconds) filter (where is_reclaim) as reclaim_seconds_max
    from episode
    group by cluster, system, resource, flavor, quota
),

evicted as (
    select
        columns('^(cluster|system|quota)$'),
        sum(evicted_count) as evicted_count
    from facts.quota_eviction
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by cluster, system, quota
),

covered as (
    select
        * replace (
            if(cap_seconds >= $figure_min_coverage_ratio * observed_seconds, cap_native_hours, null) as cap_native_hours,
            if(cap_seconds >= $figure_min_coverage_ratio * observed_seconds, cap_gpu_hours, null) as cap_gpu_hours
        ),
        demand_seconds >= $figure_min_coverage_ratio * observed_seconds as has_demand,
        unmet_seconds >= $figure_min_coverage_ratio * observed_seconds as has_unmet,
        share_seconds >= $figure_min_coverage_ratio * observed_seconds as has_share
    from summed
),

-- A figure with too little known time is unknown.
reported as (
    select
        covered.* not similar to '^(guaranteed|demanded|unmet|honourable|violated|borrowed|lent|fair_share|entitled|over_entitlement)_(native|gpu)_hours$',
        if(guaranteed_seconds >= $figure_min_coverage_ratio * observed_seconds, columns('^guaranteed_(native|gpu)_hours$'), null) as "\0",
        if(has_demand, columns('^demanded_(native|gpu)_hours$'), null) as "\0",
        if(has_unmet, columns('^(unmet|honourable)_(native|gpu)_hours$'), null) as "\0",
        if(has_unmet and violated_known_seconds >= unmet_seconds, columns('^violated_(native|gpu)_hours$'), null) as "\0",
        if(own_seconds >= $figure_min_coverage_ratio * observed_seconds, columns('^borrowed_(native|gpu)_hours$'), null) as "\0",
        if(lent_seconds >= $figure_min_coverage_ratio * observed_seconds, columns('^lent_(native|gpu)_hours$'), null) as "\0",
        if(has_share, columns('^(fair_share|entitled|over_entitlement)_(native|gpu)_hours$'), null) as "\0"
    from covered
),

shared as (
    select
        reported.*,
        guaranteed_native_hours / nullif(pool_guaranteed_native_hours, 0) as over_quota_share_ratio,
        -- With an unlimited guarantee it is known that nothing is borrowed.
        case
            when reported.system = 'kubernetes' then 'no_such_notion'
            when reported.guaranteed_seconds > 0 then 'low_coverage'
            when reported.system = 'volcano' or reported.borrowed_native_hours is null then 'not_observed'
            else 'unlimited'
        end as guarantee_reason,
        if(reported.demand_seconds > 0, 'low_coverage', 'demand_unknown') as demand_reason,
        coalesce(nullif(reported.share_reason, ''), 'low_coverage') as fair_reason,
        -- A quota's own amount is its guarantee or, in Volcano, its fair share.
        case
            when borrowed_native_hours is not null then null
            when reported.system = 'volcano' then fair_reason
            else if(reported.own_seconds > 0, 'low_coverage', guarantee_reason)
        end as own_reason,
        case
            when unmet_native_hours is not null then null
            else if(reported.system = 'kubernetes' or has_demand, guarantee_reason, demand_reason)
        end as unmet_reason,
        if(violated_native_hours is not null, null, if(reported.is_parent, 'contains_others', coalesce(unmet_reason, 'capacity_unknown'))) as violated_reason
    from reported
)

select
    shared.cluster,
    shared.system as scheduler,
    shared.* similar to '^(quota|resource|flavor|parent|is_parent|native_unit|observed_seconds)$',
    -- Facts are hourly: in an hour that the window cuts, data may cover more than the window.
    least(1, shared.observed_seconds / epoch($until_at - $since_at)) as coverage_ratio,
    shared.demand_seconds,
    shared.share_seconds,
    shared.* similar to '^(guaranteed|cap|demanded|delivered|borrowed|lent|fair_share|entitled|over_entitlement|unmet|violated)_gpu_hours$',
    shared.honoured_native_hours / nullif(shared.honourable_native_hours, 0) as guarantee_honoured_ratio,
    if(shared.is_parent, null, shared.over_quota_share_ratio) as over_quota_share_ratio,
    if(shared.cap_known_seconds > 0, shared.capped_seconds, null) as capped_seconds,
    if(shared.unmet_native_hours is null, null, shared.starved_seconds) as starved_seconds,
    if(shared.violated_native_hours is null, null, shared.violated_seconds) as violated_seconds,
    if(shared.unmet_native_hours is not null and not shared.is_parent, coalesce(starved.longest_seconds, 0), null)::double
        as longest_starvation_seconds,
    if(shared.unmet_native_hours is not null and not shared.is_parent, coalesce(starved.starvation_count, 0), null) as starvation_count,
    starved.reclaim_seconds_avg,
    starved.reclaim_seconds_max,
    -- KAI also counts pods of groups with a known queue: both counts are lower bounds of the same number.
    if(
        shared.system = 'kai',
        greatest(evicted.evicted_count, pod.evicted_pod_count),
        coalesce(evicted.evicted_count, pod.evicted_pod_count)
    )::bigint as evicted_count,
    pod.lost_gpu_hours,
    pod.idle_gpu_hours as allocated_idle_gpu_hours,
    pod.over_quota_gpu_hours,
    if(shared.borrowed_native_hours is null, null, pod.idle_borrowed_gpu_hours) as borrowed_idle_gpu_hours,
    columns('^(guaranteed|cap|demanded|delivered|borrowed|lent|fair_share|entitled|over_entitlement|unmet|violated)_native_hours$'),
    coalesce(shared.share_source, '') as share_source,
    shared.amount_source,
    shared.inferred_seconds,
    map_concat(
        unknown_reasons(flatten([
            [
                { 'key': pair.key || '_gpu_hours', 'value': coalesce(pair.value, if(shared.gpus_per_native is null, 'no_gpu_equivalent', null)) },
                { 'key': pair.key || '_native_hours', 'value': pair.value }
            ] for pair in map_entries(map {
                'guaranteed': if(shared.guaranteed_native_hours is null, shared.guarantee_reason, null),
                'cap': if(shared.cap_native_hours is null, if(shared.cap_seconds > 0, 'low_coverage', 'no_limit'), null),
                'demanded': if(shared.demanded_native_hours is null, shared.demand_reason, null),
                'delivered': null,
                'borrowed': if(shared.borrowed_native_hours is null, shared.own_reason, null),
                'lent': if(shared.lent_native_hours is null, if(shared.is_parent, 'contains_others', coalesce(shared.own_reason, 'low_coverage')), null),
                'fair_share': if(shared.fair_share_native_hours is null, shared.fair_reason, null),
                'entitled': if(shared.entitled_native_hours is null, if(shared.fair_share_native_hours is null, shared.fair_reason, coalesce(shared.own_reason, 'low_coverage')), null),
                'over_entitlement': if(shared.over_entitlement_native_hours is null, shared.fair_reason, null),
                'unmet': if(shared.unmet_native_hours is null, shared.unmet_reason, null),
                'violated': if(shared.violated_native_hours is null, shared.violated_reason, null)
            })
        ])),
        unknown_reasons([
            ('guarantee_honoured_ratio', if(guarantee_honoured_ratio is null, coalesce(shared.unmet_reason, 'nothing_due'), null)),
            ('over_quota_share_ratio', case
                when shared.is_parent then 'contains_others'
                when shared.over_quota_share_ratio is not null then null
                when shared.guaranteed_native_hours is null then shared.guarantee_reason
                else 'nothing_due'
            end),
            ('capped_seconds', if(shared.cap_known_seconds > 0, null, if(shared.cap_seconds > 0, shared.demand_reason, 'no_limit'))),
            ('starved_seconds', shared.unmet_reason),
            ('violated_seconds', shared.violated_reason),
            ('longest_starvation_seconds', coalesce(shared.unmet_reason, if(shared.is_parent, 'contains_others', null))),
            ('starvation_count', coalesce(shared.unmet_reason, if(shared.is_parent, 'contains_others', null))),
            ('reclaim_seconds_avg', if(starved.reclaim_seconds_avg is null, coalesce(shared.unmet_reason, 'no_reclaim'), null)),
            ('reclaim_seconds_max', if(starved.reclaim_seconds_max is null, coalesce(shared.unmet_reason, 'no_reclaim'), null)),
            ('evicted_count', if(coalesce(evicted.evicted_count, pod.evicted_pod_count) is null, 'not_observed', null)),
            ('lost_gpu_hours', if(pod.lost_gpu_hours is null, 'not_observed', null)),
            ('allocated_idle_gpu_hours', if(pod.idle_gpu_hours is null, 'not_held_by_pods', null)),
            ('over_quota_gpu_hours', case
                when pod.over_quota_gpu_hours is not null then null
                when shared.system = 'nos' then 'nothing_due'
                else 'no_such_notion'
            end),
            ('borrowed_idle_gpu_hours', case
                when borrowed_idle_gpu_hours is not null then null
                when pod.idle_gpu_hours is null then 'not_held_by_pods'
                else coalesce(shared.own_reason, 'nothing_due')
            end)
        ])
    ) as unknown_reasons
from shared
left join starved
    using (cluster, system, resource, flavor, quota)
left join evicted
    using (cluster, system, quota)
left join period.quota_pod as pod
    using (cluster, system, resource, flavor, quota)
