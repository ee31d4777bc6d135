-- XID errors of each device: first observation, and count.
--
-- The best source of the device at the time counts: counters per code (exact), else counts per code over a sliding window (their rises, a lower bound), else
-- changes of the last code (the same code twice in a row counts once). Rates above 100 per second are invalid.
--
-- revision: 3
-- grain:  cluster, device_uuid, gpu_instance_id, seen_at, xid_code
-- reads:  lake.device_sample, lake.sample, lake.series
-- source: DCGM_EXP_XID_ERRORS_TOTAL, nvidia_smi_xid_errors_total; DCGM_EXP_XID_ERRORS_COUNT; DCGM_FI_DEV_XID_ERRORS; codes: NVIDIA XID catalog
-- columns: cluster, device_uuid, gpu_instance_id, seen_at, xid_code, event_count, source_signal
--   seen_at        UTC, the first scrape with the error
--
-- Copies of a device's series (one per sharing pod) have the same sample: the largest counts.
with detail as (
    select
        sample.cluster,
        series.device_uuid,
        series.signal,
        concat_ws('/', series.metric, series.labels['job']) as source,
        try_cast(coalesce(series.labels['xid'], series.labels['gpu_error_xid']) as integer) as xid_code,
        sample.seen_at::timestamp as seen_at,
        max(sample.value) as value,
        max(sample.gap_increase) as gap_increase,
        bool_and(sample.is_carried) as is_carried
    from lake.sample as sample
    inner join lake.series as series
        using (cluster, series_id)
    where series.signal in ('xid_error_count', 'xid_error_window_count')
    group by all
),

-- Each exporter counts from its own start: only the one with the most samples counts.
best as (
    select
        columns('^(cluster|device_uuid|signal|source)$'),
        min(seen_at) - interval 10 minute as from_at,
        max(seen_at) + interval 10 minute as until_at
    from detail
    group by cluster, device_uuid, signal, source
    qualify row_number() over (partition by cluster, device_uuid order by signal asc, count(*) desc, source asc) = 1
),

-- Values carried over from the previous day are errors of that day.
handed_over as (
    select
        columns('^(cluster|device_uuid|signal|source|xid_code)$'),
        arg_min(value, seen_at) as value
    from detail
    group by all
    having arg_min(is_carried, seen_at)
),

first_seen as (
    select
        sample.cluster,
        sample.device_uuid,
        min(sample.seen_at)::timestamp + to_seconds(if(arg_min(sample.is_carried, sample.seen_at), 0, 60)) as device_seen_at
    from lake.device_sample as sample
    semi join best
        using (cluster, device_uuid)
    group by all
),

-- A series that appears after its device (by a minute, if the device appears on this day too) starts with the errors that created it.
step as (
    select
        detail.*,
        coalesce(
            lag(detail.value) over (
                partition by detail.cluster, detail.device_uuid, detail.signal, detail.xid_code
                order by detail.seen_at
            ),
            handed_over.value
        ) as previous,
        coalesce(epoch(detail.seen_at - lag(detail.seen_at) over (
            partition by detail.cluster, detail.device_uuid, detail.signal, detail.xid_code
            order by detail.seen_at
        )), 60) as step_seconds,
        first_seen.device_seen_at
    from detail
    semi join best
        using (cluster, device_uuid, signal, source)
    left join first_seen
        using (cluster, device_uuid)
    left join handed_over
        using (cluster, device_uuid, signal, source, xid_code)
    where not detail.is_carried
),

rise as (
    select
        *,
        signal as source_signal,
        case
            when previous is null then if(seen_at > device_seen_at, value, 0)
            when value < previous and signal = 'xid_error_count' then coalesce(gap_increase, 0)
            else greatest(value - previous, 0)
        end as event_count
    from step
    where xid_code is not null
)

select
    cluster,
    device_uuid,
    '' as gpu_instance_id,
    seen_at,
    xid_code,
    event_count::bigint as event_count,
    source_signal
from rise
where event_count > 0 and event_count <= 100 * step_seconds
union all
select
    sample.cluster,
    sample.device_uuid,
    sample.gpu_instance_id,
    sample.seen_at::timestamp as seen_at,
    sample.xid_event_code as xid_code,
    1::bigint as event_count,
    'xid_code' as source_signal
from lake.device_sample as sample
-- Two exporters are scraped at different times: the same error has ten minutes.
anti join best
    on
        sample.cluster = best.cluster
        and sample.device_uuid = best.device_uuid
        and sample.seen_at between best.from_at and best.until_at
where sample.xid_event_code is not null
