-- Team of each namespace that held GPUs; '' without a team label.
--
-- grain:  cluster, namespace
-- reads:  period.workload
select
    columns('^(cluster|namespace)$'),
    max(team) as team
from period.workload
group by cluster, namespace
