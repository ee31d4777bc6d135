-- Devices of resource claims over time: from the cluster's own objects, else from telemetry.
--
-- Claims disappear with their pods. Between snapshots, the exporter's labels (dra_*) and kube-state-metrics (from 2.20) may still name them.
-- Snapshots take precedence over telemetry for the same claim and time.
--
-- revision: 3
-- grain:  cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, start_at
-- reads:  day.claim_label, day.claim_match, day.claim_share
-- columns: cluster, namespace, claim, claim_uid, driver, pool, device, share_id, request, subrequest, is_admin_access, is_extended_resource,
--          node_name, device_type, profile, gpu_model, device_uuid, gpu_instance_id, matched_by, share_ratio, share_source, start_at, end_at,
--          start_source, end_source, end_uncertainty_seconds
--   request                  request of the claim; '' where unknown
--   device_type              gpu, mig, …; '' where the driver does not report it
--   gpu_instance_id          MIG instance; '' for the whole GPU; null where unknown
--   matched_by               as in day.claim_match, or labels
--   share_source             whole device, takes nothing (admin access), consumed capacity, requested capacity, or '' where the size is unknown
with judged as (
    select
        label.*,
        match.cluster is not null as is_in_snapshot
    from day.claim_label as label
    left join day.claim_match as match
        on
            label.cluster = match.cluster
            and label.namespace = match.namespace
            and label.claim = match.claim
            and label.start_at < match.end_at
            and label.end_at > match.start_at
),

-- If several claims have one name in turn, the claim in the snapshot of that time counts.
named as (
    select * exclude (is_in_snapshot)
    from judged
    qualify not bool_or(is_in_snapshot) over (
        partition by cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
    )
)

select
    match.* exclude (start_at, end_at, start_source, end_source, end_uncertainty_seconds),
    case
        when match.is_admin_access then 0
        when match.share_id = '' then 1
        else share.share_ratio
    end::double as share_ratio,
    case
        when match.is_admin_access then 'takes nothing'
        when match.share_id = '' then 'whole device'
        else coalesce(share.share_source, '')
    end as share_source,
    match.* similar to '^(start_at|end_at|start_source|end_source|end_uncertainty_seconds)$'
from day.claim_match as match
left join day.claim_share as share
    using (cluster, namespace, claim_uid, driver, pool, device, share_id, request)
union all by name
select
    columns('^(cluster|namespace|claim)$'),
    '' as claim_uid,
    max(columns('^(driver|pool|device)$')),
    '' as share_id,
    '' as request,
    '' as subrequest,
    false as is_admin_access,
    false as is_extended_resource,
    max(node_name) as node_name,
    if(gpu_instance_id = '', 'gpu', 'mig') as device_type,
    max(profile) as profile,
    max(gpu_model) as gpu_model,
    device_uuid,
    gpu_instance_id,
    'labels' as matched_by,
    '' as share_source,
    min(start_at) as start_at,
    max(end_at) as end_at,
    'labels' as start_source,
    'labels' as end_source
-- Series may name several containers with one claim.
from numbered_runs(named, (cluster, namespace, claim, device_uuid, gpu_instance_id))
group by cluster, namespace, claim, device_uuid, gpu_instance_id, run_number
