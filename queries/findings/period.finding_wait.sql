-- Findings: namespaces whose pods wait long for accelerators.
--
-- Judged where several pods were given a place in the window, or still waited at its end, these by what they have waited so far.
--
-- grain:  code, cluster, namespace, detail
-- reads:  period.pod_wait
-- params: since_at, wait_hours_max, wait_pods_min
-- source: period.pod_wait
-- columns:
--   detail  what they requested
with summed as (
    select
        columns('^(cluster|namespace|resource)$'),
        string_agg(distinct gpu_model, ', ' order by gpu_model) filter (where gpu_model != '') as gpu_model,
        count(*) as pod_count,
        count(*) filter (where is_waiting) as waiting_count,
        quantile_cont(coalesce(waiting_seconds, placing_seconds) / 3600, 0.5) as wait_hours_p50,
        quantile_cont(coalesce(waiting_seconds, placing_seconds) / 3600, 0.95) as wait_hours_p95,
        sum(pending_gpu_hours) as pending_gpu_hours,
        date_trunc('hour', min(greatest(created_at, $since_at::timestamp))) as first_seen_at
    from period.pod_wait
    where is_placed or is_waiting
    group by cluster, namespace, resource
)

select
    'GR510' as code,
    resource as detail,
    cluster,
    namespace,
    coalesce(gpu_model, '') as gpu_model,
    pending_gpu_hours as gpu_hours,
    'high' as confidence,
    format(
        '{} pod{} waited: median {:.1f} h, p95 {:.1f} h; {} still pending at the end',
        pod_count, if(pod_count = 1, '', 's'), wait_hours_p50, wait_hours_p95, waiting_count
    ) as evidence,
    first_seen_at
from summed
where pod_count >= $wait_pods_min and wait_hours_p95 >= $wait_hours_max
