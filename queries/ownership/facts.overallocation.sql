-- Over-allocation of GPUs and MIG instances: a whole device allocated twice, or shares above one in total.
--
-- Grants are resource claims; for pods without claims, the devices that Koordinator or the kubelet reports. Each capacity is added separately: 60 %
-- of the memory and 60 % of the cores are no over-allocation. A grant of the whole device takes every capacity. Any second grant is then too much,
-- even of unknown size: a share, a replica, an instance of the GPU. Admin access takes nothing. Only certain time counts: a grant that ended between
-- two snapshots ends at the first of them.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.authoritative_use, day.claim_share, day.container_run, day.device_grant, facts.claim_device, lake.pod_device
-- columns: cluster, device_uuid, gpu_instance_id, start_at, end_at, granted_ratio, grants
with run as (
    select
        cluster,
        pod_uid,
        max(end_at - to_milliseconds(round(end_uncertainty_seconds * 1000)::bigint)) as sure_until_at
    from day.container_run
    group by cluster, pod_uid
),

replica as (
    select distinct
        cluster,
        pod_uid
    from lake.pod_device
    where replica != '' and pod_uid != ''
),

named_replica as (
    select distinct columns('^(cluster|namespace|pod)$')
    from lake.pod_device
    where replica != '' and pod_uid = ''
),

part as (
    select
        cluster,
        pod_uid,
        device_id as device_uuid,
        if(
            count(core_percent) + count(memory_ratio_percent) > 0,
            map(['core', 'memory'], [coalesce(max(core_percent), 0) / 100, coalesce(max(memory_ratio_percent), 0) / 100]),
            null
        ) as capacity_ratios
    from day.device_grant
    where device_type = 'gpu'
    group by cluster, pod_uid, device_id
),

holding as (
    select
        allocated.* similar to '^(cluster|device_uuid|gpu_instance_id)$',
        allocated.claim_uid as grant_key,
        allocated.share_id,
        'claim ' || allocated.namespace || '/' || allocated.claim as grant_name,
        if(allocated.share_id = '', map([''], [1.0::double]), coalesce(share.capacity_ratios, map([''], [0.0::double]))) as capacity_ratios,
        allocated.start_at,
        allocated.end_at - to_milliseconds(round(allocated.end_uncertainty_seconds * 1000)::bigint) as end_at
    from facts.claim_device as allocated
    left join day.claim_share as share
        using (cluster, namespace, claim_uid, driver, pool, device, share_id, request)
    where allocated.claim_uid != '' and allocated.device_uuid != '' and allocated.gpu_instance_id is not null and not allocated.is_admin_access
    union all by name
    select
        use.* similar to '^(cluster|device_uuid|gpu_instance_id)$',
        use.pod_uid as grant_key,
        '' as share_id,
        use.source || ' ' || use.namespace || '/' || use.pod as grant_name,
        case
            when bool_or(replica.pod_uid is not null or named_replica.pod is not null) then map([''], [0.0::double])
            when use.source = 'koordinator' then coalesce(any_value(part.capacity_ratios), map([''], [0.0::double]))
            else map([''], [1.0::double])
        end as capacity_ratios,
        min(use.start_at) as start_at,
        least(max(use.end_at), max(run.sure_until_at)) as end_at
    from day.authoritative_use as use
    left join run
        using (cluster, pod_uid)
    left join replica
        using (cluster, pod_uid)
    left join named_replica
        using (cluster, namespace, pod)
    left join part
        using (cluster, pod_uid, device_uuid)
    where use.source != 'dra-claim'
    group by use.cluster, use.device_uuid, use.gpu_instance_id, use.pod_uid, use.source, use.namespace, use.pod
),

-- An instance also uses an unknown part of its GPU.
unit as (
    from holding
    where start_at < end_at
    union all by name
    select * replace ('' as gpu_instance_id, map([''], [0.0::double]) as capacity_ratios)
    from holding
    where start_at < end_at and gpu_instance_id != ''
),

taken as (
    select
        slot.*,
        unit.* similar to '^(grant_key|grant_name|share_id)$',
        unnest(map_entries(unit.capacity_ratios), recursive := true)
    from between_edges(unit, '^(cluster|device_uuid|gpu_instance_id)$') as slot
    inner join unit
        using (cluster, device_uuid, gpu_instance_id)
    where
        slot.start_at >= unit.start_at
        and slot.end_at <= unit.end_at
),

-- By capacity, where '' is the whole device: several requests of one claim count once.
allocated_part as (
    select
        * exclude (value),
        max(value) as part_ratio
    from taken
    group by all
),

capacity as (
    select
        *,
        sum(part_ratio) over (partition by cluster, device_uuid, gpu_instance_id, start_at, key) as allocated_ratio
    from allocated_part
),

allocated_out as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at|end_at)$'),
        coalesce(max(allocated_ratio) filter (where key = ''), 0) as whole_ratio,
        whole_ratio + coalesce(max(allocated_ratio) filter (where key != ''), 0) as granted_ratio,
        bool_or(key = '' and part_ratio = 0 and share_id = '') as has_some_part,
        count(distinct grant_key) as grant_count,
        string_agg(distinct grant_name, ', ' order by grant_name) as grants
    from capacity
    group by cluster, device_uuid, gpu_instance_id, start_at, end_at
)

select
    columns('^(cluster|device_uuid|gpu_instance_id|start_at|end_at)$'),
    granted_ratio::double as granted_ratio,
    grants
from allocated_out
where granted_ratio > 1 + 1e-9 or (granted_ratio >= 1 and has_some_part) or (whole_ratio >= 1 and grant_count > 1)
