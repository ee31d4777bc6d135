-- The energy of each container on each of its devices. Power is not attributed yet: every figure is unknown.
--
-- grain:  cluster, namespace, pod, pod_uid, container, device_uuid, gpu_instance_id
-- reads:  facts.window_figure
-- params:
-- source: facts.window_figure
-- columns:
--   cluster               cluster name
--   namespace             workload namespace
--   pod                   workload pod
--   pod_uid               its uid; '' where unknown
--   container             workload container
--   device_uuid           UUID of the physical GPU
--   gpu_instance_id       MIG instance; '' for the whole GPU
--   active_joules         J above idle in active time; null until power is attributed
--   held_joules           J above idle while merely held; null until power is attributed
--   idle_joules           J of the idle baseline; null until power is attributed
--   active_joules_kepler  J by Kepler's shares; null until power is attributed
--   active_watts_avg      W, active_joules over observed_seconds; null until power is attributed
--   idle_watts            W, idle baseline; null until power is attributed
--   idle_source           where the idle baseline comes from; none
--   observed_seconds      s in which the device was seen while held
--   method                how the energy was attributed; not_attributed
--   scope                 device: the span is the device's
--   unknown_reasons       figure name → why it is null (docs: queries/README.md); one entry for each null figure
select
    cluster,
    namespace,
    pod,
    pod_uid,
    container,
    device_uuid,
    gpu_instance_id,
    null::double as active_joules,
    null::double as held_joules,
    null::double as idle_joules,
    null::double as active_joules_kepler,
    null::double as active_watts_avg,
    null::double as idle_watts,
    'none' as idle_source,
    observed_seconds,
    'not_attributed' as method,
    'device' as scope,
    map {
        'active_joules': 'not_attributed',
        'held_joules': 'not_attributed',
        'idle_joules': 'not_attributed',
        'active_joules_kepler': 'not_attributed',
        'active_watts_avg': 'not_attributed',
        'idle_watts': 'not_attributed'
    } as unknown_reasons
from facts.window_figure
where subject = 'container_device'
order by all
