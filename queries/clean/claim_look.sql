-- Clusters of which somebody looked at the resource claims on the day: without a look nothing is known of what stands reserved.
--
-- grain:  cluster
-- reads:  clean.state_look
-- params:
-- source: clean.state_look
-- columns:
--   cluster     cluster name
--   look_count  looks
select
    cluster,
    count(*) as look_count
from clean.state_look
where kind = 'resourceclaims.resource.k8s.io'
group by cluster
