-- Clusters with a snapshot of ResourceClaims on the day; without one, reservations are unknown.
--
-- grain:  cluster
-- reads:  day.state_snapshot
select distinct cluster
from day.state_snapshot
where kind = 'resourceclaims.resource.k8s.io'
