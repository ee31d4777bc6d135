-- First flavor that Kueue tries for waiting pods with the same node requirements: the first with node labels that do not contradict them.
--
-- Node selector and affinity matter only for labels of the resource's flavors; an alternative without such labels allows all flavors.
--
-- grain:  cluster, quota, resource, placement
-- reads:  day.quota_flavor, day.quota_pod, day.workload_run
-- source: ClusterQueue and ResourceFlavor objects; node selector and affinity of pods and of Workloads' pod sets
with requested as (
    select
        cluster,
        placement
    from day.quota_pod
    union by name
    select
        cluster,
        unnest(requests).placement as placement
    from day.workload_run
    union by name
    select
        cluster,
        '' as placement
    from day.quota_flavor
),

known as (
    select
        cluster,
        coalesce(placement, '') as placement,
        from_json(
            coalesce(nullif(placement, ''), '[[]]'), '[[{"key":"VARCHAR","operator":"VARCHAR","values":["VARCHAR"]}]]'
        ) as alternatives
    from requested
    group by all
),

judged as (
    select
        flavor.*,
        known.placement,
        list_bool_or(list_transform(known.alternatives, lambda term: list_bool_and([true] || list_transform(
            list_filter(term, lambda rule: list_contains(flavor.label_names, rule.key)),
            lambda rule: rule_holds(rule, flavor.labels)
        )))) as is_allowed
    from day.quota_flavor as flavor
    inner join known
        using (cluster)
)

select * exclude (place_count, labels, label_names, is_allowed)
from judged
qualify row_number() over (
    partition by cluster, quota, resource, placement
    order by is_allowed desc, place_count asc
) = 1
