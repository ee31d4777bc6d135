-- Time between two label runs of a holder, before its first or after its last one, in which it held the device without a label.
--
-- In turn: another pod is named in between, for at most three of the device's steps. Without copies per holder, the exporter names one of several
-- holders at a time (dcgm-exporter 307, 340). After a longer absence, a holder without a uid may have left and returned. Node silent: for at most 15
-- minutes, no pod is named on any device of the node, and then the same workload returns. The exporter could not query the kubelet (dcgm-exporter
-- 342): a holder that left does not return, and labels on other devices would show that the kubelet was queried. Pod alive: the same uid before and
-- after, for any time, because a uid never returns and a pod keeps its devices for life.
-- Before its first and after its last label of a day, a pod that is listed for more than 15 minutes without a label holds the device too, unless another
-- pod is named on it or the pod moved: all its labels on one device end before those on the other begin. Only time with data of the device counts: an
-- exporter that is down shows no holder.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.owner_label_run, day.owner_run, lake.device_label, lake.device_sample
-- source: day.owner_label_run; steps of the device's samples
-- columns:
--   source  in turn, node silent or pod alive
with phase as (
    select
        *,
        lag(start_at) over holder is null as is_first,
        lead(start_at) over holder as named_again_at,
        if(life_start_at < date_trunc('day', start_at), date_trunc('day', start_at), life_start_at) as alive_from_at,
        if(life_end_at is null, null, least(listed_until_at, life_end_at, date_trunc('day', start_at) + interval 1 day)) as alive_until_at,
        -- A pod that moved is first named on one device after its last label on another. Labels of a pod begin and end within 15 minutes of each other.
        least(max(first_named_at) over of_pod, max(end_at) over of_pod - interval 15 minutes) < end_at
        and end_at + interval 15 minutes < alive_until_at as is_outlived,
        greatest(min(last_named_at) over of_pod, min(start_at) over of_pod + interval 15 minutes) > start_at
        and start_at - interval 15 minutes > alive_from_at as is_late
    from (
        select
            *,
            min(start_at) over of_device as first_named_at,
            max(end_at) over of_device as last_named_at
        from day.owner_label_run
        window of_device as (partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid)
    ) as run
    window
        of_pod as (partition by cluster, namespace, pod, pod_uid),
        holder as (partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container order by start_at)
),

absence as (
    select *
    from (
        select
            phase.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|life_.*)$',
            unnest([
                { 'start_at': if(is_first and is_late, alive_from_at, null), 'end_at': phase.start_at, 'is_between': false },
                { 'start_at': phase.end_at, 'end_at': coalesce(named_again_at, if(is_outlived, alive_until_at, null)), 'is_between': named_again_at is not null }
            ], recursive := true)
        from phase
    ) as gap
    where start_at < end_at
),

-- Absences during which another pod was named on the device.
replaced as (
    select distinct absence.* similar to '^(cluster|device_uuid|gpu_instance_id|start_at|end_at)$'
    from absence
    inner join day.owner_label_run as other
        using (cluster, device_uuid, gpu_instance_id)
    where absence.start_at < other.end_at and absence.end_at > other.start_at
),

step as (
    select
        sample.* similar to '^(cluster|device_uuid)$',
        to_milliseconds(3 * round(median(sample.held_seconds) * 1000)::bigint) as gap_limit
    from lake.device_sample as sample
    -- Rows of signals that were scraped at other times are shorter than a step.
    where
        not sample.is_carried and coalesce(sample.joined_count, 0) = 0
        -- Half an hour, because every exporter is scraped at least every ten minutes.
        and (sample.cluster, sample.device_uuid) in (
            select (cluster, device_uuid)
            from replaced
            where end_at <= start_at + interval 30 minutes
        )
    group by sample.cluster, sample.device_uuid
),

node as (
    select distinct columns('^(cluster|device_uuid|node_name)$')
    from lake.device_label
    where node_name != ''
),

-- Uncut label runs: a label that outlived its pod also shows that the kubelet was queried.
named_on_node as (
    select distinct columns('^(cluster|node_name|start_at|end_at)$')
    from day.owner_run
    inner join node
        using (cluster, device_uuid)
),

silence as (
    select absence.* similar to '^(cluster|device_uuid|gpu_instance_id|start_at|end_at)$'
    from absence
    inner join node
        using (cluster, device_uuid)
    left join named_on_node as other
        on
            (node.cluster, node.node_name) = (other.cluster, other.node_name)
            and absence.start_at < other.end_at
            and absence.end_at > other.start_at
    where absence.end_at <= absence.start_at + interval 15 minutes
    group by all
    having count(other.start_at) = 0
),

allocated as (
    select
        absence.*,
        case
            when
                replaced.start_at is not null
                and absence.end_at <= absence.start_at + coalesce(step.gap_limit, interval 3 minutes) then 'in turn'
            when absence.pod_uid != '' then 'pod alive'
            when silence.start_at is not null then 'node silent'
        end as source
    from absence
    left join replaced
        using (cluster, device_uuid, gpu_instance_id, start_at, end_at)
    left join step
        using (cluster, device_uuid)
    left join silence
        using (cluster, device_uuid, gpu_instance_id, start_at, end_at)
    where source is not null and (absence.is_between or replaced.start_at is null)
),

-- Time with data of the device during the absence: its samples, or another name on it.
seen as (
    select
        allocated.* exclude (start_at, end_at),
        allocated.start_at as absent_from_at,
        greatest(allocated.start_at, sample.seen_at::timestamp) as start_at,
        least(allocated.end_at, held_until(sample.seen_at, sample.held_seconds)) as end_at
    from lake.device_sample as sample
    inner join allocated
        using (cluster, device_uuid)
    where
        sample.gpu_instance_id in (allocated.gpu_instance_id, '')
        and sample.seen_at < allocated.end_at
        and held_until(sample.seen_at, sample.held_seconds) > allocated.start_at
    union by name
    select
        allocated.* exclude (start_at, end_at),
        allocated.start_at as absent_from_at,
        greatest(allocated.start_at, other.start_at) as start_at,
        least(allocated.end_at, other.end_at) as end_at
    from allocated
    inner join day.owner_label_run as other
        using (cluster, device_uuid, gpu_instance_id)
    where allocated.start_at < other.end_at and allocated.end_at > other.start_at
)

select * exclude (absent_from_at)
from merged_runs(seen, '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|absent_from_at|source|life_start_at|life_end_at)$')
