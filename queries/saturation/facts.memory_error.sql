-- GPUs whose memory has errors that ECC could not correct, or rows that were remapped for such or could not be.
--
-- The driver counts over the life of the board or since it was loaded: what is there may be older than the day.
--
-- grain:  cluster, device_uuid
-- reads:  lake.device_sample
-- source: DCGM_FI_DEV_ROW_REMAP_FAILURE, DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, DCGM_FI_DEV_ECC_DBE_AGG_TOTAL and their like
-- columns: cluster, device_uuid, seen_at, row_remap_failure_count, remapped_row_uncorrectable_count, ecc_uncorrectable_count
--   seen_at                           UTC, the scrape that first showed any of them
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
