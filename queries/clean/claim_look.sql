-- Clusters of which somebody looked at the resource claims on the day: without a look nothing is known of what stands reserved.
--
-- grain:  cluster
-- reads:  clean.state_look
-- params:
-- source: clean.state_look
-- columns:
--   cluster  cluster name
select distinct cluster
from clean.state_look
where kind = 'resourceclaims.resource.k8s.io'
