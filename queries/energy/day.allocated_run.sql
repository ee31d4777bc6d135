-- Times in which each GPU is allocated, plus one minute: clocks and fans slow down gradually.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  facts.ownership
with owned as (
    select
        * exclude (end_at),
        end_at + interval 1 minute as end_at
    from facts.ownership
)

select *
from merged_runs(owned, '^(cluster|device_uuid)$')
