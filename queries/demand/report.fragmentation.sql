-- Free GPUs of each model by the reason why requests of the window's mix cannot use them; reason fits is usable.
--
-- The FGD measure. If a request does not fit a node, all its free GPUs count as fragmented; else only the parts that are too small. The mean is
-- over time and over the requests of pods that waited, were placed or started in the window, with equal weight. Of shares, only the largest free
-- part is known. CPU, memory, taints and nodes with unknown requests are not included.
--
-- grain:  cluster, gpu_model, reason
-- reads:  facts.node_allocation, period.pod_wait
-- params: since_at, until_at
-- source: facts.node_allocation; period.pod_wait; Weng et al., Beware of Fragmentation, USENIX ATC 2023
-- columns: cluster, gpu_model, reason, free_gpu_hours, free_ratio, largest_request_gpus, request_count
--   reason                model, size, share or affinity; unknown without requests or for a request without a size; fits for usable GPUs
--   free_gpu_hours        h x free GPUs x share of the requests with this reason
with free as (
    select
        cluster,
        coalesce(columns('^(gpu_model|resources)$'), '') as "\0",
        gpu_count as free_gpus,
        if(largest_part_gpus is null, floor(gpu_count + 1e-9), whole_count) as whole_gpus,
        largest_part_gpus,
        sum(overlap_ms(start_at, end_at, $since_at::timestamp, $until_at::timestamp) / 3600000) as node_hours
    from facts.node_allocation
    where state = 'free' and start_at < $until_at and end_at > $since_at
    group by all
),

mix as (
    select
        columns('^(cluster|wanted_model)$'),
        regexp_replace(pod.resource, '[^a-zA-Z0-9_]', '_', 'g') as resource,
        requested_gpus,
        count(*) as pod_count,
        sum(count(*)) over (partition by cluster)::bigint as request_count
    from period.pod_wait as pod
    group by cluster, wanted_model, pod.resource, requested_gpus
),

pair as (
    select
        free.*,
        coalesce(mix.request_count, 0) as request_count,
        coalesce(mix.pod_count / mix.request_count, 1) * free.node_hours as weight,
        misfit(
            mix.requested_gpus, coalesce(mix.wanted_model, 'unknown'), mix.resource,
            free.gpu_model, free.resources, free.free_gpus, free.whole_gpus, free.largest_part_gpus
        ) as misfit,
        if(misfit = '' and mix.requested_gpus >= 1, free.free_gpus - free.whole_gpus, 0) as leftover_gpus
    from free
    left join mix
        using (cluster)
),

part as (
    select
        *,
        unnest([
            struct_pack(reason := if(misfit = '', 'fits', misfit), gpu_hours := weight * (free_gpus - leftover_gpus)),
            struct_pack(reason := 'share', gpu_hours := weight * leftover_gpus)
        ], recursive := true)
    from pair
)

select
    columns('^(cluster|gpu_model|reason)$'),
    sum(gpu_hours) as free_gpu_hours,
    sum(gpu_hours) / sum(sum(gpu_hours)) over (partition by cluster, gpu_model) as free_ratio,
    max(max(whole_gpus)) over (partition by cluster, gpu_model) as largest_request_gpus,
    any_value(request_count) as request_count
from part
where gpu_hours > 0
group by cluster, gpu_model, reason
