-- Accelerators that each pod requests, and its progress: extended resources by name, devices of claims by class.
--
-- An extended resource with a claim made by the scheduler counts as the claim's device class: it takes no device of the device plugin. Times from
-- snapshots are corrected by Kubernetes' times of binding and completion, or the end in kube-state-metrics if no later snapshot has the pod, except
-- for claims of several pods, which may use them in turn. A pod waits from its creation, even if the first snapshot shows it placed.
--
-- grain:  cluster, source, is_claim, pod_uid, resource, start_at
-- reads:  day.claim_request, day.kube_request, day.pod_life, day.snapshot_request, lake.claim, lake.device_class, lake.pod
-- source: day.snapshot_request, day.claim_request; day.kube_request; day.pod_life; Pod status.extendedResourceClaimStatus
-- columns:
--   container_units   units that its app containers request; null if they request none
--   is_claim          whether its own resource claims request them
--   claim_units       as in day.claim_request; null for extended resources
--   counted_resource  resource whose units it takes: the device class if the scheduler made a claim for it
with class_request as (
    select distinct
        columns('^(cluster|pod_uid)$'),
        class.extended_resource as resource,
        class.device_class || '.deviceclass.resource.k8s.io/devices' as class_resource
    from lake.pod
    inner join lake.claim
        using (cluster, namespace)
    inner join lake.device_class as class
        using (cluster)
    where
        pod.extended_resource_claim = claim.claim
        and claim.is_extended_resource
        and class.extended_resource != ''
        and list_contains([request.device_class for request in claim.requests], class.device_class)
),

life as (
    select
        pod.* similar to '^(cluster|pod_uid)$',
        min(pod.created_at)::timestamp as created_at,
        min(pod.scheduled_at)::timestamp as scheduled_at,
        coalesce(max(pod.finished_at)::timestamp, if(max(life.ended_at) >= max(pod.observed_at), max(life.ended_at), null)) as finished_at,
        min(pod.observed_at)::timestamp as seen_from_at,
        min(pod.observed_at) filter (where pod.node_name != '')::timestamp as placed_from_at
    from lake.pod
    left join day.pod_life as life
        using (cluster, pod_uid)
    group by all
),

shown as (
    select
        *,
        false as is_claim,
        false as is_of_several_pods
    from day.snapshot_request
    union all by name
    select
        * exclude (device_class),
        effective_units as container_units,
        false as is_opencosts,
        true as is_claim
    from day.claim_request
),

timed as (
    select
        if(node_name = '', scheduled_at, finished_at) as changed_at,
        shown.* exclude (previous_at, is_of_several_pods) replace (
            if(scheduled_at between previous_at and start_at and start_at = placed_from_at, scheduled_at, start_at) as start_at,
            if(changed_at between start_at and end_at, changed_at, end_at) as end_at
        ),
        life.created_at,
        if(start_at = seen_from_at, if(node_name = '', start_at, scheduled_at), null) as waited_until_at
    from shown
    left join life
        on shown.cluster = life.cluster and shown.pod_uid = life.pod_uid and not shown.is_of_several_pods
),

reported as (
    from timed
    where start_at < end_at
    union all by name
    select
        * replace (
            '' as node_name,
            'Pending' as phase,
            if(node_name = '', stage, 'unscheduled') as stage,
            created_at as start_at,
            waited_until_at as end_at
        )
    from timed
    where created_at < waited_until_at
)

select
    request.* exclude (changed_at, created_at, waited_until_at),
    coalesce(class_request.class_resource, request.resource) as counted_resource,
    'snapshot' as source
from reported as request
left join class_request
    using (cluster, pod_uid, resource)
union all by name
select
    *,
    resource as counted_resource,
    'kube-state-metrics' as source,
    false as is_claim
from day.kube_request
