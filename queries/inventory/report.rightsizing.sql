-- Right-sizing of workloads whose containers were alone on one GPU: their needs, and the smallest fitting MIG profile and model of the cluster.
--
-- GPU utilization alone is not enough: it does not show how many SMs a running kernel uses. The need is then unknown.
--
-- grain:  cluster, namespace, workload_kind, workload, container, gpu_model
-- reads:  period.fit
-- source: period.fit; geometry and models: queries/catalog/mig_profile.csv, gpu_model.csv
-- columns: cluster, namespace, workload_kind, workload, container, gpu_model, pod, pod_uid, node_name, device_uuid, pod_count, verdict,
--          profile, smaller_model, instance_count, freed_gpu_hours, allocated_gpu_hours, busiest_sm_active_ratio, busiest_sm_occupancy_ratio, busiest_dram_active_ratio, sm_active_max,
--          memory_used_bytes_max, memory_used_ratio_max, unknown_reasons
--   pod_count                   pods alone on a GPU of the model
--   profile                     fitting MIG profile; '' for none
--   allocated_gpu_hours         h in which the containers' GPUs had data while allocated
--   busiest_sm_active_ratio     SM activity of its busiest hour
--   busiest_sm_occupancy_ratio  SM occupancy of its busiest hour
--   busiest_dram_active_ratio   DRAM activity of its busiest hour
--   memory_used_ratio_max       largest used / (used + free)
select
    columns('^(cluster|namespace|workload_kind|workload|container|gpu_model|pod|pod_uid|node_name|device_uuid|pod_count)$'),
    case
        when not is_known then 'unknown'
        when allocated_gpu_hours < 24 then 'too short'
        when profile != '' or smaller_model != '' then 'fits'
        when is_catalogued then 'nothing smaller here'
        else 'model not in the catalog'
    end as verdict,
    profile,
    smaller_model,
    instance_count,
    allocated_gpu_hours * (1 - 1 / instance_count) as freed_gpu_hours,
    columns('^(allocated_gpu_hours|busiest_sm_active_ratio|busiest_sm_occupancy_ratio|busiest_dram_active_ratio)$'),
    sm_active_ratio_max as sm_active_max,
    memory_used_bytes_max,
    memory_used_ratio_max,
    unknown_reasons([
        (name, case
            when instance_count is not null then null
            when is_known then 'no_smaller'
            when sm_active_seen_seconds + sm_occupancy_seen_seconds + dram_active_seen_seconds + memory_seen_seconds is null then 'not_collected'
            else 'low_coverage'
        end)
        for name in ['instance_count', 'freed_gpu_hours']
    ] || [
        ('busiest_sm_active_ratio', if(busiest_sm_active_ratio is null, if(sm_active_seen_seconds is null, 'not_collected', 'low_coverage'), null)),
        ('busiest_sm_occupancy_ratio', if(busiest_sm_occupancy_ratio is null, if(sm_occupancy_seen_seconds is null, 'not_collected', 'low_coverage'), null)),
        ('busiest_dram_active_ratio', if(busiest_dram_active_ratio is null, if(dram_active_seen_seconds is null, 'not_collected', 'low_coverage'), null)),
        ('sm_active_max', if(sm_active_ratio_max is null, 'not_collected', null)),
        ('memory_used_bytes_max', if(memory_used_bytes_max is null, if(fb_used_seen_seconds is null, 'not_collected', 'low_coverage'), null)),
        ('memory_used_ratio_max', if(memory_used_ratio_max is null, if(memory_seen_seconds is null, 'not_collected', 'low_coverage'), null))
    ]) as unknown_reasons
from period.fit
