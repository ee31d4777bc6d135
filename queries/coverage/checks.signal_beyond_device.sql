-- Signals with a longer observed time than their device: an interval counts twice.
--
-- severity: fail
-- grain:  cluster, device_uuid, gpu_instance_id, day, signal
-- reads:  day.signal_absence
-- columns: cluster, device_uuid, gpu_instance_id, day, signal, device_seconds, observed_seconds
--   observed_seconds  s in which the signal was known
select columns('^(cluster|device_uuid|gpu_instance_id|day|signal|device_seconds|observed_seconds)$')
from day.signal_absence
where observed_seconds > device_seconds + 0.001
