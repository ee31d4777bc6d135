-- Quotas that govern each pod by the rules of each system; the quotas that contain them (day.quota_above) also govern it.
--
-- nos, scheduler-plugins and ResourceQuota: the namespace's quota, for ResourceQuota within its scopes. A composite quota of nos replaces single
-- quotas of its namespaces. Koordinator: the quota that the pod names; if it names none, the quota in its namespace with the namespace's name, else a
-- quota that lists the namespace; else, or without the named quota, the default quota. Kueue, Volcano and KAI: the queue that the pod, its LocalQueue
-- or its PodGroup names. Of several Kueue flavors of a resource, a bound pod has the first whose node labels its node has; a waiting pod has the first
-- that its node selector and affinity allow.
--
-- grain:  cluster, system, quota, flavor, pod_uid
-- reads:  day.quota_flavor, day.quota_flavor_node, day.quota_placement, day.quota_pod, day.quota_terms, lake.quota, lake.quota_term
-- source: day.quota_pod, day.quota_terms; LocalQueue, ResourceFlavor and PodGroup objects
-- columns:
--   is_certain  whether the pod is certainly in the quota's scopes; false where this is unknown or the scopes changed
--   joined_at   UTC, start of the namespace in a quota that began without it; else null
--   left_at     UTC, its end in a quota that goes on without it, in a ResourceQuota at the latest when the pod should be gone; else null
--   resources   Kueue: resources of the flavor; none elsewhere, for all resources
with quota as (
    select
        columns('^(cluster|system|quota)$'),
        list_distinct(flatten(list(namespaces))) as namespaces,
        min(start_at) as start_at,
        max(end_at) as end_at
    from day.quota_terms
    group by all
),

governed as (
    select
        term.* similar to '^(cluster|system|quota)$',
        part.namespace,
        (cluster, system, quota) in (
            select (listed.cluster, listed.system, listed.quota)
            from lake.quota_term as listed
            where listed.kind = 'compositeelasticquotas.nos.nebuly.com'
        ) as is_composite,
        any_value(term.scopes) as scopes,
        count(distinct term.scopes) <= 1 as has_one_scope,
        min(term.start_at) as start_at,
        max(term.end_at) as end_at,
        nullif(min(term.start_at), any_value(quota.start_at)) as joined_at,
        nullif(max(term.end_at), any_value(quota.end_at)) as left_at
    from day.quota_terms as term
    cross join unnest(term.namespaces) as part (namespace)
    inner join quota
        using (cluster, system, quota)
    group by all
),

by_namespace as (
    select
        pod.cluster,
        governed.system,
        governed.quota,
        pod.pod_uid,
        governed.joined_at,
        least(governed.left_at, if(governed.system = 'kubernetes', pod.deletion_at, null)) as left_at,
        if(has_one_scope, is_in_scopes(governed.scopes, pod.priority_class, pod.quota_scopes), null) as is_in_scope
    from day.quota_pod as pod
    inner join governed
        using (cluster, namespace)
    -- A namespace has one quota at a time: the composite one, else the first by name. A quota that it replaces counts until then.
    anti join governed as other
        on
            governed.system in ('nos', 'scheduler-plugins')
            and (governed.cluster, governed.system, governed.namespace) = (other.cluster, other.system, other.namespace)
            and (not governed.is_composite, governed.quota) > (not other.is_composite, other.quota)
            and governed.start_at >= other.start_at and governed.end_at <= other.end_at
    where governed.system in ('kubernetes', 'nos', 'scheduler-plugins') and is_in_scope is distinct from false
),

local_queue as (
    select
        columns('^(cluster|kind|namespace|name|created_at)$'),
        spec ->> '$.clusterQueue' as local_cluster_queue,
        spec ->> '$.queue' as group_queue,
        max(observed_at) as last_at
    from lake.quota
    where kind in ('localqueues.kueue.x-k8s.io', 'podgroups.scheduling.volcano.sh')
    group by all
),

-- If a queue was created again in another quota, the pod belongs to the queue that existed when it was bound.
led as (
    select
        columns('^(cluster|pod_uid)$'),
        arg_max(columns('^(local_cluster|group)_queue$'), (coalesce(created_at::timestamp <= bound_at, true), last_at)) as "\0"
    from (
        select
            columns('^(cluster|namespace|pod_uid|bound_at)$'),
            unnest([{ 'kind': 'localqueues.kueue.x-k8s.io', 'name': local_queue }, { 'kind': 'podgroups.scheduling.volcano.sh', 'name': scheduling_group }], recursive := true)
        from day.quota_pod
    ) as pod
    inner join local_queue
        using (cluster, kind, namespace, name)
    group by cluster, pod_uid
),

named as (
    select
        pod.* similar to '^(cluster|pod_uid)$',
        unnest([
            { 'system': 'kueue', 'quota': coalesce(nullif(pod.cluster_queue, ''), led.local_cluster_queue) },
            {
                'system': 'volcano',
                'quota': coalesce(led.group_queue, nullif(pod.volcano_queue, ''), if(pod.scheduler = 'volcano', 'default', null))
            },
            { 'system': 'kai', 'quota': nullif(pod.kai_queue, '') }
        ], recursive := true)
    from day.quota_pod as pod
    left join led
        using (cluster, pod_uid)
),

home as (
    select distinct columns('^(cluster|quota|namespace)$')
    from lake.quota_term
    where system = 'koordinator'
),

named_in_koordinator as (
    select
        pod.cluster,
        pod.pod_uid,
        quota.quota,
        case
            when quota.quota = pod.koordinator_quota then 1
            when pod.koordinator_quota = '' and quota.quota = pod.namespace and home.namespace is not null then 2
            when pod.koordinator_quota = '' and list_contains(quota.namespaces, pod.namespace) then 3
            when quota.quota = 'koordinator-default-quota' then 4
        end as place
    from day.quota_pod as pod
    inner join quota
        using (cluster)
    left join home
        using (cluster, quota, namespace)
    where quota.system = 'koordinator'
),

own as (
    select
        * exclude (is_in_scope),
        is_in_scope is not null as is_certain
    from by_namespace
    union all by name
    select named.*
    from named
    semi join quota
        using (cluster, system, quota)
    union all by name
    select
        *,
        'koordinator' as system
    from named_in_koordinator
    where place is not null
    qualify row_number() over (
        partition by cluster, pod_uid
        order by place, quota
    ) = 1
),

-- Kueue assigns one flavor to each resource of a workload.
flavored as (
    select
        own.* exclude (is_certain, place, joined_at, left_at),
        flavor.resource,
        flavor.flavor
    from own
    inner join day.quota_pod
        using (cluster, pod_uid)
    inner join day.quota_flavor as flavor
        using (cluster, quota)
    left join day.quota_placement as placed
        using (cluster, quota, resource, placement)
    left join day.quota_flavor_node as node
        on
            own.cluster = node.cluster
            and flavor.flavor = node.flavor
            and quota_pod.node_name = node.node_name
    where own.system = 'kueue'
    qualify row_number() over (
        partition by own.cluster, own.quota, own.pod_uid, flavor.resource
        order by
            node.node_name is not null desc,
            flavor.flavor = placed.flavor desc,
            flavor.place_count asc
    ) = 1
),

part as (
    select
        * exclude (resource),
        list(resource order by resource) as resources
    from flavored
    group by all
)

select
    own.* similar to '^(cluster|system|quota)$',
    coalesce(part.flavor, '') as flavor,
    pod.* similar to '^(namespace|pod|pod_uid)$',
    coalesce(own.is_certain, true) as is_certain,
    coalesce(part.resources, []) as resources,
    own.* similar to '^(joined_at|left_at)$'
from own
inner join day.quota_pod as pod
    using (cluster, pod_uid)
left join part
    using (cluster, system, quota, pod_uid)
