-- Capacity of each device's PCIe link per hour in one direction, where the exporter shows the link's state.
--
-- A quiet link slows down to save power (a GPU without work shows generation 1), so the fastest state of the hour counts. Usable bytes per second =
-- transfers per second of a lane x lanes x share of payload bits / 8. Generations 1 and 2 (2.5 and 5 GT/s) send 8 of 10 bits, 3 to 5 (8, 16, 32 GT/s)
-- 128 of 130, 6 (64 GT/s) 236 of the 256 bytes of a flit. The capacity includes packet headers, as DCGM's rates do.
--
-- grain:  cluster, device_uuid, hour_start_at
-- reads:  lake.device_sample
-- source: DCGM_FI_DEV_PCIE_LINK_GEN, DCGM_FI_DEV_PCIE_LINK_WIDTH; PCI Express base specification, line codes
-- columns: cluster, device_uuid, hour_start_at, pcie_link_bytes_per_second_max
select
    cluster,
    device_uuid,
    date_trunc('hour', seen_at::timestamp) as hour_start_at,
    max(
        pcie_link_width / 8 * case pcie_link_generation
            when 1 then 2.5e9 * 8 / 10
            when 2 then 5e9 * 8 / 10
            when 3 then 8e9 * 128 / 130
            when 4 then 16e9 * 128 / 130
            when 5 then 32e9 * 128 / 130
            when 6 then 64e9 * 236 / 256
        end
    ) as pcie_link_bytes_per_second_max
from lake.device_sample
where gpu_instance_id = '' and pcie_link_generation between 1 and 6 and pcie_link_width > 0
group by all
