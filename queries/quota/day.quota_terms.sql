-- Terms of each quota and resource over time: runs of constant terms.
--
-- The scheduler's own series come first, then the objects of snapshots. An object's terms are valid from the last change of its spec, where its
-- managed fields report it, until the next snapshot. Two equal snapshots show that the terms did not change between them, at any distance (inferred).
-- Otherwise the time between snapshots more than 15 minutes apart is unknown.
--
-- grain:  cluster, system, quota, resource, flavor, start_at
-- reads:  day.quota_series, day.state_snapshot, lake.quota, lake.quota_term
-- source: quota objects; Kueue, Koordinator, Volcano and KAI metrics; kube_resourcequota
-- columns:
--   terms_id                number of the interval
--   is_parent               whether others name it as their parent, or its object contains others
--   source                  series, object, or both
--   certainty               certain, or inferred between distant snapshots
with scope as (
    select
        columns('^(cluster|kind|uid|observed_at)$'),
        nullif(to_json(list_concat(
            list_transform(
                from_json(spec -> '$.scopes', '["varchar"]'), lambda each: { 'scopeName': each, 'operator': 'Exists', 'values': [] }
            ),
            from_json(spec -> '$.scopeSelector.matchExpressions', '[{"scopeName": "varchar", "operator": "varchar", "values": ["varchar"]}]')
        ))::text, '[]') as scopes
    from lake.quota
    where kind = 'resourcequotas' and regexp_matches(spec, '"scope(s|Selector)"')
),

-- Resources that Volcano's queues share by weight, even where a queue does not name them.
shared as (
    select
        cluster,
        quota,
        resource
    from day.quota_series
    where system = 'volcano'
    union
    select
        cluster,
        coalesce(nullif(spec ->> '$.queue', ''), 'default') as quota,
        unnest(list_filter(json_keys(spec, '$.minResources'), lambda name: not starts_with(name, 'requests.'))) as resource
    from lake.quota
    where kind = 'podgroups.scheduling.volcano.sh'
),

listed as (
    from lake.quota_term
    union all by name
    select
        unnamed.* exclude (resource),
        shared.resource,
        true as is_unnamed
    from lake.quota_term as unnamed
    inner join shared
        using (cluster, quota)
    where unnamed.system = 'volcano' and unnamed.resource = ''
),

seen as (
    select
        -- An object that is new since the previous snapshot has its terms from its creation.
        term.* replace (coalesce(term.changed_at, if(term.created_at > snapshot.previous_at, term.created_at, null)) as changed_at),
        snapshot.* similar to '^(stands_until|next)_at$',
        coalesce(scope.scopes, '') as scopes,
        (
            term.uid, parent, is_parent, tree, namespaces, scopes, priority, may_lend,
            guaranteed, cap, weight, deserved, borrowing_limit, lending_limit
        )::text as terms,
        term.observed_at::timestamp as snapshot_at,
        least(coalesce(greatest(term.changed_at, term.created_at)::timestamp, snapshot_at), snapshot_at) as since_at
    from listed as term
    inner join day.state_snapshot as snapshot
        using (cluster, kind, observed_at)
    left join scope
        using (cluster, kind, uid, observed_at)
    where term.quota != ''
    qualify row_number() over (
        partition by term.cluster, system, quota, resource, flavor, term.observed_at
        order by term.is_unnamed nulls first, term.kind, term.uid
    ) = 1
),

beside as (
    select
        *,
        terms = lag(terms) over one or since_at < lag(snapshot_at) over one as is_change_unknown,
        lead(snapshot_at) over one as next_snapshot_at,
        terms = lead(terms) over one as is_as_next,
        if(lead(changed_at) over one is null, null, lead(since_at) over one) as next_since_at
    from seen
    window one as (
        partition by cluster, system, quota, resource, flavor
        order by snapshot_at
    )
),

-- If a snapshot before has the same terms, the interval continues from there; one without the object ends it. A change without a write has no time.
object as (
    select
        *,
        if(coalesce(is_change_unknown, false) or changed_at is null, snapshot_at, since_at) as start_at,
        case
            -- Volcano's terms hold for a resource that a queue does not name.
            when next_snapshot_at > next_at and not (is_as_next and system = 'volcano') then stands_until_at
            when is_as_next then next_snapshot_at
            when next_since_at >= snapshot_at then next_since_at
            else stands_until_at
        end as end_at,
        if(is_as_next and end_at > stands_until_at, 'inferred', 'certain') as certainty
    from beside
),

series as (
    from day.quota_series
    where field in ('guaranteed', 'cap', 'weight', 'borrowing_limit', 'lending_limit')
    union by name
    select
        weight.* exclude (resource),
        shared.resource
    from day.quota_series as weight
    inner join shared
        using (cluster, quota)
    where weight.system = 'volcano' and weight.field = 'weight'
),

bound as (
    select columns('^(cluster|system|quota|resource|flavor|start_at|end_at)$')
    from object
    union by name
    select columns('^(cluster|system|quota|resource|flavor|start_at|end_at)$')
    from series
),

slice as (
    from between_edges(bound, '^(cluster|system|quota|resource|flavor)$')
),

reported as (
    select
        slice.* exclude (end_at),
        max(series.parent) as parent,
        max(series.tree) as tree,
        bool_or(series.is_parent) as is_parent,
        max(amount_native) filter (where field = 'guaranteed') as guaranteed,
        max(amount_native) filter (where field = 'cap') as cap,
        max(amount_native) filter (where field = 'weight') as weight,
        max(amount_native) filter (where field = 'borrowing_limit') as borrowing_limit,
        max(amount_native) filter (where field = 'lending_limit') as lending_limit
    from slice
    inner join series
        using (cluster, system, quota, resource, flavor)
    where
        slice.start_at >= series.start_at
        and slice.start_at < series.end_at
    group by all
),

-- A limit of infinity in the series means no limit, even if the object has one.
put as (
    select
        slice.*,
        coalesce(nullif(object.parent, ''), reported.parent, '') as parent,
        coalesce(object.is_parent, false) or coalesce(reported.is_parent, false) as is_parent,
        coalesce(object.tree, reported.tree, '') as tree,
        case
            when object.namespaces is not null then object.namespaces
            when slice.system in ('kubernetes', 'nos', 'scheduler-plugins') then [split_part(slice.quota, '/', 1)]
            else []
        end as namespaces,
        object.scopes,
        object.priority,
        coalesce(object.may_lend, true) as may_lend,
        coalesce(object.uid, '') as uid,
        object.created_at::timestamp as created_at,
        coalesce(reported.guaranteed, object.guaranteed) as guaranteed_native,
        nullif(coalesce(reported.borrowing_limit, object.borrowing_limit), 1e999) as borrowing_limit_native,
        nullif(coalesce(reported.lending_limit, object.lending_limit), 1e999) as lending_limit_native,
        -- A queue without a cohort cannot borrow, even with a borrowing limit.
        nullif(case
            when slice.system = 'kueue' and alias.parent = '' and not alias.is_parent then guaranteed_native
            when reported.borrowing_limit is not null then guaranteed_native + reported.borrowing_limit
            else coalesce(reported.cap, object.cap)
        end, 1e999) as cap_native,
        object.cluster is not null or coalesce(cap_native, reported.cap, reported.borrowing_limit) is not null as is_cap_known,
        coalesce(reported.weight, object.weight) as weight,
        object.deserved as deserved_native,
        if(reported.cluster is null, 'object', if(object.cluster is null, 'series', 'both')) as source,
        coalesce(object.certainty, 'certain') as certainty
    from slice
    left join object
        on
            (slice.cluster, slice.system, slice.quota, slice.resource, slice.flavor)
            = (object.cluster, object.system, object.quota, object.resource, object.flavor)
            and slice.start_at >= object.start_at
            and slice.start_at < object.end_at
    left join reported
        on (slice.cluster, slice.system, slice.quota, slice.resource, slice.flavor, slice.start_at) = (
            reported.cluster, reported.system, reported.quota, reported.resource, reported.flavor, reported.start_at
        )
    where object.cluster is not null or reported.cluster is not null
),

-- Adjacent intervals with equal terms become one.
marked as (
    select
        *,
        (
            parent, is_parent, tree, namespaces, scopes, priority, may_lend, uid, guaranteed_native,
            cap_native, is_cap_known, weight, deserved_native, borrowing_limit_native, lending_limit_native, source, certainty
        )::text as terms
    from put
    qualify row_number() over (partition by cluster, system, quota, resource, flavor, start_at order by terms) = 1
)

select
    row_number() over (order by cluster, system, quota, resource, flavor, min(start_at))::uinteger as terms_id,
    columns('^(cluster|system|quota|resource|flavor)$'),
    min(start_at) as start_at,
    max(end_at) as end_at,
    min(created_at) as created_at,
    bool_or(is_parent) or (cluster, system, quota) in (
        select (below.cluster, below.system, below.parent)
        from put as below
    ) as is_parent,
    any_value(columns(* exclude (cluster, system, quota, resource, flavor, start_at, end_at, created_at, is_parent, terms, run_number)))
from numbered_runs(marked, (cluster, system, quota, resource, flavor, terms))
group by cluster, system, quota, resource, flavor, terms, run_number
