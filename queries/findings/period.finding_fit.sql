-- Findings: containers of workloads that would fit a MIG instance, or a smaller model of the cluster.
--
-- grain:  code, cluster, namespace, workload_kind, workload, container, gpu_model, detail
-- reads:  period.fit
-- params: findings_gpu_hours, fit_hours_min
-- source: period.fit
-- columns:
--   detail  what distinguishes it from others of its code: the profile, else the model
select
    'GR210' as code,
    coalesce(nullif(profile, ''), smaller_model) as detail,
    columns('^(cluster|namespace|workload_kind|workload|pod|pod_uid|container|node_name|device_uuid)$'),
    gpu_model,
    allocated_gpu_hours * (1 - 1 / instance_count) as gpu_hours,
    -- A model is compared by data sheets; a profile whose part is exceeded at times would make those times longer.
    case when profile = '' then 'low' when is_peak_within then 'high' else 'medium' end as confidence,
    concat(
        if(pod_count = 1, '', format('{} pods for {:.0f} h; ', pod_count, allocated_gpu_hours)),
        format(
            'in its busiest hour SM activity {:.0f} %, occupancy {:.0f} %, DRAM activity {:.0f} %; at most {:.1f} GB of memory',
            100 * busiest_sm_active_ratio, 100 * busiest_sm_occupancy_ratio, 100 * busiest_dram_active_ratio, memory_used_bytes_max / 1e9
        ),
        if(profile = '', '', format('; {} of {} fit on this GPU', instance_count, profile)),
        if(profile = '' or is_peak_within, '', format(', but it peaks at {:.0f} % of the SMs', 100 * sm_active_ratio_max)),
        if(smaller_model = '', '', '; the cluster has the smaller ' || smaller_model)
    ) as evidence,
    first_seen_at
from period.fit
where
    (profile != '' or smaller_model != '')
    and allocated_gpu_hours >= $fit_hours_min
    and coalesce(allocated_gpu_hours * (1 - 1 / instance_count), allocated_gpu_hours) >= $findings_gpu_hours
