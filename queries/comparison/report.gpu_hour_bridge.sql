-- Bridge from the GPU-hours of the previous period to those of this one; the steps add up exactly.
--
-- In order: before; window_length; capacity_removed, capacity_added (GPUs of one window only); ended, new (workloads of one window only); grew,
-- shrank (workloads of both, at the effectiveness of before); more_effective, less_effective; after. Effective hours are null where less than half of
-- allocated time is measured. Only clusters with data for all days of both periods; allocated hours where most of both is known.
--
-- grain:  cluster, gpu_model, measure, step
-- reads:  period.allocated_change, period.capacity, previous.capacity
-- params: figure_min_coverage_ratio, window_ratio
-- source: period.ledger and period.capacity of both windows
-- columns: cluster, gpu_model, measure, step, position, gpu_hours, subject_count, unknown_reasons
--   gpu_hours      h of whole GPUs; for a step the change
with pod as (
    select
        *,
        namespace || '/' || workload as name,
        -- A rounding error of sums is not a change.
        round(allocated_gpu_hours - previous_allocated_gpu_hours, 9) as allocated_change_gpu_hours,
        -- Effective share of the previous allocated time; without previous time, the current share: what is new or has ended is no more or less effective.
        coalesce(
            previous_effective_gpu_hours / nullif(previous_allocated_gpu_hours, 0), effective_gpu_hours / nullif(allocated_gpu_hours, 0)
        ) as previous_effective_ratio
    from period.allocated_change
),

pod_step as (
    select
        columns('^(cluster|gpu_model|name)$'),
        case
            when presence = 'removed' then 'capacity_removed'
            when presence = 'added' then 'capacity_added'
            when not allocated_now then 'ended'
            when not allocated_before then 'new'
            when allocated_change_gpu_hours > 0 then 'grew'
            else 'shrank'
        end as change_step,
        unnest([
            { 'measure': 'allocated', 'step': 'before', 'gpu_hours': previous_allocated_gpu_hours / $window_ratio },
            { 'measure': 'allocated', 'step': 'window_length', 'gpu_hours': previous_allocated_gpu_hours * (1 - 1 / $window_ratio) },
            { 'measure': 'allocated', 'step': change_step, 'gpu_hours': allocated_change_gpu_hours },
            { 'measure': 'allocated', 'step': 'after', 'gpu_hours': allocated_gpu_hours },
            { 'measure': 'effective', 'step': 'before', 'gpu_hours': previous_effective_gpu_hours / $window_ratio },
            { 'measure': 'effective', 'step': 'window_length', 'gpu_hours': previous_effective_gpu_hours * (1 - 1 / $window_ratio) },
            { 'measure': 'effective', 'step': change_step, 'gpu_hours': allocated_change_gpu_hours * previous_effective_ratio },
            {
                'measure': 'effective',
                'step': if(effective_gpu_hours > allocated_gpu_hours * previous_effective_ratio, 'more_effective', 'less_effective'),
                'gpu_hours': round(effective_gpu_hours - allocated_gpu_hours * previous_effective_ratio, 9)
            },
            { 'measure': 'effective', 'step': 'after', 'gpu_hours': effective_gpu_hours }
        ], recursive := true)
    from pod
),

measured as (
    select
        cluster,
        gpu_model,
        coalesce(
            sum(previous_unmeasured_gpu_hours) > (1 - $figure_min_coverage_ratio) * sum(previous_allocated_gpu_hours)
            or sum(unmeasured_gpu_hours) > (1 - $figure_min_coverage_ratio) * sum(allocated_gpu_hours),
            false
        ) as is_unmeasured
    from period.allocated_change
    group by cluster, gpu_model
),

capacity as (
    select
        cluster,
        -- A GPU without data in a window has no model in it.
        coalesce(arg_max(gpu_model, day) filter (where period = 'now' and gpu_model != ''), max(gpu_model) filter (where period = 'before'), '') as gpu_model,
        greatest(count(distinct nullif(device_uuid, '')), max(device_count))::bigint as gpu_count,
        coalesce(sum(capacity_seconds) filter (where period = 'before') / 3600, 0) * $window_ratio as previous_gpu_hours,
        coalesce(sum(capacity_seconds) filter (where period = 'now') / 3600, 0) as gpu_hours
    from both_capacities(previous.capacity, period.capacity)
    where cluster in (select before.cluster from previous.capacity as before)
    -- An exporter that begins or ends names the same GPUs of a node that Kubernetes alone lists in the other period.
    group by cluster, if(is_of_node or device_uuid = '', node_name, device_uuid)
),

capacity_step as (
    select
        cluster,
        gpu_model,
        gpu_count,
        'capacity' as measure,
        unnest([
            { 'step': 'before', 'gpu_hours': previous_gpu_hours / $window_ratio },
            { 'step': 'window_length', 'gpu_hours': previous_gpu_hours * (1 - 1 / $window_ratio) },
            {
                'step': case
                    when gpu_hours = 0 then 'capacity_removed'
                    when previous_gpu_hours = 0 then 'capacity_added'
                    when gpu_hours > previous_gpu_hours then 'grew'
                    else 'shrank'
                end,
                'gpu_hours': round(gpu_hours - previous_gpu_hours, 9)
            },
            { 'step': 'after', 'gpu_hours': gpu_hours }
        ], recursive := true)
    from capacity
),

step as (
    select
        pod_step.* similar to '^(cluster|gpu_model|measure|step)$',
        -- Where a part of the hours is not measured, the sum would be only a lower bound.
        if(pod_step.measure = 'effective' and measured.is_unmeasured, null, sum(pod_step.gpu_hours)) as gpu_hours,
        count(distinct pod_step.name) filter (where pod_step.gpu_hours != 0) as subject_count
    from pod_step
    inner join measured
        using (cluster, gpu_model)
    group by pod_step.cluster, pod_step.gpu_model, pod_step.measure, pod_step.step, measured.is_unmeasured
    union all by name
    select
        * exclude (gpu_count) replace (sum(gpu_hours) as gpu_hours),
        coalesce(sum(gpu_count) filter (where gpu_hours != 0), 0)::bigint as subject_count
    from capacity_step
    group by cluster, gpu_model, measure, step
)

select
    columns('^(cluster|gpu_model|measure|step)$'),
    list_position([
        'before', 'window_length', 'capacity_removed', 'capacity_added', 'ended', 'new', 'grew', 'shrank', 'more_effective',
        'less_effective', 'after'
    ], step)::smallint as position,
    gpu_hours,
    subject_count,
    if(gpu_hours is null, map { 'gpu_hours': 'not_collected' }, map_from_entries([])) as unknown_reasons
from step
where gpu_hours != 0 or step in ('before', 'after')
