-- GPU demand that ResourceQuotas refused, by controller. No pod exists, so no other demand includes it.
--
-- grain:  cluster, quota, resource, owner_kind, owner_name
-- reads:  facts.quota_refusal
-- params: since_at, until_at
-- columns: cluster, quota, resource, owner_kind, owner_name, refused_gpus, refused_gpu_hours, first_at, last_at
select
    columns('^(cluster|quota|resource|owner_kind|owner_name)$'),
    max(refused_gpus) as refused_gpus,
    sum(refused_gpus * overlap_ms(start_at, end_at, $since_at, $until_at)) / 3600000 as refused_gpu_hours,
    min(start_at) as first_at,
    max(end_at) as last_at
from facts.quota_refusal
where start_at < $until_at and end_at >= $since_at
group by all
