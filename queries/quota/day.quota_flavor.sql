-- Flavors of each ClusterQueue by resource, in the order in which Kueue tries them, with their node labels.
--
-- grain:  cluster, quota, resource, flavor
-- reads:  day.quota_terms, lake.quota
-- source: ClusterQueue and ResourceFlavor objects; Kueue's series of quotas, which show no order
-- columns:
--   labels       node labels of the flavor; empty where it fits every node
with flavor as (
    select distinct columns('^(cluster|quota|resource|flavor)$')
    from day.quota_terms
    where system = 'kueue' and is_parent is not true and resource != ''
),

listed as (
    select
        cluster,
        name as quota,
        flatten(list_transform(
            from_json(arg_max(spec, observed_at) -> '$.resourceGroups', '[{"flavors":[{"name":"VARCHAR"}]}]'), lambda part: part.flavors
        )) as flavors
    from lake.quota
    where kind = 'clusterqueues.kueue.x-k8s.io'
    group by all
),

numbered as (
    select
        *,
        unnest(range(1, len(flavors) + 1)) as number
    from listed
),

-- A flavor may be in several groups; its first position counts.
place as (
    select
        cluster,
        quota,
        flavors[number].name as flavor,
        min(number) as number
    from numbered
    group by all
),

object as (
    select
        cluster,
        name as flavor,
        coalesce((arg_max(spec, observed_at) -> '$.nodeLabels')::map (varchar, varchar), map { }) as labels
    from lake.quota
    where kind = 'resourceflavors.kueue.x-k8s.io'
    group by all
)

select
    flavor.*,
    (row_number() over (
        partition by flavor.cluster, flavor.quota, flavor.resource
        order by place.number nulls last, flavor.flavor
    ))::uinteger as place_count,
    coalesce(object.labels, map { }) as labels,
    list_distinct(flatten(list(coalesce(map_keys(object.labels), [])) over (
        partition by flavor.cluster, flavor.quota, flavor.resource
    ))) as label_names
from flavor
left join place
    using (cluster, quota, flavor)
left join object
    using (cluster, flavor)
