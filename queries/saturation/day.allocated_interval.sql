-- Holders of each GPU per ownership interval, and the share of its hours that each has.
--
-- Where Kubernetes reports a holder's allocated part, that part of the hours is its own, and the others share the rest. Else pods have equal parts,
-- and so have the containers of a pod.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.granted_share, day.ownership_interval, facts.ownership
-- columns:
--   instance_owner_count  holders of the same instance, or of the whole GPU
--   pod_owner_count       holders of the same pod among instance_owner_count
--   allocated_part_ratio  its part of the holders' total part of the GPU
with owned_hour as (
    select
        *,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from facts.ownership
),

allocated as (
    select distinct
        owned_hour.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|hour_start_at)$',
        coalesce(ownership_interval.start_at, owned_hour.hour_start_at) as start_at,
        coalesce(ownership_interval.end_at, owned_hour.hour_start_at + interval 1 hour) as end_at
    from owned_hour
    left join day.ownership_interval
        using (cluster, device_uuid, hour_start_at)
    where ownership_interval.start_at is null or (owned_hour.start_at < ownership_interval.end_at and owned_hour.end_at > ownership_interval.start_at)
),

numbered as (
    select
        *,
        row_number() over (order by cluster, device_uuid, start_at, gpu_instance_id, namespace, pod, pod_uid, container)::uinteger as holder_number,
        count(*) over (partition by cluster, device_uuid, start_at) as owner_count,
        count(*) over (partition by cluster, device_uuid, start_at, gpu_instance_id) as instance_owner_count,
        count(*) over (partition by cluster, device_uuid, start_at, gpu_instance_id, namespace, pod, pod_uid) as pod_owner_count
    from allocated
),

sharer as (
    from numbered
    where
        instance_owner_count > 1
        or (cluster, device_uuid, gpu_instance_id) in (select (cluster, device_uuid, gpu_instance_id) from day.granted_share)
),

-- A grant with several holders is divided equally among them.
granted as (
    select
        sharer.holder_number,
        part.grant_key,
        part.is_relative,
        part.share_ratio / count(*) over (
            partition by sharer.cluster, sharer.device_uuid, sharer.gpu_instance_id, sharer.start_at, part.grant_key
        ) as share_ratio
    from sharer
    inner join day.granted_share as part
        using (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container)
),

part as (
    select
        sharer.* similar to '^(cluster|device_uuid|gpu_instance_id|start_at|holder_number)$',
        (sharer.namespace, sharer.pod, sharer.pod_uid) as holder_pod,
        string_agg(granted.grant_key, ', ' order by granted.grant_key) as grants,
        bool_or(granted.is_relative) as is_relative,
        if(count(granted.share_ratio) = count(*), sum(granted.share_ratio), null) as share_ratio
    from sharer
    left join granted on sharer.holder_number = granted.holder_number
    group by all
),

shared as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|start_at)$'),
        count(distinct holder_pod) as pod_count,
        if(count(share_ratio) = count(*), nullif(sum(share_ratio), 0), null) as all_share_ratio,
        if(bool_or(is_relative), 1, least(1, all_share_ratio)) as allocated_ratio,
        coalesce(allocated_ratio < 1 - 1e-9 or count(distinct grants) > 1, false) as is_parted
    from part
    group by cluster, device_uuid, gpu_instance_id, start_at
)

select
    numbered.*,
    case
        when shared.pod_count is null then 1
        else coalesce(part.share_ratio / shared.all_share_ratio, 1 / shared.pod_count / numbered.pod_owner_count)
    end::double as allocated_part_ratio,
    allocated_part_ratio * if(shared.all_share_ratio is null, 1, shared.allocated_ratio) as hours_ratio,
    case
        when shared.all_share_ratio is not null and shared.is_parted then 'granted_share'
        when numbered.instance_owner_count = 1 then 'exclusive'
        else 'equal_share'
    end as hours_method
from numbered
left join part on numbered.holder_number = part.holder_number
left join shared
    on
        part.cluster = shared.cluster
        and part.device_uuid = shared.device_uuid
        and part.gpu_instance_id = shared.gpu_instance_id
        and part.start_at = shared.start_at
