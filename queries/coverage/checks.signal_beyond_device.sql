-- Signals observed for longer than their device: an interval was counted twice.
--
-- severity: fail
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  period.signal_day
-- params:
-- source: period.signal_day
-- columns: cluster, device_uuid, gpu_instance_id, day, signal, device_seconds, observed_seconds
--   observed_seconds  s in which the signal was known
select
    cluster,
    device_uuid,
    gpu_instance_id,
    day,
    signal,
    device_seconds,
    observed_seconds
from period.signal_day
where observed_seconds > device_seconds + 0.001
