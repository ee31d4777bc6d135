-- Possible nodes for each kind of request: nodes with its resource and one of its models.
--
-- grain:  cluster, resource, wanted_model, node_name
-- reads:  period.node_placeable, period.pod_run
-- source: misfit, without its amounts
-- columns: cluster, resource, wanted_model, node_name
--   resource      resource that it requests, as kube-state-metrics writes it; '' where unknown
with request as (
    select distinct columns('^(cluster|resource|wanted_model)$')
    from period.pod_run
),

node as (
    select distinct
        columns('^(cluster|node_name|gpu_model)$'),
        resources
    from period.node_placeable
)

select
    cluster,
    request.resource,
    request.wanted_model,
    node.node_name
from request
inner join node
    using (cluster)
where
    (request.resource = '' and node.resources != 'unknown')
    or misfit(0, request.wanted_model, request.resource, node.gpu_model, node.resources, 0, 0, 0) in ('', 'unknown')
