-- Idle and active energy per sample of the intervals that are split sample by sample.
--
-- The rules for energy in day.sample_sum apply to each interval. A sample's interval that a change of owners cuts is split by time.
--
-- grain:  cluster, interval_number, step_at
-- reads:  day.energy_edge, day.power_interval, lake.device_sample
-- source: DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, DCGM_FI_DEV_POWER_USAGE and the activity signals of the whole GPU
-- columns:
--   interval_number   interval_number of day.power_interval
--   step_at           UTC, start of the interval
--   seen_at           UTC, time of the GPU's valid sample
--   observed_seconds  s of the interval
--   begun_joules      J of work that began within the interval, where the interval shows no activity
with power as (
    select
        * exclude (observed_seconds, measured_seconds, idle_joules),
        measured_seconds is not null as is_measured
    from day.power_interval
    where share in ('util', 'activity')
),

device as (
    select distinct columns('^(cluster|device_uuid)$')
    from power
),

board as (
    select
        sample.cluster,
        sample.device_uuid,
        date_trunc('hour', sample.seen_at::timestamp) as hour_start_at,
        sample.seen_at::timestamp as seen_at,
        held_until(sample.seen_at, sample.held_seconds) as until_at,
        sample.held_seconds,
        sample.power_watts::double as power_watts,
        sample.energy_joules is not null as has_counter,
        sample.energy_joules_increase::double as energy_joules_increase,
        is_active(
            sample.gpu_util_ratio, sample.gr_engine_active_ratio, sample.sm_active_ratio,
            sample.pcie_tx_bytes_per_second, sample.pcie_rx_bytes_per_second
        ) as is_active
    from lake.device_sample as sample
    semi join device
        using (cluster, device_uuid)
    where sample.gpu_instance_id = '' and sample.held_seconds > 0
),

placed as (
    select
        power.* exclude (device_uuid),
        board.* exclude (cluster, hour_start_at, until_at),
        greatest(board.seen_at, power.start_at) as step_at,
        if(
            board.seen_at >= power.start_at and board.until_at <= power.end_at,
            1,
            epoch(least(board.until_at, power.end_at) - greatest(board.seen_at, power.start_at)) / board.held_seconds
        ) as part_ratio
    from board
    inner join power
        using (cluster, device_uuid, hour_start_at)
    where
        board.seen_at < power.end_at
        and board.until_at > power.start_at
),

-- The growth at a refresh of the counter is of all samples since the refresh before, by their power.
refreshed as (
    select
        * exclude (refresh_number) replace (
            if(
                count(*) over refresh > 1
                and bool_and(coalesce(energy_joules_increase is not null and power_watts > 0 and part_ratio = 1, false)) over refresh,
                sum(energy_joules_increase) over refresh * power_watts * held_seconds / sum(power_watts * held_seconds) over refresh,
                energy_joules_increase
            ) as energy_joules_increase
        )
    from (
        select
            *,
            count(*) filter (where energy_joules_increase > 0) over (
                partition by cluster, interval_number order by step_at rows between unbounded preceding and 1 preceding
            ) as refresh_number
        from placed
    ) as numbered
    window refresh as (partition by cluster, interval_number, refresh_number)
),

measured as (
    select
        placed.*,
        placed.held_seconds * placed.part_ratio as seconds,
        case
            when not placed.is_measured then null
            when placed.energy_joules_increase is not null then placed.energy_joules_increase
            when edge.start_at is not null then edge.reported_joules
            when not placed.has_counter then placed.power_watts * placed.held_seconds
        end as joules
    from refreshed as placed
    left join day.energy_edge as edge
        on
            placed.cluster = edge.cluster
            and placed.device_uuid = edge.device_uuid
            and placed.seen_at = edge.start_at
),

split as (
    select
        *,
        part_ratio * greatest(0, joules - coalesce(idle_watts, 0) * held_seconds) as above_joules
    from measured
)

select
    columns('^(cluster|interval_number|step_at|seen_at)$'),
    is_active as is_board_active,
    seconds as observed_seconds,
    if(joules is null, null, seconds) as measured_seconds,
    if(joules is null or idle_watts is null, null, part_ratio * least(joules, idle_watts * held_seconds)) as idle_joules,
    if(joules is null, null, above_joules) as above_joules,
    -- A late refresh of the counter shows more power than the board drew: without a power gauge the maximum power is unknown.
    if(joules is null or power_watts_max is null, null, least(above_joules / seconds, greatest(0, power_watts_max - coalesce(idle_watts, 0)))) as above_watts,
    case
        when energy_joules_increase > 1.1 * power_watts * held_seconds
            then least(above_joules, part_ratio * (energy_joules_increase - power_watts * held_seconds))
        when joules is not null then 0
    end as begun_joules
from split
