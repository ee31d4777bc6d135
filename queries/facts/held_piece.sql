-- Who held a GPU in each of its pieces: hours, and the pieces of those in which owners change.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  facts.ownership, facts.piece
-- params:
-- source: facts.ownership
-- columns:
--   cluster          cluster name
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   namespace        workload namespace
--   pod              workload pod
--   pod_uid          its uid; '' where unknown
--   container        workload container
--   hour_start_at    UTC, start of the hour
--   start_at         UTC, start of the piece
--   end_at           UTC, its end, outside it
--   holder_number    number of the row: a short key
--   owner_count      holders of the GPU and of its instances in the piece
--   instance_owner_count  those of the same instance, or of the whole GPU
--   pod_owner_count  those of the same pod among the latter
with owned_hour as (
    select
        *,
        unnest(generate_series(
            date_trunc('hour', start_at), greatest(start_at, end_at - interval 1 millisecond), interval 1 hour
        )) as hour_start_at
    from facts.ownership
),

held as (
    select distinct
        owned_hour.cluster,
        owned_hour.device_uuid,
        owned_hour.gpu_instance_id,
        owned_hour.namespace,
        owned_hour.pod,
        owned_hour.pod_uid,
        owned_hour.container,
        owned_hour.hour_start_at,
        coalesce(piece.start_at, owned_hour.hour_start_at) as start_at,
        coalesce(piece.end_at, owned_hour.hour_start_at + interval 1 hour) as end_at
    from owned_hour
    left join facts.piece
        on
            owned_hour.cluster = piece.cluster
            and owned_hour.device_uuid = piece.device_uuid
            and owned_hour.hour_start_at = piece.hour_start_at
    where piece.start_at is null or (owned_hour.start_at < piece.end_at and owned_hour.end_at > piece.start_at)
)

select
    *,
    row_number() over (order by device_uuid, start_at, gpu_instance_id, namespace, pod, pod_uid, container)::uinteger as holder_number,
    count(*) over (partition by device_uuid, start_at) as owner_count,
    count(*) over (partition by device_uuid, start_at, gpu_instance_id) as instance_owner_count,
    count(*) over (partition by device_uuid, start_at, gpu_instance_id, namespace, pod, pod_uid) as pod_owner_count
from held
