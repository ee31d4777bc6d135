-- Findings with their rule, numbers, owner, GPU-hours at stake, and action.
--
-- A suppressed finding is listed, and does not fail a run. It returns in reports that end after its last day. For findings about several pods, a
-- suppression's pod pattern is compared with the workload. Conditions: period.finding_*.
--
-- grain:  code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail
-- reads:  period.finding, period.price
-- params: finding_rules, suppressions, timezone, until_at, xid_classes
-- source: facts.finding_*; rules: queries/catalog/finding.csv
-- columns: code, cluster, namespace, workload_kind, workload, pod, pod_uid, container, node_name, device_uuid, gpu_instance_id, detail,
--          title, severity, confidence, evidence, gpu_hours, at_stake_cost, owner, gpu_model, rule, thresholds, action, first_seen_at,
--          suppressed_until, suppression, sql, unknown_reasons
with rule as (
    select unnest(from_json(
        $finding_rules::json,
        '[{"code": "VARCHAR", "title": "VARCHAR", "severity": "VARCHAR", "rule": "VARCHAR", "thresholds": "VARCHAR", "action": "VARCHAR", "sql": "VARCHAR"}]'
    ), recursive := true)
),

xid as (
    select unnest(from_json($xid_classes::json, '[{"code": "VARCHAR", "action": "VARCHAR"}]'), recursive := true)
),

suppression as (
    select unnest(from_json(
        $suppressions::json,
        '[{"code": "VARCHAR", "until": "DATE", "reason": "VARCHAR", "cluster": "VARCHAR", "namespace": "VARCHAR", "pod": "VARCHAR", "node_name": "VARCHAR", "device_uuid": "VARCHAR"}]'
    ), recursive := true)
),

numbered as (
    select
        *,
        row_number() over () as number,
        -- A quota, and pods without a node, may concern any model.
        list_distinct(if(gpu_model = '' and code between 'GR501' and 'GR510', (select list(gpu_model) from period.price), string_split(gpu_model, ', '))) as models
    from period.finding
),

-- Mean price of the days since the finding began, by their time in the window; unknown if one of them has no price.
mean_price as (
    select
        found.number,
        len(found.models) as model_count,
        if(count(*) = count(price.hour_cost), round(sum(price.hour_cost * price.window_seconds) / sum(price.window_seconds), 9), null) as hour_cost
    from numbered as found
    inner join period.price as price
        on list_contains(found.models, price.gpu_model) and price.day >= coalesce(found.first_seen_at::date, price.day)
    group by found.number, found.models, price.gpu_model
),

-- One price for all models that the finding concerns, or none.
one_price as (
    select
        number,
        min(hour_cost) as hour_cost
    from mean_price
    group by number, model_count
    having count(hour_cost) = model_count and min(hour_cost) = max(hour_cost)
),

suppressed as (
    select
        found.number,
        arg_max({ 'until': suppression.until, 'reason': suppression.reason }, (suppression.until, suppression.reason)) as why
    from numbered as found
    inner join suppression
        on
            found.code = suppression.code
            and found.cluster glob suppression.cluster
            and found.namespace glob suppression.namespace
            and if(found.pod = '', found.workload, found.pod) glob suppression.pod
            and found.node_name glob suppression.node_name
            and found.device_uuid glob suppression.device_uuid
            and suppression.until >= local_time($until_at::timestamp - interval 1 millisecond, $timezone)::date
    group by found.number
)

select
    found.* similar to '^(code|cluster|namespace|workload_kind|workload|pod|pod_uid|container|node_name|device_uuid|gpu_instance_id|detail)$',
    rule.title,
    coalesce(found.severity, rule.severity) as severity,
    found.confidence,
    found.evidence,
    found.gpu_hours,
    found.gpu_hours * one_price.hour_cost as at_stake_cost,
    if(found.code in ('GR301', 'GR302', 'GR303'), 'platform', coalesce(nullif(found.namespace, ''), 'platform')) as owner,
    found.gpu_model,
    rule.rule,
    rule.thresholds,
    coalesce(nullif(xid.action, ''), rule.action) as action,
    found.first_seen_at,
    suppressed.why.until as suppressed_until,
    coalesce(suppressed.why.reason, '') as suppression,
    array_to_string(list_transform(
        string_split_regex(rule.sql, '[{}]'), lambda part: coalesce(replace(to_json(found) ->> part, '''', ''''''), part)
    ), '') as sql,
    unknown_reasons([
        ('gpu_hours', if(found.gpu_hours is null, 'not_estimated', null)),
        ('at_stake_cost', case when found.gpu_hours is null then 'not_estimated' when at_stake_cost is null then 'not_configured' end)
    ]) as unknown_reasons
from numbered as found
left join rule on found.code = rule.code
left join xid on found.detail = xid.code and found.code in ('GR401', 'GR402', 'GR403')
left join one_price
    using (number)
left join suppressed
    using (number)
