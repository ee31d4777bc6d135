-- Device allocations of each container: request, grant and use.
--
-- Each device has a row. A row without a UUID is an allocation or request that is not in the telemetry. A GPU that a node advertises in several ways
-- is one device here. Never add use over containers that share a device.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, device
-- reads:  facts.claim_use, facts.container_request, facts.device_day, facts.ownership, period.figure, period.power
-- parts:  100000 rows of period.figure by cluster, namespace, pod
-- params: since_at, until_at
-- source: facts.container_request, facts.claim_use, facts.ownership; use: period.figure
-- columns: cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, device, request_source, requested, claims, granted_by,
--          certainty, sharing_mode, is_admin_access, node_name, gpu_model, allocated_seconds, observed_seconds, allocated_gpu_hours,
--          hours_method, used_gpu_hours, gpu_usage_avg, sm_active_avg, memory_used_ratio_avg, memory_used_bytes, unknown_reasons
--   device                 the claim's device, pool/device; several are listed; '' where there is no claim
--   requested              resources that the container requested, with amounts, for all of its devices together
--   claims                 resource claims of the device; several are listed
--   observed_seconds       s of allocated_seconds in which the device had data
--   allocated_gpu_hours    h of whole GPUs: of sharers by hours_method, of a MIG instance its compute slices
--   used_gpu_hours         allocated_gpu_hours x mean activity
with step as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        source,
        sharing_mode,
        max(case certainty when 'certain' then 0 when 'inferred' then 1 else 2 end) as doubt,
        min(start_at) as start_at,
        max(end_at) as end_at,
        sum(overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp)) / 1000 as allocated_seconds
    from facts.ownership
    where start_at < $until_at and end_at > $since_at
    group by all
),

-- Most devices have one source and one mode. Lists take much memory, so only the other devices get them.
several as (
    select columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$')
    from step
    group by all
    having count(*) > 1
),

owned as (
    select
        * exclude (source),
        if(contains(source, ', '), array_to_string(list_sort(list_distinct(string_split(source, ', '))), ', '), source) as granted_by
    from step
    anti join several
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    union all by name
    select
        columns('^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$'),
        array_to_string(list_sort(list_distinct(flatten(list(string_split(source, ', '))))), ', ') as granted_by,
        max(doubt) as doubt,
        min(start_at) as start_at,
        max(end_at) as end_at,
        string_agg(distinct sharing_mode, ', ' order by sharing_mode) as sharing_mode,
        sum(allocated_seconds) as allocated_seconds
    from step
    semi join several
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    group by all
),

-- A claim that is known from labels alone belongs to the pod that owned the device at that time.
claimed as (
    select
        used.* exclude (start_at, end_at) replace (coalesce(owner.pod_uid, used.pod_uid) as pod_uid),
        used.pool || '/' || used.device as name,
        overlap_ms(greatest(used.start_at, owner.start_at), least(used.end_at, owner.end_at), $since_at::timestamp, $until_at::timestamp) as ms
    from facts.claim_use as used
    left join facts.ownership as owner
        on
            used.pod_uid = ''
            and used.cluster = owner.cluster
            and used.namespace = owner.namespace
            and used.pod = owner.pod
            and used.container = owner.container
            and used.device_uuid = owner.device_uuid
            and used.gpu_instance_id = owner.gpu_instance_id
            and used.start_at < owner.end_at
            and used.end_at > owner.start_at
            and owner.start_at < $until_at
            and owner.end_at > $since_at
    where used.start_at < $until_at and used.end_at > $since_at
),

-- A container may have one device through several requests; the device counts once.
allocated as (
    select
        owned.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
        string_agg(distinct claimed.name, ', ' order by claimed.name) filter (where claimed.claim_uid != '') as device,
        string_agg(distinct claimed.claim, ', ' order by claimed.claim) as claims
    from owned
    inner join claimed
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    where not claimed.is_admin_access
    group by all
),

unfound_request as (
    select
        claimed.* similar to '^(cluster|namespace|pod|pod_uid|container|name|claim|claim_uid|share_id|request)$',
        bool_and(claimed.is_admin_access) as is_admin_access,
        max(claimed.device_uuid) as device_uuid,
        sum(claimed.ms) as ms
    from claimed
    anti join owned
        on
            claimed.cluster = owned.cluster
            and claimed.namespace = owned.namespace
            and claimed.pod = owned.pod
            and claimed.pod_uid = owned.pod_uid
            and claimed.container = owned.container
            and claimed.device_uuid = owned.device_uuid
            and claimed.gpu_instance_id = owned.gpu_instance_id
            and not claimed.is_admin_access
    group by all
),

unfound as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        name as device,
        string_agg(distinct claim, ', ' order by claim) as claims,
        bool_and(is_admin_access) as is_admin_access,
        if(bool_and(is_admin_access), max(device_uuid), '') as device_uuid,
        max(ms) / 1000 as allocated_seconds
    from unfound_request
    group by cluster, namespace, pod, pod_uid, container, name
),

-- Labels may lack the pod's uid: then the last pod with the name at that time counts.
request as (
    select
        columns('^(cluster|namespace|pod|container|pod_uid)$'),
        arg_max(columns('^(request_source|requested|claims)$'), end_at) as "\0",
        sum(overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp)) / 1000 as run_seconds,
        min(start_at) as first_at,
        max(end_at) as last_at
    from facts.container_request
    where start_at < $until_at and end_at > $since_at
    group by cluster, namespace, pod, container, pod_uid
),

granted as (
    select
        owned.*,
        coalesce(allocated.device, '') as device,
        coalesce(allocated.claims, '') as claims,
        false as is_admin_access,
        true as is_found
    from owned
    left join allocated
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    union all by name
    select
        unfound.*,
        '' as gpu_instance_id,
        'dra-claim' as granted_by,
        '' as sharing_mode,
        false as is_found
    from unfound
    union all by name
    select
        request.* exclude (request_source, requested),
        '' as device_uuid,
        '' as gpu_instance_id,
        '' as device,
        '' as granted_by,
        '' as sharing_mode,
        false as is_admin_access,
        request.run_seconds as allocated_seconds,
        false as is_found
    from request
    anti join owned
        on
            request.cluster = owned.cluster
            and request.namespace = owned.namespace
            and request.pod = owned.pod
            and request.container = owned.container
            and (owned.pod_uid = request.pod_uid or (owned.pod_uid = '' and owned.start_at < request.last_at and owned.end_at > request.first_at))
    anti join unfound
        using (cluster, pod_uid, container)
),

named_request as (
    select
        granted.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id|device)$',
        arg_max(request.request_source, request.last_at) as request_source,
        arg_max(request.requested, request.last_at) as requested
    from granted
    inner join request
        using (cluster, namespace, pod, container)
    where
        granted.pod_uid = ''
        and coalesce(granted.start_at < request.last_at and granted.end_at > request.first_at, true)
    group by all
),

place as (
    select
        columns('^(cluster|device_uuid)$'),
        arg_max(columns('^(node_name|gpu_model)$'), (last_hour_at, node_name, gpu_model)) as "\0"
    from facts.device_day
    group by all
),

figure as (
    from period.figure
    where subject = 'container_device'
),

-- Few sets of reasons for many rows.
reason_set as (
    select
        reasons_code,
        any_value(unknown_reasons) as unknown_reasons
    from period.figure
    group by reasons_code
),

joined as (
    select
        granted.* similar to '^(cluster|namespace|pod|pod_uid|container|device_uuid|gpu_instance_id)$',
        granted.device,
        coalesce(request.request_source, named_request.request_source, if(granted.claims != '', 'DRA', '')) as request_source,
        coalesce(request.requested, named_request.requested, '') as requested,
        granted.claims,
        granted.granted_by,
        coalesce(['certain', 'inferred', 'ambiguous'][granted.doubt + 1], '') as certainty,
        granted.sharing_mode,
        granted.is_admin_access,
        coalesce(nullif(figure.node_name, ''), place.node_name, '') as node_name,
        coalesce(place.gpu_model, '') as gpu_model,
        granted.allocated_seconds,
        if(granted.is_found, coalesce(figure.observed_seconds, 0), null) as observed_seconds,
        power.allocated_gpu_hours,
        coalesce(power.hours_method, '') as hours_method,
        power.* similar to '^use(d|_known)_gpu_hours$',
        figure.gpu_usage_avg,
        figure.sm_active_avg,
        figure.memory_used_ratio_avg,
        figure.memory_used_bytes,
        granted.is_found,
        coalesce(reason_set.unknown_reasons, map_from_entries([])) as figure_reasons,
        if(granted.is_admin_access, 'admin_access', 'device_unknown') as reason
    from granted
    left join request
        using (cluster, namespace, pod, pod_uid, container)
    left join named_request
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id, device)
    left join place
        using (cluster, device_uuid)
    left join period.power as power
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    left join figure
        using (cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id)
    left join reason_set
        using (reasons_code)
)

select
    * exclude (is_found, figure_reasons, reason, use_known_gpu_hours),
    unknown_reasons([
        ('observed_seconds', if(observed_seconds is null, reason, null)),
        ('allocated_gpu_hours', if(allocated_gpu_hours is null, if(is_found, 'not_collected', reason), null)),
        ('used_gpu_hours', if(used_gpu_hours is null, if(is_found, if(use_known_gpu_hours > 0, 'low_coverage', 'not_collected'), reason), null)),
        ('gpu_usage_avg', if(gpu_usage_avg is null, coalesce(figure_reasons['gpu_usage_avg'], reason), null)),
        ('sm_active_avg', if(sm_active_avg is null, coalesce(figure_reasons['sm_active_avg'], reason), null)),
        ('memory_used_ratio_avg', if(memory_used_ratio_avg is null, coalesce(figure_reasons['memory_used_ratio_avg'], reason), null)),
        ('memory_used_bytes', if(memory_used_bytes is null, coalesce(figure_reasons['memory_used_ratio_avg'], reason), null))
    ]) as unknown_reasons
from joined
