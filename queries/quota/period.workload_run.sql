-- Attempts of Kueue's Workloads in the window, each once with what the last of its days knew.
--
-- grain:  cluster, workload_uid, queued_at
-- reads:  facts.workload_run
-- params: since_at, until_at
select
    columns('^(cluster|workload_uid|queued_at)$'),
    max(columns(* exclude (cluster, workload_uid, queued_at, owner_kind, admitted_at)))
from facts.workload_run
where queued_at < $until_at and coalesce(ended_at, 'infinity'::timestamp) > $since_at
group by cluster, workload_uid, queued_at
