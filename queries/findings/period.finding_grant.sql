-- Findings: over-allocated GPUs, by two schedulers or by a node that advertises them in several ways.
--
-- grain:  code, cluster, node_name, device_uuid, gpu_instance_id
-- reads:  facts.device_day, facts.overallocation
-- params: since_at, until_at
-- source: facts.overallocation
with place as (
    select
        cluster,
        device_uuid,
        max(node_name) as node_name,
        max(gpu_model) as gpu_model
    from facts.device_day
    group by cluster, device_uuid
),

allocated as (
    select
        * exclude (start_at, end_at),
        epoch_ms(least(end_at, $until_at::timestamp) - greatest(start_at, $since_at::timestamp)) / 3600000 as hours,
        greatest(start_at, $since_at::timestamp) as start_at
    from facts.overallocation
    where start_at < $until_at and end_at > $since_at
)

select
    'GR108' as code,
    allocated.cluster,
    coalesce(max(place.node_name), '') as node_name,
    allocated.device_uuid,
    allocated.gpu_instance_id,
    coalesce(max(place.gpu_model), '') as gpu_model,
    -- How large an instance is does not stand here.
    if(allocated.gpu_instance_id = '', sum(allocated.hours), null) as gpu_hours,
    'high' as confidence,
    format(
        'allocated up to {:.1f} times, for {:,.1f} h: {}', max(allocated.granted_ratio), sum(allocated.hours),
        string_agg(distinct allocated.grants, '; ' order by allocated.grants)
    ) as evidence,
    min(allocated.start_at) as first_seen_at
from allocated
left join place
    using (cluster, device_uuid)
group by allocated.cluster, allocated.device_uuid, allocated.gpu_instance_id
