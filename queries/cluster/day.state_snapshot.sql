-- Snapshots of Kubernetes' state: kind of object, time, and end of validity.
--
-- An object is valid until the next snapshot of its kind, for 15 minutes at most; a later snapshot leaves unknown time between. A kind without
-- permission to list has no snapshot and ends nothing.
--
-- grain:  cluster, kind, observed_at
-- reads:  lake.source
-- source: gpureport snapshot, gpureport import --kubernetes
-- columns:
--   kind             kind of object, by kubectl's name: pods, resourceclaims.resource.k8s.io
with snapshot as (
    select distinct
        cluster,
        asked as kind,
        start_at::timestamp as observed_at
    from lake.source
    where kind = 'kubernetes' and reason = ''
),

beside as (
    select
        *,
        lag(observed_at) over same_kind as last_at,
        lead(observed_at) over same_kind as next_at
    from snapshot
    window same_kind as (
        partition by cluster, kind
        order by observed_at
    )
)

select
    * exclude (last_at),
    if(last_at >= observed_at - interval 15 minute, last_at, null) as previous_at,
    least(coalesce(next_at, 'infinity'::timestamp), observed_at + interval 15 minute) as stands_until_at,
    coalesce(next_at <= observed_at + interval 15 minute, false) as is_followed,
    (row_number() over same_kind)::uinteger as snapshot_number,
    (count(*) filter (where previous_at is null) over same_kind)::uinteger as run_number
from beside
window same_kind as (
    partition by cluster, kind
    order by observed_at
)
