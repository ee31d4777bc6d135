-- Hours of each device of each resource claim: allocated, reserved, used by a container, or idle.
--
-- Allocated time without use is idle, reserved or not. A share counts as its part of the device, or as an equal part if its size is unknown. Parts
-- above one device in total are reduced in proportion. A MIG instance counts as its compute slices of 7 (of 4 on an A30 or RTX PRO 6000). Admin
-- access takes nothing. Before the first list of pods, and after the last one, use is unknown unless observed, known from labels, or (before) reserved.
-- Before the first snapshot of claims, reservation is too.
--
-- revision: 5
-- grain:  cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, hour_start_at
-- reads:  day.state_snapshot, facts.claim_device, facts.claim_reservation, facts.claim_use
-- columns: cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, hour_start_at, allocated_seconds, reserved_seconds,
--          used_seconds, idle_gpu_seconds, allocated_gpu_seconds, claim_count
with allocation as (
    select
        *,
        (
            select { 'from_at': min(snapshot.observed_at), 'until_at': max(snapshot.stands_until_at) }
            from day.state_snapshot as snapshot
            where snapshot.kind = 'pods' and snapshot.cluster = holding.cluster and snapshot.observed_at <= holding.end_at
        ) as listed,
        (select min(if(snapshot.cluster = holding.cluster and snapshot.kind like 'resourceclaims.%', snapshot.observed_at, null)) from day.state_snapshot as snapshot) as claims_from_at,
        date_trunc('hour', start_at) as first_hour_at,
        if(device_type = 'mig', partition_ratio(profile, gpu_model), 1) as part_ratio
    from facts.claim_device as holding
),

-- Every start and end on a device, and the start of each hour.
change as (
    select
        columns('^(cluster|driver|pool|device)$'),
        unnest(
            [start_at, end_at]
            || generate_series(first_hour_at + interval 1 hour, end_at, interval 1 hour)
        ) as cut_at
    from allocation
    union by name
    select
        columns('^(cluster|driver|pool|device)$'),
        unnest([start_at, end_at]) as cut_at
    from facts.claim_use
    union by name
    select
        allocation.* similar to '^(cluster|driver|pool|device)$',
        unnest([reservation.start_at, reservation.end_at]) as cut_at
    from allocation
    inner join facts.claim_reservation as reservation
        using (cluster, namespace, claim)
    where reservation.claim_uid in ('', allocation.claim_uid)
),

part as (
    select
        *,
        lead(cut_at) over (
            partition by cluster, driver, pool, device
            order by cut_at
        ) as next_at
    from change
),

placed as (
    select
        allocation.*,
        row_number() over () as interval_number,
        part.* similar to '^(cut_at|next_at)$',
        epoch_ms(part.next_at - part.cut_at) / 1000 as seconds,
        count(*) filter (where not allocation.is_admin_access) over (
            partition by part.cluster, part.driver, part.pool, part.device, part.cut_at
        ) as claim_count
    from part
    inner join allocation
        using (cluster, driver, pool, device)
    where
        part.cut_at >= allocation.start_at
        and part.next_at <= allocation.end_at
),

sized as (
    select
        *,
        if(is_admin_access, 0, coalesce(share_ratio, 1 / claim_count)) as taken_ratio,
        sum(taken_ratio) over (partition by cluster, driver, pool, device, cut_at) as all_taken_ratio
    from placed
),

used as (
    select distinct placed.interval_number
    from placed
    inner join facts.claim_use as use
        using (cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request)
    where
        placed.cut_at >= use.start_at
        and placed.cut_at < use.end_at
),

reserved as (
    select distinct placed.interval_number
    from placed
    inner join facts.claim_reservation as reservation
        using (cluster, namespace, claim)
    where
        reservation.claim_uid in ('', placed.claim_uid)
        and placed.cut_at >= reservation.start_at
        and placed.cut_at < reservation.end_at
),

judged as (
    select
        placed.*,
        used.interval_number is not null as is_used,
        reserved.interval_number is not null as is_reserved,
        is_used or placed.claim_uid = '' or coalesce((is_reserved or placed.cut_at >= placed.listed.from_at) and placed.next_at <= placed.listed.until_at, false) as is_use_known,
        placed.part_ratio * placed.taken_ratio / greatest(1, placed.all_taken_ratio) as gpu_ratio
    from sized as placed
    left join used on placed.interval_number = used.interval_number
    left join reserved on placed.interval_number = reserved.interval_number
)

select
    columns('^(cluster|namespace|claim|claim_uid|driver|pool|device|share_id|request)$'),
    date_trunc('hour', cut_at) as hour_start_at,
    sum(seconds) as allocated_seconds,
    if(bool_and(is_reserved or is_use_known or coalesce(cut_at >= claims_from_at, false)), coalesce(sum(seconds) filter (where is_reserved or is_used), 0), null) as reserved_seconds,
    if(bool_and(is_use_known), coalesce(sum(seconds) filter (where is_used), 0), null) as used_seconds,
    if(bool_and(is_use_known), coalesce(sum(seconds * gpu_ratio) filter (where not is_used), 0), null) as idle_gpu_seconds,
    sum(seconds * gpu_ratio) as allocated_gpu_seconds,
    max(claim_count) as claim_count
from judged
group by all
