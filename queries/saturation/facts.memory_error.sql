-- GPUs with uncorrectable ECC errors in memory, rows remapped because of them, or failed row remaps.
--
-- The driver counts over the life of the board, or since the driver was loaded. So an error may be older than the day.
--
-- grain:  cluster, device_uuid
-- reads:  lake.device_sample
-- source: DCGM_FI_DEV_ROW_REMAP_FAILURE, DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, DCGM_FI_DEV_ECC_DBE_AGG_TOTAL and their like
-- columns: cluster, device_uuid, seen_at, row_remap_failure_count, remapped_row_uncorrectable_count, ecc_uncorrectable_count
--   seen_at                           UTC, the first scrape with any of them
select
    cluster,
    device_uuid,
    min(seen_at)::timestamp as seen_at,
    max(columns('^(row_remap_failure_count|remapped_row_uncorrectable_count|ecc_uncorrectable_count)$'))
from lake.device_sample
where
    gpu_instance_id = ''
    and (row_remap_failure_count > 0 or remapped_row_uncorrectable_count > 0 or ecc_uncorrectable_count > 0)
group by cluster, device_uuid
