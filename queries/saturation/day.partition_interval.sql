-- Parts of each GPU over time: MIG instances, AMD partitions, tiles, and the rest. A GPU that is not partitioned is one part.
--
-- An instance counts while its series exist, even without data. During a new partitioning, instances that together exceed the GPU are cut to it.
-- Where only instances have data, the longest one is the GPU's time.
--
-- grain:  cluster, device_uuid, gpu_instance_id, start_at
-- reads:  day.device_run, day.interval_saturation, day.sample_sum, facts.device_hour
-- source: day.device_run; slices by GPU_I_PROFILE
-- columns:
--   profile       profile; the longest-lasting one where an id has several
--   is_unsliced   whether the part is the rest outside all instances
--   seen_seconds  s in which the whole GPU had data
--   part_ratio    its share of the GPU by its profile, without parts inside it
--   gpu_seconds   s x its part
with step as (
    select columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at|start_at|end_at|observed_seconds)$')
    from day.sample_sum
    where is_whole_hour
    union all by name
    select columns('^(cluster|device_uuid|gpu_instance_id|hour_start_at|start_at|end_at|observed_seconds)$')
    from day.interval_saturation
),

-- The GPU's own seconds; if only its instances have data, the longest of theirs, whose sum may be longer than the hour.
hour as (
    select
        columns('^(cluster|device_uuid|hour_start_at)$'),
        bool_or(gpu_instance_id = '') as has_board,
        coalesce(max(observed_seconds) filter (where gpu_instance_id = ''), max(observed_seconds)) as seen_seconds,
        max(gpu_model) as gpu_model
    from facts.device_hour
    group by all
),

longest as (
    select
        columns('^(cluster|device_uuid|hour_start_at|start_at|end_at)$'),
        coalesce(max(observed_seconds) filter (where gpu_instance_id = ''), 0) as board_seconds,
        max(observed_seconds) as longest_seconds
    from step
    group by all
),

gpu as (
    select
        longest.* exclude (board_seconds, longest_seconds),
        hour.gpu_model,
        if(
            hour.has_board,
            longest.board_seconds,
            longest.longest_seconds * hour.seen_seconds
            / sum(longest.longest_seconds) over (partition by longest.cluster, longest.device_uuid, longest.hour_start_at)
        ) as seen_seconds
    from longest
    inner join hour
        using (cluster, device_uuid, hour_start_at)
),

run as (
    select
        gpu.*,
        run.gpu_instance_id,
        coalesce(
            arg_max(run.gpu_instance_profile, overlap_ms(run.start_at, run.end_at, gpu.start_at, gpu.end_at)) filter (
                where run.gpu_instance_profile != ''
            ), ''
        ) as profile,
        sum(overlap_ms(run.start_at, run.end_at, gpu.start_at, gpu.end_at)) / 1000 as lived_seconds
    from gpu
    inner join day.device_run as run
        using (cluster, device_uuid)
    where run.gpu_instance_id != '' and run.start_at < gpu.end_at and run.end_at > gpu.start_at
    group by all
),

-- A GPU instance with compute instances keeps the rest that they do not use.
inner_part as (
    select
        columns('^(cluster|device_uuid|start_at)$'),
        split_part(gpu_instance_id, '/', 1) as gpu_instance_id,
        sum(partition_ratio(profile, gpu_model)) as inner_ratio
    from run
    where contains(gpu_instance_id, '/')
    group by all
),

part as (
    select
        run.* exclude (lived_seconds),
        greatest(0, partition_ratio(run.profile, run.gpu_model) - coalesce(inner_part.inner_ratio, 0)) as part_ratio,
        least(run.seen_seconds, greatest(run.lived_seconds, coalesce(step.observed_seconds, 0))) as due_seconds
    from run
    left join step
        using (cluster, device_uuid, gpu_instance_id, start_at)
    left join inner_part
        using (cluster, device_uuid, gpu_instance_id, start_at)
),

fitted as (
    select
        *,
        part_ratio * least(1, seen_seconds / nullif(sum(part_ratio * due_seconds) over (
            partition by cluster, device_uuid, start_at
            -- In a fixed order: a fully partitioned GPU must have the rest 0, and another order of the sum would not give it.
            order by gpu_instance_id
            rows between unbounded preceding and unbounded following
        ), 0)) as gpu_ratio,
        gpu_ratio * due_seconds as gpu_seconds,
        false as is_unsliced
    from part
),

rest as (
    select
        columns('^(cluster|device_uuid|start_at)$'),
        sum(gpu_seconds order by gpu_instance_id) as sliced_seconds
    from fitted
    group by all
)

select *
from fitted
union all by name
select
    gpu.*,
    '' as gpu_instance_id,
    '' as profile,
    rest.sliced_seconds is not null as is_unsliced,
    gpu.seen_seconds as due_seconds,
    1 as part_ratio,
    gpu.seen_seconds - coalesce(rest.sliced_seconds, 0) as gpu_seconds,
    if(is_unsliced, gpu_seconds / nullif(gpu.seen_seconds, 0), 1) as gpu_ratio
from gpu
left join rest
    using (cluster, device_uuid, start_at)
