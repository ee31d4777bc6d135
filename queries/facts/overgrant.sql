-- When a GPU or MIG instance was given out to more than it is: whole to two, or in parts that add up to more than one.
--
-- Grants are resource claims and, of pods without them, what Koordinator or the kubelet says. A device of which claims take shares is whole
-- only to another who has it as a whole; replicas of a shared device and watching take no part. A whole GPU beside one of its instances
-- is too much. Only time in which each grant surely stood counts: one that ended between two looks ended at the first.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  clean.container_run, facts.claim_device, facts.device_grant, facts.stated_use, lake.pod_device
-- params:
-- source: facts.claim_device, facts.stated_use, facts.device_grant
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   start_at         UTC, start of the span
--   end_at           UTC, its end, outside it
--   granted_ratio    what was given of it: 2 is twice; parts of unknown size count 0
--   grants           who had it, by whose word, sorted
with run as (
    select
        cluster,
        pod_uid,
        max(end_at - to_milliseconds(round(end_uncertainty_seconds * 1000)::bigint)) as sure_until_at
    from clean.container_run
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
    select distinct
        cluster,
        namespace,
        pod
    from lake.pod_device
    where replica != '' and pod_uid = ''
),

part as (
    select
        cluster,
        pod_uid,
        device_id as device_uuid,
        max(greatest(coalesce(core_percent, 0), coalesce(memory_ratio_percent, 0))) / 100 as part_ratio
    from facts.device_grant
    where device_type = 'gpu'
    group by cluster, pod_uid, device_id
),

given as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        claim_uid as grant_key,
        'claim ' || namespace || '/' || claim as grant_name,
        if(share_id = '', 1, 0) as part_ratio,
        start_at,
        end_at - to_milliseconds(round(end_uncertainty_seconds * 1000)::bigint) as end_at
    from facts.claim_device
    where claim_uid != '' and device_uuid != '' and gpu_instance_id is not null and not is_admin_access
    union all by name
    select
        use.cluster,
        use.device_uuid,
        use.gpu_instance_id,
        use.pod_uid as grant_key,
        use.source || ' ' || use.namespace || '/' || use.pod as grant_name,
        case
            when bool_or(replica.pod_uid is not null or named_replica.pod is not null) then 0
            when use.source = 'koordinator' then coalesce(max(part.part_ratio), 0)
            else 1
        end as part_ratio,
        min(use.start_at) as start_at,
        least(max(use.end_at), max(run.sure_until_at)) as end_at
    from facts.stated_use as use
    left join run
        on
            use.cluster = run.cluster
            and use.pod_uid = run.pod_uid
    left join replica
        on
            use.cluster = replica.cluster
            and use.pod_uid = replica.pod_uid
    left join named_replica
        on
            use.cluster = named_replica.cluster
            and use.namespace = named_replica.namespace
            and use.pod = named_replica.pod
    left join part
        on
            use.cluster = part.cluster
            and use.pod_uid = part.pod_uid
            and use.device_uuid = part.device_uuid
    where use.source != 'dra-claim'
    group by use.cluster, use.device_uuid, use.gpu_instance_id, use.pod_uid, use.source, use.namespace, use.pod
),

-- An instance is some part of its GPU too.
unit as (
    select *
    from given
    where start_at < end_at
    union all by name
    select * replace ('' as gpu_instance_id, 0 as part_ratio)
    from given
    where start_at < end_at and gpu_instance_id != ''
),

change as (
    select distinct
        cluster,
        device_uuid,
        gpu_instance_id,
        unnest([start_at, end_at]) as start_at
    from unit
),

piece as (
    select
        *,
        lead(start_at) over (
            partition by cluster, device_uuid, gpu_instance_id
            order by start_at
        ) as end_at
    from change
),

taken as (
    select
        piece.cluster,
        piece.device_uuid,
        piece.gpu_instance_id,
        piece.start_at,
        piece.end_at,
        unit.grant_key,
        unit.grant_name,
        max(unit.part_ratio) as part_ratio
    from piece
    inner join unit
        on
            piece.cluster = unit.cluster
            and piece.device_uuid = unit.device_uuid
            and piece.gpu_instance_id = unit.gpu_instance_id
            and piece.start_at >= unit.start_at
            and piece.end_at <= unit.end_at
    group by all
)

select
    cluster,
    device_uuid,
    gpu_instance_id,
    start_at,
    end_at,
    sum(part_ratio)::double as granted_ratio,
    string_agg(distinct grant_name, ', ' order by grant_name) as grants
from taken
group by cluster, device_uuid, gpu_instance_id, start_at, end_at
having sum(part_ratio) > 1 + 1e-9 or (sum(part_ratio) >= 1 and min(part_ratio) = 0)
