-- Label runs of holders on a device, with the pod's uid, cut where the pod ended.
--
-- A run is cut where its labels outlive the pod by more than 60 s (dcgm-exporter 140, kubernetes 119423 and 132020); less is the last scrape's own
-- step. Names recur: a run without a uid belongs to the pods that have its name in that time, each in its own interval. A pod's life comes from
-- kube-state-metrics or snapshots. Time that neither explains stays as the labels report it.
--
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.owner_run, day.pod_life, day.snapshot_life, facts.refuted_holder
-- source: exporter labels; kube-state-metrics, else snapshots of Kubernetes' state, for the pod's uid, start and end
-- columns:
--   source           labels, labels+kube-state where kube-state-metrics knows the pod, or labels+snapshot where snapshots do
--   listed_until_at  UTC, end of the pod's last listing; it ended by life_end_at, which is later if the next list came after a gap
with claimed as (
    select run.*
    from day.owner_run as run
    anti join facts.refuted_holder
        using (cluster, namespace, pod)
),

reported as (
    select
        *,
        'labels+kube-state' as source
    from day.pod_life
    union all by name
    select
        *,
        'labels+snapshot' as source
    from day.snapshot_life
),

-- Each source shows an end at the latest: the earlier one counts.
life as (
    select *
    from reported
    qualify row_number() over (
        partition by cluster, namespace, pod, pod_uid
        order by ended_at asc nulls last, listed_until_at desc, source asc
    ) = 1
),

named as (
    select
        *,
        coalesce(bound_at, created_at, listed_from_at) as named_from_at,
        row_number() over same_name = 1 as is_first,
        lead(coalesce(created_at, listed_from_at)) over same_name as named_until_at
    from life
    window same_name as (
        partition by cluster, namespace, pod
        order by coalesce(created_at, listed_from_at), pod_uid
    )
),

-- A name belongs to its first pod from one minute before the binding, as clocks differ; if its creation is unknown, from any time before.
bearer as (
    select
        * replace (case
            when is_first and created_at is null then '-infinity'::timestamp
            when is_first then named_from_at - interval 1 minute
            else named_from_at
        end as named_from_at)
    from named
),

matched as (
    select
        run.* exclude (pod_uid, start_at, end_at),
        bearer.* exclude (cluster, namespace, pod),
        run.start_at as run_start_at,
        if(run.pod_uid = '', greatest(run.start_at, bearer.named_from_at), run.start_at) as start_at,
        if(run.pod_uid = '', least(run.end_at, bearer.named_until_at), run.end_at) as end_at,
        -- Snapshots that ended before the labels did not see the pod's end. The last snapshot may be valid beyond the start of the next pod with the
        -- same name; the pod's life is not.
        coalesce(
            bearer.ended_at,
            if(bearer.source = 'labels+snapshot' and bearer.listed_until_at < run.end_at, null, bearer.listed_until_at)
        ) as until_at,
        if(bearer.named_until_at < until_at, bearer.named_until_at, until_at) as known_until_at
    from claimed as run
    inner join bearer
        using (cluster, namespace, pod)
    where
        (
            run.pod_uid = bearer.pod_uid
            or (
                run.pod_uid = ''
                and run.end_at > bearer.named_from_at
                and run.start_at < coalesce(bearer.named_until_at, 'infinity'::timestamp)
            )
        )
),

-- Label time before the first known pod with the name stays as the labels report it.
explained as (
    select
        columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|container)$'),
        run_start_at as start_at,
        min(matched.start_at) as from_at
    from matched
    group by all
),

unexplained as (
    select run.* replace (least(run.end_at, explained.from_at) as end_at)
    from claimed as run
    left join explained
        using (cluster, device_uuid, gpu_instance_id, namespace, pod, container, start_at)
    where explained.from_at is null or explained.from_at > run.start_at
),

found as (
    select columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at|end_at|source|started_at|known_until_at|listed_until_at)$')
    from (select * replace (if(end_at > ended_at + interval 1 minute, ended_at, end_at) as end_at) from matched) as cut
    where start_at < end_at
    union all by name
    select
        *,
        'labels' as source
    from unexplained
)

select
    * exclude (started_at, known_until_at),
    if(known_until_at is null or started_at is null, null, least(started_at, min(start_at) over holder)) as life_start_at,
    if(life_start_at is null, null, greatest(known_until_at, max(end_at) over holder)) as life_end_at
from found
window holder as (partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container)
