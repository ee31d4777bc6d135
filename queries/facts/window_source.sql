-- Which metric each signal was read from over the window, for every device, container on a device, and container.
--
-- A container's are those of its devices on the days on which it held them; on a MIG instance its own, and the board's for signals
-- that the instance has not. Several metrics (an exporter that was upgraded, two exporters) are listed, sorted.
--
-- grain:  subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.container_hour, facts.device_signal
-- params: since_at, until_at
-- source: facts.device_signal
-- columns:
--   subject          device, container_device (a container on one of its devices) or container (all its devices)
--   cluster          cluster name
--   namespace        workload namespace
--   pod              workload pod
--   pod_uid          its uid; '' where unknown
--   container        workload container
--   device_uuid      UUID of the physical GPU
--   gpu_instance_id  MIG instance; '' for the whole GPU
--   source_metrics   signal → metric that it was read from; several are listed
with told as (
    select
        cluster,
        device_uuid,
        gpu_instance_id,
        day,
        signal,
        source_metric
    from facts.device_signal
    where sample_count > 0 and day < $until_at and day + interval 1 day > $since_at
),

holder as (
    select distinct
        cluster,
        namespace,
        pod,
        pod_uid,
        container,
        device_uuid,
        gpu_instance_id,
        hour_start_at::date as day
    from facts.container_hour
    where hour_start_at < $until_at and hour_start_at + interval 1 hour > $since_at
),

held as (
    select
        holder.cluster,
        holder.namespace,
        holder.pod,
        holder.pod_uid,
        holder.container,
        holder.device_uuid,
        holder.gpu_instance_id,
        told.signal,
        told.source_metric
    from holder
    inner join told
        on
            holder.cluster = told.cluster
            and holder.device_uuid = told.device_uuid
            and told.gpu_instance_id in (holder.gpu_instance_id, '')
            and holder.day = told.day
    qualify told.gpu_instance_id = max(told.gpu_instance_id) over (
        partition by
            holder.cluster, holder.namespace, holder.pod, holder.pod_uid, holder.container,
            holder.device_uuid, holder.gpu_instance_id, holder.day, told.signal
    )
),

reading as (
    select
        'device' as subject,
        cluster,
        '' as namespace,
        '' as pod,
        '' as pod_uid,
        '' as container,
        device_uuid,
        gpu_instance_id,
        signal,
        source_metric
    from told
    union all by name
    select
        'container_device' as subject,
        *
    from held
    union all by name
    select
        'container' as subject,
        * replace ('' as device_uuid, '' as gpu_instance_id)
    from held
),

listed as (
    select
        * exclude (source_metric),
        array_to_string(list_sort(list_distinct(flatten(list(string_split(source_metric, ', '))))), ', ') as source_metric
    from reading
    group by all
)

select
    subject,
    cluster,
    namespace,
    pod,
    pod_uid,
    container,
    device_uuid,
    gpu_instance_id,
    map_from_entries(list({ 'signal': signal, 'metric': source_metric } order by signal)) as source_metrics
from listed
group by subject, cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
