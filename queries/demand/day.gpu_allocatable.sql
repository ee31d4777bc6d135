-- Allocatable GPUs of each node under any resource name, and whether the scheduler could place pods there.
--
-- If GPUs have several names (device plugin with MIG, Koordinator, device class), the name with the most allocatable GPU time counts.
--
-- grain:  cluster, source, node_name, resource, state, start_at
-- reads:  day.accelerator_resource, day.allocatable, day.class_device, day.gpu_node
-- source: day.allocatable
-- columns:
--   resource           resource name that counts
--   state              schedulable, cordoned, not_ready or tainted; null where unknown
--   allocatable_units  GPUs that may be allocated
--   unhealthy_units    unhealthy GPUs
with unit as (
    select distinct
        columns('^(cluster|resource|unit_gpus)$'),
        if(starts_with(resource, 'koordinator.sh/'), resource, '') as name
    from day.accelerator_resource
    where unit_gpus > 0
    union by name
    select distinct
        cluster,
        device_class || '.deviceclass.resource.k8s.io/devices' as resource,
        1 as unit_gpus,
        resource as name
    from day.class_device
    where regexp_matches(driver, '^(gpu|gaudi|tpu)[.]')
),

sized as (
    select
        allocatable.* exclude (is_opencosts, allocatable_units, unhealthy_units),
        unit.name,
        unit.unit_gpus * if(unit.name = '' and unit.unit_gpus = 1, coalesce(ratio.replica_gpus, 1), 1) as gpus,
        allocatable.allocatable_units * gpus as allocatable_units,
        allocatable.unhealthy_units * gpus as unhealthy_units
    from day.allocatable as allocatable
    inner join unit
        using (cluster, resource)
    left join day.gpu_node as ratio
        using (cluster, node_name)
    where allocatable.node_name != ''
),

named as (
    select
        columns('^(cluster|source|node_name|name)$'),
        sum(allocatable_units * epoch_ms(end_at - start_at)) as allocatable_unit_ms
    from sized
    group by cluster, source, node_name, name
    qualify row_number() over (partition by cluster, source, node_name order by allocatable_unit_ms desc, name asc) = 1
)

select sized.* exclude (name, gpus)
from sized
inner join named
    using (cluster, source, node_name, name)
