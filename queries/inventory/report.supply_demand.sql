-- Free GPUs per class of waiting pods, by model and by the reason why these pods do not use them.
--
-- Now is the last known minute of the window. Hours are those in which pods of the class waited. Free GPUs of a node are divided over reasons by the
-- GPUs for which pods wait: first counted reasons (model to memory), then the scheduler's message. In hours in which a node's requests are unknown, its
-- free GPUs are the ledger's mean.
--
-- grain:  cluster, wanted_model, size, gpu_model, reason
-- reads:  facts.ledger_hour, facts.node_allocation, period.capacity, period.holder_day, period.pod_wait
-- params: since_at, until_at
-- source: facts.node_allocation, else facts.ledger_hour; period.pod_wait
-- columns: cluster, wanted_model, size, gpu_model, reason, waiting_gpus, free_gpus, waiting_pod_count, waiting_gpu_hours, free_gpu_hours, unknown_reasons
--   wanted_model       models that pods of the class may use: any, none of the cluster, or unknown without pod snapshots
--   size               GPUs of a pod's request: share, 1, 2-4, 5-8, more, unknown
--   gpu_model          model of the free GPUs; '' where unknown
--   reason             model, size, share, cpu, memory, affinity, taint, quota, gate, other, fits, unknown; none_free where none of the model was free
--   free_gpus          free GPUs of the model now, unused for the reason
--   waiting_pod_count  waiting pods of the class now; the same in each of its rows
--   free_gpu_hours     h x free GPUs in the hours in which they waited
with covered as (
    select distinct
        columns('^(cluster|node_name)$'),
        unnest(generate_series(date_trunc('hour', start_at), end_at - interval 1 millisecond, interval 1 hour)) as hour_start_at
    from facts.node_allocation
),

reported as (
    select
        cluster,
        greatest(start_at, $since_at::timestamp) as start_at,
        least(end_at, $until_at::timestamp) as end_at,
        if(state = 'free', gpu_count, 0) as free_gpus,
        {
            'gpu_model': coalesce(gpu_model, ''), 'resources': coalesce(resources, ''), 'taints': taints, 'free_gpus': free_gpus,
            'whole_gpus': if(largest_part_gpus is null, free_gpus, whole_count), 'largest_part_gpus': largest_part_gpus,
            'cpu_cores': cpu_cores, 'host_memory_bytes': host_memory_bytes
        } as place
    from facts.node_allocation
    where start_at < $until_at and end_at > $since_at
    union all by name
    select
        hour.cluster,
        hour.hour_start_at as start_at,
        least(hour.hour_start_at + interval 1 hour, $until_at::timestamp) as end_at,
        sum(hour.gpu_seconds) / 3600 as free_gpus,
        {
            'gpu_model': capacity.gpu_model, 'resources': '', 'taints': null, 'free_gpus': sum(hour.gpu_seconds) / 3600,
            'whole_gpus': sum(hour.gpu_seconds) / 3600, 'largest_part_gpus': null, 'cpu_cores': null, 'host_memory_bytes': null
        } as place
    from facts.ledger_hour as hour
    inner join period.capacity as capacity
        using (cluster, device_uuid)
    anti join covered
        using (cluster, node_name, hour_start_at)
    left join period.holder_day as holder_day
        using (cluster, device_uuid, day)
    where
        hour.pod = '' and not hour.is_reserved and hour.outage = ''
        and hour.activity not in ('unseen', 'effective', 'ineffective', 'busy')
        and hour.hour_start_at::date = capacity.day and coalesce(holder_day.cause, '') = ''
        and is_in_period(hour.hour_start_at, $since_at, $until_at)
    group by hour.cluster, hour.hour_start_at, capacity.node_name, capacity.gpu_model
    union all by name
    select
        cluster,
        pending_from_at as start_at,
        pending_until_at as end_at,
        wanted_model,
        size,
        requested_gpus,
        { 'cpu_cores': cpu_cores, 'host_memory_bytes': host_memory_bytes } as host,
        regexp_replace(resource, '[^a-zA-Z0-9_]', '_', 'g') as resource,
        if(refusal = '' and (is_refused or source != 'snapshot'), 'unknown', refusal) as refusal
    from period.pod_wait
    where pending_from_at < pending_until_at
),

-- Rows of the present have the time infinity and amounts in GPUs; rows of an hour have amounts in GPU-hours.
timed as (
    select
        *,
        unnest(generate_series(date_trunc('hour', start_at), end_at - interval 1 millisecond, interval 1 hour)) as hour_start_at,
        overlap_ms(start_at, end_at, hour_start_at, hour_start_at + interval 1 hour) / 3600000 as amount
    from reported
    union all by name
    select
        *,
        'infinity'::timestamp as hour_start_at,
        1 as amount
    from reported
    qualify
        coalesce(max(end_at) filter (where size is null) over (partition by cluster), $until_at::timestamp) - interval 1 minute
        between start_at and end_at - interval 1 millisecond
),

supply as (
    select
        columns('^(cluster|hour_start_at|place)$'),
        dense_rank() over (order by place) as place_number,
        sum(free_gpus * amount) as free_amount
    from timed
    where size is null
    group by cluster, hour_start_at, place
),

waiting as (
    select
        columns('^(cluster|hour_start_at|wanted_model|size|requested_gpus|host|resource|refusal)$'),
        count(*) as pod_count,
        sum(requested_gpus * amount) as gpu_amount,
        sum(coalesce(requested_gpus, 1) * amount) as weight,
        sum(weight) over (partition by cluster, hour_start_at, wanted_model, size) as class_weight
    from timed
    where size is not null
    group by cluster, hour_start_at, wanted_model, size, requested_gpus, host, resource, refusal
),

demand as (
    select
        columns('^(cluster|wanted_model|size)$'),
        coalesce(sum(pod_count) filter (where hour_start_at = 'infinity'), 0)::bigint as waiting_pod_count,
        if(waiting_pod_count = 0, 0, sum(gpu_amount) filter (where hour_start_at = 'infinity')) as waiting_gpus,
        sum(gpu_amount) filter (where hour_start_at != 'infinity') as waiting_gpu_hours
    from waiting
    group by all
),

-- Hours are added up before the comparison, because the same few pods and places repeat in each hour.
pair as (
    select
        waiting.* exclude (hour_start_at, pod_count, gpu_amount, weight, class_weight),
        waiting.hour_start_at = 'infinity' as is_now,
        supply.place_number,
        any_value(supply.place) as place,
        sum(supply.free_amount * waiting.weight / waiting.class_weight) as free_amount
    from waiting
    left join supply
        using (cluster, hour_start_at)
    group by all
),

judged as (
    select
        *,
        coalesce(place.gpu_model, '') as gpu_model,
        misfit(
            requested_gpus, wanted_model, resource,
            place.gpu_model, place.resources, place.free_gpus, place.whole_gpus, place.largest_part_gpus
        ) as misfit,
        case
            when place_number is null then 'unknown'
            when place.free_gpus = 0 then 'none_free'
            when misfit != '' then misfit
            when host.cpu_cores > place.cpu_cores + 1e-9 then 'cpu'
            when host.host_memory_bytes > place.host_memory_bytes then 'memory'
            when refusal = '' then 'fits'
            else coalesce(nullif(array_to_string(list_sort(list_distinct([
                regexp_extract(part, '^\w+') for part in string_split(refusal, ', ')
                if not starts_with(part, 'taint')
                or place.taints is null
                or list_contains(string_split(place.taints, ', '), substring(part, 7))
                or part = 'taint' and place.taints != ''
            ])), ' or '), ''), 'unknown')
        end as reason
    from pair
),

cell as (
    select
        columns('^(cluster|wanted_model|size|gpu_model|reason)$'),
        sum(free_amount) filter (where is_now) as now_free_gpus,
        sum(free_amount) filter (where not is_now) as free_gpu_hours
    from judged
    group by all
)

select
    cell.* exclude (now_free_gpus, free_gpu_hours),
    demand.waiting_gpus,
    coalesce(cell.now_free_gpus, if(bool_or(cell.now_free_gpus is not null) over same_class, 0, null)) as free_gpus,
    demand.waiting_pod_count,
    demand.waiting_gpu_hours,
    cell.free_gpu_hours,
    unknown_reasons([
        ('waiting_gpus', if(demand.waiting_gpus is null, 'not_collected', null)),
        ('waiting_gpu_hours', if(demand.waiting_gpu_hours is null, 'not_collected', null)),
        ('free_gpus', if(free_gpus is null, if(demand.waiting_pod_count > 0, 'not_collected', 'no_pod'), null)),
        ('free_gpu_hours', if(cell.free_gpu_hours is null, 'not_collected', null))
    ]) as unknown_reasons
from cell
inner join demand
    using (cluster, wanted_model, size)
window same_class as (partition by cell.cluster, cell.wanted_model, cell.size)
-- The reason none_free is left out where the same model has another reason too.
qualify cell.reason != 'none_free' or count(*) over (partition by cell.cluster, cell.wanted_model, cell.size, cell.gpu_model) = 1
