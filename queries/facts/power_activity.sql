-- The energy of GPUs whose MIG instances are held, span by span, by the activity of each instance.
--
-- Above idle in an active span: by activity x compute slices, activity cut to 0..1. One signal for all instances of a GPU and hour:
-- engine activity where every instance has it, else SM activity where every one has that, else the one that any has; engine
-- activity that is 0 for all while the SMs worked is none. What an active instance that nobody holds used is nobody's.
-- Where the activity of a held instance is unknown, or is 0 for all, all are taken as equally active.
-- Above idle in other spans: in equal parts to all holders. Of idle an instance has its slices' part, nobody that of a free one.
--
-- Kepler's shares: activity neither weighted nor cut, instances without activity or without a holder left out, nobody when none has
-- any; active or not.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  facts.device_hour, facts.held_piece, facts.held_series, facts.power_piece, facts.power_span, lake.device_sample
-- params:
-- source: DCGM_FI_PROF_GR_ENGINE_ACTIVE, DCGM_FI_PROF_SM_ACTIVE of the instances; Kepler internal/device/gpu
-- columns:
--   cluster                   cluster name
--   device_uuid               UUID of the physical GPU
--   gpu_instance_id           MIG instance
--   start_at                  UTC, start of the piece
--   hour_start_at             UTC, start of the hour
--   instance_owner_count      its holders; 0 of an instance that nobody holds
--   slice_count               its compute slices
--   observed_seconds          s in which the GPU was seen
--   measured_seconds          s whose energy is known
--   active_joules             J above idle in active spans, by activity x compute slices
--   active_joules_unweighted  J, the same by activity alone
--   active_joules_kepler      J by Kepler's shares
--   held_joules               J above idle in spans without activity
--   idle_joules               J, its part of the idle baseline; null where that is unknown
--   active_seconds            s of active spans of the GPU
--   activity_unknown_seconds  s of spans that count as active because no signal says otherwise
--   equal_seconds             s of active spans whose activity tells no shares
--   active_watts_max          largest power above idle of the instance in an active span
--   clamped_count             spans in which its activity was outside 0..1
--   spans                     the spans of an instance whose sharers' own utilisation is measured; null of others
--   method                    activity_slice_share, or equal_share where no activity is known of any instance
with instance_hour as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        hour_start_at,
        greatest(1, coalesce(try_cast(regexp_extract(gpu_instance_profile, '^(\d+)g', 1) as bigint), 1)) as slice_count,
        gr_engine_active_seen_seconds is not null as has_engine,
        sm_active_seen_seconds is not null as has_sm,
        coalesce(gr_engine_active_ratio_seconds, 0) as engine_ratio_seconds,
        coalesce(sm_active_ratio_seconds, 0) as sm_ratio_seconds
    from facts.device_hour
    where gpu_instance_id != ''
),

choice as (
    select
        cluster,
        device_uuid,
        hour_start_at,
        case
            when bool_and(has_engine) and (sum(engine_ratio_seconds) > 0 or sum(sm_ratio_seconds) = 0) then 'engine'
            when bool_and(has_sm) then 'sm'
            when bool_or(has_engine) then 'engine'
            when bool_or(has_sm) then 'sm'
            else 'none'
        end as signal
    from instance_hour
    group by cluster, device_uuid, hour_start_at
),

holder as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        start_at,
        count(*) as instance_owner_count
    from facts.held_piece
    group by cluster, device_uuid, gpu_instance_id, start_at
),

told as (
    select distinct
        cluster,
        device_uuid,
        gpu_instance_id,
        start_at
    from facts.held_series
),

named as (
    select
        piece.cluster,
        piece.piece_number,
        holder.gpu_instance_id
    from facts.power_piece as piece
    inner join holder
        on
            piece.cluster = holder.cluster
            and piece.device_uuid = holder.device_uuid
            and piece.start_at = holder.start_at
    where piece.share = 'activity'
    union
    select
        piece.cluster,
        piece.piece_number,
        instance_hour.gpu_instance_id
    from facts.power_piece as piece
    inner join instance_hour
        on
            piece.cluster = instance_hour.cluster
            and piece.device_uuid = instance_hour.device_uuid
            and piece.hour_start_at = instance_hour.hour_start_at
    where piece.share = 'activity'
),

-- Every instance of a piece, held or not.
instance as (
    select
        piece.cluster,
        piece.device_uuid,
        named.gpu_instance_id,
        piece.piece_number,
        piece.start_at,
        piece.hour_start_at,
        piece.owner_count,
        coalesce(piece.slice_count, 1) as board_slice_count,
        coalesce(holder.instance_owner_count, 0) as instance_owner_count,
        told.start_at is not null as has_util,
        coalesce(instance_hour.slice_count, 1) as slice_count,
        coalesce(choice.signal, 'none') as signal,
        dense_rank() over (order by piece.cluster, piece.device_uuid, named.gpu_instance_id)::uinteger as instance_number,
        sum(if(holder.instance_owner_count > 0, coalesce(instance_hour.slice_count, 1), 0)) over (
            partition by piece.piece_number
        ) as held_slice_count
    from named
    inner join facts.power_piece as piece on named.piece_number = piece.piece_number
    left join holder
        on
            piece.cluster = holder.cluster
            and piece.device_uuid = holder.device_uuid
            and named.gpu_instance_id = holder.gpu_instance_id
            and piece.start_at = holder.start_at
    left join told
        on
            piece.cluster = told.cluster
            and piece.device_uuid = told.device_uuid
            and named.gpu_instance_id = told.gpu_instance_id
            and piece.start_at = told.start_at
    left join instance_hour
        on
            piece.cluster = instance_hour.cluster
            and piece.device_uuid = instance_hour.device_uuid
            and named.gpu_instance_id = instance_hour.gpu_instance_id
            and piece.hour_start_at = instance_hour.hour_start_at
    left join choice
        on
            piece.cluster = choice.cluster
            and piece.device_uuid = choice.device_uuid
            and piece.hour_start_at = choice.hour_start_at
),

number as (
    select distinct
        cluster,
        device_uuid,
        gpu_instance_id,
        instance_number
    from instance
),

reading as (
    select
        number.instance_number,
        sample.seen_at::timestamp as seen_at,
        sample.seen_at::timestamp + to_milliseconds(round(1000 * sample.held_seconds)::bigint) as until_at,
        sample.gr_engine_active_ratio::double as engine_ratio,
        sample.sm_active_ratio::double as sm_ratio
    from lake.device_sample as sample
    inner join number
        on
            sample.cluster = number.cluster
            and sample.device_uuid = number.device_uuid
            and sample.gpu_instance_id = number.gpu_instance_id
    where sample.gpu_instance_id != ''
),

part as (
    select
        instance.piece_number,
        instance.instance_number,
        instance.owner_count,
        instance.instance_owner_count,
        instance.has_util,
        instance.slice_count,
        instance.board_slice_count,
        instance.held_slice_count,
        instance.signal,
        span.* exclude (cluster, piece_number)
    from instance
    inner join facts.power_span as span on instance.piece_number = span.piece_number
),

-- Nearly all are scraped together with the GPU: looking those up by their instant is a fifth of the time of an asof join.
scraped as (
    select
        part.*,
        reading.engine_ratio,
        reading.sm_ratio,
        reading.until_at
    from part
    left join reading
        on
            part.instance_number = reading.instance_number
            and part.seen_at = reading.seen_at
            and part.span_at < reading.until_at
),

alone as (
    select * exclude (engine_ratio, sm_ratio, until_at)
    from scraped
    where until_at is null
),

their_reading as (
    select *
    from reading
    where instance_number in (select instance_number from alone)
),

found as (
    select *
    from scraped
    where until_at is not null
    union all by name
    select
        alone.*,
        reading.engine_ratio,
        reading.sm_ratio,
        reading.until_at
    from alone
    asof left join their_reading as reading
        on
            alone.instance_number = reading.instance_number
            and alone.span_at >= reading.seen_at
),

measured as (
    select
        *,
        case
            when until_at > span_at and signal = 'sm' then sm_ratio
            when until_at > span_at and signal = 'engine' then engine_ratio
        end as activity_ratio,
        case when until_at > span_at then greatest(engine_ratio >= 0.001, sm_ratio >= 0.001) end as is_instance_active,
        least(1, greatest(0, activity_ratio)) as cut_ratio,
        if(instance_owner_count > 0 and activity_ratio > 0, activity_ratio, 0) as kepler_ratio
    from found
),

whole as (
    select
        piece_number,
        span_at,
        bool_or(is_instance_active) as is_any_active,
        count_if(instance_owner_count > 0 and activity_ratio is null) = 0 as is_known,
        sum(cut_ratio) as all_ratio,
        sum(cut_ratio * slice_count) as all_slice_ratio,
        sum(kepler_ratio) as all_kepler_ratio
    from measured
    group by piece_number, span_at
),

shared as (
    select
        measured.*,
        greatest(measured.is_board_active, whole.is_any_active) as is_active,
        coalesce(is_active, true) as counts_active,
        whole.is_known and whole.all_ratio > 0 as is_told,
        case
            when is_told then coalesce(measured.cut_ratio * measured.slice_count / whole.all_slice_ratio, 0)
            when measured.instance_owner_count > 0 then measured.slice_count / measured.held_slice_count
            else 0
        end as share_ratio,
        if(
            is_told,
            coalesce(measured.cut_ratio / whole.all_ratio, 0),
            measured.instance_owner_count / measured.owner_count
        ) as plain_share_ratio,
        case
            when whole.all_kepler_ratio > 0 then measured.kepler_ratio / whole.all_kepler_ratio
            when measured.signal = 'none' then measured.instance_owner_count / measured.owner_count
            else 0
        end as kepler_share_ratio,
        measured.instance_owner_count / measured.owner_count as equal_share_ratio,
        if(
            measured.instance_owner_count > 0,
            measured.slice_count / greatest(measured.held_slice_count, measured.board_slice_count),
            0
        ) as idle_share_ratio
    from measured
    inner join whole
        on
            measured.piece_number = whole.piece_number
            and measured.span_at = whole.span_at
),

summed as (
    select
        piece_number,
        instance_number,
        sum(observed_seconds) as observed_seconds,
        sum(measured_seconds) as measured_seconds,
        sum(if(counts_active, above_joules, begun_joules) * share_ratio) as active_joules,
        sum(if(counts_active, above_joules, begun_joules) * plain_share_ratio) as active_joules_unweighted,
        sum(above_joules * kepler_share_ratio) as active_joules_kepler,
        sum(if(counts_active, 0, above_joules - begun_joules) * equal_share_ratio) as held_joules,
        sum(idle_joules * idle_share_ratio) as idle_joules,
        sum(if(counts_active, measured_seconds, 0)) as active_seconds,
        sum(if(is_active is null, measured_seconds, 0)) as activity_unknown_seconds,
        sum(if(counts_active and not is_told, measured_seconds, 0)) as equal_seconds,
        max(if(counts_active, above_joules * share_ratio / observed_seconds, null)) as active_watts_max,
        count_if(activity_ratio != cut_ratio) as clamped_count,
        list({
            'span_at': span_at,
            'seconds': observed_seconds,
            'active_seconds': if(counts_active, measured_seconds, 0),
            'active_joules': if(counts_active, above_joules, begun_joules) * share_ratio,
            'active_joules_unweighted': if(counts_active, above_joules, begun_joules) * plain_share_ratio,
            'active_joules_kepler': above_joules * kepler_share_ratio
        } order by span_at) filter (where has_util) as spans
    from shared
    group by piece_number, instance_number
)

select
    instance.cluster,
    instance.device_uuid,
    instance.gpu_instance_id,
    instance.start_at,
    instance.hour_start_at,
    instance.instance_owner_count,
    instance.slice_count,
    summed.* exclude (piece_number, instance_number),
    if(instance.signal = 'none', 'equal_share', 'activity_slice_share') as method
from summed
inner join instance
    on
        summed.piece_number = instance.piece_number
        and summed.instance_number = instance.instance_number
