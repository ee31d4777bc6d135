-- Size class of a request in GPUs: share, 1, 2-4, 5-8 or more; unknown if its size in GPUs is unknown.
--
-- parameters:
--   requested_gpus  GPUs requested; null where unknown
-- source: most nodes have eight GPUs
create macro size_class(requested_gpus) as case
    when requested_gpus is null then 'unknown'
    when requested_gpus < 1 then 'share'
    when requested_gpus = 1 then '1'
    when requested_gpus <= 4 then '2-4'
    when requested_gpus <= 8 then '5-8'
    else 'more'
end
