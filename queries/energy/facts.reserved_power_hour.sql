-- Energy of GPUs reserved by a resource claim without a running container, per hour.
--
-- It is a part of unallocated energy. Several claims on one GPU share it in proportion to their parts of the GPU. Where the part of one claim is
-- unknown, all have equal parts.
--
-- revision: 2
-- grain:  cluster, device_uuid, namespace, claim_uid, hour_start_at
-- reads:  day.power_interval, day.reservation
-- source: day.power_interval within day.reservation
-- columns: cluster, device_uuid, namespace, claim_uid, hour_start_at, reserved_joules, reserved_seconds
--   reserved_joules   J, the claim's part of the GPU's measured energy in that time; null where unknown
--   reserved_seconds  s reserved in which the GPU had data
with reserved as (
    select
        reservation.* exclude (start_at, end_at),
        power.* exclude (cluster, device_uuid),
        count(*) over same_interval as claim_count,
        if(count(reservation.share_ratio) over same_interval = claim_count, nullif(sum(reservation.share_ratio) over same_interval, 0), null)
            as all_share_ratio,
        coalesce(reservation.share_ratio / all_share_ratio, 1 / claim_count) as hours_ratio
    -- day.power_interval is cut at the start and end of each reservation.
    from day.power_interval as power
    inner join day.reservation
        using (cluster, device_uuid)
    where
        power.start_at >= reservation.start_at
        and power.end_at <= reservation.end_at
        and power.owner_count = 0 and reservation.gpu_instance_id = ''
    window same_interval as (partition by power.cluster, power.interval_number)
)

select
    columns('^(cluster|device_uuid|namespace|claim_uid|hour_start_at)$'),
    sum(measured_joules * hours_ratio) as reserved_joules,
    sum(observed_seconds) as reserved_seconds
from reserved
group by cluster, device_uuid, namespace, claim_uid, hour_start_at
