-- Holders of each device over time: the one source of holders for all later figures.
--
-- The first rule that applies gives the sharing mode and its evidence. Labels that alternate on one device: time-sliced?, because labels alone do not
-- show the intervals. Several holders at once: shared-claim with one resource claim, mps if the node is labeled so, else time-sliced (MPS appears the
-- same). A MIG instance or a request for one: mig. One holder: exclusive, unless the node or the request shows sharing and the exporter has no
-- virtual GPUs. Then mps or time-sliced?, because other holders may be unnamed. Kubernetes and virtual GPUs name every holder.
--
-- revision: 10
-- grain:  cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at
-- reads:  day.node_sharing, day.owner_interval, day.pod_request, lake.device_label, lake.series
-- source: resource claims, Koordinator's annotation, the kubelet; exporter labels, corrected by kube-state-metrics;
--          vgpu, dra_claim_namespace and dra_claim_name of dcgm-exporter
-- columns: cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at, end_at, source, certainty, sharing_mode,
--          sharing_evidence, life_start_at, life_end_at
--   source        dra-claim, koordinator, kubelet-checkpoint, pod-resources, labels, labels+kube-state, labels+snapshot, in turn, node silent, pod alive; several are listed
--   sharing_mode  exclusive, mig, mps, shared-claim, time-sliced, or time-sliced? where uncertain
with reported as (
    select
        columns('^(cluster|device_uuid|namespace|pod|container)$'),
        labels['dra_claim_namespace'] || '/' || labels['dra_claim_name'] as claim,
        labels['vgpu'] is not null as is_virtual
    from lake.series
    where pod != '' and device_uuid != ''
),

-- Evidence that a holder shares its device: resource claims in its series, and whether series name every holder.
hint as (
    select
        * exclude (claim, is_virtual),
        coalesce(list_sort(list(distinct claim) filter (where claim is not null)), []) as claims,
        bool_or(is_virtual) as is_virtual
    from reported
    where claim is not null or is_virtual
    group by all
),

hinted as (
    select
        run.* exclude (claims),
        if(run.is_authoritative, run.claims, coalesce(hint.claims, [])) as claims
    from day.owner_interval as run
    left join hint
        using (cluster, device_uuid, namespace, pod, container)
),

-- Runs during which another pod or container held the same device.
shared as (
    select
        run.* similar to '^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container|start_at)$',
        bool_or(run.is_absence != other.is_absence) as is_alternating,
        bool_or(list_has_any(run.claims, other.claims)) as is_one_claim
    from hinted as run
    inner join hinted as other
        using (cluster, device_uuid, gpu_instance_id)
    where
        run.start_at < other.end_at
        and run.end_at > other.start_at
        and (run.namespace, run.pod, run.pod_uid, run.container)
        != (other.namespace, other.pod, other.pod_uid, other.container)
    group by all
),

place as (
    select
        columns('^(cluster|device_uuid)$'),
        max(node_name) as node_name
    from lake.device_label
    group by cluster, device_uuid
),

-- Whether each holder has its own series is a setting of the exporter, and so of the node.
virtual as (
    select distinct
        place.cluster,
        place.node_name
    from hint
    inner join place
        using (cluster, device_uuid)
    where hint.is_virtual
),

node as (
    select
        place.*,
        coalesce(sharing.strategy, '') as strategy,
        sharing.evidence,
        virtual.node_name is not null as is_virtual
    from place
    left join day.node_sharing as sharing
        using (cluster, node_name)
    left join virtual
        using (cluster, node_name)
),

request as (
    select
        columns('^(cluster|namespace|pod|pod_uid|container)$'),
        list_bool_or([resource = 'nvidia_com_gpu_shared' for resource in flatten(list(resources))]) as is_shared,
        list_bool_or([resource like 'nvidia\_com\_mig\_%' escape '\' for resource in flatten(list(resources))]) as is_mig
    -- A holder without a uid may be any pod of its name.
    from (select * replace (unnest(list_distinct([pod_uid, ''])) as pod_uid) from day.pod_request) as named
    group by all
),

judged as (
    select
        run.* exclude (claims),
        coalesce(shared.is_alternating, false) as is_alternating,
        shared.start_at is not null as is_shared,
        coalesce(shared.is_one_claim, false) as is_one_claim,
        -- Kubernetes names every holder, and so do exporters for virtual GPUs.
        run.is_authoritative or coalesce(node.is_virtual, false) as is_virtual,
        coalesce(node.strategy, '') as strategy,
        case
            when node.strategy not in ('', 'none') then node.evidence
            when request.is_shared then 'requests nvidia.com/gpu.shared'
        end as shares_evidence,
        run.gpu_instance_id != '' or coalesce(request.is_mig, false) as is_mig
    from hinted as run
    left join shared
        using (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, start_at)
    left join node
        using (cluster, device_uuid)
    left join request
        using (cluster, namespace, pod, pod_uid, container)
),

certain as (
    select
        *,
        case
            when is_alternating then 'time-sliced?'
            when is_one_claim then 'shared-claim'
            when is_shared and strategy = 'mps' then 'mps'
            when is_shared then 'time-sliced'
            when is_mig then 'mig'
            when is_virtual or shares_evidence is null then 'exclusive'
            when strategy = 'mps' then 'mps'
            else 'time-sliced?'
        end as sharing_mode,
        case
            when is_alternating then 'owners named in turn'
            when is_one_claim then 'several owners of one resource claim'
            when is_shared and strategy in ('mps', 'time-slicing') then 'several owners named at once; node label says ' || strategy
            when is_shared then 'several owners named at once'
            when gpu_instance_id != '' then 'GPU instance id on the series'
            when is_mig then 'requests a MIG device'
            when shares_evidence is null then 'one owner named at a time'
            when is_authoritative then 'one owner named; Kubernetes would name others'
            when is_virtual then 'one owner named; virtual GPUs would name others'
            else shares_evidence || '; without virtual GPUs others may be unnamed'
        end as sharing_evidence,
        not is_shared and not is_mig and not is_virtual and shares_evidence is not null as is_unsure,
        case
            when is_alternating or is_unsure or is_ambiguous then 'ambiguous'
            when is_absence then 'inferred'
            else 'certain'
        end as certainty
    from judged
)

select
    columns('^(cluster|device_uuid|gpu_instance_id|namespace|pod|pod_uid|container)$'),
    min(start_at) as start_at,
    max(end_at) as end_at,
    string_agg(distinct source, ', ' order by source) as source,
    certainty,
    sharing_mode,
    sharing_evidence,
    any_value(life_start_at) as life_start_at,
    any_value(life_end_at) as life_end_at
-- Adjacent runs and absences with equal columns become one: labels that alternate between scrapes would make thousands of rows.
from numbered_runs(certain, (cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container, certainty, sharing_mode, sharing_evidence))
group by
    cluster, device_uuid, gpu_instance_id, namespace, pod, pod_uid, container,
    certainty, sharing_mode, sharing_evidence, run_number
