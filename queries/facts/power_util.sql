-- The energy of GPUs whose sharers' own utilisation is measured, span by span, by that.
--
-- Above idle in an active span goes by the sharers' utilisation in force at its start; in equal parts where that of one of them is
-- unknown, or is 0 for all. Above idle in other spans, and idle itself, is in equal parts at all times.
-- Kepler's shares: the same, active or not; a sharer without a value has 0.
--
-- grain:  cluster, holder_number
-- reads:  facts.held_piece, facts.held_series, facts.power_piece, facts.power_span, facts.util_reading
-- params:
-- source: facts.held_series; facts.power_span
-- columns:
--   cluster                   cluster name
--   holder_number             of facts.held_piece
--   observed_seconds          s in which the GPU was seen
--   measured_seconds          s whose energy is known
--   active_joules             J above idle in active spans
--   active_joules_kepler      J by Kepler's shares
--   held_joules               J above idle in spans without activity
--   idle_joules               J, its part of the idle baseline; null where that is unknown
--   active_seconds            s of active spans
--   activity_unknown_seconds  s of spans that count as active because no signal says otherwise
--   equal_seconds             s of active spans shared equally
--   active_watts_max          largest power above idle in an active span
--   method                    sm_util_share, or process_util_share
--   scope                     pod or container
with sharer as (
    select
        held.cluster,
        held.holder_number,
        held.owner_count,
        piece.piece_number
    from facts.held_piece as held
    inner join facts.power_piece as piece
        on
            held.cluster = piece.cluster
            and held.device_uuid = piece.device_uuid
            and held.start_at = piece.start_at
    where piece.share = 'util'
),

part as (
    select
        sharer.*,
        span.* exclude (cluster, piece_number)
    from sharer
    inner join facts.power_span as span on sharer.piece_number = span.piece_number
),

-- Nearly all are scraped together with the GPU: looking those up by their instant is a fifth of the time of an asof join.
scraped as (
    select
        part.*,
        reading.util_ratio,
        reading.seen_at is not null as is_found
    from part
    left join facts.util_reading as reading
        on
            part.holder_number = reading.holder_number
            and part.seen_at = reading.seen_at
            and part.span_at < reading.until_at
),

alone as (
    select * exclude (util_ratio, is_found)
    from scraped
    where not is_found
),

their_reading as (
    select *
    from facts.util_reading
    where holder_number in (select holder_number from alone)
),

measured as (
    select * exclude (is_found)
    from scraped
    where is_found
    union all by name
    select
        alone.*,
        if(reading.until_at > alone.span_at, reading.util_ratio, null) as util_ratio
    from alone
    asof left join their_reading as reading
        on
            alone.holder_number = reading.holder_number
            and alone.span_at >= reading.seen_at
),

whole as (
    select
        piece_number,
        span_at,
        count(util_ratio) as known_count,
        sum(util_ratio) as util_sum_ratio
    from measured
    group by piece_number, span_at
),

shared as (
    select
        measured.*,
        whole.known_count = measured.owner_count and whole.util_sum_ratio > 0 as is_told,
        greatest(measured.is_board_active, whole.util_sum_ratio > 0) as is_active,
        coalesce(is_active, true) as counts_active,
        if(is_told, measured.util_ratio / whole.util_sum_ratio, 1 / measured.owner_count) as share_ratio,
        if(
            whole.util_sum_ratio > 0,
            coalesce(measured.util_ratio, 0) / whole.util_sum_ratio,
            1 / measured.owner_count
        ) as kepler_share_ratio
    from measured
    inner join whole
        on
            measured.piece_number = whole.piece_number
            and measured.span_at = whole.span_at
),

summed as (
    select
        cluster,
        holder_number,
        sum(observed_seconds) as observed_seconds,
        sum(measured_seconds) as measured_seconds,
        sum(if(counts_active, above_joules, begun_joules) * share_ratio) as active_joules,
        sum(above_joules * kepler_share_ratio) as active_joules_kepler,
        sum(if(counts_active, 0, above_joules - begun_joules) / owner_count) as held_joules,
        sum(idle_joules / owner_count) as idle_joules,
        sum(if(counts_active, measured_seconds, 0)) as active_seconds,
        sum(if(is_active is null, measured_seconds, 0)) as activity_unknown_seconds,
        sum(if(counts_active and not is_told, measured_seconds, 0)) as equal_seconds,
        max(if(counts_active, above_joules * share_ratio / observed_seconds, null)) as active_watts_max
    from shared
    group by cluster, holder_number
),

named as (
    select
        device_uuid,
        start_at,
        max(scope) as scope,
        min(method) as method
    from facts.held_series
    group by device_uuid, start_at
)

select
    summed.*,
    named.method,
    named.scope
from summed
inner join facts.held_piece as held on summed.holder_number = held.holder_number
inner join named
    on
        held.device_uuid = named.device_uuid
        and held.start_at = named.start_at
