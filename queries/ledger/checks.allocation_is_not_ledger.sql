-- Pod days whose allocated GPU-hours differ between facts.power_day and the ledger: they take different parts of a GPU for a partition.
--
-- severity: warn
-- grain:  cluster, namespace, pod, pod_uid, day
-- reads:  facts.ledger_day, facts.power_day
-- source: facts.power_day against facts.ledger_day
-- columns: cluster, namespace, pod, pod_uid, day, allocated_gpu_hours, ledger_gpu_hours
--   allocated_gpu_hours  h of the pod's containers on their GPUs
with part as (
    select
        columns('^(cluster|namespace|pod|pod_uid|day)$'),
        gpu_seconds as allocated_seconds,
        0 as ledger_seconds
    from facts.power_day
    union all by name
    select
        ledger.* similar to '^(cluster|namespace|pod|pod_uid|day)$',
        0 as allocated_seconds,
        ledger.gpu_seconds as ledger_seconds
    from facts.ledger_day as ledger
    where ledger.pod != '' and not ledger.is_reserved
)

select
    * exclude (allocated_seconds, ledger_seconds),
    sum(allocated_seconds) / 3600 as allocated_gpu_hours,
    sum(ledger_seconds) / 3600 as ledger_gpu_hours
from part
group by all
having abs(sum(allocated_seconds) - sum(ledger_seconds)) > 1e-9 * greatest(sum(allocated_seconds), sum(ledger_seconds)) + 1e-6
