-- Links that carry more than their capacity: a rate in another unit, or a configured capacity that is too small.
--
-- severity: warn
-- grain:  cluster, device_uuid, link
-- reads:  period.link, period.sum
-- columns: cluster, device_uuid, link, link_ratio
with link as (
    select
        total.cluster,
        total.device_uuid,
        unnest([
            { 'link': 'pcie_tx', 'link_ratio': total.pcie_tx_bytes / total.pcie_tx_seen_seconds / capacity.pcie_bytes_per_second },
            { 'link': 'pcie_rx', 'link_ratio': total.pcie_rx_bytes / total.pcie_rx_seen_seconds / capacity.pcie_bytes_per_second },
            { 'link': 'nvlink_tx', 'link_ratio': total.nvlink_tx_bytes / total.nvlink_tx_seen_seconds / capacity.nvlink_bytes_per_second },
            { 'link': 'nvlink_rx', 'link_ratio': total.nvlink_rx_bytes / total.nvlink_rx_seen_seconds / capacity.nvlink_bytes_per_second }
        ], recursive := true)
    from period.sum as total
    inner join period.link as capacity
        using (cluster, device_uuid)
    where total.subject = 'device'
)

select *
from link
where link_ratio > 1
