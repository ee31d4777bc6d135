-- Time in which a resource claim had a GPU or MIG instance allocated, used or not; intervals of one claim do not overlap.
--
-- Claims with admin access take nothing. Claims without a list of pods are left out, because use by containers is unknown. Claims known from labels
-- alone are left out too, because labels name the user.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, claim_uid, start_at
-- reads:  day.state_snapshot, facts.claim_device, facts.claim_reservation
-- source: facts.claim_device; ResourceClaim status.reservedFor
-- columns:
--   pod          pod that reserved it; '' without a pod, or for a group of pods
with allocated as (
    select *
    from facts.claim_device as holding
    semi join day.state_snapshot as snapshot
        on
            holding.cluster = snapshot.cluster
            and snapshot.kind = 'pods'
            and holding.end_at > snapshot.observed_at
            and holding.start_at < snapshot.stands_until_at
    where claim_uid != '' and device_uuid != '' and gpu_instance_id is not null and not is_admin_access
),

step as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|claim|claim_uid)$'),
        min(start_at) as start_at,
        max(end_at) as end_at,
        -- Shares at once add up, shares in turn do not.
        if(
            count(share_ratio) = count(*),
            least(1, sum(share_ratio * epoch_ms(end_at - start_at)) / epoch_ms(max(end_at) - min(start_at))), null
        ) as share_ratio
    from numbered_runs(allocated, (cluster, device_uuid, gpu_instance_id, namespace, claim_uid))
    group by cluster, device_uuid, gpu_instance_id, namespace, claim, claim_uid, run_number
),

consumer as (
    select
        step.* similar to '^(cluster|namespace|claim_uid|start_at)$',
        min({ 'pod': reservation.consumer, 'pod_uid': reservation.consumer_uid }) as first
    from step
    inner join facts.claim_reservation as reservation
        using (cluster, namespace, claim)
    where
        reservation.claim_uid in ('', step.claim_uid)
        and reservation.consumer_resource = 'pods'
        and reservation.start_at < step.end_at
        and reservation.end_at > step.start_at
    group by all
)

select
    step.* exclude (claim, share_ratio),
    coalesce(consumer.first.pod, '') as pod,
    coalesce(consumer.first.pod_uid, '') as pod_uid,
    step.share_ratio
from step
left join consumer
    using (cluster, namespace, claim_uid, start_at)
