-- Energy of shared GPUs per step, split by each holder's own utilization.
--
-- Above idle in an active span goes by the sharers' utilization in force at its start; in equal parts where that of one of them is
-- unknown, or is 0 for all. Above idle in other spans is in equal parts; idle goes as hours do (day.allocated_interval).
-- Where Kepler's watts tell, one whom Kepler shows at other times has none while it shows another; watts are no sign of activity.
-- Kepler's shares: the same, active or not; a sharer without a value has 0.
--
-- grain:  cluster, holder_number
-- reads:  day.allocated_interval, day.power_interval, day.power_step, day.sharer_series, day.util_reading
-- params:
-- source: day.sharer_series; day.power_step
with named as (
    select
        device_uuid,
        start_at,
        max(scope) as scope,
        min(method) as method,
        bool_and(method = 'kepler_share') as is_watts
    from day.sharer_series
    group by device_uuid, start_at
),

sharer as (
    select
        held.*,
        held.hours_ratio * held.instance_owner_count / held.owner_count as idle_ratio,
        piece.piece_number,
        named.* exclude (device_uuid, start_at)
    from day.allocated_interval as held
    inner join day.power_interval as piece
        using (cluster, device_uuid, start_at)
    inner join named
        using (device_uuid, start_at)
    where piece.share = 'util'
),

-- Nearly all are scraped together with the GPU: then their readings begin where its spans do.
reading as (
    select
        sharer.* exclude (is_watts),
        reading.span_at,
        reading.weight
    from day.util_reading as reading
    inner join sharer on reading.holder_number = sharer.holder_number
),

scraped_whole as (
    select
        piece_number,
        span_at,
        sum((weight * 1e9)::bigint) / 1e9 as all_weight
    from reading
    group by piece_number, span_at
    having count(*) = any_value(owner_count)
),

-- Of the other spans the readings in force count.
other_span as (
    select
        span.piece_number,
        span.span_at
    from day.power_step as span
    anti join scraped_whole
        using (piece_number, span_at)
    where span.piece_number in (select sharer.piece_number from sharer)
),

other_part as (
    select
        other_span.*,
        sharer.* exclude (piece_number)
    from other_span
    inner join sharer on other_span.piece_number = sharer.piece_number
),

other_reading as (
    select
        * exclude (span_at),
        span_at as seen_at
    from day.util_reading
    where holder_number in (select other_part.holder_number from other_part)
),

other as (
    select
        other_part.*,
        if(reading.until_at > other_part.span_at, reading.weight, null) as weight
    from other_part
    asof left join other_reading as reading
        on
            other_part.holder_number = reading.holder_number
            and other_part.span_at >= reading.seen_at
),

other_whole as (
    select
        piece_number,
        span_at,
        sum((weight * 1e9)::bigint) / 1e9 as all_weight,
        count(weight) = any_value(owner_count) or any_value(is_watts) as is_known
    from other
    group by piece_number, span_at
),

whole as (
    select
        *,
        true as is_known,
        true as is_scraped
    from scraped_whole
    union all by name
    select
        *,
        false as is_scraped
    from other_whole
),

shared_piece as (
    select distinct
        piece_number,
        owner_count,
        is_watts
    from sharer
),

-- What is the same for all sharers of a span is worked out once.
span as (
    select
        span.*,
        whole.is_scraped,
        whole.all_weight,
        greatest(span.is_board_active, if(piece.is_watts, null, whole.all_weight > 0)) as is_active,
        coalesce(is_active, true) as counts_active,
        whole.is_known and coalesce(whole.all_weight > 0, false) as is_told,
        if(counts_active, span.above_joules, span.begun_joules) as active_joules,
        if(is_told, active_joules / whole.all_weight, 0 * active_joules) as joules_per_weight,
        if(whole.all_weight > 0, span.above_joules / whole.all_weight, 0 * span.above_joules) as kepler_joules_per_weight,
        if(counts_active and is_told, span.above_joules / whole.all_weight / span.observed_seconds, null) as watts_per_weight
    from day.power_step as span
    inner join whole
        using (piece_number, span_at)
    inner join shared_piece as piece on span.piece_number = piece.piece_number
),

-- Sums are of whole picojoules and picoseconds: the same in any order, and DuckDB's order is another when memory is short.
piece as (
    select
        piece_number,
        sum((observed_seconds * 1e12)::hugeint) / 1e12 as observed_seconds,
        sum((measured_seconds * 1e12)::hugeint) / 1e12 as measured_seconds,
        sum(((above_joules - active_joules) * 1e12)::hugeint) / 1e12 as held_joules,
        sum((idle_joules * 1e12)::hugeint) / 1e12 as idle_joules,
        sum((if(counts_active, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as active_seconds,
        sum((if(is_active is null, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as activity_unknown_seconds,
        sum((if(counts_active and not is_told, measured_seconds, 0) * 1e12)::hugeint) / 1e12 as equal_seconds,
        sum((if(is_told, 0, active_joules) * 1e12)::hugeint) / 1e12 as untold_joules,
        sum((if(all_weight > 0, 0, above_joules) * 1e12)::hugeint) / 1e12 as untold_kepler_joules,
        max(if(counts_active and not is_told, above_joules / observed_seconds, null)) as untold_watts_max
    from span
    group by piece_number
),

part as (
    select
        * exclude (owner_count),
        true as is_scraped
    from reading
    union all by name
    select
        * exclude (weight),
        coalesce(weight, 0) as weight,
        false as is_scraped
    from other
),

summed as (
    select
        part.holder_number,
        sum((part.weight * span.joules_per_weight * 1e12)::hugeint) / 1e12 as joules,
        sum((part.weight * span.kepler_joules_per_weight * 1e12)::hugeint) / 1e12 as kepler_joules,
        max(part.weight * span.watts_per_weight) as watts_max
    from part
    inner join span
        using (piece_number, span_at, is_scraped)
    group by part.holder_number
)

select
    sharer.cluster,
    sharer.holder_number,
    piece.observed_seconds,
    piece.measured_seconds,
    summed.joules + piece.untold_joules / sharer.owner_count as active_joules,
    summed.kepler_joules + piece.untold_kepler_joules / sharer.owner_count as active_joules_kepler,
    piece.held_joules / sharer.owner_count as held_joules,
    piece.idle_joules * sharer.idle_ratio as idle_joules,
    piece.active_seconds,
    piece.activity_unknown_seconds,
    piece.equal_seconds,
    greatest(summed.watts_max, piece.untold_watts_max / sharer.owner_count) as active_watts_max,
    sharer.method,
    sharer.scope
from sharer
inner join summed on sharer.holder_number = summed.holder_number
inner join piece on sharer.piece_number = piece.piece_number
