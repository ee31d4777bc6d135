-- Capacity of each GPU per day of the window: observed time, and expected time without data.
--
-- It comes from facts.device_hour and not from the ledger, because the ledger must add up to it. GPUs that only Kubernetes reports are one row per
-- node, without a UUID.
--
-- grain:  cluster, node_name, device_uuid, day
-- reads:  facts.device_day, period.device_day, period.node_gap
-- source: facts.device_hour, period.device_day, period.node_gap
-- columns:
--   device_uuid       UUID of the physical GPU; '' for GPUs without an exporter
with seen as (
    select
        columns('^(cluster|device_uuid|day)$'),
        sum(board_observed_seconds) as seen_seconds
    from facts.device_day
    group by all
),

expected as (
    select
        columns('^(cluster|device_uuid|day)$'),
        max(columns('^(node_name|gpu_model|expected_seconds)$')),
        any_value(if(known_day = day, 'unseen', 'not_exported')) as unseen_cause
    from period.device_day
    group by all
),

gpu as (
    select
        expected.*,
        coalesce(seen.seen_seconds, 0) as seen_seconds,
        greatest(0, round(expected.expected_seconds - coalesce(seen.seen_seconds, 0), 3)) as unseen_seconds
    from expected
    left join seen
        using (cluster, device_uuid, day)
)

select
    * exclude (expected_seconds, seen_seconds),
    1 as device_count,
    seen_seconds + unseen_seconds as capacity_seconds
from gpu
union all by name
select
    * exclude (reason, unknown_seconds, evidence),
    '' as device_uuid,
    unknown_seconds as capacity_seconds,
    unknown_seconds as unseen_seconds,
    reason as unseen_cause
from period.node_gap
