-- What each device's links can carry, in one direction.
--
-- PCIe: what the exporter says of the link, else what the configuration says of the model. NVLink: the configuration alone.
--
-- grain:  cluster, device_uuid
-- reads:  facts.link_hour, facts.window_sum
-- params: links, since_at, until_at
-- source: facts.link_hour; links.<model> of gpureport.toml
-- columns:
--   cluster                  cluster name
--   device_uuid              UUID of the physical GPU
--   pcie_bytes_per_second    bytes/s over PCIe; null where neither the exporter nor the configuration tells
--   nvlink_bytes_per_second  bytes/s over all NVLinks together; null where the configuration does not tell
with configured as (
    select
        entry.key as gpu_model,
        (entry.value ->> 'pcie_bytes_per_second')::double as pcie_bytes_per_second,
        (entry.value ->> 'nvlink_bytes_per_second')::double as nvlink_bytes_per_second
    from json_each($links::json) as entry
),

exported as (
    select
        cluster,
        device_uuid,
        max(pcie_link_bytes_per_second_max) as pcie_bytes_per_second
    from facts.link_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
    group by all
)

select
    device.cluster,
    device.device_uuid,
    coalesce(exported.pcie_bytes_per_second, configured.pcie_bytes_per_second) as pcie_bytes_per_second,
    configured.nvlink_bytes_per_second
from facts.window_sum as device
left join configured on device.gpu_model = configured.gpu_model
left join exported
    on
        device.cluster = exported.cluster
        and device.device_uuid = exported.device_uuid
where device.subject = 'device' and device.gpu_instance_id = ''
