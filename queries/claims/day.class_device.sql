-- Devices of DRA drivers that each device class selects, by snapshot, where the class can be evaluated.
--
-- A class can be evaluated if it requests a driver and, at most, a type of device; only the scheduler can evaluate other conditions. Classes of
-- partitions have no row: partitions of a GPU overlap, so their sum is unknown. Incomplete pools and repeated names do not count.
--
-- grain:  cluster, device_class, driver, pool, device, observed_at
-- reads:  lake.device, lake.device_class
-- source: DeviceClass spec.selectors; ResourceSlice
with class as (
    select
        *,
        regexp_extract(
            list_aggregate(selectors, 'string_agg', ' && '),
            '^\s*device\.driver\s*==\s*[''"]([^''"]+)[''"]\s*(?:&&\s*device\.attributes\[[''"][^''"]+[''"]\]\.type\s*==\s*[''"](\w+)[''"]\s*)?$',
            ['driver', 'device_type']
        ) as requested
    from lake.device_class
),

member as (
    select
        class.cluster,
        class.device_class,
        device.* similar to '^(driver|pool|device|node_name)$',
        len([taint for taint in device.taints if taint like '%:NoSchedule' or taint like '%:NoExecute']) > 0 as is_tainted,
        device.is_pool_complete and device.is_name_unique as is_allocatable,
        class.observed_at::timestamp as observed_at,
        bool_and(device.device_type = 'gpu' or (device.device_type != 'mig' and cardinality(device.consumed_counters) = 0)) over (
            partition by class.cluster, class.device_class, class.observed_at
        ) as is_countable
    from class
    inner join lake.device as device
        using (cluster, observed_at)
    where
        class.requested.driver = device.driver
        and class.requested.device_type in ('', device.device_type)
        and class.requested.driver != ''
)

select * exclude (is_allocatable, is_countable)
from member
where is_countable and is_allocatable
