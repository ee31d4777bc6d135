-- Links that carry more than their capacity: a rate in another unit, or a configured capacity that is too small.
--
-- severity: warn
-- grain:  cluster, device_uuid, link
-- reads:  report.device
-- params:
-- source: report.device
-- columns: cluster, device_uuid, link, link_ratio
--   link        pcie_tx, pcie_rx, nvlink_tx or nvlink_rx
--   link_ratio  mean bytes/s over what the link can carry in one direction
with link as (
    select
        cluster,
        device_uuid,
        unnest([
            { 'link': 'pcie_tx', 'link_ratio': pcie_tx_ratio_avg },
            { 'link': 'pcie_rx', 'link_ratio': pcie_rx_ratio_avg },
            { 'link': 'nvlink_tx', 'link_ratio': nvlink_tx_ratio_avg },
            { 'link': 'nvlink_rx', 'link_ratio': nvlink_rx_ratio_avg }
        ], recursive := true)
    from report.device
)

select *
from link
where link_ratio > 1
