-- The samples at which a GPU's energy counter tells nothing of the time after them, and those that end a gap or reset.
--
-- Only of GPUs whose counter has gaps or resets, or never grew: of the others it is the last sample, whose time is not measured.
--
-- grain:  cluster, device_uuid, start_at
-- reads:  facts.device_hour, lake.device_sample
-- params:
-- source: growth over gaps (energy_joules_gap_increase); power of the samples without growth
-- columns:
--   cluster        cluster name
--   device_uuid    UUID of the physical GPU
--   start_at       UTC, the sample
--   end_at         UTC, until when it is in force, outside it
--   gap_joules     J, growth over the gap or reset that ended here; null where none did
--   bridge_joules  J, power over the sample's time, where a gap or reset follows or the counter tells nothing all day; null elsewhere
--   is_active      some signal of the GPU shows activity; null where none is known
--   gap_count      gaps and resets that ended up to here
with doubtful as (
    select
        cluster,
        device_uuid,
        coalesce(sum(energy_seen_seconds), 0) = 0 as is_silent
    from facts.device_hour
    where gpu_instance_id = ''
    group by cluster, device_uuid
    having count(energy_gap_joules) > 0 or (is_silent and sum(energy_sample_count) > 0)
),

edge as (
    select
        sample.cluster,
        sample.device_uuid,
        sample.seen_at::timestamp as start_at,
        sample.seen_at::timestamp + to_milliseconds(round(1000 * sample.held_seconds)::bigint) as end_at,
        sample.energy_joules_gap_increase::double as gap_joules,
        if(
            sample.energy_joules is not null and sample.energy_joules_increase is null,
            sample.power_watts::double * sample.held_seconds,
            null
        ) as bridge_joules,
        -- What is null is left out of it.
        greatest(
            sample.gpu_util_ratio > 0,
            sample.gr_engine_active_ratio >= 0.001,
            sample.sm_active_ratio >= 0.001,
            sample.pcie_tx_bytes_per_second >= 1e8,
            sample.pcie_rx_bytes_per_second >= 1e8
        ) as is_active,
        doubtful.is_silent
    from lake.device_sample as sample
    inner join doubtful
        on
            sample.cluster = doubtful.cluster
            and sample.device_uuid = doubtful.device_uuid
    where
        sample.gpu_instance_id = ''
        and (
            sample.energy_joules_gap_increase is not null
            or (sample.energy_joules is not null and sample.energy_joules_increase is null)
        )
)

select
    cluster,
    device_uuid,
    start_at,
    end_at,
    gap_joules,
    if(is_silent or count(gap_joules) over later > 0, bridge_joules, null) as bridge_joules,
    is_active,
    count(gap_joules) over earlier as gap_count
from edge
window
    earlier as (
        partition by cluster, device_uuid
        order by start_at
        rows between unbounded preceding and current row
    ),
    later as (
        partition by cluster, device_uuid
        order by start_at
        rows between 1 following and unbounded following
    )
