-- Memory in use as a share of used and free memory; null unless both are known at the same time and possible.
--
-- Reserved memory is excluded, as in DCGM's own ratio.
--
-- parameters:
--   used_bytes  memory in use
--   free_bytes  free memory
-- source: DCGM_FI_DEV_FB_USED_PERCENT
create macro memory_ratio(used_bytes, free_bytes) as case
    when used_bytes >= 0 and free_bytes >= 0 and used_bytes + free_bytes between 1 and 1e18 then used_bytes / (used_bytes + free_bytes)
end
