-- Time over value per UTC day by GPU model and workload: facts.value_hour added, each row by its part of the GPU.
--
-- revision: 3
-- grain:  cluster, day, gpu_model, namespace, workload_kind, workload, signal
-- reads:  facts.pod_workload, facts.value_hour
-- params: since_at, until_at
-- columns: cluster, day, gpu_model, namespace, workload_kind, workload, signal, bins, bin_milliseconds
--   namespace         namespace of the workload; '' where unallocated
--   workload_kind     kind of the workload (Deployment, StatefulSet, Job, …), by name where unknown; '' where unallocated
--   workload          name of the workload (workload_of); '' where unallocated
--   bin_milliseconds  ms x parts of GPUs with a value in each bin
with binned as (
    select
        value_hour.cluster,
        value_hour.start_at::date as day,
        value_hour.gpu_model,
        value_hour.namespace,
        if(value_hour.pod = '', '', coalesce(nullif(maker.workload_kind, ''), 'by name')) as workload_kind,
        if(value_hour.pod = '', '', workload_of(maker.workload_kind, maker.workload, workload_by_name(value_hour.pod))) as workload,
        value_hour.signal,
        value_hour.part_ratio,
        unnest(value_hour.bins) as bin,
        unnest(value_hour.bin_milliseconds) as milliseconds
    from facts.value_hour
    left join facts.pod_workload as maker
        using (cluster, namespace, pod, pod_uid)
    where value_hour.start_at < $until_at and date_trunc('hour', value_hour.start_at) + interval 1 hour > $since_at
),

added as (
    select
        * exclude (part_ratio, milliseconds),
        -- Whole ms of each part, so that sums are equal in any order.
        sum(round(part_ratio * milliseconds)::bigint)::bigint as milliseconds
    from binned
    group by all
)

select
    * exclude (bin, milliseconds),
    list(bin order by bin) as bins,
    list(milliseconds order by bin) as bin_milliseconds
from added
group by all
