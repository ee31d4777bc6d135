-- Sizes of waiting pods whose GPU-hours in report.supply_demand are not those of report.pod_wait, or whose free GPUs are not all that are free.
--
-- severity: fail
-- grain:  cluster, size, wanted_model
-- reads:  report.pod_wait, report.supply_demand
-- params:
-- source: report.supply_demand against report.pod_wait, and each class against the others
-- columns: cluster, size, wanted_model, free_gpus, expected_free_gpus, waiting_gpu_hours, pending_gpu_hours
--   size                size of the request in GPUs
--   wanted_model        models that pods of the class may use
--   free_gpus           free GPUs of the class
--   expected_free_gpus  the most of any class
--   waiting_gpu_hours   h x GPUs of all classes of the size
--   pending_gpu_hours   h x GPUs of the size in report.pod_wait
with class as (
    select
        cluster,
        size,
        wanted_model,
        sum(free_gpus) as free_gpus,
        max(waiting_gpu_hours) as waiting_gpu_hours
    from report.supply_demand
    group by all
),

compared as (
    select
        cluster,
        size,
        coalesce(class.wanted_model, '') as wanted_model,
        class.free_gpus,
        max(class.free_gpus) over (partition by cluster) as expected_free_gpus,
        coalesce(sum(class.waiting_gpu_hours) over (partition by cluster, size), 0) as waiting_gpu_hours,
        wait.pending_gpu_hours
    from report.pod_wait as wait
    left join class
        using (cluster, size)
)

select *
from compared
where abs(expected_free_gpus - free_gpus) > 1e-6 or abs(waiting_gpu_hours - pending_gpu_hours) > 1e-6 * (1 + pending_gpu_hours)
