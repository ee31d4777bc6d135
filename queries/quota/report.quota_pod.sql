-- Pods of each quota: waiting, allocated, in and over quota, and possible preemptors with the condition.
--
-- Only nos has in and over quota: by its rules, and by the observed label. Possible preemptors are known for nos and scheduler-plugins.
--
-- grain:  cluster, scheduler, quota, resource, flavor, namespace, pod, pod_uid
-- reads:  facts.quota_pod_hour
-- params: since_at, until_at
-- columns: those of facts.quota_pod_hour without system, hour_start_at, amount_native, amount_gpus; scheduler, request_gpus,
--          request_native, delivered_gpu_hours, over_quota_gpu_hours, unknown_reasons
--   request_native               request in the resource's own unit
--   delivered_gpu_hours          GPU-h allocated to it
--   over_quota_gpu_hours         GPU-h allocated to it while over quota
select
    cluster,
    system as scheduler,
    columns('^(quota|resource|flavor|namespace|pod|pod_uid)$'),
    max(priority) as priority,
    max(amount_gpus) as request_gpus,
    max(amount_native) as request_native,
    any_value(native_unit) as native_unit,
    sum(columns('^(waiting|held)_seconds$')),
    sum(held_seconds * amount_gpus) / 3600 as delivered_gpu_hours,
    sum(over_quota_seconds * amount_gpus) / 3600 as over_quota_gpu_hours,
    sum(columns('^(observed_in_quota|observed_over_quota|in_quota|over_quota|label_differs|exposed|exposed_within_min|exposed_fair_share|exposed_same_namespace)_seconds$')),
    list_sort(list_distinct(flatten(list(exposed_by)))) as exposed_by,
    max(end_reason) as end_reason,
    unknown_reasons([
        ('priority', if(max(priority) is null, 'not_observed', null)),
        ('request_gpus', if(max(amount_gpus) is null, 'no_gpu_equivalent', null)),
        ('delivered_gpu_hours', if(max(amount_gpus) is null, 'no_gpu_equivalent', null)),
        ('over_quota_gpu_hours', if(system != 'nos', 'no_such_notion', if(max(amount_gpus) is null, 'no_gpu_equivalent', null))),
        ('in_quota_seconds', if(system != 'nos', 'no_such_notion', null)),
        ('over_quota_seconds', if(system != 'nos', 'no_such_notion', null)),
        ('exposed_seconds', case
            when system = 'kubernetes' then 'no_such_notion'
            when system not in ('nos', 'scheduler-plugins') then 'preemption_not_read'
        end),
        ('exposed_within_min_seconds', if(system not in ('nos', 'scheduler-plugins'), 'no_such_notion', null)),
        ('exposed_fair_share_seconds', if(system != 'nos', 'no_such_notion', null)),
        ('exposed_same_namespace_seconds', if(system not in ('nos', 'scheduler-plugins'), 'no_such_notion', null)),
        ('observed_in_quota_seconds', if(sum(observed_in_quota_seconds) is null, if(system = 'nos', 'not_observed', 'no_such_notion'), null)),
        ('observed_over_quota_seconds', if(sum(observed_over_quota_seconds) is null, if(system = 'nos', 'not_observed', 'no_such_notion'), null)),
        ('label_differs_seconds', if(sum(label_differs_seconds) is null, if(system = 'nos', 'not_observed', 'no_such_notion'), null))
    ]) as unknown_reasons
from facts.quota_pod_hour
where is_in_period(hour_start_at, $since_at, $until_at)
group by cluster, system, quota, resource, flavor, namespace, pod, pod_uid
