-- Extra evidence in the series of a holder that may share its device: resource claims, and whether every holder is named.
--
-- grain:  cluster, device_uuid, namespace, pod, container
-- reads:  lake.series
-- source: labels of the device's series (dcgm-exporter: vgpu, dra_claim_namespace, dra_claim_name)
-- columns:
--   claims      resource claims named beside it, namespace/name, sorted
with hint as (
    select
        columns('^(cluster|device_uuid|namespace|pod|container)$'),
        labels['dra_claim_namespace'] || '/' || labels['dra_claim_name'] as claim,
        labels['vgpu'] is not null as is_virtual
    from lake.series
    where pod != '' and device_uuid != ''
)

select
    * exclude (claim, is_virtual),
    coalesce(list_sort(list(distinct claim) filter (where claim is not null)), []) as claims,
    bool_or(is_virtual) as is_virtual
from hint
where claim is not null or is_virtual
group by all
