-- Capacity of each device's links in one direction.
--
-- PCIe: the exporter's value of the link, else the configuration's value of the model. NVLink: the configuration, else the model's data sheet. The
-- data sheet has the sum of all links, so the real capacity is lower where bridges join only some of them.
--
-- grain:  cluster, device_uuid
-- reads:  facts.link_hour, period.sum
-- params: gpu_models, links, since_at, until_at
-- source: facts.link_hour; links.<model> of gpureport.toml; queries/catalog/gpu_model.csv
-- columns:
--   nvlink_source            configuration or data sheet; '' without a source
with configured as (
    select
        columns('^(cluster|device_uuid)$'),
        max((entry.value ->> 'pcie_bytes_per_second')::double) as pcie_bytes_per_second,
        max((entry.value ->> 'nvlink_bytes_per_second')::double) as nvlink_bytes_per_second
    from json_each($links::json) as entry
    -- A driver may rename the model within the window.
    inner join period.sum as device on list_contains(string_split(device.gpu_model, ', '), entry.key)
    where device.subject = 'device' and device.gpu_instance_id = ''
    group by all
),

listed as (
    select unnest(
        from_json($gpu_models::json, '[{"gpu_model": "VARCHAR", "nvlink_gigabytes_per_second": "VARCHAR"}]'), recursive := true
    )
),

sheet as (
    select
        device.gpu_model,
        max(nullif(listed.nvlink_gigabytes_per_second, '')::double * 1e9) as nvlink_bytes_per_second
    from period.sum as device
    inner join listed on device.gpu_model glob listed.gpu_model
    where device.subject = 'device' and device.gpu_instance_id = ''
    group by device.gpu_model
),

exported as (
    select
        cluster,
        device_uuid,
        max(pcie_link_bytes_per_second_max) as pcie_bytes_per_second
    from facts.link_hour
    where is_in_period(hour_start_at, $since_at, $until_at)
    group by all
)

select
    device.cluster,
    device.device_uuid,
    coalesce(exported.pcie_bytes_per_second, configured.pcie_bytes_per_second) as pcie_bytes_per_second,
    coalesce(configured.nvlink_bytes_per_second, sheet.nvlink_bytes_per_second) as nvlink_bytes_per_second,
    case
        when configured.nvlink_bytes_per_second is not null then 'configuration'
        when sheet.nvlink_bytes_per_second is not null then 'data sheet'
        else ''
    end as nvlink_source
from period.sum as device
left join configured
    using (cluster, device_uuid)
left join sheet on device.gpu_model = sheet.gpu_model
left join exported
    using (cluster, device_uuid)
where device.subject = 'device' and device.gpu_instance_id = ''
