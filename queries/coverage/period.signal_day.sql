-- Data coverage of each signal, node and day of the window, by cause of missing data, with devices without data.
--
-- A device without any data is expected to have the signals of any GPU. Its missing data has no cause of the signal's own.
--
-- grain:  cluster, node_name, day, signal, cause, is_silent
-- reads:  facts.device_signal, facts.signal_day, period.device_day
-- params: expected_signals, since_at, until_at
-- columns: those of facts.signal_day; is_silent
with silent as (
    select
        cluster,
        coalesce(node_name, '') as node_name,
        day,
        gpu_instance_id != '' as is_instance,
        has_instances,
        count(*) as device_count,
        sum(unknown_seconds) as unseen_seconds
    from period.device_day
    where
        observed_seconds = 0
        and (cluster, device_uuid, day) not in (
            select (cluster, device_uuid, day)
            from facts.device_signal
            where day < $until_at and day + interval 1 day > $since_at
        )
    group by all
),

catalog as (
    select unnest(
        from_json($expected_signals::json, '[{"signal": "VARCHAR", "is_board": "BOOLEAN", "needs": "VARCHAR"}]'),
        recursive := true
    )
)

select
    *,
    false as is_silent
from facts.signal_day
where day < $until_at and day + interval 1 day > $since_at
union all by name
select
    silent.* similar to '^(cluster|node_name|day)$',
    catalog.signal,
    '' as cause,
    sum(silent.device_count)::bigint as device_count,
    0 as observed_count,
    0 as observed_seconds,
    round(sum(silent.unseen_seconds), 3) as unseen_seconds,
    0 as lacking_seconds,
    true as is_silent
from silent
inner join catalog on if(catalog.is_board, not silent.is_instance, silent.is_instance or not silent.has_instances)
where catalog.needs != 'optional'
group by all
