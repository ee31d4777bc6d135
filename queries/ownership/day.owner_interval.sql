-- Holders of each device over time from all sources; Kubernetes' own reports on a pod replace its labels.
--
-- While a better source has the pod, its labels count on no device. Labels of other pods do not change.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.authoritative_use, day.owner_gap, day.owner_label_run, lake.device_label
-- columns:
--   source      as in day.owner_label_run, day.owner_gap and day.authoritative_use
--   claims      resource claims that Kubernetes names
with labelled as (
    select
        * exclude (listed_until_at),
        false as is_absence
    from day.owner_label_run
    union all by name
    select
        *,
        true as is_absence
    from day.owner_gap
),

authoritative as (
    select distinct columns('^(cluster|namespace|pod|pod_uid|start_at|end_at)$')
    from day.authoritative_use
),

met as (
    select
        labelled.*,
        authoritative.pod_uid as authoritative_uid,
        authoritative.start_at as authoritative_start_at,
        authoritative.end_at as authoritative_end_at
    from labelled
    inner join authoritative
        using (cluster, namespace, pod)
    where
        labelled.pod_uid in ('', authoritative.pod_uid)
        and labelled.start_at < authoritative.end_at
        and labelled.end_at > authoritative.start_at
),

-- The rest of a run: before, between and after the authoritative intervals.
cut as (
    select
        * exclude (start_at, end_at, authoritative_uid, authoritative_start_at, authoritative_end_at),
        start_at as run_start_at,
        end_at as run_end_at,
        unnest(list_distinct([start_at, authoritative_end_at])) as start_at
    from met
),

open_end as (
    select distinct
        cut.*,
        least(cut.run_end_at, min(met.authoritative_start_at) filter (where met.authoritative_start_at >= cut.start_at) over part) as end_at,
        -- The rest of a run without a uid belongs to the pod of its authoritative intervals, if there is only one.
        if(min(met.authoritative_uid) over part = max(met.authoritative_uid) over part, min(met.authoritative_uid) over part, cut.pod_uid) as found_uid,
        bool_or(met.authoritative_start_at <= cut.start_at and met.authoritative_end_at > cut.start_at) over part as is_authoritative
    from cut
    inner join met
        using (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, is_absence)
    where cut.run_start_at = met.start_at
    window part as (
        partition by
            cut.cluster, cut.device_uuid, cut.gpu_instance_id, cut.namespace, cut.pod, cut.pod_uid, cut.container, cut.run_start_at,
            cut.is_absence, cut.start_at
    )
)

select
    labelled.*,
    false as is_authoritative,
    false as is_ambiguous,
    cast([] as varchar[]) as claims
from labelled
anti join met
    using (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, is_absence)
union all by name
select
    * exclude (run_start_at, run_end_at, is_authoritative, found_uid) replace (found_uid as pod_uid),
    false as is_authoritative,
    false as is_ambiguous,
    [] as claims
from open_end
where not is_authoritative and start_at < end_at
union all by name
select
    use.*,
    false as is_absence,
    true as is_authoritative
from day.authoritative_use as use
semi join lake.device_label
    using (cluster, device_uuid, gpu_instance_id)
